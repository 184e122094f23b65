//! A fake engine as a process. What it holds is written into a file of the folder that has its number, for a scripted driver.

use std::io::Read;
use std::path::Path;

use plimsoll_daemon::engines::EngineKind;

use crate::fakes::{Fake, Fault};

/// Serves on a free port, which it prints, until its input ends.
pub(crate) fn play(folder: &Path, kind: &str, orders: &str) {
    let kind = EngineKind::named(kind).expect("a kind");
    let fake = Fake::on(kind, 0, Some(folder.join(std::process::id().to_string()))).expect("a port");
    match orders {
        "empty" => fake.state().models.clear(),
        "yes-without-freeing" => fake.state().on_step = Some(Fault::YesWithoutFreeing),
        "wrong-json" => fake.state().on_ask = Some(Fault::WrongJson),
        "busy" => fake.state().busy = 3,
        "well" => {}
        other => panic!("no such order: {other}"),
    }
    fake.state().tell_the_driver();
    println!("port {}", fake.server.address.port());
    // It ends when whoever started it does.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}
