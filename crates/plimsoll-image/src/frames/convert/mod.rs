//! Between colour models, ranges, depths and numbers of chroma samples: passes that any operation may add.
//! Never adds a pass for what is already so.
//! Invariant: numbers below 0 and above 1 are kept, so that what is brighter than white survives a way there and back.

mod affine;
mod chroma;
mod coding;
mod fill;
mod luma;
mod orient;
mod recode;
mod resample;

use self::affine::AffinePass;
use self::chroma::resampled;
pub(crate) use self::coding::{Affine, Coding};
use self::fill::FillPass;
use self::luma::LumaPass;
pub(crate) use self::orient::{Orientation, oriented};
use self::recode::RecodePass;
use super::format::{Colour, Format, Range, Sampling, Yuv};
use super::graph::{Graph, Plane, PlaneList};
use super::picture::Picture;

/// The picture in a colour model, at the same depth.
pub(crate) fn to_colour(graph: &mut Graph, picture: Picture, colour: Colour) -> Picture {
    match colour {
        Colour::Rgb => to_rgb(graph, picture),
        Colour::Yuv(yuv) => to_yuv(graph, picture, yuv),
        Colour::Mono(range) => to_mono(graph, picture, range),
    }
}

/// The picture as red, green and blue, at the same depth.
pub(crate) fn to_rgb(graph: &mut Graph, picture: Picture) -> Picture {
    let format = picture.format.with_colour(Colour::Rgb);
    match picture.format.colour() {
        Colour::Rgb => picture,
        Colour::Mono(_) => {
            let change = Coding::of(picture.format, 0).to(Coding::of(format, 0));
            let pass = RecodePass::new(picture.size(), change);
            // A picture's planes are never the same plane, so even equal ones are made.
            let planes = (0..3).map(|_| graph.pass(pass, picture.planes[0])).collect();
            Picture { format, planes }
        }
        Colour::Yuv(yuv) => {
            let picture = resampled(graph, picture, Yuv { sampling: Sampling::S444, ..yuv });
            mixed(graph, picture, format)
        }
    }
}

/// The picture as luma and chroma, at the same depth. What has luma only gets chroma without colour.
pub(crate) fn to_yuv(graph: &mut Graph, picture: Picture, yuv: Yuv) -> Picture {
    let format = picture.format.with_colour(Colour::Yuv(yuv));
    match picture.format.colour() {
        Colour::Yuv(from) if from.matrix == yuv.matrix => {
            // Ranges change where there are fewer samples.
            if from.sampling.steps() > yuv.sampling.steps() {
                let recoded = Colour::Yuv(Yuv { range: yuv.range, ..from });
                let picture = recoded_to(graph, picture, format.with_colour(recoded));
                return resampled(graph, picture, yuv);
            }
            let picture = resampled(graph, picture, yuv);
            recoded_to(graph, picture, format)
        }
        Colour::Mono(_) => {
            let luma = recoded(graph, picture.planes[0], Coding::of(picture.format, 0), Coding::of(format, 0));
            grey(graph, format, luma)
        }
        from => {
            let fine = Yuv { sampling: Sampling::S444, ..yuv };
            let picture = match from {
                Colour::Yuv(from) => resampled(graph, picture, Yuv { sampling: Sampling::S444, ..from }),
                _ => picture,
            };
            let picture = mixed(graph, picture, format.with_colour(Colour::Yuv(fine)));
            resampled(graph, picture, yuv)
        }
    }
}

/// The luma of a picture, at the same depth; that of BT.709 from red, green and blue.
pub(crate) fn to_mono(graph: &mut Graph, picture: Picture, range: Range) -> Picture {
    let format = picture.format.with_colour(Colour::Mono(range));
    let luma = match picture.format.colour() {
        Colour::Rgb => {
            let pass = LumaPass::new(picture.size(), &Affine::from_rgb(format));
            graph.pass_with(pass, Vec::new(), &picture.planes)[0]
        }
        _ => recoded(graph, picture.planes[0], Coding::of(picture.format, 0), Coding::of(format, 0)),
    };
    Picture { format, planes: [luma].into_iter().collect() }
}

/// A picture of one luma plane: in a format with chroma, its chroma has no colour.
pub(crate) fn grey(graph: &mut Graph, format: Format, luma: Plane) -> Picture {
    let mut planes: PlaneList = [luma].into_iter().collect();
    if let Colour::Yuv(yuv) = format.colour() {
        let pass = FillPass::new(yuv.sampling.chroma_size(format.size()), Coding::of(format, 1).offset);
        planes.extend(graph.pass_with(pass, Vec::new(), &[]));
    }
    Picture { format, planes }
}

/// The same picture in codes of another format, which differs in range or depth only.
pub(crate) fn recoded_to(graph: &mut Graph, picture: Picture, format: Format) -> Picture {
    let from = picture.format;
    picture.each(graph, format, |graph, number, plane| {
        recoded(graph, plane, Coding::of(from, number), Coding::of(format, number))
    })
}

fn recoded(graph: &mut Graph, plane: Plane, from: Coding, to: Coding) -> Plane {
    let change = from.to(to);
    match change.is_nothing() {
        true => plane,
        false => graph.pass(RecodePass::new(graph.size_of(plane), change), plane),
    }
}

/// Differences of red, green and blue as differences of luma and chroma.
pub(crate) fn differences_to_yuv(graph: &mut Graph, differences: Picture, yuv: Yuv) -> Picture {
    let format = differences.format.with_colour(Colour::Yuv(Yuv { sampling: Sampling::S444, ..yuv }));
    let sums = Affine::between(differences.format, format).without_constants();
    let planes = graph.pass_with(AffinePass::new(format.size(), &sums), Vec::new(), &differences.planes);
    resampled(graph, Picture { format, planes }, yuv)
}

/// Red, green and blue with their chroma turned about grey: `cosine` and `sine` are those of the angle, times a saturation.
pub(crate) fn mixed_with_hue(graph: &mut Graph, picture: Picture, cosine: f64, sine: f64) -> Picture {
    let pass = AffinePass::new(picture.size(), &Affine::hue(cosine, sine));
    let planes = graph.pass_with(pass, Vec::new(), &picture.planes);
    Picture { planes, ..picture }
}

/// Three planes of one size mixed into three.
fn mixed(graph: &mut Graph, picture: Picture, format: Format) -> Picture {
    let pass = AffinePass::new(picture.size(), &Affine::between(picture.format, format));
    let planes = graph.pass_with(pass, Vec::new(), &picture.planes);
    Picture { format, planes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::format::{Matrix, Siting};
    use crate::image::Size;

    const HD: Yuv =
        Yuv { matrix: Matrix::Bt709, range: Range::Limited, sampling: Sampling::S420, siting: Siting::Left };

    /// How many passes lead from one colour model to another.
    fn passes(from: Colour, to: Colour) -> usize {
        let format = Format::new(Size { width: 9, height: 7 }, 10, from).unwrap();
        let mut graph = Graph::default();
        let planes = format.plane_sizes().into_iter().map(|size| graph.source(size)).collect();
        let picture = to_colour(&mut graph, Picture { format, planes }, to);
        assert_eq!(picture.format, format.with_colour(to));
        let sizes: Vec<Size> = picture.planes.iter().map(|plane| graph.size_of(*plane)).collect();
        assert_eq!(sizes, picture.format.plane_sizes(), "{from:?} to {to:?}");
        graph.nodes().len() - format.plane_sizes().len()
    }

    #[test]
    fn nothing_is_converted_that_is_already_so() {
        for colour in [Colour::Rgb, Colour::Mono(Range::Full), Colour::Yuv(HD)] {
            assert_eq!(passes(colour, colour), 0, "{colour:?}");
        }
        let fine = Yuv { sampling: Sampling::S444, ..HD };
        assert_eq!(passes(Colour::Yuv(fine), Colour::Yuv(Yuv { siting: Siting::Centre, ..fine })), 0);
        assert_eq!(passes(Colour::Yuv(HD), Colour::Mono(Range::Limited)), 0);
    }

    #[test]
    fn as_few_passes_as_there_can_be() {
        let fine = Yuv { sampling: Sampling::S444, ..HD };
        // Another matrix and range at once is one mix; a range alone is each plane by itself.
        let other = Yuv { matrix: Matrix::Bt2020, range: Range::Full, ..fine };
        assert_eq!(passes(Colour::Yuv(fine), Colour::Yuv(other)), 1);
        assert_eq!(passes(Colour::Yuv(fine), Colour::Rgb), 1);
        assert_eq!(passes(Colour::Rgb, Colour::Mono(Range::Full)), 1);
        assert_eq!(passes(Colour::Yuv(HD), Colour::Yuv(Yuv { range: Range::Full, ..HD })), 3);
        // Both chroma planes in one direction, in both, and moved down only.
        assert_eq!(passes(Colour::Yuv(HD), Colour::Yuv(Yuv { sampling: Sampling::S422, ..HD })), 2);
        assert_eq!(passes(Colour::Yuv(HD), Colour::Yuv(fine)), 4);
        assert_eq!(passes(Colour::Yuv(HD), Colour::Yuv(Yuv { siting: Siting::TopLeft, ..HD })), 2);
    }
}
