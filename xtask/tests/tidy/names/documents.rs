//! What documents mention: code in backticks, links, drawings and commands, each with its line.
//! Documents are the pages of the project and the `//!` header of every Rust file. Never knows what exists.

/// How a name was written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// In backticks.
    Code,
    /// As the target of a link.
    Link,
    /// A word of a drawing or table in plain text: only what cannot be anything but a name counts there.
    Drawn,
    /// A line with a `cargo` command.
    Command,
}

/// Something that a document mentions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mention {
    pub(crate) text: String,
    pub(crate) line: usize,
    pub(crate) written: Written,
}

/// What a block between fences is.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Block {
    Prose,
    /// ` ```text `, or indented.
    Drawing,
    /// Code in a language: the compiler reads it, or a shell does.
    Foreign,
}

/// Everything that a page of Markdown mentions.
pub(crate) fn mentions(page: &str) -> Vec<Mention> {
    let mut block = Block::Prose;
    let mut found = Vec::new();
    let mut quote = String::new();
    for (text, line) in page.lines().zip(1..) {
        if let Some(language) = text.trim_start().strip_prefix("```") {
            block = match (block, language.trim()) {
                (Block::Prose, "text") => Block::Drawing,
                (Block::Prose, _) => Block::Foreign,
                _ => Block::Prose,
            };
            continue;
        }
        let is_indented = block == Block::Prose && text.starts_with("    ");
        if text.contains("cargo ") {
            found.push(Mention { text: text.trim().to_owned(), line, written: Written::Command });
        } else if block == Block::Drawing || is_indented {
            found.extend(words(text).map(|text| Mention { text, line, written: Written::Drawn }));
        }
        if block == Block::Prose && !is_indented {
            found.extend(in_prose(text, line, &mut quote));
        }
    }
    found
}

/// The header of a Rust file as a page; its lines keep their numbers.
pub(crate) fn header(source: &str) -> String {
    let lines = source.lines().take_while(|line| line.starts_with("//!") || line.is_empty());
    let bare =
        lines.map(|line| line.strip_prefix("//!").unwrap_or(line)).map(|line| line.strip_prefix(' ').unwrap_or(line));
    bare.collect::<Vec<_>>().join("\n")
}

fn words(drawing: &str) -> impl Iterator<Item = String> {
    let words = drawing.split(|c: char| c.is_whitespace() || "(),;`\"".contains(c));
    words.map(|word| word.trim_end_matches([':', '.'])).filter(|word| !word.is_empty()).map(str::to_owned)
}

/// `open` holds what a pair of backticks began on an earlier line.
fn in_prose(text: &str, line: usize, open: &mut String) -> Vec<Mention> {
    let mut found = Vec::new();
    let mut pieces = text.split('`');
    let mut prose = String::new();
    let mut is_code = !open.is_empty();
    let first = pieces.next().unwrap_or_default();
    let continued = format!("{open}{first}");
    for piece in std::iter::once(continued.as_str()).chain(pieces) {
        if is_code {
            found.push(Mention { text: piece.trim().to_owned(), line, written: Written::Code });
            prose.push('`');
        } else {
            prose.push_str(piece);
        }
        is_code = !is_code;
    }
    open.clear();
    // An odd number of backticks: the last piece goes on in the next line.
    if !is_code && let Some(last) = found.pop() {
        open.push_str(&last.text);
        open.push(' ');
    }
    found.extend(links(&prose).map(|text| Mention { text, line, written: Written::Link }));
    found
}

fn links(prose: &str) -> impl Iterator<Item = String> {
    prose.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned()))
}

#[test]
fn code_links_drawings_and_commands_are_found_with_their_lines() {
    let page =
        "See `a::b` and [c](d.md), or `cargo\ntest`.\n\n```text\nrun   it_runs\n```\n```sh\nx_y `z`\n```\n    e/f.rs\n";
    let found = mentions(page);
    let shown: Vec<(&str, usize, Written)> =
        found.iter().map(|mention| (mention.text.as_str(), mention.line, mention.written)).collect();
    assert_eq!(
        shown,
        [
            ("a::b", 1, Written::Code),
            ("d.md", 1, Written::Link),
            ("cargo test", 2, Written::Code),
            ("run", 5, Written::Drawn),
            ("it_runs", 5, Written::Drawn),
            ("e/f.rs", 10, Written::Drawn),
        ]
    );
}

#[test]
fn a_header_ends_with_the_first_line_of_code() {
    assert_eq!(header("//! One `a`.\n//!\n//! Two.\n\nuse b;\n//! Three."), "One `a`.\n\nTwo.\n");
}
