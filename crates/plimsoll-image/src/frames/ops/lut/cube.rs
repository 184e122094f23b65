//! The text of a `.cube` file, as Adobe and Resolve define it: read while the chain is read.
//! Never changes afterwards. Invariants: there are as many points as the size says, all of them finite; its `Debug` text
//! names its content, not its path.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::frames::operation::OperationError;

/// Points along a table of one dimension at most, as Adobe has it.
const LINE_MAX: usize = 65_536;
/// Points along each of three dimensions at most: twice the largest in use, and 25 MB.
const GRID_MAX: usize = 129;
/// Bytes of a file at most: those of the largest table, generously written.
const FILE_BYTES_MAX: u64 = 128 << 20;

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Dimensions {
    One,
    Three,
}

/// A table of colours.
#[derive(PartialEq)]
pub(super) struct Cube {
    pub(super) dimensions: Dimensions,
    /// Points along each dimension.
    pub(super) points: usize,
    /// The codes of the first and the last point, for red, green and blue.
    pub(super) domain: [[f32; 3]; 2],
    /// Red, green and blue of each point; red counts fastest.
    pub(super) table: Vec<f32>,
    content: u64,
}

/// What was read so far.
#[derive(Default)]
struct Said {
    line: Option<usize>,
    grid: Option<usize>,
    lowest: [f32; 3],
    highest: Option<[f32; 3]>,
    table: Vec<f32>,
}

impl Cube {
    /// The table in a file.
    pub(super) fn read(path: &Path) -> Result<Self, OperationError> {
        let named = |error: &dyn fmt::Display| OperationError::because(format_args!("{}: {error}", path.display()));
        let file = File::open(path).map_err(|error| named(&format_args!("cannot be read ({error})")))?;
        if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            return Err(named(&"is no file"));
        }
        let mut bytes = Vec::new();
        let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
        read.map_err(|error| named(&format_args!("cannot be read ({error})")))?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(named(&format_args!("has more than {FILE_BYTES_MAX} bytes, and no table needs so many")));
        }
        Self::parse(&bytes).map_err(|error| named(&error))
    }

    fn parse(bytes: &[u8]) -> Result<Self, OperationError> {
        let mut said = Said::default();
        for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") || line.starts_with(b"TITLE") {
                continue;
            }
            let malformed =
                || OperationError::because(format_args!("line {number} is none of a .cube file: '{}'", quoted(line)));
            let words = str::from_utf8(line).map_err(|_| malformed())?;
            said.take(&words.split_ascii_whitespace().collect::<Vec<_>>()).ok_or_else(malformed)?;
        }
        said.cube(twox_hash::XxHash3_64::oneshot(bytes))
    }
}

impl Said {
    /// Takes the words of a line; `None` if they make no sense.
    fn take(&mut self, words: &[&str]) -> Option<()> {
        let number = |text: &&str| text.parse::<f32>().ok().filter(|number| number.is_finite());
        match words {
            ["LUT_1D_SIZE", points] => self.line = Some(points.parse().ok()?),
            ["LUT_3D_SIZE", points] => self.grid = Some(points.parse().ok()?),
            ["DOMAIN_MIN", rgb @ ..] => self.lowest = three(rgb)?,
            ["DOMAIN_MAX", rgb @ ..] => self.highest = Some(three(rgb)?),
            ["LUT_1D_INPUT_RANGE" | "LUT_3D_INPUT_RANGE", lowest, highest] => {
                self.lowest = [number(lowest)?; 3];
                self.highest = Some([number(highest)?; 3]);
            }
            rgb => {
                // No file makes us hold more than the largest table.
                (self.table.len() < 3 * GRID_MAX.pow(3)).then_some(())?;
                self.table.extend(three(rgb)?);
            }
        }
        Some(())
    }

    fn cube(self, content: u64) -> Result<Cube, OperationError> {
        let (dimensions, points, wanted) = match (self.line, self.grid) {
            (Some(points), None) if (2..=LINE_MAX).contains(&points) => (Dimensions::One, points, points),
            (None, Some(points)) if (2..=GRID_MAX).contains(&points) => (Dimensions::Three, points, points.pow(3)),
            (Some(_), Some(_)) => {
                return Err(OperationError::because("has tables of one and of three dimensions; make two files of it"));
            }
            (None, None) => {
                return Err(OperationError::because("has no LUT_1D_SIZE and no LUT_3D_SIZE, so it is no .cube file"));
            }
            _ => {
                return Err(OperationError::because(format_args!(
                    "has a size that is not read; 2 to {LINE_MAX} points in one dimension are, and 2 to {GRID_MAX} in \
                     three"
                )));
            }
        };
        if self.table.len() != 3 * wanted {
            let got = self.table.len() / 3;
            return Err(OperationError::because(format_args!("has {got} points, and its size says {wanted}")));
        }
        let domain = [self.lowest, self.highest.unwrap_or([1.0; 3])];
        if (0..3).any(|channel| domain[0][channel] >= domain[1][channel]) {
            return Err(OperationError::because("has a domain whose end is not above its begin"));
        }
        Ok(Cube { dimensions, points, domain, table: self.table, content })
    }
}

fn three(words: &[&str]) -> Option<[f32; 3]> {
    let &[red, green, blue] = words else { return None };
    let number = |text: &str| text.parse::<f32>().ok().filter(|number| number.is_finite());
    Some([number(red)?, number(green)?, number(blue)?])
}

/// Bytes of a file, safe to print.
fn quoted(line: &[u8]) -> String {
    line[..line.len().min(32)].escape_ascii().to_string()
}

impl fmt::Debug for Cube {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cube({:?} x {}, content {:016x})", self.dimensions, self.points, self.content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read() {
        let text = "# of mine\r\nTITLE \"a b\"\nLUT_3D_SIZE 2\n\nDOMAIN_MIN 0 0 0.5\nDOMAIN_MAX 1 2 1\n".to_owned()
            + &"0 .5 1e0\n".repeat(8);
        let cube = Cube::parse(text.as_bytes()).unwrap();
        assert_eq!((cube.dimensions, cube.points), (Dimensions::Three, 2));
        assert_eq!(cube.domain, [[0.0, 0.0, 0.5], [1.0, 2.0, 1.0]]);
        assert_eq!(cube.table[..6], [0.0, 0.5, 1.0, 0.0, 0.5, 1.0]);
        let line = Cube::parse(b"LUT_1D_SIZE 2\nLUT_1D_INPUT_RANGE 0.25 4\n0 0 0\n1 1 1").unwrap();
        assert_eq!((line.dimensions, line.domain), (Dimensions::One, [[0.25; 3], [4.0; 3]]));
        assert_ne!(format!("{cube:?}"), format!("{line:?}"));
    }

    #[test]
    fn what_is_no_table_is_refused() {
        for wrong in [
            "",
            "hello",
            "LUT_1D_SIZE 1\n0 0 0",
            "LUT_1D_SIZE 70000",
            "LUT_3D_SIZE 130",
            "LUT_3D_SIZE 99999999999999999999",
            "LUT_1D_SIZE 2\n0 0 0",
            "LUT_1D_SIZE 2\n0 0 0\n1 1 1\n1 1 1",
            "LUT_1D_SIZE 2\n0 0\n1 1 1",
            "LUT_1D_SIZE 2\n0 0 nan\n1 1 1",
            "LUT_1D_SIZE 2\nLUT_3D_SIZE 2\n0 0 0\n1 1 1",
            "LUT_1D_SIZE 2\nDOMAIN_MIN 1 1 1\n0 0 0\n1 1 1",
            "LUT_1D_SIZE 2\n\u{e9}\n",
        ] {
            assert!(Cube::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert!(Cube::read(Path::new("/dev/zero")).unwrap_err().to_string().contains("is no file"));
    }
}
