//! How a text from outside becomes a part of the page: as text, whatever it holds.
//! Never lets a character through that could end an attribute or begin a tag.

use std::fmt::{self, Write};

/// Adds formatted text to the page, which is in memory and takes any.
macro_rules! put {
    ($page:expr, $($text:tt)*) => {{
        use std::fmt::Write as _;
        write!($page, $($text)*).expect("memory takes any text");
    }};
}
pub(crate) use put;

/// A text as HTML shows it, in an element or in a quoted attribute, in HTML or in SVG.
pub(crate) struct Text<'a>(pub(crate) &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| match character {
            '&' => out.write_str("&amp;"),
            '<' => out.write_str("&lt;"),
            '>' => out.write_str("&gt;"),
            '"' => out.write_str("&quot;"),
            '\'' => out.write_str("&#39;"),
            '`' => out.write_str("&#96;"),
            // HTML has no way to write these; without a sign in their place two names could look the same.
            control if control.is_control() && control != '\n' && control != '\t' => out.write_char('\u{fffd}'),
            plain => out.write_char(plain),
        })
    }
}

/// A file's name: its characters cannot turn the direction of the text around it, and it may break anywhere.
pub(crate) struct Name<'a>(pub(crate) &'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "<bdi>{}</bdi>", Text(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_becomes_text() {
        let shown = Text("<script>alert(\"1\" & '2')</script>`").to_string();
        assert_eq!(shown, "&lt;script&gt;alert(&quot;1&quot; &amp; &#39;2&#39;)&lt;/script&gt;&#96;");
    }

    #[test]
    fn characters_that_html_cannot_hold_leave_a_sign() {
        assert_eq!(Text("a\0b\u{1b}[31m\u{85}").to_string(), "a\u{fffd}b\u{fffd}[31m\u{fffd}");
        assert_eq!(Text("two\nlines\tof 画像 🎨 é").to_string(), "two\nlines\tof 画像 🎨 é");
    }

    #[test]
    fn a_name_keeps_its_direction_to_itself() {
        assert_eq!(Name("\u{202e}gnp.exe").to_string(), "<bdi>\u{202e}gnp.exe</bdi>");
    }
}
