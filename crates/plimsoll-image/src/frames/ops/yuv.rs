//! `yuv`: luma and chroma.

use crate::frames::carry::Carried;
use crate::frames::chain::{Args, one_of};
use crate::frames::convert::to_yuv;
use crate::frames::format::{Colour, Format, Matrix, Range, Sampling, Siting, Yuv};
use crate::frames::graph::Graph;
use crate::frames::operation::{About, Operation, OperationError};
use crate::frames::picture::Picture;

pub(super) const ABOUT: About = About {
    name: "yuv",
    usage: "yuv=[601|709|2020][:limited|full][:420|422|444][:left|centre|topleft]",
    what: "luma and chroma; what is not said stays as it was; from others the matrix must be said, and limited 420 left is \
           the rest",
    parse,
};

pub(super) const MATRICES: [(&str, Matrix); 3] =
    [("601", Matrix::Bt601), ("709", Matrix::Bt709), ("2020", Matrix::Bt2020)];
pub(super) const RANGES: [(&str, Range); 2] = [("limited", Range::Limited), ("full", Range::Full)];
const SAMPLINGS: [(&str, Sampling); 3] = [("420", Sampling::S420), ("422", Sampling::S422), ("444", Sampling::S444)];
pub(super) const SITINGS: [(&str, Siting); 3] =
    [("left", Siting::Left), ("centre", Siting::Centre), ("topleft", Siting::TopLeft)];

#[derive(Debug)]
struct ToYuv {
    matrix: Option<Matrix>,
    range: Option<Range>,
    sampling: Option<Sampling>,
    siting: Option<Siting>,
}

fn parse(args: &mut Args<'_>) -> Result<Box<dyn Operation>, OperationError> {
    let (mut matrix, mut range, mut sampling, mut siting) = (None, None, None, None);
    // Any of them may be left out: the words tell which is which.
    let mut word = Some(args.require("matrix")?);
    while let Some(said) = word {
        if is_new(said, &MATRICES, matrix) {
            matrix = Some(one_of("matrix", said, &MATRICES)?);
        } else if is_new(said, &RANGES, range) {
            range = Some(one_of("range", said, &RANGES)?);
        } else if is_new(said, &SITINGS, siting) {
            siting = Some(one_of("siting", said, &SITINGS)?);
        } else if is_new(said, &SAMPLINGS, sampling) {
            sampling = Some(one_of("sampling", said, &SAMPLINGS)?);
        } else {
            return Err(OperationError::because(format_args!("'{said}' is no word for it, or one too many")));
        }
        word = args.take("range");
    }
    Ok(Box::new(ToYuv { matrix, range, sampling, siting }))
}

pub(super) fn is_new<T>(word: &str, words: &[(&str, T)], so_far: Option<T>) -> bool {
    so_far.is_none() && words.iter().any(|(known, _)| *known == word.trim())
}

impl ToYuv {
    /// What comes out, of a picture of this colour.
    fn of(&self, colour: Colour) -> Result<Yuv, OperationError> {
        let so_far = match colour {
            Colour::Yuv(yuv) => yuv,
            Colour::Rgb | Colour::Mono(_) => Yuv {
                matrix: self.matrix.ok_or_else(|| {
                    OperationError::because(
                        "these frames have no luma and chroma yet, so say by which matrix; write yuv=709:…",
                    )
                })?,
                range: Range::Limited,
                sampling: Sampling::S420,
                siting: Siting::Left,
            },
        };
        Ok(Yuv {
            matrix: self.matrix.unwrap_or(so_far.matrix),
            range: self.range.unwrap_or(so_far.range),
            sampling: self.sampling.unwrap_or(so_far.sampling),
            siting: self.siting.unwrap_or(so_far.siting),
        })
    }
}

impl Operation for ToYuv {
    fn plan(&self, graph: &mut Graph, picture: Picture) -> Result<Picture, OperationError> {
        let yuv = self.of(picture.format.colour())?;
        Ok(to_yuv(graph, picture, yuv))
    }

    fn carry(&self, stream: &mut Carried, before: Format) -> Result<(), OperationError> {
        let matrix = match before.colour() {
            Colour::Yuv(yuv) => Some(yuv.matrix),
            Colour::Rgb | Colour::Mono(_) => None,
        };
        if self.matrix.is_some_and(|to| Some(to) != matrix) {
            stream.uses_coding(before);
        }
        stream.header.guessed.matrix &= self.matrix.is_none();
        Ok(())
    }
}
