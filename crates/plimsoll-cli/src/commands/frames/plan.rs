//! The chain as it will be done: what was asked for, and the conversions without which the output could not hold it.

use std::fmt;
use std::io;

use plimsoll::image::encode::Encoding;
use plimsoll::image::frames::stream::{Guessed, StreamHeader, WriteError, Y4mWriter, likely_matrix};
use plimsoll::image::frames::{Carried, Chain, Colour, Format, Matrix, Yuv};

use super::args::Args;
use super::input::Input;
use super::places::OutputPlace;
use crate::stop::Stop;

/// Conversions of one kind are added once: colour, depth, then where chroma lies.
const CONVERSIONS_MAX: usize = 3;

/// What will be done.
pub(super) struct Plan {
    pub(super) chain: Chain,
    /// What was added to what was asked for.
    pub(super) added: Vec<String>,
    pub(super) input: Format,
    pub(super) header: StreamHeader,
    /// What of the input the result depends on, and was guessed.
    relied_on: Guessed,
    /// How many frames there are, if that can be told.
    pub(super) frames: Option<u64>,
}

impl Plan {
    pub(super) fn new(asked: Chain, input: &Input, output: &OutputPlace, args: &Args) -> Result<Self, Stop> {
        let (mut chain, mut added) = (asked, Vec::new());
        let mut carried = chain.carry(input.header).map_err(Stop::failed)?;
        while added.len() < CONVERSIONS_MAX
            && let Some(conversion) = missing(carried.header.format, output, args)
        {
            let next: Chain = conversion.parse().map_err(Stop::failed)?;
            chain = chain.then(&next).map_err(Stop::usage)?;
            carried = chain.carry(input.header).map_err(Stop::failed)?;
            added.push(conversion);
        }
        let Carried { header, relied_on, .. } = carried;
        Ok(Self { chain, added, input: input.header.format, header, relied_on, frames: input.count })
    }

    /// What of the input was guessed that the result depends on.
    pub(super) fn guesses(&self) -> Option<String> {
        let (matrix, range) = match self.input.colour() {
            Colour::Yuv(yuv) => (Some(yuv.matrix), yuv.range),
            Colour::Mono(range) => (None, range),
            Colour::Rgb => return None,
        };
        let matrix = matrix.filter(|_| self.relied_on.matrix);
        let range = Some(range).filter(|_| self.relied_on.range);
        let both = [
            matrix.map(|matrix| format!("matrix ({matrix}, from the size; --matrix says otherwise)")),
            range.map(|range| format!("range ({range}; --range says otherwise)")),
        ];
        let both: Vec<String> = both.into_iter().flatten().collect();
        (!both.is_empty())
            .then(|| format!("the input does not say its {}, and that is a guess", both.join(" and its ")))
    }

    /// What readers of the output will get wrong unless they are told.
    pub(super) fn note(&self, output: &OutputPlace) -> Option<String> {
        let (OutputPlace::Y4m(_), Colour::Yuv(Yuv { matrix, .. })) = (output, self.header.format.colour()) else {
            return None;
        };
        let guessed = likely_matrix(self.header.format.size());
        (matrix != guessed).then(|| {
            format!(
                "Y4M cannot say that the colours are {matrix}, and players guess {guessed} from the size; tell the next \
                 program (ffmpeg: -colorspace {}), or end the chain with yuv={guessed}",
                ffmpeg_name(matrix)
            )
        })
    }
}

/// What ffmpeg calls a matrix.
fn ffmpeg_name(matrix: Matrix) -> &'static str {
    match matrix {
        Matrix::Bt601 => "smpte170m",
        Matrix::Bt709 => "bt709",
        Matrix::Bt2020 => "bt2020nc",
    }
}

/// The conversion without which the output cannot hold frames of this format.
fn missing(format: Format, output: &OutputPlace, args: &Args) -> Option<String> {
    match output {
        OutputPlace::Raw(_) => None,
        OutputPlace::Y4m(_) => match Y4mWriter::new(io::sink(), StreamHeader::new(format)).err()? {
            // Y4M does not say which matrix: readers guess it from the size, so it is made to be what they guess.
            WriteError::NotYuv(_) => {
                let matrix = args.matrix.unwrap_or_else(|| likely_matrix(format.size()));
                Some(format!("yuv={matrix}:limited:420"))
            }
            WriteError::Depth { next, .. } => Some(format!("depth={next}")),
            WriteError::Siting { means, .. } => Some(format!("yuv={means}")),
            _ => None,
        },
        OutputPlace::Images(names) => {
            let deep = Encoding::of_path(&names.of(0)).is_ok_and(Encoding::holds_16_bits);
            match (format.colour(), format.depth()) {
                (Colour::Yuv(_) | Colour::Mono(_), _) => Some("rgb".to_owned()),
                (Colour::Rgb, 8) => None,
                (Colour::Rgb, 16) if deep => None,
                (Colour::Rgb, _) => Some(format!("depth={}", if deep { 16 } else { 8 })),
            }
        }
    }
}

/// For people: `1920x1080 yuv420 709 limited, 8 bit → scale=50% → 960x540 yuv420 709 limited, 8 bit`.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} → {} → {}", self.input, self.chain, self.header.format)?;
        match self.added.is_empty() {
            true => Ok(()),
            false => write!(f, " ({} added for the output)", self.added.join(",")),
        }
    }
}
