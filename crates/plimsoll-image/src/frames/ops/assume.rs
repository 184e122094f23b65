//! `assume`: what the frames are, where their stream does not say it or says it wrong. Changes no sample.

use super::yuv::{MATRICES, RANGES, SITINGS, is_new};
use crate::frames::carry::Carried;
use crate::frames::chain::{Args, one_of};
use crate::frames::format::{Colour, Format, Matrix, Range, Siting, Yuv};
use crate::frames::graph::Graph;
use crate::frames::operation::{About, Operation, OperationError};
use crate::frames::picture::Picture;
use crate::frames::stream::Interlacing;

pub(super) const ABOUT: About = About {
    name: "assume",
    usage: "assume=[601|709|2020][:limited|full][:left|centre|topleft][:progressive]",
    what: "the same samples, taken for what is said here and not for what the stream says or lets guess",
    parse,
};

const PROGRESSIVE: &str = "progressive";

#[derive(Debug, Default)]
struct Assume {
    matrix: Option<Matrix>,
    range: Option<Range>,
    siting: Option<Siting>,
    progressive: bool,
}

fn parse(args: &mut Args<'_>) -> Result<Box<dyn Operation>, OperationError> {
    let mut assume = Assume::default();
    let mut word = Some(args.require("what to assume")?);
    while let Some(said) = word {
        if is_new(said, &MATRICES, assume.matrix) {
            assume.matrix = Some(one_of("matrix", said, &MATRICES)?);
        } else if is_new(said, &RANGES, assume.range) {
            assume.range = Some(one_of("range", said, &RANGES)?);
        } else if is_new(said, &SITINGS, assume.siting) {
            assume.siting = Some(one_of("siting", said, &SITINGS)?);
        } else if said.trim() == PROGRESSIVE && !assume.progressive {
            assume.progressive = true;
        } else {
            return Err(OperationError::because(format_args!("'{said}' is nothing to assume, or said twice")));
        }
        word = args.take("range");
    }
    Ok(Box::new(assume))
}

impl Operation for Assume {
    fn plan(&self, _: &mut Graph, picture: Picture) -> Result<Picture, OperationError> {
        let colour = match picture.format.colour() {
            Colour::Yuv(yuv) => Colour::Yuv(Yuv {
                matrix: self.matrix.unwrap_or(yuv.matrix),
                range: self.range.unwrap_or(yuv.range),
                siting: self.siting.unwrap_or(yuv.siting),
                ..yuv
            }),
            colour if self.matrix.is_some() || self.siting.is_some() => {
                let model = if colour == Colour::Rgb { "red, green and blue" } else { "luma only" };
                return Err(OperationError::because(format_args!("frames of {model} have no matrix and no siting")));
            }
            Colour::Mono(range) => Colour::Mono(self.range.unwrap_or(range)),
            Colour::Rgb if self.range.is_some() => {
                return Err(OperationError::because("red, green and blue use all codes"));
            }
            Colour::Rgb => Colour::Rgb,
        };
        Ok(Picture { format: picture.format.with_colour(colour), ..picture })
    }

    fn carry(&self, stream: &mut Carried, _: Format) -> Result<(), OperationError> {
        stream.header.guessed.matrix &= self.matrix.is_none();
        stream.header.guessed.range &= self.range.is_none();
        if self.progressive {
            stream.header.interlacing = Interlacing::Progressive;
        }
        Ok(())
    }
}
