//! The coarser levels of an image in host memory, for strips: a third of the image's pixels, made band by band on the
//! device. Never holds the finest level, which comes from the image itself.

use std::ops::Range;

use plimsoll_core::{Bytes, Fault};
use plimsoll_runtime::read_floats;

use super::display::Display;
use super::model::Plan;
use super::opponent::to_opponent;
use super::shrink::{reach_of, shrink_plane};
use super::window::Window;
use crate::image::Size;
use crate::planes::Planes;
use crate::run::Run;

/// Brings linear samples of some rows of an image to the device.
pub(super) type Finest<'a> = dyn Fn(&mut Run<'_>, Range<u32>, &Planes) -> Result<(), Fault> + 'a;

/// The coarser levels, finest first: three planes, one after the other. The last is the coarsest. Levels of an image
/// that is only counted with are empty, except the last.
pub(super) struct HostPyramid {
    levels: Vec<Vec<f32>>,
}

/// Planes on the device for a band of a level, and for a band of the next.
pub(super) struct Bands<'a> {
    pub(super) fine: &'a Planes,
    pub(super) coarse: &'a Planes,
    /// Rows that the fine planes hold; the coarse ones hold half of them and three more.
    pub(super) rows: u32,
}

impl HostPyramid {
    /// The pyramid of no image.
    pub(super) fn blank(plan: &Plan) -> Self {
        let mut levels = vec![Vec::new(); plan.levels.len() - 1];
        levels.push(vec![1.0; 3 * plan.base.pixels() as usize]);
        Self { levels }
    }

    pub(super) fn build(
        run: &mut Run<'_>,
        (display, plan): (Display, &Plan),
        finest: &Finest<'_>,
        bands: &Bands<'_>,
    ) -> Result<Self, Fault> {
        let mut pyramid = Self { levels: Vec::new() };
        for level in 0..plan.levels.len() {
            let (fine, coarse) = (plan.size(level), plan.size(level + 1));
            let mut planes = vec![0.0; 3 * coarse.pixels() as usize];
            let step = if fine.height <= bands.rows { coarse.height } else { (bands.rows - 3) / 2 };
            for first in (0..coarse.height).step_by(step as usize) {
                let rows = first..coarse.height.min(first + step);
                let reach = reach_of(rows.clone(), fine.height);
                pyramid.bring(run, (display, plan), finest, level, reach.clone(), bands.fine)?;
                let window = Window::part(fine, reach.start, reach);
                shrink_band(run, window, Window::part(coarse, first, rows), bands, &mut planes)?;
            }
            pyramid.levels.push(planes);
        }
        Ok(pyramid)
    }

    /// Brings rows of a level to the device, as opponent channels.
    pub(super) fn bring(
        &self,
        run: &mut Run<'_>,
        (display, plan): (Display, &Plan),
        finest: &Finest<'_>,
        level: usize,
        rows: Range<u32>,
        to: &Planes,
    ) -> Result<(), Fault> {
        let size = plan.size(level);
        let Some(coarser) = level.checked_sub(1) else {
            finest(run, rows.clone(), to)?;
            return to_opponent(run, display, to, size.width, rows.len() as u32);
        };
        let planes = &self.levels[coarser];
        for (channel, plane) in to.each().into_iter().enumerate().filter(|_| !planes.is_empty()) {
            run.backend.write(plane, Bytes::ZERO, bytemuck::cast_slice(&planes[pixels_of(size, channel, &rows)]))?;
        }
        Ok(())
    }

    /// The coarsest level.
    pub(super) fn base(&self) -> &[f32] {
        self.levels.last().map_or(&[], |planes| planes)
    }
}

/// Computes rows of the next level and takes them back to the host.
fn shrink_band(
    run: &mut Run<'_>,
    fine: Window,
    coarse: Window,
    bands: &Bands<'_>,
    planes: &mut [f32],
) -> Result<(), Fault> {
    let rows = coarse.first..coarse.first + coarse.rows;
    for (channel, (from, to)) in bands.fine.each().into_iter().zip(bands.coarse.each()).enumerate() {
        run.backend.poison(to)?;
        shrink_plane(run, fine, coarse, coarse.first as i32, from, to)?;
        let count = coarse.rows as usize * coarse.size.width as usize;
        let values = read_floats(run.backend, to, count)?;
        planes[pixels_of(coarse.size, channel, &rows)].copy_from_slice(&values);
    }
    Ok(())
}

/// Where rows of a channel stand among the planes of a level.
fn pixels_of(size: Size, channel: usize, rows: &Range<u32>) -> Range<usize> {
    let row = |y: u32| (channel * size.height as usize + y as usize) * size.width as usize;
    row(rows.start)..row(rows.end)
}
