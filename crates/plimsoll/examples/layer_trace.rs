//! Records which fragments a language model reads, in which order: a small draft model guesses, a larger one with experts
//! checks, token by token, every weight read through the store. The arithmetic is real, so what a router picks and how many
//! guesses hold depends on the tokens. `tests/placement/recorded` of `plimsoll-fragments` has what it prints.
//! `cargo run --release -p plimsoll --example layer_trace -- [dense|experts] [TOKENS]`

use std::collections::HashMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use plimsoll::fragments::{
    Digest, Fragment, FragmentError, Fragments, FragmentsWatch, PackSpec, Store, StoreLimits, StoreOptions,
    StoredModel, pack_file, read_tensor,
};
use plimsoll::{Bytes, Orchestrator};

const WIDTH: usize = 128;
const INNER: usize = 192;
const WORDS: usize = 256;
const EXPERTS: usize = 8;
/// Tokens that are looked back at.
const BACK: usize = 12;
/// Tokens that the small model guesses before the large one checks them.
const GUESSES: usize = 4;
/// As eight bits are.
const QUALITY: f64 = 0.99;

/// Passes fragments on, and writes down which.
struct Recorder {
    model: StoredModel,
    log: Arc<Mutex<Log>>,
}

#[derive(Default)]
struct Log {
    numbers: HashMap<Digest, usize>,
    bytes: Vec<u64>,
    passes: Vec<Vec<usize>>,
}

impl Fragments for Recorder {
    fn fragment(&self, fragment: &Fragment) -> Result<Arc<Vec<u8>>, FragmentError> {
        let mut log = self.log.lock().expect("nobody panics with it");
        let next = log.bytes.len();
        let number = *log.numbers.entry(fragment.digest).or_insert(next);
        if number == next {
            log.bytes.push(fragment.bytes);
        }
        log.passes.last_mut().expect("a pass has begun").push(number);
        drop(log);
        self.model.fragment(fragment)
    }
}

/// Numbers from a seed, about as weights are.
struct Dice(u64);

impl Dice {
    fn weight(&mut self) -> f32 {
        let mut unit = || {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 40) as f32 / (1 << 24) as f32 - 0.5
        };
        (unit() + unit() + unit()) * 2.0
    }
}

/// One language model: layers of attention and of experts, or of one expert.
struct Language {
    recorder: Recorder,
    layers: usize,
    experts: usize,
}

/// Writes the weights of a model. Two models of the same seed know the same words, and begin with the same layers.
fn write_model(path: &Path, layers: usize, experts: usize) -> std::io::Result<()> {
    let mut shapes = vec![("embed".to_owned(), WORDS * WIDTH), ("head".to_owned(), WORDS * WIDTH)];
    for layer in 0..layers {
        shapes.extend(["query", "key", "value", "out"].map(|name| (format!("{layer}.{name}"), WIDTH * WIDTH)));
        shapes.push((format!("{layer}.router"), WIDTH * experts));
        for expert in 0..experts {
            shapes.extend(["up", "down"].map(|name| (format!("{layer}.{expert}.{name}"), WIDTH * INNER)));
        }
    }
    let (mut end, mut entries, mut data) = (0, Vec::new(), Vec::new());
    for (name, count) in &shapes {
        let seed = name.bytes().fold(7, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        data.extend((0..*count).flat_map(|_| dice.weight().to_le_bytes()));
        let begin = end;
        end += 4 * count;
        entries.push(format!("{name:?}:{{\"dtype\":\"F32\",\"shape\":[{count}],\"data_offsets\":[{begin},{end}]}}"));
    }
    let header = format!("{{{}}}", entries.join(","));
    fs::write(path, [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat())
}

/// A row times a matrix whose rows lie one after another.
fn times(row: &[f32], matrix: &[f32]) -> Vec<f32> {
    let columns = matrix.len() / row.len();
    let mut product = vec![0.0; columns];
    for (x, weights) in row.iter().zip(matrix.chunks_exact(columns)) {
        product.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += x * weight);
    }
    product
}

fn normal(row: &[f32]) -> Vec<f32> {
    let size = (row.iter().map(|x| x * x).sum::<f32>() / row.len() as f32 + 1e-6).sqrt();
    row.iter().map(|x| x / size).collect()
}

fn add(row: &mut [f32], other: &[f32], share: f32) {
    row.iter_mut().zip(other).for_each(|(x, other)| *x += share * other);
}

/// The largest, the first of them.
fn largest(row: &[f32]) -> usize {
    (0..row.len()).fold(0, |best, at| if row[at] > row[best] { at } else { best })
}

impl Language {
    fn weights(&self, name: &str) -> Result<Vec<f32>, FragmentError> {
        let bytes = read_tensor(&self.recorder, self.recorder.model.model(), name, QUALITY)?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect())
    }

    /// What follows each of the last `count` tokens.
    fn pass(&self, tokens: &[usize], count: usize) -> Result<Vec<usize>, FragmentError> {
        self.recorder.log.lock().expect("nobody panics with it").passes.push(Vec::new());
        let embed = self.weights("embed")?;
        let tokens = &tokens[tokens.len().saturating_sub(BACK + count)..];
        let mut rows: Vec<Vec<f32>> =
            tokens.iter().map(|token| embed[token * WIDTH..(token + 1) * WIDTH].to_vec()).collect();
        for layer in 0..self.layers {
            self.attend(layer, &mut rows)?;
            self.think(layer, &mut rows)?;
        }
        let head = self.weights("head")?;
        Ok(rows[rows.len() - count..].iter().map(|row| largest(&times(&normal(row), &head))).collect())
    }

    fn attend(&self, layer: usize, rows: &mut [Vec<f32>]) -> Result<(), FragmentError> {
        let each = |name: &str| -> Result<Vec<Vec<f32>>, FragmentError> {
            let matrix = self.weights(&format!("{layer}.{name}"))?;
            Ok(rows.iter().map(|row| times(&normal(row), &matrix)).collect())
        };
        let (queries, keys, values) = (each("query")?, each("key")?, each("value")?);
        let out = self.weights(&format!("{layer}.out"))?;
        for (at, row) in rows.iter_mut().enumerate() {
            let alike = |key: &Vec<f32>| queries[at].iter().zip(key).map(|(q, k)| q * k).sum::<f32>() / WIDTH as f32;
            let scores: Vec<f32> = keys[..=at].iter().map(|key| alike(key).clamp(-20.0, 20.0).exp()).collect();
            let total: f32 = scores.iter().sum();
            let mut mixed = vec![0.0; WIDTH];
            scores.iter().zip(&values).for_each(|(score, value)| add(&mut mixed, value, score / total));
            add(row, &times(&normal(&mixed), &out), 0.3 / (1 + layer) as f32);
        }
        Ok(())
    }

    /// Each row goes through the two experts that the router picks; experts that no row needs are not read.
    fn think(&self, layer: usize, rows: &mut [Vec<f32>]) -> Result<(), FragmentError> {
        let router = self.weights(&format!("{layer}.router"))?;
        let picked: Vec<Vec<usize>> = rows.iter().map(|row| best_two(&times(&normal(row), &router))).collect();
        for expert in 0..self.experts {
            if !picked.iter().any(|picked| picked.contains(&expert)) {
                continue;
            }
            let [up, down] =
                [self.weights(&format!("{layer}.{expert}.up"))?, self.weights(&format!("{layer}.{expert}.down"))?];
            for (row, _) in rows.iter_mut().zip(&picked).filter(|(_, picked)| picked.contains(&expert)) {
                let inner: Vec<f32> = times(&normal(row), &up).iter().map(|x| x.max(0.0)).collect();
                let thought = times(&inner, &down);
                add(row, &normal(&thought), 0.5 / (1 + layer) as f32);
            }
        }
        Ok(())
    }
}

fn best_two(scores: &[f32]) -> Vec<usize> {
    let first = largest(scores);
    let rest: Vec<f32> =
        scores.iter().enumerate().map(|(at, score)| if at == first { f32::NEG_INFINITY } else { *score }).collect();
    if scores.len() > 1 { vec![first, largest(&rest)] } else { vec![first] }
}

/// The small model guesses, the large one keeps what it would have said, and says one more.
fn speak(small: &Language, large: &Language, count: usize) -> Result<Vec<usize>, FragmentError> {
    let mut tokens = vec![1, 17, 99];
    while tokens.len() < count {
        let mut guessed = tokens.clone();
        for _ in 0..GUESSES {
            guessed.extend(small.pass(&guessed, 1)?);
        }
        let checked = large.pass(&guessed, GUESSES + 1)?;
        let right = guessed[tokens.len()..].iter().zip(&checked).take_while(|(guess, right)| guess == right).count();
        let keep = tokens.len() + right;
        tokens = guessed[..keep].to_vec();
        tokens.push(checked[right]);
    }
    Ok(tokens)
}

fn open(
    orchestrator: &Orchestrator,
    folder: &Path,
    layers: usize,
    experts: usize,
) -> Result<StoredModel, Box<dyn Error>> {
    let (input, packed) = (folder.join(format!("{layers}.safetensors")), folder.join(format!("{layers}.frags")));
    write_model(&input, layers, experts)?;
    let spec = PackSpec { bits: "4,8".parse()?, exact: false };
    pack_file(orchestrator, &input, &packed, &spec, true, &FragmentsWatch::default())?;
    let disk = StoreLimits { bytes: None, reserve: 0 };
    let options = StoreOptions { folder: Some(folder.join("store")), disk, memory: Some(Bytes::mib(64)) };
    Ok(Store::open(orchestrator, &options)?.open_file(&packed)?)
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let experts = if words.iter().any(|word| word == "experts") { EXPERTS } else { 1 };
    let count = words.iter().find_map(|word| word.parse().ok()).unwrap_or(8);
    let folder = std::env::temp_dir().join(format!("plimsoll-layer-trace-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let orchestrator = Orchestrator::builder().cpu(1).build();
    let log = Arc::new(Mutex::new(Log::default()));
    let language = |layers: usize, experts: usize| -> Result<Language, Box<dyn Error>> {
        let model = open(&orchestrator, &folder, layers, experts)?;
        Ok(Language { recorder: Recorder { model, log: Arc::clone(&log) }, layers, experts })
    };
    let (small, large) = (language(2, 1)?, language(6, experts)?);
    let tokens = speak(&small, &large, count);
    fs::remove_dir_all(&folder)?;
    let tokens = tokens?;
    let log = log.lock().expect("nobody panics with it");
    let line = |numbers: &mut dyn Iterator<Item = String>| numbers.collect::<Vec<_>>().join(" ");
    let mut text =
        format!("# {} tokens; first the bytes of each fragment, then the fragments of each pass\n", tokens.len());
    writeln!(text, "{}", line(&mut log.bytes.iter().map(u64::to_string)))?;
    for pass in &log.passes {
        writeln!(text, "{}", line(&mut pass.iter().map(usize::to_string)))?;
    }
    print!("{text}");
    assert!(tokens.len() >= count && !log.passes.is_empty(), "it speaks, and reads");
    Ok(())
}
