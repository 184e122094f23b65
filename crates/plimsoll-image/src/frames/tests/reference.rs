//! Whole planes, pass by pass. Shares no code with the executors but the passes' rows.

use crate::frames::format::{Colour, Format};
use crate::frames::graph::{Node, Rows, RowsMut};
use crate::frames::plan::Program;

/// The planes that a frame holds.
pub(super) fn planes_of(format: Format, bytes: &[u8]) -> Vec<Vec<f32>> {
    let codes: Vec<u16> = match format.sample_bytes() {
        1 => bytes.iter().map(|code| u16::from(*code)).collect(),
        _ => bytes.as_chunks().0.iter().map(|code| u16::from_le_bytes(*code)).collect(),
    };
    let scale = 1.0 / f32::from(format.code_max());
    let numbers: Vec<f32> = codes.iter().map(|code| f32::from(*code) * scale).collect();
    if format.colour() == Colour::Rgb {
        return [0, 1, 2].map(|plane| numbers.iter().skip(plane).step_by(3).copied().collect()).to_vec();
    }
    let mut rest = numbers.as_slice();
    let take = |size: crate::image::Size| {
        let (plane, after) = rest.split_at(size.pixels() as usize);
        rest = after;
        plane.to_vec()
    };
    format.plane_sizes().into_iter().map(take).collect()
}

/// The frame that planes make.
pub(super) fn frame_of(format: Format, planes: &[Vec<f32>]) -> Vec<u8> {
    let code = |sample: f32| (sample.clamp(0.0, 1.0) * f32::from(format.code_max()) + 0.5) as u16;
    let samples: Vec<f32> = match format.colour() {
        Colour::Rgb => (0..planes[0].len()).flat_map(|at| [0, 1, 2].map(|plane| planes[plane][at])).collect(),
        _ => planes.concat(),
    };
    samples.iter().flat_map(|sample| code(*sample).to_le_bytes()[..format.sample_bytes()].to_vec()).collect()
}

/// The result planes of a program for these source planes.
pub(super) fn results(program: &Program, sources: Vec<Vec<f32>>) -> Vec<Vec<f32>> {
    let mut of_node: Vec<Vec<Vec<f32>>> = sources.into_iter().map(|plane| vec![plane]).collect();
    for node in program.graph.nodes() {
        let Node::Pass { pass, inputs, outputs } = node else { continue };
        let size = pass.output();
        let mut planes = vec![vec![f32::NAN; size.pixels() as usize]; *outputs];
        let whole = |at: &crate::frames::graph::Plane| {
            Rows::new(&of_node[at.node][at.output], program.graph.size_of(*at).width)
        };
        let inputs: Vec<Rows<'_>> = inputs.iter().map(whole).collect();
        let mut into: Vec<RowsMut<'_>> = planes.iter_mut().map(|plane| RowsMut::new(plane, size.width)).collect();
        pass.rows(0..size.height, &inputs, &mut into);
        of_node.push(planes);
    }
    program.results.iter().map(|plane| of_node[plane.node][plane.output].clone()).collect()
}
