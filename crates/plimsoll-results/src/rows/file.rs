//! A file of rows under way: which row counts for each key, and how the output comes to be.
//! Never writes to the output except by putting a whole new one in place.
//! Invariant: every row that was taken is in the journal or in the output, until it is in the output.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::atomic;
use super::entries::{Entries, Entry};
use super::error::RowsError;
use super::format::Format;
use super::formats;
use super::journal::{self, Header, Journal, Place};
use super::key::Key;
use super::row::Row;
use super::schema::Schema;

/// What to do with rows that are there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Refuse to begin.
    Refuse,
    /// Begin anew. A finished output stays until the new one takes its place; rows of an unfinished run are dropped.
    Replace,
    /// Keep them and add to them.
    Resume,
}

/// What a resuming run found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// Rows in the output.
    pub output_rows: u64,
    /// Rows in the journal.
    pub journal_rows: u64,
    /// Bytes of a row that a kill tore; they were cut off, and its task is done again.
    pub torn_bytes: u64,
    /// Lines of the journal that are not what was written (a fault of the disk); their tasks are done again.
    pub damaged_lines: u64,
}

/// Rows on their way into a file. Dropped without [`finish`](Self::finish), it leaves the journal for a run that resumes.
#[derive(Debug)]
#[must_use = "rows reach the output only with `finish`"]
pub struct RowFile {
    path: PathBuf,
    format: Format,
    schema: Schema,
    journal: Journal,
    entries: Entries,
    found: Found,
}

impl RowFile {
    /// Begins or continues the rows of `path`. Only one run at a time can.
    pub fn create(path: &Path, format: Format, schema: Schema, existing: Existing) -> Result<Self, RowsError> {
        if format == Format::Parquet && !cfg!(feature = "parquet") {
            return Err(RowsError::NoParquet);
        }
        let path = behind_links(path)?;
        let journal = Journal::open(&path)?;
        let (entries, found) = (Entries::default(), Found::default());
        let mut file = Self { path, format, schema, journal, entries, found };
        match existing {
            Existing::Refuse => file.begin_if_nothing_is_there()?,
            Existing::Replace => {
                file.journal.check_is_ours()?;
                file.begin(true)?;
            }
            Existing::Resume => file.resume()?,
        }
        Ok(file)
    }

    fn begin(&mut self, replaces: bool) -> Result<(), RowsError> {
        self.journal.begin(&Header { schema: self.schema.clone(), replaces })
    }

    fn begin_if_nothing_is_there(&mut self) -> Result<(), RowsError> {
        if let Some((_, header_bytes)) = self.journal.header()? {
            let rows = self.journal.scan(header_bytes, |_, _| Ok(()))?.rows;
            if rows > 0 {
                return Err(RowsError::JournalExists { journal: self.journal.path().to_owned(), rows });
            }
        }
        if self.path.exists() {
            return Err(RowsError::OutputExists { path: self.path.clone() });
        }
        self.begin(false)
    }

    fn resume(&mut self) -> Result<(), RowsError> {
        let header = self.journal.header()?;
        if let Some((header, header_bytes)) = &header {
            self.take_journal(header, *header_bytes)?;
        }
        if self.journal.is_vacant() {
            // A run that was to replace the output but came to no row has no claim on what is there.
            self.begin(false)?;
        } else if header.is_some_and(|(header, _)| header.replaces) {
            return Ok(());
        }
        self.take_output()
    }

    fn take_journal(&mut self, header: &Header, header_bytes: u64) -> Result<(), RowsError> {
        if let Some(difference) = self.schema.difference(&header.schema) {
            return Err(RowsError::Schema { path: self.journal.path().to_owned(), difference });
        }
        let path = self.journal.path().to_owned();
        let (schema, entries) = (&self.schema, &mut self.entries);
        let scan = self.journal.scan(header_bytes, |place, payload| {
            let row = journal::row_of(payload, schema).map_err(|what| RowsError::damaged(&path, what))?;
            entries.enter(schema.key(&row), Entry { place, failed: schema.failed(&row) });
            Ok(())
        })?;
        self.journal.cut(&scan)?;
        self.found.journal_rows = scan.rows;
        self.found.torn_bytes = scan.torn_bytes;
        self.found.damaged_lines = scan.damaged;
        Ok(())
    }

    /// Copies the output's rows into the journal, which then has all of them. A kill in between does no harm: the
    /// output is still there, and keys that the journal has already are passed over.
    fn take_output(&mut self) -> Result<(), RowsError> {
        let path = self.path.clone();
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(RowsError::system("read", &path, source)),
        };
        let schema = self.schema.clone();
        formats::read(self.format, &schema, file, &path, &mut |row| {
            self.found.output_rows += 1;
            let (key, failed) = (schema.key(&row), schema.failed(&row));
            if !self.entries.has_as_good(key, failed) {
                let place = self.journal.append_copy(&row)?;
                self.entries.enter(key, Entry { place, failed });
            }
            Ok(())
        })?;
        self.journal.sync()
    }

    /// Takes a row. Once this returns, no kill loses it; a power cut may take what came within the last second.
    ///
    /// A row replaces an earlier one of the same key. So does a failed one: its task was done again because the earlier row
    /// was not true any more.
    pub fn push(&mut self, row: &Row) -> Result<(), RowsError> {
        row.check(&self.schema)?;
        let place = self.journal.append(row)?;
        self.entries.enter(self.schema.key(row), Entry { place, failed: self.schema.failed(row) });
        self.journal.sync_if_due()
    }

    /// The schema of its rows.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Where the journal lies until the end.
    pub fn journal_path(&self) -> &Path {
        self.journal.path()
    }

    /// What was there when this run began; all zero unless it resumes.
    pub fn found(&self) -> Found {
        self.found
    }

    /// Whether a good row of this key is there. Failed rows are not done.
    pub fn is_done(&self, key: Key) -> bool {
        self.entries.is_done(key)
    }

    /// The good row of this key, if there is one.
    pub fn good_row(&self, key: Key) -> Result<Option<Row>, RowsError> {
        let entry = self.entries.find(key).filter(|entry| !entry.failed);
        entry.map(|entry| self.journal.row_at(entry.place, &self.schema)).transpose()
    }

    /// The keys of all good rows, in no order.
    pub fn done(&self) -> impl Iterator<Item = Key> {
        self.entries.iter().filter(|(_, entry)| !entry.failed).map(|(key, _)| key)
    }

    /// How many rows the output would have now, failed ones included.
    pub fn row_count(&self) -> usize {
        self.entries.len()
    }

    /// How many of them are failed ones.
    pub fn failed_count(&self) -> usize {
        self.entries.failed()
    }

    /// Writes the output with all rows in the order in which they came, and removes the journal. Says how many rows.
    ///
    /// After an error the output is as it was and the journal has all rows, for a run that resumes.
    pub fn finish(self) -> Result<usize, RowsError> {
        let mut places: Vec<Place> = self.entries.iter().map(|(_, entry)| entry.place).collect();
        places.sort_unstable_by_key(|place| place.offset);
        self.finish_with(&places)
    }

    /// As [`finish`](Self::finish), with rows ordered by the rank of their key (usually the place of its task in the
    /// input). Rows without a rank, of tasks that were not asked for this time, come last if they are good ones;
    /// failed ones are left out, since whoever asks for that task again gives it another key.
    pub fn finish_ranked(self, mut rank: impl FnMut(Key) -> Option<u64>) -> Result<usize, RowsError> {
        let mut ranked: Vec<(Option<u64>, Place)> = Vec::with_capacity(self.entries.len());
        for (key, entry) in self.entries.iter() {
            let rank = rank(key);
            if rank.is_some() || !entry.failed {
                ranked.push((rank, entry.place));
            }
        }
        ranked.sort_unstable_by_key(|(rank, place)| (rank.is_none(), *rank, place.offset));
        let places: Vec<Place> = ranked.into_iter().map(|(_, place)| place).collect();
        self.finish_with(&places)
    }

    fn finish_with(mut self, places: &[Place]) -> Result<usize, RowsError> {
        self.journal.sync()?;
        let mut rows = places.iter().map(|place| self.journal.row_at(*place, &self.schema));
        atomic::replace(&self.path, |out| {
            formats::write(self.format, &self.schema, out, &mut rows).map_err(|fault| fault.at(&self.path))
        })?;
        self.journal.retire()?;
        Ok(places.len())
    }

    /// Stops without an output: makes sure of all rows. Says where those are that the output does not have, if any.
    pub fn pause(mut self) -> Result<Option<PathBuf>, RowsError> {
        self.journal.sync()?;
        Ok((!self.journal.is_vacant()).then(|| self.journal.path().to_owned()))
    }
}

/// The names of the columns that rows at `path` have, for a run that is to add to them: those of an unfinished run if there
/// is one, else those of the output. None, if there is neither or it cannot be read; then the run that opens it says why.
pub fn columns_at(path: &Path, format: Format) -> Vec<String> {
    let of_journal = || {
        let output = behind_links(path).ok().filter(|output| Journal::is_there(output))?;
        let (header, _) = Journal::open(&output).ok()?.header().ok()??;
        Some(header.schema.columns().iter().map(|column| column.name().to_owned()).collect())
    };
    let of_output = || formats::names(format, File::open(path).ok()?);
    of_journal().or_else(of_output).unwrap_or_default()
}

/// The file that a name leads to, so that a link stays a link. Refuses what no rename can replace.
fn behind_links(path: &Path) -> Result<PathBuf, RowsError> {
    let no_file = || RowsError::NotAFile { path: path.to_owned() };
    path.file_name().ok_or_else(no_file)?;
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(no_file()),
        Ok(_) => fs::canonicalize(path).map_err(|source| RowsError::system("find", path, source)),
        Err(_) => Ok(path.to_owned()),
    }
}
