//! The `cargo` commands in documents: packages and targets that they name must be there.

/// What is wrong with a line's command; nothing if it names no package.
pub(crate) fn wrong(line: &str, paths: &[String]) -> Option<String> {
    let words: Vec<&str> = line.split(|c: char| c.is_whitespace() || c == '`').collect();
    // What comes after `--` goes to the program.
    let words = words.split(|word| *word == "--").next()?;
    let value = |options: &[&str]| words.windows(2).find(|pair| options.contains(&pair[0])).map(|pair| pair[1]);
    let is_there = |path: String| paths.contains(&path);
    if let Some(folder) = value(&["--path"]).filter(|folder| !is_there(format!("{folder}/Cargo.toml"))) {
        return Some(format!("there is no package in {folder}"));
    }
    let package = value(&["-p", "--package"])?;
    let folders = [format!("crates/{package}"), package.to_owned(), format!("xtask/{package}")];
    let Some(folder) = folders.into_iter().find(|folder| is_there(format!("{folder}/Cargo.toml"))) else {
        return Some(format!("there is no package {package}"));
    };
    [("--test", "tests"), ("--bench", "benches"), ("--example", "examples")].into_iter().find_map(|(option, kind)| {
        let target = value(&[option])?;
        let files = [format!("{folder}/{kind}/{target}.rs"), format!("{folder}/{kind}/{target}/main.rs")];
        (!files.into_iter().any(is_there)).then(|| format!("{package} has no {target} in its {kind}"))
    })
}

#[test]
fn packages_and_targets_that_are_not_there_are_found() {
    let paths = ["crates/a/Cargo.toml", "crates/a/tests/b.rs", "crates/a/benches/c/main.rs"].map(str::to_owned);
    let wrong = |line: &str| wrong(line, &paths);
    assert_eq!(wrong("| `cargo test -p a --test b -- --test z` |"), None);
    assert_eq!(wrong("cargo bench -p a --bench c      how fast"), None);
    assert_eq!(wrong("cargo run --release -- sim fuzz"), None);
    assert!(wrong("cargo test -p a --test c").is_some());
    assert!(wrong("cargo run -p a --example b").is_some());
    assert!(wrong("cargo test -p z").is_some());
    assert!(wrong("cargo install --path crates/z").is_some());
}
