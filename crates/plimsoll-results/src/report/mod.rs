//! A page to look at: one HTML file that shows what was compared, how good each file is for its size, and where it
//! differs. Owns the data that goes in and the file that comes out; what each part looks like is in its own file.
//! Never reads an image file, and the page never reaches for the network.
//! Invariant: every text that came from outside passes through `html::Text` on its way into the page.
//!
//! | file | answers |
//! |---|---|
//! | `page` | in which order do the parts come? |
//! | `header` | what was compared? |
//! | `plot`, `scale`, `groups` | what does each file give for its bits? |
//! | `table`, `numbers` | what are the figures, and which is the best? |
//! | `heat`, `colour_map` | where does a file differ? |
//! | `heat_file` | the same as a file of its own |
//! | `gallery`, `shrink`, `data_uri` | which pictures are in the page, how large, how encoded? |
//! | `html` | how does a text become a part of the page? |

mod colour_map;
mod data_uri;
mod gallery;
mod groups;
mod header;
mod heat;
mod heat_file;
mod html;
mod numbers;
mod page;
mod plot;
mod scale;
mod shrink;
mod table;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub use self::heat_file::write_heat_map;

/// Rows of a page that have pictures; those after them are shown without.
pub const ROWS_WITH_PICTURES_MAX: usize = gallery::ROWS_WITH_PICTURES_MAX;

/// The longest side that pictures and heat maps of a page with so many rows have. Whoever makes them makes them no larger.
pub fn picture_side(rows: usize) -> u32 {
    gallery::HEAT_MAP_SIDE.among(rows.min(ROWS_WITH_PICTURES_MAX))
}

/// The sides of the parts that a page with so many rows shows pixel by pixel.
pub fn detail_side(rows: usize) -> u32 {
    gallery::DETAIL_SIDE.among(2 * rows.min(ROWS_WITH_PICTURES_MAX))
}

/// Everything that a page shows. Rows are shown in the order given.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The page's title.
    pub title: String,
    /// The command that made the page, so that a reader can repeat it. Left out when empty.
    pub command: String,
    /// Facts of the run, as name and value: images, metrics, images per second, devices.
    pub summary: Vec<(String, String)>,
    /// The scores of each row, in this order.
    pub metrics: Vec<MetricColumn>,
    /// What the files were compared with.
    pub references: Vec<ReferenceImage>,
    /// One for each compared file.
    pub rows: Vec<ReportRow>,
    /// What the heat maps hold, such as `Butteraugli distance`.
    pub heat_map_of: String,
    /// What the scores say of each series, as a table in plain text. Left out when empty.
    pub figures: String,
}

/// A score that rows have.
#[derive(Clone, Debug, Default)]
pub struct MetricColumn {
    /// As people call it.
    pub name: String,
    /// Whether a higher score is a better one.
    pub better_higher: bool,
    /// What it measures and in which unit, in a few words; may be empty.
    pub what: String,
}

/// An image that others were compared with.
#[derive(Clone, Debug, Default)]
pub struct ReferenceImage {
    /// The name by which rows refer to it.
    pub name: String,
    /// Pixels in a row.
    pub width: u32,
    /// Rows of pixels.
    pub height: u32,
    /// The size of its file, 0 when unknown.
    pub bytes: u64,
    /// Its pixels, in any size of the same shape.
    pub picture: Option<Picture>,
}

/// A file that was compared with a reference.
#[derive(Clone, Debug, Default)]
pub struct ReportRow {
    /// The name of its reference.
    pub reference: String,
    /// The name of the file.
    pub file: String,
    /// Which line of the plots it belongs to, such as its format.
    pub series: String,
    /// Pixels in a row.
    pub width: u32,
    /// Rows of pixels.
    pub height: u32,
    /// The size of the file.
    pub bytes: u64,
    /// One for each of [`Report::metrics`]; `None` where there is none.
    pub scores: Vec<Option<f64>>,
    /// Why there are no scores.
    pub error: Option<String>,
    /// Its pixels, in any size of the same shape.
    pub picture: Option<Picture>,
    /// Where it differs from its reference.
    pub heat_map: Option<HeatMap>,
    /// A part of it and of its reference, pixel by pixel.
    pub detail: Option<Detail>,
}

/// The same part of a file and of its reference, pixel by pixel: what was made small shows no pixels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// The first column of it.
    pub left: u32,
    /// The first row of it.
    pub top: u32,
    /// That part of the file.
    pub picture: Picture,
    /// That part of the reference, of the same size.
    pub reference: Picture,
}

/// Pixels in sRGB. One whose length does not match its sides is left out of the page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    /// Pixels in a row.
    pub width: u32,
    /// Rows of pixels.
    pub height: u32,
    /// Red, green, blue of each pixel, row after row.
    pub rgb: Vec<u8>,
}

impl Picture {
    /// The longest side that a page shows. Whoever keeps many pictures keeps them no larger.
    pub const SIDE_MAX: u32 = gallery::PICTURE_SIDE.max;

    /// The same picture with neither side longer than this.
    #[must_use]
    pub fn shrunk(&self, side_max: u32) -> Self {
        shrink::picture(self, side_max)
    }
}

/// How far each place is from the reference: 0 is the same. One whose length does not match its sides is left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatMap {
    /// Values in a row.
    pub width: u32,
    /// Rows of values.
    pub height: u32,
    /// The distances, row after row.
    pub values: Vec<f32>,
}

impl HeatMap {
    /// The longest side that a page shows.
    pub const SIDE_MAX: u32 = gallery::HEAT_MAP_SIDE.max;

    /// The same map with neither side longer than this: each value is the mean of the area it covers.
    #[must_use]
    pub fn shrunk(&self, side_max: u32) -> Self {
        shrink::heat_map(self, side_max)
    }
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[error("{path} could not be written; choose another place")]
pub struct ReportError {
    /// Where the page should have been.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

/// The page as text.
pub fn render(report: &Report) -> String {
    page::render(report)
}

/// Finds out before the work whether a page could be written.
pub fn check(path: &Path) -> Result<(), ReportError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_folder = || io::Error::new(io::ErrorKind::IsADirectory, "it is a folder");
    let tried = if path.is_dir() { Err(is_folder()) } else { beside(folder).map(drop) };
    tried.map_err(|source| ReportError { path: path.to_owned(), source })
}

/// Writes the page. Whoever opens the file sees the page of before or the new one, whole.
pub fn write(report: &Report, path: &Path) -> Result<(), ReportError> {
    replace(path, render(report).as_bytes()).map_err(|source| ReportError { path: path.to_owned(), source })
}

fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = beside(folder)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// A file that is not yet there for others, with the permissions of any new file: it is made to be shown.
fn beside(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".plimsoll-");
    #[cfg(unix)]
    builder.permissions(<fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666));
    builder.tempfile_in(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_replaces_the_one_before_and_leaves_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        fs::write(&path, "before").unwrap();
        write(&Report { title: "after".to_owned(), ..Report::default() }, &path).unwrap();
        assert!(fs::read_to_string(&path).unwrap().contains("<h1>after</h1>"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_page_that_cannot_be_written_says_where() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing").join("report.html");
        let error = write(&Report::default(), &path).unwrap_err();
        assert_eq!(error.path, path);
        assert!(error.to_string().contains("missing"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_page_can_be_read_by_those_who_may_read_any_new_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let [plain, page] = ["plain", "page"].map(|name| folder.path().join(name));
        fs::write(&plain, "").unwrap();
        write(&Report::default(), &page).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&page), mode(&plain));
    }
}
