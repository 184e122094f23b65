//! Arrays of every kind, read back by the programs of others: zarr-python, tensorstore and zarrs; and theirs, by us.
//! The Python packages are installed by `cargo xtask test test`; without them this fails.

mod writer;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use plimsoll_arrays::read::VerifyOptions;
use plimsoll_arrays::sink::Filesystem;
use plimsoll_arrays::{ArraySpec, Axis, DataType, Layout, Levels, Reduction, Store};
use serde_json::{Value, json};

/// One array of the matrix.
struct Case {
    name: String,
    spec: ArraySpec,
    /// Elements along the first dimension, which grows in some cases.
    length: u64,
}

/// Shape, chunk, shard, storage order. Most are ragged at every end.
type Cut = (&'static [u64], &'static [u64], Option<&'static [u64]>, Option<&'static [usize]>);

const CUTS: [Cut; 9] = [
    (&[1000], &[64], Some(&[256]), None),
    (&[37], &[40], None, None),
    (&[0, 33], &[4, 16], Some(&[8, 32]), None),
    (&[64, 64], &[32, 16], None, Some(&[0, 1])),
    (&[0, 21, 19], &[2, 8, 8], Some(&[4, 16, 16]), Some(&[0, 2, 1])),
    (&[5, 6, 7], &[2, 4, 5], None, Some(&[0, 2, 1])),
    (&[0, 3, 10, 11], &[1, 2, 4, 8], Some(&[3, 2, 8, 8]), Some(&[0, 3, 1, 2])),
    (&[3, 2, 5, 6, 4], &[2, 1, 3, 4, 4], Some(&[4, 2, 6, 4, 4]), Some(&[0, 2, 1, 4, 3])),
    (&[2, 2, 3, 2, 3, 2, 5], &[1, 2, 2, 1, 3, 2, 4], Some(&[2, 2, 4, 1, 3, 2, 4]), None),
];

const CODECS: [&str; 10] = [
    "none",
    "zstd:3",
    "zstd:-1",
    "gzip:6",
    "blosc:lz4:5:shuffle",
    "blosc:lz4:5:bitshuffle",
    "blosc:lz4:1:noshuffle",
    "blosc:zstd:5:shuffle",
    "blosc:zstd:1:bitshuffle",
    "blosc:zstd:3:noshuffle",
];

/// Fill values, as far as a type can hold them.
const FILLS: [&str; 5] = ["0", "7", "-3", "NaN", "-Infinity"];

const LENGTH: u64 = 11;

fn plain_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (row, data_type) in DataType::ALL.into_iter().enumerate() {
        for (column, codec) in CODECS.into_iter().enumerate() {
            for (at, cut) in CUTS.into_iter().enumerate().filter(|(at, _)| (at + row + column) % 3 == 0) {
                let fills: Vec<_> = FILLS.iter().filter(|fill| holds(fill, data_type)).collect();
                let fill = fills[(row + column + at) % fills.len()];
                let mut spec = cut_as(cut, data_type);
                spec.codec = codec.parse().unwrap();
                spec.fill = fill.parse().unwrap();
                spec.attributes.insert("made for".to_owned(), json!({ "codec": codec, "cut": at }));
                let name = format!("{data_type}-{}-{at}", codec.replace(':', "-"));
                cases.push(case(name, spec));
            }
        }
    }
    cases
}

fn cut_as((shape, chunk, shard, order): Cut, data_type: DataType) -> ArraySpec {
    ArraySpec {
        shard: shard.map(<[u64]>::to_vec),
        order: order.map(<[usize]>::to_vec),
        ..ArraySpec::new(shape.to_vec(), data_type, chunk.to_vec())
    }
}

fn holds(fill: &str, data_type: DataType) -> bool {
    plimsoll_arrays::FillValue::new(fill.parse().unwrap(), data_type).is_ok()
}

fn case(name: String, spec: ArraySpec) -> Case {
    let length = if spec.shape[0] == 0 { LENGTH } else { spec.shape[0] };
    Case { name, spec, length }
}

fn level_cases() -> Vec<Case> {
    let axes = |names: &[&str]| Some(names.iter().map(|axis| axis.parse().unwrap()).collect::<Vec<Axis>>());
    let cuts: [(usize, Option<Vec<Axis>>, Levels); 4] = [
        (2, axes(&["y:micrometer:0.5", "x:micrometer:0.25"]), Levels::Count(3)),
        (4, None, Levels::Auto),
        (5, axes(&["z:micrometer:2", "y", "x"]), Levels::Count(3)),
        (7, axes(&["t:second:0.1", "c", "z", "y", "x"]), Levels::Count(2)),
    ];
    let mut cases = Vec::new();
    for (row, data_type) in DataType::ALL.into_iter().enumerate() {
        for (column, reduction) in Reduction::ALL.into_iter().enumerate() {
            let (cut, axes, levels) = cuts[(row + column) % cuts.len()].clone();
            let codec = CODECS[(row + column) % CODECS.len()].parse().unwrap();
            let spec = ArraySpec { axes, levels, reduction, codec, ..cut_as(CUTS[cut], data_type) };
            cases.push(case(format!("levels-{data_type}-{reduction}"), spec));
        }
    }
    cases
}

impl Case {
    fn layout(&self) -> Layout {
        Layout::new(&self.spec).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// Writes the store and the elements that it must hold; says to the script what they are.
    fn write(&self, folder: &Path, seed: u64) -> Value {
        let layout = self.layout();
        let shape = layout.grid_at(0, self.length).unwrap().shape;
        let elements = writer::elements(self.spec.data_type, shape.iter().product::<u64>() as usize, seed);
        fs::write(folder.join(format!("{}.raw", self.name)), &elements).unwrap();
        let sink = Filesystem::new(folder.join(format!("{}.zarr", self.name))).without_sync();
        writer::write(&sink, &layout, self.length, &elements);
        json!({
            "name": self.name,
            "shape": shape,
            "data_type": layout.data_type().zarr_name(),
            "levels": layout.levels().iter().map(|level| json!({ "path": level.path, "halved": level.halved })).collect::<Vec<_>>(),
            "reduction": layout.reduction().name(),
            "is_group": layout.axes().is_some(),
        })
    }

    /// Reads it back with our own reader.
    fn read_back(&self, folder: &Path) {
        let path = folder.join(format!("{}.zarr", self.name));
        let store = Store::open(Arc::new(Filesystem::new(&path))).unwrap();
        let verified = store.verify(&VerifyOptions::default()).unwrap();
        assert!(verified.is_sound(), "{}: {:?}", self.name, verified.faults);
        let raw = fs::read(folder.join(format!("{}.raw", self.name))).unwrap();
        assert!(store.read_level(0).unwrap() == raw, "{}", self.name);
    }
}

/// The Python that has the packages.
fn python() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a target folder");
    let python = env::var_os("PLIMSOLL_PYTHON").map_or_else(|| target.join("python/bin/python"), PathBuf::from);
    assert!(
        python.exists(),
        "there is no Python with zarr and tensorstore at {}; `cargo xtask python` makes it",
        python.display()
    );
    python
}

fn run_script(what: &str, folder: &Path) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle.py");
    let done = Command::new(python()).arg(script).arg(what).arg(folder).output().unwrap();
    let (said, wrong) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{said}\n{wrong}");
    println!("{said}");
}

#[test]
fn others_read_what_we_write() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let cases: Vec<Case> = plain_cases().into_iter().chain(level_cases()).collect();
    let told = cases.iter().enumerate().map(|(seed, case)| case.write(folder.path(), seed as u64));
    let told: Vec<Value> = told.collect();
    fs::write(folder.path().join("cases.json"), json!(told).to_string()).unwrap();
    cases.iter().for_each(|case| case.read_back(folder.path()));
    run_script("read", folder.path());
}

#[test]
fn we_read_what_others_write() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    run_script("write", folder.path());
    let told: Value = serde_json::from_slice(&fs::read(folder.path().join("cases.json")).unwrap()).unwrap();
    let names: Vec<&str> = told.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(names.len() > 50, "{}", names.len());
    for name in names {
        let sink = Filesystem::new(folder.path().join(format!("{name}.zarr")));
        let store = Store::open(Arc::new(sink)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let verified = store.verify(&VerifyOptions::default()).unwrap();
        assert!(verified.is_sound(), "{name}: {:?}", verified.faults);
        let raw = fs::read(folder.path().join(format!("{name}.raw"))).unwrap();
        assert!(store.read_level(0).unwrap() == raw, "{name}");
    }
}
