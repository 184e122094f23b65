//! Splits the text of a chain. A backslash takes the meaning from the sign after it, so that paths may hold any; what is in
//! brackets stays together, so that sums may be written as they are.

/// The pieces of `text` between separators that are neither behind a backslash nor in brackets; backslashes stay. Brackets
/// that do not come in pairs are no brackets.
pub(super) fn split(text: &str, separator: char) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut start, mut behind_backslash) = (0, false);
    let (has_pairs, mut open) = (has_pairs(text), 0_usize);
    for (at, sign) in text.char_indices() {
        match sign {
            '(' if has_pairs => open += 1,
            ')' if has_pairs => open = open.saturating_sub(1),
            _ => {}
        }
        if sign == separator && !behind_backslash && open == 0 {
            pieces.push(&text[start..at]);
            start = at + sign.len_utf8();
        }
        behind_backslash = sign == '\\' && !behind_backslash;
    }
    pieces.push(&text[start..]);
    pieces
}

fn has_pairs(text: &str) -> bool {
    let mut open = 0_usize;
    text.chars().all(|sign| match sign {
        '(' => {
            open += 1;
            true
        }
        ')' if open == 0 => false,
        ')' => {
            open -= 1;
            true
        }
        _ => true,
    }) && open == 0
}

/// The text without its backslashes.
pub(crate) fn unescaped(text: &str) -> String {
    let mut behind_backslash = false;
    let mut plain = String::new();
    for sign in text.chars() {
        behind_backslash = sign == '\\' && !behind_backslash;
        if !behind_backslash {
            plain.push(sign);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backslash_keeps_a_separator_in_its_piece() {
        assert_eq!(split(r"a,b\,c,d", ','), ["a", r"b\,c", "d"]);
        assert_eq!(unescaped(r"b\,c\\d"), r"b,c\d");
        assert_eq!(split("", ','), [""]);
    }

    #[test]
    fn brackets_keep_what_is_in_them() {
        assert_eq!(split("scale=min(1,2):4,b", ','), ["scale=min(1,2):4", "b"]);
        assert_eq!(split("a(,b", ','), ["a(", "b"]);
        assert_eq!(split("a),(b", ','), ["a)", "(b"]);
    }
}
