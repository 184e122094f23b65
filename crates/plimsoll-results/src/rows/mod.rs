//! Rows of results in a file: CSV, JSON, JSON lines or Parquet. Invariant: no row is lost or doubled by a kill.
//!
//! A long run hands over one [`Row`] after another. Each goes at once into a journal beside the output, a line with a
//! checksum; [`RowFile::finish`] writes the output in one step and removes the journal. Whatever stops a run in between
//! (a kill, a full disk, Ctrl-C), a run with [`Existing::Resume`] finds every row that [`RowFile::push`] took.
//!
//! | a kill | leaves | a resuming run |
//! |---|---|---|
//! | while a row is written | a journal whose last line is torn | cuts that line off; its row was never reported as taken |
//! | while the output is written | a journal, a draft, the output as it was | writes the draft anew |
//! | after the output is there, before the journal is gone | both, with the same rows | takes each row once, by its key |
//!
//! Rows are told apart by their key columns. A later row replaces an earlier one of the same key, a failed one (whose
//! `error` column has text) too. A run that resumes may have more columns than the output: cells that are not there are
//! empty.
//!
//! ```
//! use plimsoll_results::rows::{Cell, Column, Existing, Format, Kind, Row, RowFile, Schema};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("scores.csv");
//! let schema = Schema::new(vec![Column::key("distorted", Kind::Text), Column::value("psnr", Kind::Number)])?;
//! let mut file = RowFile::create(&path, Format::of_path(&path)?, schema, Existing::Refuse)?;
//! file.push(&Row::new([Cell::from("b.png"), Cell::from(41.25)]))?;
//! file.push(&Row::new([Cell::from("a.png"), Cell::from(38.5)]))?;
//! file.finish()?;
//! assert_eq!(std::fs::read_to_string(&path)?, "distorted,psnr\nb.png,41.25\na.png,38.5\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod atomic;
mod bounded_lines;
mod entries;
mod error;
mod file;
mod format;
mod formats;
mod journal;
mod key;
mod row;
mod schema;
mod stream;

pub use error::RowsError;
pub use file::{Existing, Found, RowFile, columns_at};
pub use format::{Format, ParseFormatError};
pub use key::Key;
pub use row::{Cell, Row, RowError};
pub use schema::{Column, Kind, Schema, SchemaDifference, SchemaError};
pub use stream::{RowStream, show_all};

/// A row's longest line in a journal. Far above any row of paths and figures; bounds what a damaged file makes us read.
pub const ROW_BYTES_MAX: usize = 1 << 20;
