//! A plane of a reference in host memory, with its statistics at every place of the window.

use super::luma::luma_of_row;
use super::rows::{Describe, Known};
use super::window::REACH;
use crate::image::Image;

/// A plane that stays, and what is known of it.
pub(in crate::metrics) struct Still {
    width: usize,
    plane: Vec<f32>,
    mean: Vec<f32>,
    variance: Vec<f32>,
}

impl Still {
    /// The luma of an image. White becomes `peak`.
    pub(in crate::metrics) fn of_image(image: &Image, peak: f32, middle: f32) -> Self {
        let size = image.size();
        let mut plane = vec![0.0; size.pixels() as usize];
        for (y, row) in plane.chunks_exact_mut(size.width as usize).enumerate() {
            luma_of_row(image, y, peak, row);
        }
        Self::of_plane(size.width as usize, plane, middle)
    }

    /// A plane with rows of this width.
    pub(in crate::metrics) fn of_plane(width: usize, plane: Vec<f32>, middle: f32) -> Self {
        let places = (width - REACH as usize) * (plane.len() / width - REACH as usize);
        let (mut mean, mut variance) = (Vec::with_capacity(places), Vec::with_capacity(places));
        let mut describe = Describe::new(width, middle);
        for row in plane.chunks_exact(width) {
            describe.push(row, &mut mean, &mut variance);
        }
        Self { width, plane, mean, variance }
    }

    /// Bytes on the heap for `width` x `rows` pixels.
    pub(in crate::metrics) fn bytes([width, rows]: [u32; 2]) -> u64 {
        4 * (u64::from(width) * u64::from(rows) + 2 * u64::from(width - REACH) * u64::from(rows - REACH))
    }

    /// One of its rows.
    pub(in crate::metrics) fn row(&self, y: usize) -> &[f32] {
        &self.plane[y * self.width..][..self.width]
    }

    /// The whole plane.
    pub(in crate::metrics) fn plane(&self) -> &[f32] {
        &self.plane
    }

    /// What is known of it at one row of places.
    pub(in crate::metrics) fn known(&self, row: usize) -> Known<'_> {
        let places = self.width - REACH as usize;
        Known { mean: &self.mean[row * places..][..places], variance: &self.variance[row * places..][..places] }
    }

    /// How many places the window has.
    pub(in crate::metrics) fn places(&self) -> usize {
        self.mean.len()
    }
}
