//! Stores that were damaged in a thousand ways: none makes reading panic, and each damage of data is named.

mod writer;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use plimsoll_arrays::limits::METADATA_BYTES_MAX;
use plimsoll_arrays::metadata::{self, ArrayMetadata, MetadataError};
use plimsoll_arrays::read::{FaultError, StoreError, VerifyOptions};
use plimsoll_arrays::sink::{Memory, Operation, Sink};
use plimsoll_arrays::{ArraySpec, Codec, DataType, Layout, Levels, Store};

const DAMAGES: u64 = 1000;
const LENGTH: u64 = 9;
/// The kind of damage that puts one object in the place of another.
const SWAP: usize = 5;

fn spec(codec: &str, is_sharded: bool) -> ArraySpec {
    ArraySpec {
        codec: codec.parse().unwrap(),
        shard: is_sharded.then(|| vec![4, 16, 16]),
        levels: Levels::Count(2),
        order: Some(vec![0, 2, 1]),
        ..ArraySpec::new(vec![0, 21, 19], DataType::U16, vec![2, 8, 8])
    }
}

fn store(codec: &str, is_sharded: bool) -> Memory {
    let memory = Memory::default();
    let layout = Layout::new(&spec(codec, is_sharded)).unwrap();
    let count = LENGTH as usize * 21 * 19;
    writer::write(&memory, &layout, LENGTH, &writer::elements(DataType::U16, count, 7));
    memory
}

fn open(memory: &Memory) -> Result<Store, StoreError> {
    Store::open(Arc::new(memory.clone()))
}

/// Everything that a store holds, as a reader sees it; none if it cannot be read.
fn seen(memory: &Memory) -> Option<Vec<(ArrayMetadata, Vec<u8>)>> {
    let store = open(memory).ok()?;
    let levels = store.levels().iter().enumerate();
    levels.map(|(number, level)| Some((level.metadata.clone(), store.read_level(number).ok()?))).collect()
}

/// What reading a damaged store must end in.
#[derive(Debug, PartialEq)]
enum Outcome {
    /// A fault or an error, with a text.
    Named,
    /// The same data as before.
    Unchanged,
    /// Nothing is wrong with it, but it is another store.
    Other,
}

fn outcome(memory: &Memory, whole: &[(ArrayMetadata, Vec<u8>)]) -> Outcome {
    let Ok(store) = open(memory) else { return Outcome::Named };
    let _ = store.info();
    let verified = store.verify(&VerifyOptions::default()).unwrap();
    if let Some(fault) = verified.faults.first() {
        assert!(!fault.key.is_empty() && !fault.to_string().is_empty());
        return Outcome::Named;
    }
    match seen(memory) {
        Some(now) if now == whole => Outcome::Unchanged,
        _ => Outcome::Other,
    }
}

/// A generator of damages that gives the same ones again for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % count.max(1)
    }
}

/// Damages one object; gives its key, and whether it was put in the place of another, whole as it was: for as long as no
/// checksum covers the place, nobody can see that.
fn damage(memory: &Memory, dice: &mut Dice) -> (String, bool) {
    let mut objects = memory.objects();
    let keys: Vec<String> = objects.keys().cloned().collect();
    let key = keys[dice.below(keys.len())].clone();
    let other = objects[&keys[dice.below(keys.len())]].clone();
    let object = objects.get_mut(&key).unwrap();
    let length = object.len();
    let at = dice.below(length);
    let kind = dice.below(7);
    match kind {
        0 => object.truncate(at),
        1 => object[at] ^= 1 << dice.below(8),
        2 => object[at] = dice.below(256) as u8,
        3 => object.extend(vec![0; 1 + dice.below(100)]),
        4 => object[length.saturating_sub(1 + dice.below(70))] ^= 0x81,
        SWAP => *object = other,
        _ => drop(object.drain(at..(at + 1 + dice.below(40)).min(length))),
    }
    (key, kind == SWAP)
}

/// Codecs whose chunks carry a checksum: there, no damage of data stays unseen.
const CHECKED: [&str; 2] = ["zstd:3", "gzip:5"];
const UNCHECKED: [&str; 4] = ["none", "blosc:lz4:5:shuffle", "blosc:zstd:3:bitshuffle", "blosc:lz4:0:noshuffle"];

#[test]
fn a_thousand_damages_each_are_named_or_change_nothing() {
    for (codec, is_checked) in
        CHECKED.map(|codec| (codec, true)).into_iter().chain(UNCHECKED.map(|codec| (codec, false)))
    {
        for is_sharded in [true, false] {
            let sound = store(codec, is_sharded);
            let whole = seen(&sound).unwrap();
            for seed in 0..DAMAGES {
                let memory = copy_of(&sound);
                let (damaged, is_swapped) = damage(&memory, &mut Dice(seed * 2 + 1));
                let outcome = catch_unwind(AssertUnwindSafe(|| outcome(&memory, &whole)));
                let outcome = outcome.unwrap_or_else(|_| panic!("{codec}, seed {seed}: panicked"));
                let is_seen = is_checked && !is_swapped && !damaged.ends_with(metadata::FILE);
                assert!(!(is_seen && outcome == Outcome::Other), "{codec}, seed {seed}: {damaged}");
            }
        }
    }
}

fn copy_of(memory: &Memory) -> Memory {
    let copy = Memory::default();
    memory.objects().iter().for_each(|(key, bytes)| copy.put(key, bytes).unwrap());
    copy
}

#[test]
fn a_whole_store_is_sound() {
    for codec in CHECKED.into_iter().chain(UNCHECKED) {
        for is_sharded in [true, false] {
            let memory = store(codec, is_sharded);
            let store = open(&memory).unwrap();
            let verified = store.verify(&VerifyOptions::default()).unwrap();
            assert!(verified.is_sound(), "{codec}: {:?}", verified.faults);
            let info = store.info().unwrap();
            assert_eq!(info.codec, codec.parse::<Codec>().unwrap());
            assert_eq!(verified.chunks, info.levels.iter().map(|level| level.stored_chunks).sum::<u64>());
            assert_eq!(info.levels[0].grid.shape, [LENGTH, 21, 19]);
            assert!(info.ratio().unwrap() > 0.5);
        }
    }
}

/// Changes a field of the metadata of level 0.
fn lie(memory: &Memory, pointer: &str, value: serde_json::Value) {
    let mut objects = memory.objects();
    let text = objects.get_mut("0/zarr.json").unwrap();
    let mut json: serde_json::Value = serde_json::from_slice(text).unwrap();
    *json.pointer_mut(pointer).unwrap() = value;
    *text = json.to_string().into_bytes();
}

fn first_fault(memory: &Memory) -> FaultError {
    let verified = open(memory).unwrap().verify(&VerifyOptions::default()).unwrap();
    verified.faults.into_iter().next().expect("a fault").what
}

#[test]
fn lying_metadata_are_caught_by_what_is_there() {
    let memory = store("zstd:1", true);
    lie(&memory, "/shape", serde_json::json!([3, 21, 19]));
    assert!(matches!(first_fault(&memory), FaultError::LevelShape { .. }));

    let memory = store("zstd:1", true);
    lie(&memory, "/data_type", serde_json::json!("float64"));
    assert!(matches!(first_fault(&memory), FaultError::Codec(_)));

    let memory = store("none", false);
    lie(&memory, "/chunk_grid/configuration/chunk_shape", serde_json::json!([1024, 1024, 1024]));
    let fault = first_fault(&memory);
    assert!(matches!(fault, FaultError::Memory { .. } | FaultError::Outside { .. }), "{fault}");
}

/// A file of any size may lie there: its size is asked for first.
#[test]
fn metadata_that_are_too_large_are_not_even_read() {
    let memory = store("none", true);
    memory.objects().insert("zarr.json".to_owned(), vec![b' '; METADATA_BYTES_MAX as usize + 1]);
    memory.fail_when(|operation, _| (operation == Operation::Get).then_some(std::io::ErrorKind::OutOfMemory));
    let error = open(&memory).unwrap_err();
    assert!(matches!(error, StoreError::Metadata { source: MetadataError::TooLarge { .. }, .. }), "{error}");
}

#[test]
fn absurd_shapes_cost_nothing() {
    let memory = store("gzip:1", true);
    lie(&memory, "/shape", serde_json::json!([1_u64 << 40, 21, 19]));
    let store = open(&memory).unwrap();
    assert!(store.verify(&VerifyOptions::default()).unwrap().is_unfinished, "level 1 is no half of it");
    assert!(matches!(store.read_level(0), Err(StoreError::RegionBytes { .. })));
    assert_eq!(store.info().unwrap().levels[0].grid.shape[0], 1 << 40);
}

#[test]
fn strange_objects_are_named() {
    let memory = store("zstd:1", true);
    memory.put("0/c/0/99/0", b"outside").unwrap();
    assert!(matches!(first_fault(&memory), FaultError::Outside { .. }));
    let memory = store("zstd:1", true);
    memory.put("0/c/99/0/0", b"behind the end, and no shard").unwrap();
    assert!(matches!(first_fault(&memory), FaultError::Shard(_)));
    let memory = store("zstd:1", true);
    memory.put("0/c/00/0/0", b"stray").unwrap();
    assert!(matches!(first_fault(&memory), FaultError::Stray));
    assert!(matches!(open(&Memory::default()), Err(StoreError::NotAStore)));
}

/// What a run that was cut short left is told, and is no fault.
#[test]
fn whole_shards_behind_the_end_are_counted_and_sound() {
    let memory = store("zstd:1", true);
    let shard = memory.objects()["0/c/0/0/0"].clone();
    memory.put("0/c/7/0/0", &shard).unwrap();
    let found = open(&memory).unwrap().verify(&VerifyOptions::default()).unwrap();
    assert!(found.is_sound(), "{:?}", found.faults);
    assert_eq!(found.behind_end, 1);
}

#[test]
fn no_path_leads_out_of_the_store() {
    let memory = store("none", true);
    let mut objects = memory.objects();
    let text = String::from_utf8(objects["zarr.json"].clone()).unwrap();
    objects.insert("zarr.json".to_owned(), text.replace("\"path\": \"1\"", "\"path\": \"../1\"").into_bytes());
    drop(objects);
    assert!(open(&memory).unwrap_err().to_string().contains("../1"));
}

#[test]
fn regions_are_cut_out_of_a_level() {
    let memory = store("blosc:lz4:5:shuffle", true);
    let store = open(&memory).unwrap();
    let whole = store.read_level(0).unwrap();
    let region = store.read_region(0, &[1, 7, 3], &[6, 10, 16]).unwrap();
    for (at, element) in region.chunks(2).enumerate() {
        let (t, y, x) = (1 + at / 160, 7 + at / 16 % 10, 3 + at % 16);
        assert_eq!(element, &whole[2 * ((t * 21 + y) * 19 + x)..][..2]);
    }
    assert!(matches!(store.read_region(0, &[0, 0, 0], &[10, 1, 1]), Err(StoreError::Region { .. })));
    assert!(matches!(store.read_region(9, &[0], &[1]), Err(StoreError::NoSuchLevel { .. })));
}
