//! Drivers that fail or hang: people are told, the last figures count, and the daemon goes on.

use std::fs;
use std::process::Command;

use crate::rig::{MIB, Rig, until, wants};

fn warned(rig: &Rig, of: &str) -> Result<(), String> {
    let warnings = rig.state().warnings;
    if warnings.iter().any(|warning| warning.contains(of)) { Ok(()) } else { Err(format!("{warnings:?}")) }
}

#[test]
fn a_source_that_fails_or_hangs_is_a_warning_and_its_last_figures_count() {
    let rig = Rig::new();
    let path = rig.folder.path().join("truth.toml");
    let script = fs::read(&path).unwrap();
    fs::write(&path, "[[devices]]\nname = 7\n").unwrap();
    until("its failure", || warned(&rig, "its last figures count as before"));
    let mut client = rig.client();
    let held = client.hold(wants("meanwhile", 100)).expect("what was read before counts");
    fs::write(&path, &script).unwrap();
    until("no warning", || if rig.state().warnings.is_empty() { Ok(()) } else { Err("it is warned of".to_owned()) });
    // Whoever opens a pipe to read waits for somebody who writes.
    fs::remove_file(&path).unwrap();
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    until("its silence", || warned(&rig, "does not answer"));
    let state = rig.state();
    assert_eq!((state.devices[0].capacity, state.devices[0].promised), (10_000 * MIB, 100 * MIB));
    client.hold(wants("another", 100)).expect("nobody waits for a driver that hangs");
    fs::write(&path, &script).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, &script).unwrap();
    until("no warning", || if rig.state().warnings.is_empty() { Ok(()) } else { Err("it is warned of".to_owned()) });
    client.give_back(held.lease).unwrap();
}
