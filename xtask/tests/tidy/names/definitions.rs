//! What there is to name: the project's files, and what each Rust file defines.
//! Reads Rust line by line, as rustfmt leaves it; it never has to know a type.

use std::collections::BTreeSet;

use crate::source::without_comments;

/// All files of the project and what they define.
pub(crate) struct Workspace {
    /// From the workspace's folder on, with `/`.
    pub(crate) paths: Vec<String>,
    files: Vec<RustFile>,
}

/// One Rust file.
struct RustFile {
    path: String,
    /// `core` and `plimsoll_core` for plimsoll-core, then its folders and its own name.
    modules: BTreeSet<String>,
    /// What it defines: items, fields, variants.
    defines: BTreeSet<String>,
    /// The types it has `impl` blocks for.
    implements: BTreeSet<String>,
}

impl Workspace {
    /// From every file's path and, for Rust files, text.
    pub(crate) fn new(files: impl IntoIterator<Item = (String, String)>) -> Self {
        let (mut paths, mut rust) = (Vec::new(), Vec::new());
        for (path, text) in files {
            if path.ends_with(".rs") {
                rust.push(RustFile::new(&path, &text));
            }
            paths.push(path);
        }
        Self { paths, files: rust }
    }

    /// Whether any file defines this, or is a module of this name.
    pub(crate) fn defines(&self, name: &str) -> bool {
        self.files.iter().any(|file| file.defines.contains(name) || file.modules.contains(name))
    }

    /// Whether a file below this folder defines the last of these names and has to do with all those before it.
    pub(crate) fn defines_path(&self, folder: &str, names: &[&str]) -> bool {
        let Some((last, before)) = names.split_last() else { return false };
        let has = |file: &RustFile, name: &str| file.defines.contains(name) || file.modules.contains(name);
        self.files.iter().filter(|file| file.path.starts_with(folder)).any(|file| {
            let knows = |name: &&str| has(file, name) || file.implements.contains(*name);
            has(file, last) && before.iter().all(knows)
        })
    }
}

impl RustFile {
    fn new(path: &str, text: &str) -> Self {
        let code = without_comments(text);
        let implements = code.lines().filter_map(implemented).collect();
        let defines = code.lines().flat_map(defined).collect();
        Self { path: path.to_owned(), modules: modules(path), defines, implements }
    }
}

/// `crates/plimsoll-core/src/scheduler/choose.rs` is known by `core`, `plimsoll_core`, `scheduler` and `choose`.
fn modules(path: &str) -> BTreeSet<String> {
    let parts = path.trim_end_matches(".rs").split('/');
    let is_module = |part: &&str| !["crates", "src", "mod", "lib", "main"].contains(part);
    let names = parts.filter(is_module).flat_map(|part| [part.replace('-', "_"), short(part).to_owned()]);
    names.collect()
}

/// `plimsoll-core` is `core` for short.
pub(crate) fn short(package: &str) -> &str {
    package.strip_prefix("plimsoll-").unwrap_or(package)
}

/// What a line of code defines.
fn defined(line: &str) -> Vec<String> {
    const ITEMS: &[&str] =
        &["fn", "struct", "enum", "trait", "const", "static", "type", "mod", "macro_rules!", "union"];
    let mut found = Vec::new();
    let words: Vec<&str> =
        line.split(|c: char| c.is_whitespace() || c == '(').filter(|word| !word.is_empty()).collect();
    for pair in words.windows(2).filter(|pair| ITEMS.contains(&pair[0])) {
        found.push(identifier(pair[1]).to_owned());
    }
    found.extend(field_or_variant(line));
    found.retain(|name| !name.is_empty());
    found
}

/// A field, `name: …` at the start of its line, or a variant, `Name`, `Name(…)` or `Name { … }`. Their uses are written
/// alike, and would not compile if there were no such field.
fn field_or_variant(line: &str) -> Option<String> {
    let line = line.trim_start();
    let line = line
        .strip_prefix("pub(crate) ")
        .or(line.strip_prefix("pub(super) "))
        .or(line.strip_prefix("pub "))
        .unwrap_or(line);
    let name = identifier(line);
    let rest = line[name.len()..].trim_start();
    let is_field = rest.starts_with(':') && !rest.starts_with("::");
    let is_variant =
        name.starts_with(char::is_uppercase) && (rest.is_empty() || rest.starts_with([',', '(', '{', '=']));
    (is_field || is_variant).then(|| name.to_owned())
}

fn identifier(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

/// `impl<H: Host> Scheduler<H> {` and `impl Host for Runtime {`.
fn implemented(line: &str) -> Option<String> {
    let rest = line.trim_start().strip_prefix("impl")?;
    let rest = match rest.strip_prefix('<') {
        Some(generic) => after_generics(generic),
        None => rest.strip_prefix(' ')?,
    };
    let rest = rest.split_once(" for ").map_or(rest, |(_, of)| of).trim();
    let path = rest.split(['<', ' ', '{']).next()?;
    path.rsplit("::").next().map(str::to_owned)
}

/// What comes after the `>` that closes the generics which are open here.
fn after_generics(text: &str) -> &str {
    let mut depth = 1;
    let closes = |(at, character): (usize, char)| {
        match character {
            '<' => depth += 1,
            '>' if !text[..at].ends_with('-') => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(&text[at + 1..])
    };
    text.char_indices().find_map(closes).unwrap_or_default()
}

#[test]
fn items_fields_variants_and_impls_are_read() {
    let text = "pub(crate) const LINES_MAX: usize = 8;\nimpl<H: Host<A = B>> super::Scheduler<H> {\n    pub fn take(&mut self) {}\n}\n\
                struct Run {\n    pub(super) lease: LeaseId,\n}\nenum Turn {\n    Warm(S),\n    Behind,\n}\n// fn gone() {}\n";
    let workspace = Workspace::new([("crates/plimsoll-core/src/scheduler/take.rs".to_owned(), text.to_owned())]);
    for name in ["LINES_MAX", "take", "Run", "lease", "Turn", "Warm", "Behind", "scheduler", "plimsoll_core", "core"] {
        assert!(workspace.defines(name), "{name}");
    }
    assert!(!workspace.defines("gone") && !workspace.defines("LeaseId"));
    assert!(workspace.defines_path("", &["Scheduler", "take"]) && workspace.defines_path("crates", &["Turn", "Warm"]));
    assert!(!workspace.defines_path("", &["choose", "take"]) && !workspace.defines_path("xtask", &["Turn", "Warm"]));
}
