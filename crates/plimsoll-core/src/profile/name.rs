//! Names that go into the profile: bounded and printable, so that a file can hold them and a terminal can show them.

/// Bytes of a name kept. Device names with driver versions are under 150.
pub const NAME_MAX: usize = 256;

/// The name without what could harm a terminal or a file, and not longer than [`NAME_MAX`].
pub(super) fn clean(name: &str) -> String {
    let mut clean: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    clean.truncate(clean.floor_char_boundary(NAME_MAX));
    clean
}

/// Whether a name read from a file is one that [`clean`] lets through.
pub(super) fn is_clean(name: &str) -> bool {
    name.len() <= NAME_MAX && !name.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_ordinary_name_is_kept() {
        assert_eq!(clean("NVIDIA GeForce RTX 5070 (Vulkan, 580.1)"), "NVIDIA GeForce RTX 5070 (Vulkan, 580.1)");
        assert_eq!(clean("red \u{1b}[31m\n"), "red  [31m ");
    }

    proptest! {
        #[test]
        fn a_cleaned_name_is_clean(name in "\\PC*|.*|ß{200}") {
            prop_assert!(is_clean(&clean(&name)));
        }
    }
}
