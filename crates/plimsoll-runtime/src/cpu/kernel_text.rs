//! Texts that the kernel makes up when they are read, below `/proc` and `/sys`: they have no size to ask for, so one
//! buffer that holds most of them saves several calls for each.

use std::fs::File;
use std::io::{ErrorKind, Read};

/// More than nearly all of them have.
const ENOUGH: usize = 8 << 10;
/// More than any that is asked for has.
const MOST: usize = 1 << 20;

/// All of it.
pub(super) fn whole(path: &str) -> Option<String> {
    read(path, MOST)
}

/// What one call gives.
pub(super) fn first(path: &str) -> Option<String> {
    read(path, 1)
}

/// Reads until it ends or there are so many bytes.
fn read(path: &str, enough: usize) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let (mut text, mut length) = (vec![0; ENOUGH], 0);
    while length < enough {
        if length == text.len() {
            text.resize(2 * length, 0);
        }
        match file.read(&mut text[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    text.truncate(length);
    String::from_utf8(text).ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_whole_and_missing_ones_are_none() {
        let status = whole("/proc/self/status").unwrap();
        assert!(status.starts_with("Name:") && status.contains("\nnonvoluntary_ctxt_switches:"), "{status}");
        assert!(status.starts_with(&first("/proc/self/status").unwrap()[..6]));
        assert_eq!(whole("/proc/self/no-such"), None);
    }

    #[test]
    fn longer_texts_than_the_buffer_are_whole() {
        let path = std::env::temp_dir().join(format!("plimsoll-kernel-text-{}", std::process::id()));
        std::fs::write(&path, "x".repeat(3 * ENOUGH + 1)).unwrap();
        let read = whole(&path.to_string_lossy());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read.map(|text| text.len()), Some(3 * ENOUGH + 1));
    }
}
