//! `yuv`: luma and chroma.

use crate::frames::chain::{Args, one_of};
use crate::frames::convert::to_yuv;
use crate::frames::format::{Colour, Matrix, Range, Sampling, Siting, Yuv};
use crate::frames::graph::Graph;
use crate::frames::operation::{About, Operation, Refused};
use crate::frames::picture::Picture;

pub(super) const ABOUT: About = About {
    name: "yuv",
    usage: "yuv=601|709|2020[:limited|full][:420|422|444][:left|centre|topleft]",
    what: "luma and chroma; limited range, and chroma as it was (420 left from others), unless said otherwise",
    parse,
};

const MATRICES: [(&str, Matrix); 3] = [("601", Matrix::Bt601), ("709", Matrix::Bt709), ("2020", Matrix::Bt2020)];
const RANGES: [(&str, Range); 2] = [("limited", Range::Limited), ("full", Range::Full)];
const SAMPLINGS: [(&str, Sampling); 3] = [("420", Sampling::S420), ("422", Sampling::S422), ("444", Sampling::S444)];
const SITINGS: [(&str, Siting); 3] = [("left", Siting::Left), ("centre", Siting::Centre), ("topleft", Siting::TopLeft)];

#[derive(Debug)]
struct ToYuv {
    matrix: Matrix,
    range: Range,
    sampling: Option<Sampling>,
    siting: Option<Siting>,
}

fn parse(args: &mut Args<'_>) -> Result<Box<dyn Operation>, Refused> {
    let matrix = one_of("matrix", args.require("matrix")?, &MATRICES)?;
    let (mut range, mut sampling, mut siting) = (None, None, None);
    // Any of them may be left out: the words tell which is which.
    while let Some(word) = args.take("range") {
        if is_new(word, &RANGES, range) {
            range = Some(one_of("range", word, &RANGES)?);
        } else if is_new(word, &SITINGS, siting) {
            siting = Some(one_of("siting", word, &SITINGS)?);
        } else if sampling.is_none() {
            sampling = Some(one_of("sampling", word, &SAMPLINGS)?);
        } else {
            return Err(Refused::because(format_args!("'{word}' is too much")));
        }
    }
    Ok(Box::new(ToYuv { matrix, range: range.unwrap_or(Range::Limited), sampling, siting }))
}

fn is_new<T>(word: &str, words: &[(&str, T)], so_far: Option<T>) -> bool {
    so_far.is_none() && words.iter().any(|(known, _)| *known == word.trim())
}

impl Operation for ToYuv {
    fn plan(&self, graph: &mut Graph, picture: Picture) -> Result<Picture, Refused> {
        let (sampling, siting) = match picture.format.colour() {
            Colour::Yuv(yuv) => (yuv.sampling, yuv.siting),
            Colour::Rgb | Colour::Mono(_) => (Sampling::S420, Siting::Left),
        };
        let yuv = Yuv {
            matrix: self.matrix,
            range: self.range,
            sampling: self.sampling.unwrap_or(sampling),
            siting: self.siting.unwrap_or(siting),
        };
        Ok(to_yuv(graph, picture, yuv))
    }
}
