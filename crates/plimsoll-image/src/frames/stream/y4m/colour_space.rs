//! The names that Y4M has for colour spaces: sampling, siting and depth in one word.
//! Never writes a name that ffmpeg would take for another: it compares beginnings only, so that to it `420p11` is `420`.

use crate::frames::format::{Colour, Format, Range, Sampling, Siting, Yuv};
use crate::frames::stream::error::{HeaderError, WriteError, quoted};

/// What the word after `C` says.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct ColourSpace {
    /// None for luma alone.
    pub chroma: Option<(Sampling, Siting)>,
    pub depth: u8,
}

impl ColourSpace {
    /// What a stream has that does not say: by the format's definition, as JPEG has it.
    pub(super) const UNSAID: Self = Self { chroma: Some((Sampling::S420, Siting::Centre)), depth: 8 };

    /// Reads the word after `C`, or in capitals after `XYSCSS=`.
    pub(super) fn read(word: &[u8]) -> Result<Self, HeaderError> {
        let word = word.to_ascii_lowercase();
        let known = match &word[..] {
            // To ffmpeg, too, plain 420 is what JPEG has.
            b"420" | b"420jpeg" => Some(Self::UNSAID),
            b"420mpeg2" => Some(Self::eight(Sampling::S420, Siting::Left)),
            b"420paldv" => Some(Self::eight(Sampling::S420, Siting::TopLeft)),
            b"422" => Some(Self::eight(Sampling::S422, Siting::Left)),
            b"444" => Some(Self::eight(Sampling::S444, Siting::Left)),
            b"mono" => Some(Self { chroma: None, depth: 8 }),
            _ => deep(&word),
        };
        known.ok_or_else(|| HeaderError::ColourSpace { tag: quoted(&word), advice: advice(&word) })
    }

    fn eight(sampling: Sampling, siting: Siting) -> Self {
        Self { chroma: Some((sampling, siting)), depth: 8 }
    }

    /// The word for frames of this format, and its range.
    pub(super) fn word(format: Format) -> Result<(String, Range), WriteError> {
        let depth = format.depth();
        let (stem, range) = match format.colour() {
            Colour::Rgb => return Err(WriteError::NotYuv(format)),
            Colour::Mono(range) => ("mono".to_owned(), range),
            Colour::Yuv(Yuv { sampling, range, .. }) => (sampling.to_string(), range),
        };
        let is_mono = matches!(format.colour(), Colour::Mono(_));
        let next = depth_read_by_others(depth, is_mono);
        if next != depth {
            return Err(WriteError::Depth { format, next });
        }
        if let Colour::Yuv(yuv) = format.colour()
            && !is_meant(yuv, depth)
        {
            return Err(WriteError::Siting { format, siting: yuv.siting, means: Siting::Left });
        }
        let word = match format.colour() {
            Colour::Yuv(Yuv { sampling: Sampling::S420, siting, .. }) if depth == 8 => stem + siting_word(siting),
            _ if depth == 8 => stem,
            Colour::Mono(_) => format!("{stem}{depth}"),
            _ => format!("{stem}p{depth}"),
        };
        Ok((word, range))
    }
}

/// Whether the word for frames of this depth says, or is taken to say, that chroma lies where it does.
fn is_meant(yuv: Yuv, depth: u8) -> bool {
    match (yuv.sampling, yuv.siting) {
        (Sampling::S444, _) | (_, Siting::Left) => true,
        (Sampling::S420, _) => depth == 8,
        // There are as many rows of chroma as of luma, so it lies to the left.
        (Sampling::S422, siting) => siting == Siting::TopLeft,
    }
}

/// `420p10`, `mono10`. These words do not say where chroma lies; since MPEG-2 it is to the left.
fn deep(word: &[u8]) -> Option<ColourSpace> {
    let stems: [(&[u8], _); 4] = [
        (b"420p", Some((Sampling::S420, Siting::Left))),
        (b"422p", Some((Sampling::S422, Siting::Left))),
        (b"444p", Some((Sampling::S444, Siting::Left))),
        (b"mono", None),
    ];
    let (rest, chroma) = stems.into_iter().find_map(|(stem, chroma)| Some((word.strip_prefix(stem)?, chroma)))?;
    let depth = (9..=16).find(|depth: &u8| rest == depth.to_string().as_bytes())?;
    Some(ColourSpace { chroma, depth })
}

fn siting_word(siting: Siting) -> &'static str {
    match siting {
        Siting::Centre => "jpeg",
        Siting::Left => "mpeg2",
        Siting::TopLeft => "paldv",
    }
}

/// This depth, or the next above it that ffmpeg has a name for.
fn depth_read_by_others(depth: u8, is_mono: bool) -> u8 {
    match depth {
        11 => 12,
        13 | 14 if is_mono => 16,
        13 => 14,
        15 => 16,
        depth => depth,
    }
}

fn advice(word: &[u8]) -> &'static str {
    match word {
        b"444alpha" => "drop or blend the alpha plane first (ffmpeg: -pix_fmt yuv444p)",
        b"411" | b"410" | b"440" => "convert to 4:2:2 first (ffmpeg: -pix_fmt yuv422p)",
        _ => "4:2:0, 4:2:2, 4:4:4 and mono of 8 to 16 bits are (ffmpeg: -pix_fmt yuv420p)",
    }
}
