//! Reads Rust source far enough to see which paths it names: comments out, grouped imports spelled out.

/// The source without its comments. A `//` inside a string ends the line too: what is lost is text, never code.
pub(crate) fn without_comments(source: &str) -> String {
    let mut depth = 0_usize;
    source.lines().map(|line| without_comments_on_line(line, &mut depth)).collect::<Vec<_>>().join("\n")
}

/// `depth` counts the block comments that are open: Rust's nest.
fn without_comments_on_line(line: &str, depth: &mut usize) -> String {
    let mut code = String::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        if rest.starts_with("/*") {
            *depth += 1;
            rest = &rest[2..];
        } else if *depth > 0 && rest.starts_with("*/") {
            *depth -= 1;
            rest = &rest[2..];
        } else if *depth == 0 && rest.starts_with("//") {
            break;
        } else {
            if *depth == 0 {
                code.push(first);
            }
            rest = &rest[first.len_utf8()..];
        }
    }
    code
}

/// Every `use` of the source, one full path each: `use std::{fs, time::Instant}` gives `std::fs` and
/// `std::time::Instant`.
pub(crate) fn imports(code: &str) -> Vec<String> {
    let statements = code.split(';').filter_map(|statement| {
        let at = statement.rfind("use ").filter(|&at| starts_a_word(statement, at))?;
        Some(&statement[at + 4..])
    });
    statements.flat_map(|tree| spell_out("", tree)).collect()
}

fn starts_a_word(text: &str, at: usize) -> bool {
    text[..at].chars().next_back().is_none_or(|before| !is_word(before))
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn spell_out(prefix: &str, tree: &str) -> Vec<String> {
    let tree = tree.trim();
    match tree.split_once('{') {
        None => vec![format!("{prefix}{}", tree.split_whitespace().next().unwrap_or_default())],
        Some((head, group)) => {
            let prefix = format!("{prefix}{}", head.trim());
            let group = group.trim_end().strip_suffix('}').unwrap_or(group);
            branches(group).into_iter().flat_map(|branch| spell_out(&prefix, branch)).collect()
        }
    }
}

/// The parts of a group between its own commas.
fn branches(group: &str) -> Vec<&str> {
    let mut depth = 0;
    let own_comma = |character: char| {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        character == ',' && depth == 0
    };
    group.split(own_comma).filter(|branch| !branch.trim().is_empty()).collect()
}

/// Whether the code names this path: whole words, so that `std::fsx` does not name `std::fs`.
pub(crate) fn names(code: &str, path: &str) -> bool {
    let open_end = !path.ends_with(is_word);
    code.match_indices(path).any(|(at, _)| {
        let after = code[at + path.len()..].chars().next();
        starts_a_word(code, at) && (open_end || after.is_none_or(|after| !is_word(after)))
    })
}

#[test]
fn comments_are_left_out() {
    let source = "a(); // std::fs\n/* std::net\n /* nested */ std::env */ b();\nlet url = 1; //! c\n";
    let code = without_comments(source);
    assert!(code.contains("a();") && code.contains("b();") && !code.contains("std"), "{code}");
}

#[test]
fn grouped_imports_are_spelled_out() {
    let code = "pub(crate) use std::{\n    fs,\n    time::{Duration, Instant as Now},\n};\nuse a::b;\nlet reuse = 3;";
    assert_eq!(imports(code), ["std::fs", "std::time::Duration", "std::time::Instant", "a::b"]);
}

#[test]
fn a_name_is_a_whole_word() {
    assert!(names("let x = std::fs::read();", "std::fs"));
    assert!(!names("let x = std::fsx::read();", "std::fs"));
    assert!(!names("FxHashMap::default()", "HashMap"));
    assert!(names("rand::random()", "rand::") && !names("strand::random()", "rand::"));
}
