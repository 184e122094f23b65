//! What tests start as processes of their own, one part each: a daemon, a client that holds a lease, a program that works on
//! one, an engine. `daemon-part PART FOLDER ORDERS`.

mod daemon;
mod engine;
#[expect(dead_code, reason = "tests make it misbehave in more ways than this program does")]
#[path = "../tests/fakes/mod.rs"]
mod fakes;
mod holder;
mod program;
mod uses;

use std::path::Path;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["daemon", folder] => daemon::play(Path::new(folder)),
        ["holder", folder, mib] => holder::play(Path::new(folder), mib),
        ["program", folder, kind] => program::play(Path::new(folder), kind),
        ["engine", folder, kind, orders] => engine::play(Path::new(folder), kind, orders),
        _ => {
            eprintln!("usage: daemon-part daemon|holder|program|engine FOLDER [ORDERS]; tests start it");
            std::process::exit(2);
        }
    }
}
