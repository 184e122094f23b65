//! The chain as it will be done: what was asked for, and the conversions without which the output could not hold it.

use std::fmt;
use std::io;

use plimsoll::image::Size;
use plimsoll::image::encode::Encoding;
use plimsoll::image::frames::stream::{Guessed, RawFormat, StreamHeader, WriteError, Y4mWriter, likely_matrix};
use plimsoll::image::frames::{Carried, Chain, Colour, Format, Matrix, Yuv};

use super::args::Args;
use super::input::Input;
use super::places::OutputPlace;
use super::values::{RawFrames, RawName};
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
    /// How raw frames lie, if such are written.
    pub(super) raw: RawFormat,
    /// What is not kept of the input.
    lost: Option<&'static str>,
    /// What of the input the result depends on, and was guessed.
    relied_on: Guessed,
    /// How many frames there are, if that can be told.
    pub(super) frames: Option<u64>,
}

impl Plan {
    pub(super) fn new(asked: Option<Chain>, input: &Input, output: &OutputPlace, args: &Args) -> Result<Self, Stop> {
        // Who only selects frames wants them as they are.
        let as_it_is = || format!("crop={}+0+0", input.header.format.size()).parse::<Chain>().map_err(Stop::failed);
        let (mut chain, mut added): (Chain, _) = (asked.map_or_else(as_it_is, Ok)?, Vec::new());
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
        let raw = laid_out(header.format, output, args)?;
        let (input, lost, frames) = (input.header.format, input.lost, input.count);
        Ok(Self { chain, added, input, header, raw, lost, relied_on, frames })
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

    /// What is lost on the way, and what readers of the output will get wrong unless they are told.
    pub(super) fn notes(&self, output: &OutputPlace) -> Vec<String> {
        self.lost.map(str::to_owned).into_iter().chain(self.guessed_wrongly(output)).collect()
    }

    fn guessed_wrongly(&self, output: &OutputPlace) -> Option<String> {
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
        OutputPlace::Raw(_) => asked_raw(output, args).and_then(|asked| to_be_held(format, &asked)),
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

/// Raw frames as they were asked for.
struct Asked {
    raw: RawFormat,
    /// Sampling and depth were asked for too, not only colours.
    is_exact: bool,
}

/// What was asked for with --raw-out, or by the ending of the name. Of `.raw` and a pipe nothing is known.
fn asked_raw(output: &OutputPlace, args: &Args) -> Option<Asked> {
    let OutputPlace::Raw(path) = output else { return None };
    let any = Size { width: 2, height: 2 };
    let named = |name: &str, is_exact| Some(Asked { raw: RawFormat::named(name, any).ok()?, is_exact });
    let by_ending = || match path.as_ref()?.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "rgb" => named("rgb24", false),
        "yuv" => named("yuv420p", false),
        "gray" => named("gray", false),
        "bgr" => named("bgr24", true),
        name @ ("nv12" | "rgba" | "bgra" | "gbrp") => named(name, true),
        _ => None,
    };
    args.raw_out.map(|RawName(raw)| Asked { raw, is_exact: true }).or_else(by_ending)
}

/// How frames of this format lie in a raw stream: as was asked for, or else as they came if that holds them.
fn laid_out(format: Format, output: &OutputPlace, args: &Args) -> Result<RawFormat, Stop> {
    match (asked_raw(output, args), args.raw) {
        (Some(asked), _) => asked.raw.of(format).ok_or_else(|| {
            Stop::failed(format_args!(
                "raw frames of that name do not hold {format}; end the chain with what they hold"
            ))
        }),
        (None, Some(RawFrames(came))) => Ok(came.of(format).unwrap_or(format.into())),
        (None, None) => Ok(format.into()),
    }
}

/// The conversion after which raw frames as asked for hold frames of this format: of colours first, then of depth.
fn to_be_held(format: Format, Asked { raw, is_exact }: &Asked) -> Option<String> {
    let wanted = raw.format();
    match (format.colour(), wanted.colour()) {
        (Colour::Rgb, Colour::Rgb) | (Colour::Mono(_), Colour::Mono(_)) => {}
        (Colour::Yuv(own), Colour::Yuv(wanted)) if own.sampling == wanted.sampling || !is_exact => {}
        (Colour::Yuv(own), Colour::Yuv(wanted)) => {
            return Some(format!("yuv={}:{}:{}", own.matrix, own.range, wanted.sampling));
        }
        (_, Colour::Rgb) => return Some("rgb".to_owned()),
        (_, Colour::Mono(_)) => return Some("mono".to_owned()),
        (_, Colour::Yuv(Yuv { sampling, .. })) => {
            return Some(format!("yuv={}:limited:{sampling}", likely_matrix(format.size())));
        }
    }
    (*is_exact && format.depth() != wanted.depth()).then(|| format!("depth={}", wanted.depth()))
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
