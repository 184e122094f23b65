//! Names that people write for one of a few things, and back.
//! Never guesses: what is not on the list is an error that shows the list.

/// A text that names none of a few things.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no {what}; write one of {known}")]
pub struct UnknownNameError {
    what: &'static str,
    text: String,
    known: String,
}

/// The characters of a wrong name that its error repeats.
const SHOWN_MAX: usize = 40;

/// What a text names, in whatever case it is written.
pub(crate) fn parse<T: Copy>(
    what: &'static str,
    names: &[(&'static str, T)],
    text: &str,
) -> Result<T, UnknownNameError> {
    let found = names.iter().find(|(name, _)| name.eq_ignore_ascii_case(text.trim()));
    found.map(|(_, named)| *named).ok_or_else(|| UnknownNameError {
        what,
        text: text.chars().take(SHOWN_MAX).collect(),
        known: names.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
    })
}

/// What something is called: its first name.
pub(crate) fn name_of<T: PartialEq>(names: &[(&'static str, T)], named: T) -> &'static str {
    names.iter().find(|(_, one)| *one == named).map_or("", |(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use crate::{GrantKind, Priority};

    #[test]
    fn names_are_read_back() {
        for (name, priority) in Priority::NAMES {
            assert_eq!(name.parse(), Ok(priority));
        }
        for (name, kind) in GrantKind::NAMES {
            assert_eq!((name.parse(), kind.to_string().as_str()), (Ok(kind), name));
        }
        assert_eq!(Priority::USER_FACING.to_string(), "high");
        assert_eq!(" User-Facing".parse(), Ok(Priority::High));
    }

    #[test]
    fn a_wrong_name_shows_the_right_ones() {
        let wrong = "urgent".repeat(100).parse::<Priority>().unwrap_err().to_string();
        assert!(wrong.contains("background, low, normal, high, critical, user-facing") && wrong.len() < 200, "{wrong}");
    }
}
