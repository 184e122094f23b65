//! The scheduler alone builds from few crates: no GPU API, codec or server among them.

use std::process::Command;

use crate::tree;

/// Crates that a program builds which uses `plimsoll` without its workloads, itself included.
const CRATES_MAX: usize = 45;

#[test]
fn the_scheduler_alone_is_light() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let tree = Command::new(cargo)
        .args(["tree", "--edges", "normal,build", "--prefix", "none", "--target", "x86_64-unknown-linux-gnu"])
        .current_dir(tree::root().join("outside"))
        .output()
        .expect("cargo starts");
    let text = String::from_utf8_lossy(&tree.stdout);
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let name = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    let mut crates: Vec<String> = text.lines().filter(|line| !line.is_empty()).map(name).collect();
    crates.sort();
    crates.dedup();
    assert!(crates.len() <= CRATES_MAX, "{} crates, at most {CRATES_MAX}:\n{}", crates.len(), crates.join("\n"));
    for heavy in ["wgpu", "image", "tokio"] {
        assert!(!crates.iter().any(|line| line.starts_with(&format!("{heavy} "))), "{heavy} is among them");
    }
}
