//! A JSON array that grows entry by entry under a temporary name and gets its own name when it is whole.
//! Never fails while it grows: the first error is kept, nothing more is written, and `finish` tells it.
//! Invariant: at most [`TRACE_BYTES_MAX`], with room kept for the end; the buffer never grows.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tempfile::NamedTempFile;

use super::TraceError;

/// Bytes in a trace: about ten million entries, and what viewers in a browser can just about load. What comes after is
/// left out and counted.
pub const TRACE_BYTES_MAX: u64 = 2 << 30;
/// Written at once: one system call for some four hundred entries.
const BUFFER: usize = 64 << 10;
const END: &[u8] = b"\n]\n";

/// Where the bytes go.
enum Target {
    /// A draft beside the final name: only within one file system is a rename atomic. Removed when dropped.
    Draft(NamedTempFile),
    /// A pipe, a terminal or a device cannot be renamed over.
    Straight(File),
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Draft(file) => file.write(bytes),
            Self::Straight(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Draft(file) => file.flush(),
            Self::Straight(file) => file.flush(),
        }
    }
}

pub(super) struct ArrayFile {
    path: PathBuf,
    out: BufWriter<Target>,
    /// The entry being written, kept to be filled again.
    line: Vec<u8>,
    entries: u64,
    bytes: u64,
    bytes_max: u64,
    left_out: u64,
    failed: Option<io::Error>,
}

/// What was written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) entries: u64,
    pub(super) bytes: u64,
    pub(super) left_out: u64,
}

impl ArrayFile {
    pub(super) fn create(path: &Path) -> Result<Self, TraceError> {
        Self::create_up_to(path, TRACE_BYTES_MAX)
    }

    fn create_up_to(path: &Path, bytes_max: u64) -> Result<Self, TraceError> {
        // What a link points to is replaced, not the link: `/dev/stdout` is one.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let target = target(&path)?;
        let out = BufWriter::with_capacity(BUFFER, target);
        Ok(Self { path, out, line: Vec::new(), entries: 0, bytes: 0, bytes_max, left_out: 0, failed: None })
    }

    pub(super) fn put(&mut self, entry: &impl Serialize) {
        if self.failed.is_some() {
            return;
        }
        self.line.clear();
        self.line.extend_from_slice(if self.entries == 0 { b"[\n" } else { b",\n" });
        if let Err(error) = serde_json::to_writer(&mut self.line, entry) {
            self.failed = Some(error.into());
            return;
        }
        let after = self.bytes + self.line.len() as u64;
        if after + END.len() as u64 > self.bytes_max {
            self.left_out += 1;
            return;
        }
        match self.out.write_all(&self.line) {
            Ok(()) => (self.bytes, self.entries) = (after, self.entries + 1),
            Err(error) => self.failed = Some(error),
        }
    }

    /// Whether nothing more will be written.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    pub(super) fn finish(mut self) -> Result<Written, TraceError> {
        let start: &[u8] = if self.entries == 0 { b"[" } else { b"" };
        let (path, entries, left_out) = (self.path, self.entries, self.left_out);
        let bytes = self.bytes + (start.len() + END.len()) as u64;
        let closed = match self.failed {
            Some(error) => {
                // Dropping the buffer would try to write it once more.
                drop(self.out.into_parts());
                Err(error)
            }
            None => {
                self.out.write_all(start).and_then(|()| self.out.write_all(END)).and_then(|()| close(self.out, &path))
            }
        };
        closed.map_err(|source| TraceError::system(&path, source))?;
        Ok(Written { entries, bytes, left_out })
    }
}

fn target(path: &Path) -> Result<Target, TraceError> {
    let failed = |source| TraceError::system(path, source);
    match fs::metadata(path) {
        Ok(there) if there.is_dir() => Err(TraceError::IsFolder { path: path.to_owned() }),
        Ok(there) if !there.is_file() => {
            OpenOptions::new().write(true).open(path).map(Target::Straight).map_err(failed)
        }
        _ => draft(path).map(Target::Draft).map_err(failed),
    }
}

fn draft(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".");
    let mut builder = tempfile::Builder::new();
    builder.prefix(&name).suffix(".part");
    // As any file the user makes, less what their umask takes away; a temporary file would be theirs alone.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

/// Writes what is in the buffer down to the disk, and only then gives the file its name.
fn close(out: BufWriter<Target>, path: &Path) -> io::Result<()> {
    match out.into_inner().map_err(io::IntoInnerError::into_error)? {
        Target::Straight(mut file) => file.flush(),
        Target::Draft(draft) => {
            draft.as_file().sync_all()?;
            draft.persist(path).map_err(|failed| failed.error)?;
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect()
    }

    #[test]
    fn nothing_lies_under_the_name_before_it_is_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace.json");
        fs::write(&path, "before").expect("written");
        let mut file = ArrayFile::create(&path).expect("created");
        file.put(&"one");
        assert_eq!(fs::read_to_string(&path).expect("read"), "before");
        file.put(&"two");
        let written = file.finish().expect("whole");
        let text = fs::read_to_string(&path).expect("read");
        assert_eq!(text, "[\n\"one\",\n\"two\"\n]\n");
        assert_eq!(written, Written { entries: 2, bytes: text.len() as u64, left_out: 0 });
        assert_eq!(names(folder.path()), ["trace.json"]);
    }

    #[test]
    fn an_empty_trace_is_an_empty_array() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace.json");
        let written = ArrayFile::create(&path).and_then(ArrayFile::finish).expect("whole");
        let text = fs::read_to_string(&path).expect("read");
        assert_eq!((text.as_str(), written.bytes), ("[\n]\n", text.len() as u64));
    }

    #[test]
    fn it_stays_under_its_limit_and_counts_what_it_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace.json");
        let mut file = ArrayFile::create_up_to(&path, 100).expect("created");
        (0..50).for_each(|_| file.put(&"an entry"));
        let written = file.finish().expect("whole");
        assert!(written.bytes <= 100 && written.entries + written.left_out == 50, "{written:?}");
        let text = fs::read_to_string(&path).expect("read");
        let entries: Vec<String> = serde_json::from_str(&text).expect("JSON");
        assert_eq!(entries.len() as u64, written.entries);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_told_at_the_end_and_never_before() {
        let mut file = ArrayFile::create(Path::new("/dev/full")).expect("Linux has it");
        (0..20_000).for_each(|_| file.put(&"an entry"));
        let error = file.finish().expect_err("there is no room");
        assert!(matches!(error, TraceError::Full { .. }), "{error}");
        assert_eq!(
            error.to_string(),
            "cannot write the trace /dev/full: No space left on device (os error 28); free some space, or write it \
             elsewhere"
        );
    }

    #[test]
    fn a_place_that_cannot_be_written_is_refused_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(matches!(ArrayFile::create(folder.path()), Err(TraceError::IsFolder { .. })));
        let nowhere = folder.path().join("no/such/folder/trace.json");
        assert!(matches!(ArrayFile::create(&nowhere), Err(TraceError::Io { .. })));
    }

    #[test]
    fn a_draft_that_cannot_be_put_in_place_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace.json");
        let file = ArrayFile::create(&path).expect("created");
        fs::create_dir(&path).expect("somebody was quicker");
        assert!(file.finish().is_err());
        assert_eq!(names(folder.path()), ["trace.json"]);
    }
}
