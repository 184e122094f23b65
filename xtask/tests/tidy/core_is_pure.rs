//! `plimsoll-core` starts no thread, reads no clock, opens no file, names no GPU API and throws no unseeded dice. Its
//! decisions are then a function of its facts, and the simulator plays them again from a seed.

use crate::source::{imports, names, without_comments};
use crate::tree;

/// What core never names, and why not.
const FORBIDDEN: &[(&str, &str)] = &[
    ("std::thread", "core starts no thread"),
    ("std::sync::mpsc", "core waits for nobody"),
    ("std::sync::Mutex", "core waits for nobody"),
    ("std::sync::RwLock", "core waits for nobody"),
    ("std::sync::Condvar", "core waits for nobody"),
    ("std::time::Instant", "the time is an argument"),
    ("std::time::SystemTime", "the time is an argument"),
    ("Instant::now", "the time is an argument"),
    ("SystemTime::now", "the time is an argument"),
    ("std::fs", "core opens no file"),
    ("std::io", "core reads and writes nothing"),
    ("std::net", "core reaches no network"),
    ("std::os", "core knows no operating system"),
    ("std::process", "core starts no process"),
    ("std::env", "settings are arguments"),
    ("std::collections::HashMap", "its order is random: use FxHashMap"),
    ("std::collections::HashSet", "its order is random: use FxHashSet"),
    ("RandomState", "its order is random"),
    ("rand", "dice are seeded: use crate::dice"),
    ("getrandom", "dice are seeded: use crate::dice"),
    ("wgpu", "core names no GPU API"),
    ("ash", "core names no GPU API"),
    ("tokio", "core starts no thread"),
    ("rayon", "core starts no thread"),
    ("println!", "core prints nothing: write an event"),
    ("eprintln!", "core prints nothing: write an event"),
];

/// What a source names although it must not.
fn wrongs(source: &str) -> Vec<String> {
    let code = without_comments(source);
    let imports = imports(&code);
    let is_named = |path: &str| {
        let inside = |import: &String| import == path || import.starts_with(&format!("{path}::"));
        names_path(&code, path) || imports.iter().any(inside)
    };
    let named = FORBIDDEN.iter().filter(|(path, _)| is_named(path));
    named.map(|(path, why)| format!("names {path}; {why}")).collect()
}

/// A single word counts only where it is used as a path, so that a variable may still be called `hash` or `rand`.
fn names_path(code: &str, path: &str) -> bool {
    if path.contains(':') || path.ends_with('!') {
        names(code, path)
    } else {
        names(code, &format!("{path}::")) || code.contains(&format!("extern crate {path}"))
    }
}

#[test]
fn core_is_pure() {
    let wrong: Vec<String> = tree::rust_files(&tree::root().join("crates/plimsoll-core/src"))
        .iter()
        .flat_map(|path| wrongs(&tree::text(path)).into_iter().map(|wrong| format!("{} {wrong}", tree::shown(path))))
        .collect();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn planted_impurities_are_caught() {
    for planted in [
        "use std::thread;",
        "fn f() { std::thread::spawn(|| ()); }",
        "use std::time::{Duration, Instant};",
        "use std::{collections::BTreeMap, time::SystemTime};",
        "let now = Instant::now();",
        "use std::fs::File;",
        "let home = std::env::var(\"HOME\");",
        "use std::{io::Read};",
        "use std::collections::HashMap;",
        "let x = rand::random();",
        "use wgpu as gpu;",
        "let device: wgpu::Device;",
        "println!(\"hello\");",
    ] {
        assert_eq!(wrongs(planted).len(), 1, "{planted}: {:?}", wrongs(planted));
    }
}

#[test]
fn what_core_may_do_is_let_through() {
    for pure in [
        "//! Never names std::thread, std::fs or wgpu.",
        "use std::time::Duration;",
        "use std::collections::{BTreeMap, VecDeque};",
        "let map = FxHashMap::default();",
        "let hash = 1; let rand = hash;",
        "use std::sync::Arc;",
        "/* std::process */ use std::fmt;",
    ] {
        assert_eq!(wrongs(pure), [""; 0], "{pure}");
    }
}
