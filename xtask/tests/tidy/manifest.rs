//! Reads which crates a `Cargo.toml` depends on: just the part of TOML that manifests are written in.

/// What a dependency is for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Part of the crate, or of its build.
    Product,
    /// For its tests, examples and benchmarks.
    Tests,
}

/// A crate that a manifest depends on, by its real name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) purpose: Purpose,
}

/// All dependencies of a manifest, on every platform.
pub(crate) fn dependencies(manifest: &str) -> Vec<Dependency> {
    let mut section = Section::Other;
    let mut found: Vec<Dependency> = Vec::new();
    for line in manifest.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(header) = line.strip_prefix('[') {
            section = Section::of(header.trim_end_matches(']'));
            if let Section::One(dependency) = &section {
                found.push(dependency.clone());
            }
            continue;
        }
        match &section {
            Section::List(purpose) => found.push(Dependency { name: listed_name(line), purpose: *purpose }),
            Section::One(_) if line.starts_with("package") => {
                // `[dependencies.alias]` with another real name.
                if let (Some(name), Some(last)) = (quoted(line), found.last_mut()) {
                    last.name = name;
                }
            }
            _ => {}
        }
    }
    found
}

enum Section {
    /// `[dependencies]`: one dependency a line.
    List(Purpose),
    /// `[dependencies.name]`: one dependency over several lines.
    One(Dependency),
    Other,
}

impl Section {
    fn of(header: &str) -> Self {
        // `target.'cfg(unix)'.dependencies` holds for one platform; ours hold for all.
        let parts: Vec<&str> = header.rsplitn(3, '.').collect();
        match parts[..] {
            [last, ..] if purpose(last).is_some() => purpose(last).map_or(Self::Other, Self::List),
            [name, before, ..] => match purpose(before) {
                Some(purpose) => Self::One(Dependency { name: unquoted(name), purpose }),
                None => Self::Other,
            },
            _ => Self::Other,
        }
    }
}

fn purpose(section: &str) -> Option<Purpose> {
    match section {
        "dependencies" | "build-dependencies" => Some(Purpose::Product),
        "dev-dependencies" => Some(Purpose::Tests),
        _ => None,
    }
}

/// `name.workspace = true`, `name = "1"`, `alias = { package = "name" }`.
fn listed_name(line: &str) -> String {
    let renamed = line.split_once("package").filter(|(_, rest)| rest.trim_start().starts_with('='));
    match renamed.and_then(|(_, rest)| quoted(rest)) {
        Some(name) => name,
        None => unquoted(line.split(['.', '=', ' ']).next().unwrap_or_default()),
    }
}

fn quoted(text: &str) -> Option<String> {
    text.split('"').nth(1).map(str::to_owned)
}

fn unquoted(text: &str) -> String {
    text.trim_matches(['"', '\'']).to_owned()
}

#[test]
fn every_way_to_write_a_dependency_is_read() {
    let manifest = r#"
        [package]
        name = "x"
        [lints]
        workspace = true
        # [dependencies]
        [dependencies]
        a.workspace = true
        b = "1"
        c = { version = "2", features = ["package"] }
        alias = { package = "d", version = "3" }
        "e" = "1"
        [dev-dependencies]
        f.workspace = true
        [target.'cfg(not(target_vendor = "apple"))'.dependencies]
        g.workspace = true
        [target.'cfg(unix)'.dev-dependencies.h]
        version = "1"
        [dependencies.other]
        package = "i"
        [build-dependencies]
        j = "1"
        [features]
        k = []
    "#;
    let found = dependencies(manifest);
    let names = |purpose| -> Vec<&str> {
        found.iter().filter(|found| found.purpose == purpose).map(|found| found.name.as_str()).collect()
    };
    assert_eq!(names(Purpose::Product), ["a", "b", "c", "d", "e", "g", "i", "j"]);
    assert_eq!(names(Purpose::Tests), ["f", "h"]);
}
