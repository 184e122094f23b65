//! Opens a report in a real browser and uses it: looks, hovers, sorts, clicks, enlarges.
//! Needs Chromium, Node and playwright-core, which `cargo xtask test` finds or installs; without them it fails.

mod made;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use plimsoll_results::report::{self, Report};

/// Where the page and pictures of it lie afterwards, for people to look at.
fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

fn tool(variable: &str) -> OsString {
    env::var_os(variable).unwrap_or_else(|| {
        panic!(
            "{variable} is not set: this test needs a browser. `cargo xtask test test` installs what is missing and \
             sets it; by hand: PLIMSOLL_BROWSER is Chromium's program, NODE_PATH a node_modules folder that has \
             playwright-core"
        )
    })
}

/// Runs one of the scripts beside this file on pages; every failed expectation ends it with an error.
fn look(script: &str, pages: &[PathBuf]) {
    let [browser, modules] = ["PLIMSOLL_BROWSER", "NODE_PATH"].map(tool);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser").join(script);
    let mut node = Command::new("node");
    node.arg(script).arg(folder()).args(pages).env("PLIMSOLL_BROWSER", browser).env("NODE_PATH", modules);
    let ended = node.output().expect("node starts; `cargo xtask test test` installs it");
    let said = [ended.stdout, ended.stderr].concat();
    assert!(ended.status.success(), "\n{}", String::from_utf8_lossy(&said));
}

fn written(name: &str, report: &Report) -> PathBuf {
    let page = folder().join(format!("{name}.html"));
    report::write(report, &page).expect("the page is written");
    page
}

#[test]
fn people_can_use_a_report() {
    look("use.cjs", &[written("report", &made::REPORT)]);
}

#[test]
fn odd_reports_are_pages_too() {
    let pages: Vec<PathBuf> = made::odd().iter().map(|(name, report)| written(name, report)).collect();
    look("open.cjs", &pages);
}
