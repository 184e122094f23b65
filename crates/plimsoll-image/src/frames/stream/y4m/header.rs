//! The first line of a Y4M stream: read, and written.
//! Never keeps comments (`X…`) that it does not know: what they say may not hold for the frames that are written.

use std::fmt;
use std::str::FromStr;

use super::colour_space::ColourSpace;
use crate::frames::format::{Colour, Format, Matrix, Range, Yuv};
use crate::frames::stream::error::{HeaderError, WriteError, quoted};
use crate::image::Size;

/// Bytes of a line of text at most, the stream's or a frame's. ffmpeg writes under 100, mjpegtools allow 256.
pub(in crate::frames::stream) const LINE_BYTES_MAX: usize = 1024;

/// How every stream begins.
const MAGIC: &[u8] = b"YUV4MPEG2";

/// Two numbers, one by the other.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ratio {
    /// What is divided.
    pub numerator: u32,
    /// By what.
    pub denominator: u32,
}

/// How the rows of a frame come about.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Interlacing {
    /// All at once.
    #[default]
    Progressive,
    /// Every other row at first, beginning with the topmost.
    TopFirst,
    /// Every other row at first, beginning with the second.
    BottomFirst,
    /// Each frame says for itself, which is not read.
    Mixed,
    /// Not said.
    Unknown,
}

/// What a stream does not say about its frames, and was guessed.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Guessed {
    /// The matrix of luma and chroma, [from the size](likely_matrix).
    pub matrix: bool,
    /// Which codes stand for black and white.
    pub range: bool,
}

/// What a stream says about its frames.
///
/// Frames are taken whole, also interlaced ones: [`interlacing`](Self::interlacing) only says so.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamHeader {
    /// What samples stand for.
    pub format: Format,
    /// Frames a second, if known.
    pub rate: Option<Ratio>,
    /// The width of a pixel by its height, if known.
    pub aspect: Option<Ratio>,
    /// How the rows of a frame come about.
    pub interlacing: Interlacing,
    /// What of the format it does not say.
    pub guessed: Guessed,
}

/// The matrix that a video of this size most likely has: BT.709 from 1280 columns or above 576 rows, as in high
/// definition, else BT.601. Y4M does not say, and players guess likewise.
pub fn likely_matrix(size: Size) -> Matrix {
    if size.width >= 1280 || size.height > 576 { Matrix::Bt709 } else { Matrix::Bt601 }
}

impl StreamHeader {
    /// The header of progressive frames, about which no more is known than what samples stand for.
    pub fn new(format: Format) -> Self {
        let (interlacing, guessed) = (Interlacing::Progressive, Guessed::default());
        Self { format, rate: None, aspect: None, interlacing, guessed }
    }

    /// As [`StreamHeader::new`], where only the layout of samples was told, and the rest of the format is a guess.
    pub fn guessed(format: Format) -> Self {
        let (matrix, range) = match format.colour() {
            Colour::Rgb => (false, false),
            Colour::Mono(_) => (false, true),
            Colour::Yuv(_) => (true, true),
        };
        Self { guessed: Guessed { matrix, range }, ..Self::new(format) }
    }

    /// The same stream with frames of another format.
    #[must_use]
    pub fn with_format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// Reads the first line of a stream, without its newline.
    pub(super) fn read(line: &[u8]) -> Result<Self, HeaderError> {
        let rest = line.strip_prefix(MAGIC).filter(|rest| rest.is_empty() || rest.starts_with(b" "));
        let rest = rest.ok_or_else(|| HeaderError::NotY4m { found: quoted(line) })?;
        let mut said = Said::default();
        for tag in rest.split(|byte| *byte == b' ').filter(|tag| !tag.is_empty()) {
            said.take(tag)?;
        }
        said.header()
    }

    /// The first line of a stream, without its newline.
    ///
    /// Without the `XYSCSS` that ffmpeg adds for programs from before `C`: ffmpeg itself refuses lines above 96 bytes,
    /// and with it some are.
    pub(super) fn line(&self) -> Result<String, WriteError> {
        let (word, range) = ColourSpace::word(self.format)?;
        let Size { width, height } = self.format.size();
        let rate = self.rate.map(|rate| format!(" F{rate}")).unwrap_or_default();
        let interlacing = self.interlacing.letter();
        let aspect = self.aspect.unwrap_or(Ratio { numerator: 0, denominator: 0 });
        let range = match range {
            Range::Limited => "LIMITED",
            Range::Full => "FULL",
        };
        Ok(format!("YUV4MPEG2 W{width} H{height}{rate} I{interlacing} A{aspect} C{word} XCOLORRANGE={range}"))
    }
}

/// What was read so far.
#[derive(Default)]
struct Said {
    width: Option<u32>,
    height: Option<u32>,
    rate: Option<Ratio>,
    aspect: Option<Ratio>,
    interlacing: Option<Interlacing>,
    colour_space: Option<ColourSpace>,
    colour_space_of_old: Option<ColourSpace>,
    range: Option<Range>,
}

impl Said {
    /// Tags with other letters are passed over, as by other programs.
    fn take(&mut self, tag: &[u8]) -> Result<(), HeaderError> {
        let malformed = |wanted| HeaderError::Malformed { tag: quoted(tag), wanted };
        let value = &tag[1..];
        match tag[0] {
            b'W' => self.width = Some(number(value).ok_or_else(|| malformed("a width"))?),
            b'H' => self.height = Some(number(value).ok_or_else(|| malformed("a height"))?),
            b'F' => self.rate = ratio(value).ok_or_else(|| malformed("a rate such as F25:1"))?,
            b'A' => self.aspect = ratio(value).ok_or_else(|| malformed("an aspect such as A1:1"))?,
            b'I' => {
                self.interlacing = Some(Interlacing::read(value).ok_or_else(|| malformed("one of Ip It Ib Im I?"))?)
            }
            b'C' => self.colour_space = Some(ColourSpace::read(value)?),
            b'X' => self.take_extension(value),
            _ => {}
        }
        Ok(())
    }

    /// Comments that ffmpeg and mjpegtools gave a meaning. Others, also with these names, are no errors.
    fn take_extension(&mut self, value: &[u8]) {
        match value {
            b"COLORRANGE=LIMITED" => self.range = Some(Range::Limited),
            b"COLORRANGE=FULL" => self.range = Some(Range::Full),
            _ => {
                let old = value.strip_prefix(b"YSCSS=").and_then(|word| ColourSpace::read(word).ok());
                self.colour_space_of_old = old.or(self.colour_space_of_old);
            }
        }
    }

    fn header(self) -> Result<StreamHeader, HeaderError> {
        let width = self.width.ok_or(HeaderError::Missing { what: "width (W)" })?;
        let height = self.height.ok_or(HeaderError::Missing { what: "height (H)" })?;
        let size = Size { width, height };
        let space = self.colour_space.or(self.colour_space_of_old).unwrap_or(ColourSpace::UNSAID);
        let colour = match space.chroma {
            // Luma alone is in full range to ffmpeg, which wrote it long before it said so.
            None => Colour::Mono(self.range.unwrap_or(Range::Full)),
            // Also where chroma lies as in JPEG: only the tag counts, to ffmpeg as well.
            Some((sampling, siting)) => {
                let range = self.range.unwrap_or(Range::Limited);
                Colour::Yuv(Yuv { matrix: likely_matrix(size), range, sampling, siting })
            }
        };
        let format = Format::new(size, space.depth, colour)?;
        let interlacing = self.interlacing.unwrap_or(Interlacing::Unknown);
        let guessed = Guessed { matrix: space.chroma.is_some(), range: self.range.is_none() };
        Ok(StreamHeader { format, rate: self.rate, aspect: self.aspect, interlacing, guessed })
    }
}

impl Interlacing {
    fn read(value: &[u8]) -> Option<Self> {
        match value {
            b"p" => Some(Self::Progressive),
            b"t" => Some(Self::TopFirst),
            b"b" => Some(Self::BottomFirst),
            b"m" => Some(Self::Mixed),
            b"?" => Some(Self::Unknown),
            _ => None,
        }
    }

    /// Mixed streams are written as unknown: what each frame said of itself is gone.
    fn letter(self) -> char {
        match self {
            Self::Progressive => 'p',
            Self::TopFirst => 't',
            Self::BottomFirst => 'b',
            Self::Mixed | Self::Unknown => '?',
        }
    }
}

/// Digits alone: no sign, no blank.
fn number(digits: &[u8]) -> Option<u32> {
    let all_digits = digits.iter().all(u8::is_ascii_digit);
    if all_digits { str::from_utf8(digits).ok()?.parse().ok() } else { None }
}

/// `30000:1001`; a zero on either side stands for unknown.
fn ratio(value: &[u8]) -> Option<Option<Ratio>> {
    let colon = value.iter().position(|byte| *byte == b':')?;
    let (numerator, denominator) = (number(&value[..colon])?, number(&value[colon + 1..])?);
    Some((numerator > 0 && denominator > 0).then_some(Ratio { numerator, denominator }))
}

/// Why some text is no rate.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write 25, 30000/1001 or 29.97")]
pub struct NoRateError;

impl FromStr for Ratio {
    type Err = NoRateError;

    /// `25`, `30000/1001`, `30000:1001`, `23.976`.
    fn from_str(text: &str) -> Result<Self, NoRateError> {
        let digits = |text: &str| number(text.as_bytes()).ok_or(NoRateError);
        let (numerator, denominator) = match text.split_once(['/', ':']) {
            Some((above, below)) => (digits(above)?, digits(below)?),
            None => match text.split_once('.') {
                None => (digits(text)?, 1),
                Some((whole, decimals)) if (1..=6).contains(&decimals.len()) => {
                    let below = 10_u32.pow(decimals.len() as u32);
                    let above =
                        digits(whole)?.checked_mul(below).and_then(|above| above.checked_add(digits(decimals).ok()?));
                    (above.ok_or(NoRateError)?, below)
                }
                Some(_) => return Err(NoRateError),
            },
        };
        if numerator == 0 || denominator == 0 { Err(NoRateError) } else { Ok(Self { numerator, denominator }) }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.numerator, self.denominator)
    }
}
