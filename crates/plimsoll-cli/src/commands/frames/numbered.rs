//! Names with a number in them, as `in%04d.png`: those there are, and those to be written.
//! Never opens a file.

use std::path::{Path, PathBuf};

use crate::stop::Stop;

/// Where counting may begin, as with ffmpeg.
const FIRST_MAX: u64 = 4;
/// Digits that a number may be filled up to: more than any count of frames has.
const DIGITS_MAX: usize = 12;
/// Files of one pattern at most.
const FILES_MAX: usize = 10_000_000;

/// A name with a place for a number.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Numbered {
    before: String,
    digits: usize,
    after: String,
}

impl Numbered {
    /// The pattern in a name: `%d`, or `%04d` for numbers with zeros before them; `%%` stands for a percent sign.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let text = path.to_str()?;
        let mut found = None;
        let mut at = 0;
        while let Some(percent) = text[at..].find('%').map(|place| at + place) {
            let rest = &text[percent + 1..];
            if rest.starts_with('%') {
                at = percent + 2;
                continue;
            }
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            let count = digits.strip_prefix('0').unwrap_or("").parse().unwrap_or(0);
            let is_well_formed = digits.is_empty() || digits.starts_with('0') && count <= DIGITS_MAX;
            if !rest[digits.len()..].starts_with('d') || !is_well_formed || found.is_some() {
                return None;
            }
            found = Some((percent, percent + 1 + digits.len() + 1, count));
            at = percent + 1 + digits.len() + 1;
        }
        let (start, end, digits) = found?;
        let plain = |part: &str| part.replace("%%", "%");
        Some(Self { before: plain(&text[..start]), digits, after: plain(&text[end..]) })
    }

    /// `000001.png` and so on, in a folder.
    pub(super) fn in_folder(folder: &Path) -> Self {
        let before = folder.join("").to_string_lossy().into_owned();
        Self { before, digits: 6, after: ".png".to_owned() }
    }

    pub(super) fn name(&self, number: u64) -> PathBuf {
        let Self { before, digits, after } = self;
        PathBuf::from(format!("{before}{number:0digits$}{after}"))
    }

    /// The folder that all of them are in.
    pub(super) fn folder(&self) -> PathBuf {
        self.name(1).parent().map(Path::to_owned).unwrap_or_default()
    }

    /// The files there are, one after the other.
    pub(super) fn files(&self) -> Result<Vec<PathBuf>, Stop> {
        let first = (0..=FIRST_MAX).find(|number| self.name(*number).exists());
        let first = first.ok_or_else(|| {
            Stop::failed(format_args!(
                "there is neither {} nor one of the next {FIRST_MAX}; look at the pattern, or name the files",
                self.name(0).display()
            ))
        })?;
        let there = (first..).map(|number| self.name(number)).take_while(|name| name.exists());
        Ok(there.take(FILES_MAX).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_filled_up() {
        let name = |pattern: &str, number| Numbered::of(Path::new(pattern)).map(|numbered| numbered.name(number));
        assert_eq!(name("a/in%04d.png", 7), Some(PathBuf::from("a/in0007.png")));
        assert_eq!(name("in%d.png", 7), Some(PathBuf::from("in7.png")));
        assert_eq!(name("100%%-%03d.png", 12345), Some(PathBuf::from("100%-12345.png")));
        assert_eq!(Numbered::in_folder(Path::new("out")).name(1), PathBuf::from("out/000001.png"));
    }

    #[test]
    fn other_names_are_no_patterns() {
        for name in ["in.png", "50%.png", "%s.png", "%4d.png", "%d-%d.png", "%0999d.png", "%%.png"] {
            assert_eq!(Numbered::of(Path::new(name)), None, "{name}");
        }
    }
}
