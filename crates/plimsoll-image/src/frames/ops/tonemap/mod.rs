//! `tonemap`: pictures for bright displays as an ordinary display shows them.
//!
//! Codes become light; light goes from BT.2020's primaries to BT.709's; the brightest of red, green and blue goes
//! through the curve, and the others keep their share of it, so that hues stay; light becomes codes for a display with
//! BT.1886's gamma of 2.4.

mod gamut;
mod light;
mod pass;

use self::light::Transfer;
use self::pass::TonemapPass;
use crate::frames::carry::Carried;
use crate::frames::chain::{Args, one_of};
use crate::frames::convert::{to_colour, to_rgb};
use crate::frames::format::{Colour, Format, Matrix, Yuv};
use crate::frames::graph::Graph;
use crate::frames::operation::{About, Operation, OperationError};
use crate::frames::picture::Picture;

pub(super) const ABOUT: About = About {
    name: "tonemap",
    usage: "tonemap=reinhard|hable|bt2390:from=pq|hlg|gamma[:peak=NITS][:target=NITS][:to=709|2020]",
    what: "from a bright display (1000 nits) to an ordinary one (100); ordinary pictures need none",
    parse,
};

/// How light above the target comes down to it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Curve {
    /// Reinhard's extended operator: the peak becomes the target.
    Reinhard,
    /// Hable's filmic curve of Uncharted 2: the peak becomes the target.
    Hable,
    /// The EETF of ITU-R BT.2390: light below its knee stays as it is.
    Bt2390,
}

/// From which display to which.
#[derive(Copy, Clone, Debug)]
struct Displays {
    /// Nits of the brightest that is expected; what is brighter counts as that.
    peak: f64,
    /// Nits of white afterwards.
    target: f64,
}

#[derive(Debug)]
struct Tonemap {
    curve: Curve,
    from: Transfer,
    displays: Displays,
    primaries: Matrix,
}

const CURVES: [(&str, Curve); 3] = [("reinhard", Curve::Reinhard), ("hable", Curve::Hable), ("bt2390", Curve::Bt2390)];
const TRANSFERS: [(&str, Transfer); 3] = [("pq", Transfer::Pq), ("hlg", Transfer::Hlg), ("gamma", Transfer::Gamma)];
const PRIMARIES: [(&str, Matrix); 2] = [("709", Matrix::Bt709), ("2020", Matrix::Bt2020)];

fn parse(args: &mut Args<'_>) -> Result<Box<dyn Operation>, OperationError> {
    let curve = one_of("curve", args.require("curve")?, &CURVES)?;
    let from = args.take("from").ok_or_else(|| {
        // No stream that is read says so, and each guess is a picture that looks wrong.
        OperationError::because(
            "streams do not say what their codes stand for, so say it: from=pq (HDR10, most films) or from=hlg (broadcasts); \
             ordinary pictures and videos are not for it",
        )
    })?;
    let from = one_of("from", from, &TRANSFERS)?;
    // What most films are graded for, and what a reference display for ordinary video has (BT.2035).
    let displays = Displays {
        peak: args.number("peak", 10.0..=10_000.0, 1000.0)?,
        target: args.number("target", 1.0..=10_000.0, 100.0)?,
    };
    if displays.target > displays.peak {
        return Err(OperationError::because("target is at most peak"));
    }
    let primaries = args.one_of("to", &PRIMARIES, Matrix::Bt709)?;
    Ok(Box::new(Tonemap { curve, from, displays, primaries }))
}

impl Tonemap {
    /// Whether primaries change. Red, green and blue by themselves do not tell theirs, but PQ and HLG are defined for
    /// those of BT.2020 only.
    fn changes_primaries(&self, colour: Colour) -> bool {
        let wide = match colour {
            Colour::Yuv(yuv) => yuv.matrix == Matrix::Bt2020,
            Colour::Rgb => self.from != Transfer::Gamma,
            Colour::Mono(_) => false,
        };
        wide && self.primaries == Matrix::Bt709
    }
}

impl Operation for Tonemap {
    fn plan(&self, graph: &mut Graph, picture: Picture) -> Result<Picture, OperationError> {
        let before = picture.format.colour();
        let changes_primaries = self.changes_primaries(before);
        let picture = to_rgb(graph, picture);
        let pass = TonemapPass::new(picture.size(), self.curve, self.from, self.displays, changes_primaries);
        let planes = graph.pass_with(pass, Vec::new(), &picture.planes);
        let after = match before {
            Colour::Yuv(yuv) if changes_primaries => Colour::Yuv(Yuv { matrix: Matrix::Bt709, ..yuv }),
            other => other,
        };
        Ok(to_colour(graph, Picture { planes, ..picture }, after))
    }

    fn carry(&self, stream: &mut Carried, before: Format) -> Result<(), OperationError> {
        stream.needs_matrix(before)?;
        stream.uses_coding(before);
        Ok(())
    }
}
