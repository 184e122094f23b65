//! `scale`: the picture in another size, one direction after the other.
//! Invariant: luma and chroma stay where they lie to each other.

mod across;
mod down;
mod lanes;
mod size;
mod windows;

use self::across::AcrossPass;
use self::down::DownPass;
use self::size::Target;
use self::windows::Axis;
pub(super) use self::windows::{Filter, Windows};
use crate::frames::carry::Carried;
use crate::frames::chain::{Args, one_of};
use crate::frames::format::{Colour, Format, Siting};
use crate::frames::graph::{Graph, Plane};
use crate::frames::operation::{About, Operation, OperationError};
use crate::frames::picture::Picture;
use crate::image::Size;

pub(super) const ABOUT: About = About {
    name: "scale",
    usage: "scale=WxH|N%|W:H[:nearest|bilinear|bicubic|lanczos|area]",
    what: "another size; W and H may be sums, as iw/2, and -1 keeps the shape; bicubic, if no filter is named",
    parse,
};

pub(super) const FILTERS: &[(&str, Filter)] = &[
    ("nearest", Filter::Nearest),
    ("bilinear", Filter::Bilinear),
    ("bicubic", Filter::Bicubic),
    ("lanczos", Filter::Lanczos),
    ("area", Filter::Area),
];

#[derive(Debug)]
struct Scale {
    target: Target,
    filter: Filter,
}

fn parse(args: &mut Args<'_>) -> Result<Box<dyn Operation>, OperationError> {
    if args.take_named("force_original_aspect_ratio").is_some() {
        return Err(OperationError::because(
            "to keep the shape within a size, write fit=WxH:inside (or fit=WxH:cover to fill it)",
        ));
    }
    let target = Target::take(args)?;
    let filter = args.take_named("flags").or_else(|| args.take("filter"));
    let filter = filter.map_or(Ok(Filter::Bicubic), |text| one_of("filter", text, FILTERS))?;
    Ok(Box::new(Scale { target, filter }))
}

impl Operation for Scale {
    fn plan(&self, graph: &mut Graph, picture: Picture) -> Result<Picture, OperationError> {
        let steps = picture.steps(picture.planes.len() - 1);
        let size = self.target.size(picture.size(), steps)?;
        scaled(graph, picture, size, self.filter)
    }

    /// Where the shape is kept but for whole pixels, so is that of pixels.
    fn carry(&self, stream: &mut Carried, before: Format) -> Result<(), OperationError> {
        if !self.target.keeps_shape() {
            stream.stretch(before.size());
        }
        Ok(())
    }
}

/// A picture in another size.
pub(super) fn scaled(
    graph: &mut Graph,
    picture: Picture,
    size: Size,
    filter: Filter,
) -> Result<Picture, OperationError> {
    let whole = picture.size();
    let steps: Vec<(u32, u32)> = (0..picture.planes.len()).map(|plane| picture.steps(plane)).collect();
    let format = picture.format.with_size(size).map_err(OperationError::because)?;
    let (sizes, siting) = (format.plane_sizes(), siting(&picture));
    Ok(picture.each(graph, format, |graph, plane, input| {
        let ((across, down), from, to) = (steps[plane], graph.size_of(input), sizes[plane]);
        let across = axis((from.width, to.width), (whole.width, size.width), across, siting.0);
        let down = axis((from.height, to.height), (whole.height, size.height), down, siting.1);
        both_ways(graph, input, across, down, filter)
    }))
}

/// How far chroma samples lie from the middle of their luma samples, across and down, in luma samples.
fn siting(picture: &Picture) -> (f64, f64) {
    let Colour::Yuv(yuv) = picture.format.colour() else { return (0.0, 0.0) };
    match yuv.siting {
        Siting::Left => (-0.5, 0.0),
        Siting::Centre => (0.0, 0.0),
        Siting::TopLeft => (-0.5, -0.5),
    }
}

/// One direction of a plane.
///
/// With `step` luma samples for each of the plane's, its sample `i` lies at `step * (i + 0.5) + offset` among the luma
/// samples. An output sample there shows what lay at that place times the ratio of luma, which among the input plane's
/// samples is
/// `(ratio * (step * (i + 0.5) + offset) - offset) / step = ratio * (i + 0.5) + offset * (ratio - 1) / step`.
fn axis((input, output): (u32, u32), whole: (u32, u32), step: u32, offset: f64) -> Axis {
    let centred = Axis { input, output, whole, shift: 0.0 };
    let offset = if step == 1 { 0.0 } else { offset };
    Axis { shift: offset * (centred.ratio() - 1.0) / f64::from(step), ..centred }
}

/// Scales both ways, the cheaper order first.
fn both_ways(graph: &mut Graph, input: Plane, across: Axis, down: Axis, filter: Filter) -> Plane {
    if is_down_first(across, down, filter) {
        let between = scale_down(graph, input, down, filter);
        return scale_across(graph, between, across, filter);
    }
    let between = scale_across(graph, input, across, filter);
    scale_down(graph, between, down, filter)
}

/// Down the columns first means to do that for all input columns; along the rows first, that for all input rows.
fn is_down_first(across: Axis, down: Axis, filter: Filter) -> bool {
    let cost = |axis: Axis| f64::from(axis.output) * axis.taps(filter);
    // To turn a sample into a lane or back takes as long as about four taps (0.2 ns and 0.05 ns).
    let turning = f64::from(across.input + across.output) * 4.0;
    let (down_cost, across_cost) = (cost(down), cost(across) + turning);
    let down_first = f64::from(across.input) * down_cost + f64::from(down.output) * across_cost;
    let across_first = f64::from(down.input) * across_cost + f64::from(across.output) * down_cost;
    down_first <= across_first
}

fn scale_across(graph: &mut Graph, input: Plane, axis: Axis, filter: Filter) -> Plane {
    if axis.is_idle() {
        return input;
    }
    weigh_across(graph, input, axis.output, axis.windows(filter))
}

/// So many columns, each a weighted sum of a window of the input's.
pub(super) fn weigh_across(graph: &mut Graph, input: Plane, width: u32, windows: Windows) -> Plane {
    let Size { width: input_width, height } = graph.size_of(input);
    let pass = AcrossPass { input_width, input_height: height, width, height, taps: windows.taps, padding: [0; 3] };
    graph.pass_with(pass, windows.table, &[input])[0]
}

fn scale_down(graph: &mut Graph, input: Plane, axis: Axis, filter: Filter) -> Plane {
    if axis.is_idle() {
        return input;
    }
    weigh_down(graph, input, axis.output, axis.windows(filter))
}

/// So many rows, each a weighted sum of a window of the input's.
pub(super) fn weigh_down(graph: &mut Graph, input: Plane, height: u32, windows: Windows) -> Plane {
    let Size { width, height: input_height } = graph.size_of(input);
    let pass = DownPass { input_width: width, input_height, width, height, taps: windows.taps, padding: [0; 3] };
    graph.pass_with(pass, windows.table, &[input])[0]
}
