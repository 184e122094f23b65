//! What is in the book: a line that names its format and checksum, then the entries as JSON.
//! Never reads more than [`BYTES_MAX`], and never leaves half a page under the book's name.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use super::{BookError, Entry};

/// Entries at most. A program has one for each device it uses.
pub const ENTRIES_MAX: usize = 1_024;
/// Bytes of the file at most: what so many entries take, and more.
pub const BYTES_MAX: u64 = 1 << 20;

const FORMAT: &str = "plimsoll-book 1";

/// The entries; the reason if the file holds something else. One that is not there has none.
pub(super) fn read(path: &Path) -> Result<Result<Vec<Entry>, String>, BookError> {
    let failed = |source| BookError::Io { doing: "read", path: path.to_owned(), source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Ok(Vec::new())),
        Err(error) => return Err(failed(error)),
    };
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok(parse(&bytes))
}

fn parse(bytes: &[u8]) -> Result<Vec<Entry>, String> {
    if bytes.len() as u64 > BYTES_MAX {
        return Err(format!("it is larger than {BYTES_MAX} bytes"));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not text".to_owned())?;
    let (head, body) = text.split_once('\n').ok_or("it has no first line")?;
    let sum = head.strip_prefix(FORMAT).ok_or("its first line names no format that is known")?.trim();
    if sum != checksum(body) {
        return Err("its checksum is wrong".into());
    }
    let entries: Vec<Entry> = serde_json::from_str(body).map_err(|error| error.to_string())?;
    if entries.len() > ENTRIES_MAX {
        return Err(format!("it has more than {ENTRIES_MAX} entries"));
    }
    Ok(entries)
}

fn checksum(body: &str) -> String {
    format!("{:016x}", twox_hash::XxHash3_64::oneshot(body.as_bytes()))
}

/// Puts the entries in place of those that were there. The lock is held, so nobody else writes the draft. Who leaves last
/// takes the file along: on some file systems one that is replaced has to go to the disk first, which took short runs up to
/// 5 ms at each end.
pub(super) fn write(path: &Path, entries: &[Entry]) -> Result<(), BookError> {
    let failed = |source| BookError::Io { doing: "write", path: path.to_owned(), source };
    if entries.is_empty() {
        return match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
            _ => Ok(()),
        };
    }
    let body = serde_json::to_string(entries).unwrap_or_default();
    let text = format!("{FORMAT} {}\n{body}", checksum(&body));
    if entries.len() > ENTRIES_MAX || text.len() as u64 > BYTES_MAX {
        return Err(BookError::Full { path: path.to_owned() });
    }
    let draft = path.with_extension("new");
    let put = || {
        File::create(&draft)?.write_all(text.as_bytes())?;
        fs::rename(&draft, path)
    };
    put().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::MemberId;

    fn entries(count: u64) -> Vec<Entry> {
        let entry = |number| Entry::new(MemberId { pid: 1, started: 2, number }, "gpu0");
        (0..count).map(entry).collect()
    }

    #[test]
    fn what_was_written_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("book");
        assert_eq!(read(&path).expect("no trouble"), Ok(Vec::new()), "none is there");
        write(&path, &entries(3)).expect("written");
        assert_eq!(read(&path).expect("no trouble"), Ok(entries(3)));
    }

    #[test]
    fn who_leaves_last_takes_the_file_along() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("book");
        write(&path, &entries(1)).expect("written");
        for _ in 0..2 {
            write(&path, &[]).expect("there or not");
            assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
            assert_eq!(read(&path).expect("no trouble"), Ok(Vec::new()));
        }
    }

    #[test]
    fn everything_else_has_a_reason() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("book");
        write(&path, &entries(2)).expect("written");
        let whole = fs::read(&path).expect("read");
        for cut in 0..whole.len() {
            assert!(parse(&whole[..cut]).is_err(), "cut at {cut}");
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 4;
            assert!(parse(&changed).is_err(), "byte {at} changed");
        }
        assert!(parse(&vec![b'x'; BYTES_MAX as usize + 1]).is_err_and(|reason| reason.contains("larger")));
        let body = serde_json::to_string(&entries(ENTRIES_MAX as u64 + 1)).expect("text");
        let many = format!("{FORMAT} {}\n{body}", checksum(&body));
        assert!(parse(many.as_bytes()).is_err_and(|reason| reason.contains("entries")));
    }

    #[test]
    fn a_full_book_stays_as_it_was() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("book");
        write(&path, &entries(ENTRIES_MAX as u64)).expect("as many as fit");
        assert!(matches!(write(&path, &entries(ENTRIES_MAX as u64 + 1)), Err(BookError::Full { .. })));
        assert_eq!(read(&path).expect("no trouble").map(|entries| entries.len()), Ok(ENTRIES_MAX));
    }
}
