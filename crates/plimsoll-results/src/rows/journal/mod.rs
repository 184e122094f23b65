//! The journal of a run: its rows so far, one sealed line each, in a file beside the output.
//! Owns that file and its lock; never knows which row replaces which (that is `file`).
//! Invariant: a row that was appended is found again after a kill; what a kill tore is cut off before the next row.

mod header;
mod line;
mod lock;

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::ROW_BYTES_MAX;
use super::atomic::{beside, sync_folder};
use super::bounded_lines::{Line, read_line};
use super::error::RowsError;
use super::row::{Row, RowError};
use super::schema::Schema;
pub(super) use header::Header;
use header::NoHeader;
pub(super) use line::row_of;

/// What a journal's name ends with, after all of the output's name.
const SUFFIX: &str = ".journal";

/// How long rows may wait to be made sure of on the disk. Only a power cut can take them before: a kill cannot.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// Where a row's line lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) offset: u64,
    len: u32,
}

/// What was found while reading a journal through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Scan {
    /// Whole lines.
    pub(super) rows: u64,
    /// Lines before the last whole one that are not what was written.
    pub(super) damaged: u64,
    /// Bytes after the last whole line.
    pub(super) torn_bytes: u64,
    /// Where the last whole line ends.
    end: u64,
}

/// An open, locked journal.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    /// Where the next row goes. Only ever after a whole line.
    end: u64,
    /// Whether it holds nothing that anyone could miss, so that it is removed when dropped.
    vacant: bool,
    /// Whether rows wait to be made sure of.
    unsynced: bool,
    synced: Instant,
}

impl Journal {
    /// Opens or creates the journal of this output; refuses while another run has it.
    pub(super) fn open(output: &Path) -> Result<Self, RowsError> {
        let path = beside(output, SUFFIX);
        let file = lock::open_locked(&path, output)?;
        let length = file.metadata().map_err(|source| RowsError::system("read", &path, source))?.len();
        Ok(Self { path, file, end: length, vacant: length == 0, unsynced: false, synced: Instant::now() })
    }

    /// Whether there is one for this output.
    pub(super) fn is_there(output: &Path) -> bool {
        beside(output, SUFFIX).exists()
    }

    /// Where it lies.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it holds no row but copies of the output's.
    pub(super) fn is_vacant(&self) -> bool {
        self.vacant
    }

    /// What the journal says of itself, and how long that is; none when there is nothing behind it.
    pub(super) fn header(&mut self) -> Result<Option<(Header, u64)>, RowsError> {
        let mut bytes = Vec::new();
        let (what, taken) = self.first_line(&mut bytes)?;
        let path = self.path.clone();
        let foreign = |path| Err(RowsError::NotAJournal { path });
        let damaged = |path: PathBuf| Err(RowsError::damaged(&path, "its first line is not what was written"));
        match what {
            Line::End => Ok(None),
            Line::Unended if header::is_torn(&bytes) => {
                self.vacant = true;
                Ok(None)
            }
            Line::TooLong if header::is_ours(&bytes) => damaged(path),
            Line::Unended | Line::TooLong => foreign(path),
            Line::Whole => match Header::read(&bytes) {
                Ok(header) => Ok(Some((header, taken))),
                Err(NoHeader::Foreign) => foreign(path),
                Err(NoHeader::Newer) => Err(RowsError::NewerJournal { path }),
                Err(NoHeader::Damaged) => damaged(path),
            },
        }
    }

    /// Refuses a file that is no journal of any version, whole or torn.
    pub(super) fn check_is_ours(&mut self) -> Result<(), RowsError> {
        match self.header() {
            Err(error @ (RowsError::NotAJournal { .. } | RowsError::Io { .. })) => Err(error),
            _ => Ok(()),
        }
    }

    fn first_line(&mut self, bytes: &mut Vec<u8>) -> Result<(Line, u64), RowsError> {
        self.file
            .rewind()
            .and_then(|()| read_line(&mut BufReader::new(&self.file), bytes, ROW_BYTES_MAX))
            .map_err(|source| RowsError::system("read", &self.path, source))
    }

    /// Empties it and writes the header, down to the disk.
    pub(super) fn begin(&mut self, header: &Header) -> Result<(), RowsError> {
        let line = header.line();
        self.vacant = true;
        let written = self.file.set_len(0).and_then(|()| self.write_at(0, &line)).and_then(|()| self.file.sync_all());
        written.map_err(|source| RowsError::system("write", &self.path, source))?;
        self.end = line.len() as u64;
        sync_folder(&self.path)
    }

    /// Reads all whole lines after the header, and hands over their payloads. Changes nothing.
    pub(super) fn scan(
        &mut self,
        header_bytes: u64,
        mut each: impl FnMut(Place, &[u8]) -> Result<(), RowsError>,
    ) -> Result<Scan, RowsError> {
        let failed = |source| RowsError::system("read", &self.path, source);
        (&self.file).seek(SeekFrom::Start(header_bytes)).map_err(failed)?;
        let mut input = BufReader::with_capacity(1 << 16, &self.file);
        let mut scan = Scan { end: header_bytes, ..Scan::default() };
        let (mut bytes, mut offset, mut bad) = (Vec::new(), header_bytes, 0);
        loop {
            let (what, taken) = read_line(&mut input, &mut bytes, ROW_BYTES_MAX).map_err(failed)?;
            let payload = if what == Line::Whole { line::unseal(&bytes) } else { None };
            match (what, payload) {
                (Line::End, _) => break,
                (_, None) => bad += 1,
                (_, Some(payload)) => {
                    let len = u32::try_from(bytes.len()).expect("a line is at most ROW_BYTES_MAX long");
                    each(Place { offset, len }, payload)?;
                    scan.rows += 1;
                    scan.damaged += std::mem::take(&mut bad);
                    scan.end = offset + taken;
                }
            }
            offset += taken;
        }
        scan.torn_bytes = offset - scan.end;
        self.vacant = scan.rows == 0;
        Ok(scan)
    }

    /// Cuts off what a kill left after the last whole line, so that rows can follow.
    pub(super) fn cut(&mut self, scan: &Scan) -> Result<(), RowsError> {
        self.file.set_len(scan.end).map_err(|source| RowsError::system("repair", &self.path, source))?;
        self.end = scan.end;
        Ok(())
    }

    /// Takes a row, in one write. When that fails, none of it is left.
    pub(super) fn append(&mut self, row: &Row) -> Result<Place, RowsError> {
        let place = self.append_copy(row)?;
        self.vacant = false;
        Ok(place)
    }

    /// As [`Self::append`], for a row that the output has too: nobody misses a journal of only such rows.
    pub(super) fn append_copy(&mut self, row: &Row) -> Result<Place, RowsError> {
        let line = line::seal(&line::payload_of(row));
        let len = line.len() - 1;
        if len > ROW_BYTES_MAX {
            return Err(RowError::TooLong { bytes: len, limit: ROW_BYTES_MAX }.into());
        }
        let place = Place { offset: self.end, len: u32::try_from(len).expect("at most ROW_BYTES_MAX") };
        if let Err(source) = self.write_at(self.end, &line) {
            // A part that stays all the same is written over by the next row, or cut off by its checksum.
            let _ = self.file.set_len(self.end);
            return Err(RowsError::system("write", &self.path, source));
        }
        self.end += line.len() as u64;
        self.unsynced = true;
        Ok(place)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.write_all(bytes)
    }

    /// Makes sure of the rows on the disk if the last time is a while ago.
    pub(super) fn sync_if_due(&mut self) -> Result<(), RowsError> {
        if self.synced.elapsed() < SYNC_EVERY { Ok(()) } else { self.sync() }
    }

    /// Makes sure of all rows on the disk.
    pub(super) fn sync(&mut self) -> Result<(), RowsError> {
        if self.unsynced {
            self.file.sync_data().map_err(|source| RowsError::system("write", &self.path, source))?;
            self.unsynced = false;
        }
        self.synced = Instant::now();
        Ok(())
    }

    /// The row at a place that [`Self::append`] or [`Self::scan`] gave.
    pub(super) fn row_at(&self, place: Place, schema: &Schema) -> Result<Row, RowsError> {
        let mut bytes = vec![0; place.len as usize];
        let mut file = &self.file;
        file.seek(SeekFrom::Start(place.offset))
            .and_then(|_| file.read_exact(&mut bytes))
            .map_err(|source| RowsError::system("read", &self.path, source))?;
        let payload = line::unseal(&bytes)
            .ok_or_else(|| RowsError::damaged(&self.path, format!("the row at byte {} has changed", place.offset)))?;
        row_of(payload, schema).map_err(|what| RowsError::damaged(&self.path, what))
    }

    /// Removes the journal, since all its rows are in the output. Another run may then have the lock.
    pub(super) fn retire(mut self) -> Result<(), RowsError> {
        self.vacant = false;
        self.unsynced = false;
        fs::remove_file(&self.path).map_err(|source| RowsError::system("remove", &self.path, source))?;
        sync_folder(&self.path)
    }
}

impl Drop for Journal {
    /// A journal with rows stays, for a run that resumes. Its rows are in the system's hands already; an error here
    /// would change nothing about that.
    fn drop(&mut self) {
        if self.vacant {
            let _ = fs::remove_file(&self.path);
        } else {
            let _ = self.sync();
        }
    }
}

#[cfg(test)]
mod tests;
