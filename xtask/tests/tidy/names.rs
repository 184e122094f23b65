//! Documents name what is there: every file, function, type and test that a page or a header names can be found.
//!
//! | written | must be |
//! |---|---|
//! | a path: with a slash, or ending like a file | the end of a tracked path; without a slash, of the header's own crate |
//! | `crate path`, `path: name, name` | that path in that crate, and what is named below it |
//! | names joined by `::` | the last defined in a file that has to do with all before it; `tests` are the document's own |
//! | one name in snake case with an underscore, camel case or capitals | defined somewhere |
//! | a `cargo` command | about packages and targets that exist |
//!
//! One plain word in backticks may be anything (a command, an operation, a column), so it is left alone, as are command
//! lines, flags and formulas. In drawings (` ```text ` and indented) only what cannot be a word of English counts.

mod allowed;
mod commands;
mod definitions;
mod documents;

use allowed::{ALLOWED, OF_OTHERS};
use definitions::{Workspace, short};
use documents::{Mention, Written, header, mentions};

use crate::tree;

/// How files end that documents name.
const ENDINGS: &[&str] =
    &["rs", "md", "toml", "tsv", "csv", "py", "wgsl", "svg", "png", "jpg", "jxl", "webp", "json", "ppm"];

/// What one document may count on.
struct Resolver<'a> {
    workspace: &'a Workspace,
    /// The document's own path.
    document: &'a str,
}

impl Resolver<'_> {
    /// What is wrong with a mention, if anything is.
    fn wrong(&self, mention: &Mention) -> Option<String> {
        let text = mention.text.as_str();
        let found = match mention.written {
            Written::Command => return commands::wrong(text, &self.workspace.paths),
            Written::Link => self.link(text),
            Written::Code => self.code(text),
            Written::Drawn => !is_drawn_name(text) || self.code(text),
        };
        (!found).then(|| format!("there is no `{text}`"))
    }

    fn link(&self, target: &str) -> bool {
        let path = target.split('#').next().unwrap_or_default();
        // Links within the documentation are rustdoc's to check.
        let is_elsewhere =
            target.contains("://") || path.is_empty() || self.document.ends_with(".rs") && !is_path(path);
        is_elsewhere || self.workspace.has_at(&joined(folder_of(self.document), path))
    }

    fn code(&self, text: &str) -> bool {
        if let Some((place, names)) = text.split_once(": ") {
            return !self.is_place(place) || self.names_below(place, names);
        }
        match text.split_once(' ') {
            Some((of, rest)) if self.is_crate(of) && (is_path(rest) || rest.contains("::")) => self.in_crate(of, rest),
            Some(_) => true,
            None => self.word(text),
        }
    }

    fn word(&self, text: &str) -> bool {
        if ALLOWED.iter().any(|allowed| allowed.name == text) {
            return true;
        }
        if is_path(text) {
            return self.path(text);
        }
        let names: Vec<&str> = text.trim_end_matches("()").trim_end_matches('!').split("::").collect();
        if !names.iter().all(|name| is_identifier(name)) {
            return true;
        }
        match names[..] {
            [name] => !is_name(name) || self.workspace.defines(name),
            [first, ..] if OF_OTHERS.contains(&first) && !self.workspace.defines_path("", &names) => true,
            [first, ref rest @ ..] => match first {
                "crate" | "super" | "self" => self.workspace.defines_path(self.crate_folder(), rest),
                // A file's own tests, or those beside it.
                "tests" => self.workspace.defines_path(folder_of(self.document), &names),
                _ => self.workspace.defines_path("", &names),
            },
            [] => true,
        }
    }

    fn crate_folder(&self) -> &str {
        crate_of(self.document).map_or("", |name| &self.document[..self.document.find(name).unwrap_or(0) + name.len()])
    }

    /// A path from the document's folder, or the end of any path. A mere file name in a header is of its own crate.
    fn path(&self, text: &str) -> bool {
        if text.starts_with("..") || text.starts_with("./") {
            return self.workspace.has_at(&joined(folder_of(self.document), text));
        }
        let is_near = self.document.ends_with(".rs") && !text.contains('/');
        self.workspace.ends(text).any(|path| !is_near || crate_of(path) == crate_of(self.document))
    }

    fn is_crate(&self, name: &str) -> bool {
        self.workspace.paths.iter().any(|path| crate_of(path).is_some_and(|of| of == name || short(of) == name))
    }

    fn in_crate(&self, of: &str, rest: &str) -> bool {
        if !is_path(rest) {
            return self.workspace.defines_path("", &std::iter::once(of).chain(rest.split("::")).collect::<Vec<_>>());
        }
        self.workspace.ends(rest).any(|path| crate_of(path).is_some_and(|there| there == of || short(there) == of))
    }

    /// `image tests/metrics`, `tests/runtime`, or just `tidy`.
    fn is_place(&self, place: &str) -> bool {
        let of_crate = place.split_once(' ').is_some_and(|(of, rest)| self.is_crate(of) && is_path(rest));
        of_crate || (!place.contains(' ') && (is_path(place) || self.workspace.has_test(place)))
    }

    fn names_below(&self, place: &str, names: &str) -> bool {
        let last = place.rsplit(['/', ' ']).next().unwrap_or(place).trim_end_matches(".rs");
        let is_below = |name: &str| self.workspace.defines_path("", &[last, name]);
        (self.workspace.has_test(place) || self.code(place)) && names.split(',').all(|name| is_below(name.trim()))
    }
}

impl Workspace {
    /// Whether this file or folder exists.
    fn has_at(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        self.paths.iter().any(|there| there == path || there.starts_with(&folder))
    }

    /// Whether an integration test has this name.
    fn has_test(&self, name: &str) -> bool {
        let file = format!("tests/{name}/main.rs");
        self.paths.iter().any(|path| path.ends_with(&file))
    }

    /// The paths that end with this one: as a file, or as a folder with files in it. One `*` stands for anything.
    fn ends<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a str> {
        let wanted = format!("/{}", text.trim_end_matches('/'));
        self.paths.iter().map(String::as_str).filter(move |path| {
            let path = format!("/{path}");
            match wanted.split_once('*') {
                Some((start, end)) => path.rfind(start).is_some_and(|at| path[at + start.len()..].ends_with(end)),
                None => path.ends_with(&wanted) || path.contains(&format!("{wanted}/")),
            }
        })
    }
}

/// The package that a file belongs to.
fn crate_of(path: &str) -> Option<&str> {
    path.strip_prefix("crates/").or(Some(path)).and_then(|path| path.split('/').next())
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// A path from a folder on, with every `..` walked.
fn joined(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

fn is_path(text: &str) -> bool {
    let is_made_of = |c: char| c.is_ascii_alphanumeric() || "_-./*".contains(c);
    let ends_like_a_file =
        text.rsplit_once('.').is_some_and(|(name, ending)| !name.is_empty() && ENDINGS.contains(&ending));
    let has_folder = text.contains('/') && text.contains(|c: char| c.is_ascii_alphabetic());
    text.chars().all(is_made_of) && (has_folder || ends_like_a_file)
}

fn is_identifier(text: &str) -> bool {
    let is_made_of = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && text.chars().all(is_made_of)
}

/// `snake_case`, `CamelCase` or `SCREAMING`: nobody writes English so. One or two letters may be a variable.
fn is_name(word: &str) -> bool {
    let (has_lower, has_upper) = (word.contains(char::is_lowercase), word.contains(char::is_uppercase));
    match (has_lower, has_upper) {
        (true, false) => word.trim_matches('_').contains('_'),
        (true, true) => word.starts_with(char::is_uppercase),
        _ => word.len() > 2 && has_upper,
    }
}

/// In a drawing, words of English begin with a capital, and units do too.
fn is_drawn_name(word: &str) -> bool {
    let is_rust_path = word.contains("::") && word.split("::").all(is_identifier);
    let is_snake = is_identifier(word) && word.contains('_') && is_name(word);
    is_rust_path || is_snake || (is_path(word) && !word.starts_with(['/', '*', '.']))
}

/// Every document: its path and its page.
fn documents(files: &[(String, String)]) -> Vec<(&str, String)> {
    let is_page = |path: &str| ["ARCHITECTURE.md", "CORRECTNESS.md"].contains(&path) || path.ends_with("README.md");
    let page = |(path, text): &'_ (String, String)| match path {
        path if is_page(path) => Some(text.clone()),
        path if path.ends_with(".rs") => Some(header(text)),
        _ => None,
    };
    files.iter().filter_map(|file| Some((file.0.as_str(), page(file)?))).collect()
}

/// Every tracked file, with its text if it is one that documents are made of.
fn files() -> Vec<(String, String)> {
    let has_text = |path: &str| path.ends_with(".rs") || path.ends_with(".md");
    let read = |path: &std::path::PathBuf| {
        let shown = tree::shown(path);
        let text = if has_text(&shown) { tree::text(path) } else { String::new() };
        (shown, text)
    };
    tree::tracked().iter().map(read).collect()
}

#[test]
fn documents_name_what_is_there() {
    let files = files();
    let workspace = Workspace::new(files.iter().cloned());
    let mut wrong = Vec::new();
    for (document, page) in documents(&files) {
        let resolver = Resolver { workspace: &workspace, document };
        let found = mentions(&page).into_iter().filter_map(|mention| Some((resolver.wrong(&mention)?, mention.line)));
        wrong.extend(found.map(|(what, line)| format!("{document}:{line}: {what}")));
    }
    wrong.sort();
    wrong.dedup();
    assert!(
        wrong.is_empty(),
        "\n{}\n\nName what is there, or give the reason in names/allowed.rs.\n",
        wrong.join("\n")
    );
}

#[test]
fn every_allowed_name_is_needed_and_has_a_reason() {
    let files = files();
    let pages: Vec<(&str, String)> = documents(&files);
    for allowed in ALLOWED {
        let is_mentioned = pages.iter().any(|(_, page)| mentions(page).iter().any(|there| there.text == allowed.name));
        assert!(is_mentioned && !allowed.why.is_empty(), "no document names {}; remove its line", allowed.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with a page, in a small workspace.
    fn wrongs(document: &str, page: &str) -> Vec<String> {
        let files = [
            (
                "crates/plimsoll-core/src/ledger/mod.rs",
                "pub struct Ledger;\nconst TAKEN_MAX: u8 = 1;\nmod tests {\n    fn it_sums() {}\n}",
            ),
            ("crates/plimsoll-core/src/scheduler/take.rs", "impl Scheduler {\n    fn take_behind() {}\n}"),
            ("crates/plimsoll-testkit/tests/runtime/main.rs", "mod panics;"),
            ("crates/plimsoll-testkit/Cargo.toml", ""),
            ("samples/q15.jpg", ""),
        ];
        let workspace = Workspace::new(files.map(|(path, text)| (path.to_owned(), text.to_owned())));
        let resolver = Resolver { workspace: &workspace, document };
        mentions(page).iter().filter_map(|mention| resolver.wrong(mention)).collect()
    }

    #[test]
    fn names_that_are_there_are_left_alone() {
        let page = "`scheduler/take.rs`, `testkit tests/runtime`, `tests/runtime: panics`, `runtime: panics`, \
                    `ledger::tests::it_sums`, `Scheduler::take_behind`, `TAKEN_MAX`, `take_behind`, `Ledger`, \
                    `samples/q*.jpg`, `std::fs::File`, `plimsoll score`, `--flag`, `word`, `i + 1`, `cpu-strip`, \
                    [ledger](crates/plimsoll-core/src/ledger), `cargo test -p plimsoll-testkit --test runtime`\n\n\
                    ```text\ntake   it_sums   (core) ledger::tests   4_096 files\n```\n";
        assert_eq!(wrongs("ARCHITECTURE.md", page), [""; 0]);
    }

    #[test]
    fn planted_names_are_found() {
        for name in [
            "scheduler/choose.rs",
            "take_over",
            "TAKEN_MIN",
            "Shelf",
            "ledger::tests::it_adds",
            "choose::take_behind",
            "tests/runtime: panics, stress",
            "core tests/runtime",
            "testkit ledger::Ledger",
            "samples/p*.jpg",
        ] {
            assert_eq!(wrongs("ARCHITECTURE.md", &format!("See `{name}`.")), [format!("there is no `{name}`")]);
        }
        assert_eq!(wrongs("README.md", "[gone](docs/gone.svg)").len(), 1);
        assert_eq!(wrongs("README.md", "```text\nsettle   settle_all\n```").len(), 1);
        assert_eq!(wrongs("README.md", "    cargo test -p plimsoll-testkit --test replay").len(), 1);
    }

    #[test]
    fn tests_are_the_documents_own() {
        assert_eq!(wrongs("crates/plimsoll-core/src/ledger/mod.rs", "`tests::it_sums`, `crate::scheduler`"), [""; 0]);
        assert_eq!(wrongs("crates/plimsoll-core/src/scheduler/take.rs", "`tests::it_sums`").len(), 1);
        assert_eq!(wrongs("crates/plimsoll-testkit/src/lib.rs", "`crate::scheduler`").len(), 1);
    }

    #[test]
    fn a_bare_file_name_in_a_header_is_of_its_own_crate() {
        assert_eq!(wrongs("crates/plimsoll-core/src/lib.rs", "`take.rs`"), [""; 0]);
        assert_eq!(wrongs("crates/plimsoll-testkit/src/lib.rs", "`take.rs`").len(), 1);
        assert_eq!(wrongs("README.md", "`take.rs`"), [""; 0]);
    }
}
