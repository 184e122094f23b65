//! Libraries know nothing of command lines: what they say must help whoever calls them, from whichever program.

use crate::{source, tree};

/// Crates that are commands, or test them.
const COMMANDS: [&str; 3] = ["crates/plimsoll-cli", "crates/plimsoll-testkit", "xtask"];
/// Commands of others, which a library may name.
const OF_OTHERS: [&str; 5] = ["avifdec ", "ffmpeg ", "sglang.launch_server ", "vllm serve ", "webui.sh "];

#[test]
fn no_library_names_a_command_line_option() {
    let is_library =
        |folder: &std::path::Path| !COMMANDS.iter().any(|command| tree::shown(folder).starts_with(command));
    let libraries = tree::crates().into_iter().filter(|folder| is_library(folder));
    let files = libraries.flat_map(|folder| tree::rust_files(&folder.join("src")));
    let wrong: Vec<String> = files
        .filter_map(|path| option_in(&tree::text(&path)).map(|line| (path, line)))
        .map(|(path, line)| format!("{}: {line}", tree::shown(&path)))
        .collect();
    assert!(wrong.is_empty(), "say what to do; which option does it is the command's to add\n{}\n", wrong.join("\n"));
}

/// The first line whose text names an option.
fn option_in(source: &str) -> Option<String> {
    let code = source::without_comments(source);
    let names_one = |line: &&str| {
        let mut quoted = line.split('"').skip(1).step_by(2);
        let is_option = |text: &str| {
            let words = text.split([' ', '(', '`']).filter_map(|word| word.strip_prefix("--"));
            words.into_iter().any(|name| name.starts_with(|first: char| first.is_ascii_lowercase()))
        };
        quoted.any(|text| is_option(text) && !OF_OTHERS.iter().any(|other| text.starts_with(other)))
    };
    code.lines().find(names_one).map(|line| line.trim().to_owned())
}

#[test]
fn an_option_is_found_in_a_text_and_nowhere_else() {
    assert!(option_in("#[error(\"too long; raise --limit\")]").is_some());
    assert_eq!(option_in("let count = count - -step; // as --step says"), None);
    assert_eq!(option_in("\"avifdec --depth 16 FILE\""), None);
}
