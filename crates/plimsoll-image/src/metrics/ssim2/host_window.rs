//! The last few rows of one channel, blurred along, from which a row blurred both ways is made as soon as the rows
//! below it are there. All of it stays in the processor's cache.

use super::filter::{REACH, TAPS, blur_along, blur_down};

/// Rows of some planes, each ready to be blurred down.
pub(super) struct Window {
    width: usize,
    height: u32,
    /// A row with room for zeros at its ends.
    padded: Vec<f32>,
    /// What lies above and below the image.
    zeros: Vec<f32>,
    rings: Vec<Vec<f32>>,
}

impl Window {
    /// For this many planes of rows of this width.
    pub(super) fn open(planes: usize, width: u32, height: u32) -> Self {
        let width = width as usize;
        Self {
            width,
            height,
            padded: vec![0.0; width + 2 * REACH],
            zeros: vec![0.0; width],
            rings: vec![vec![0.0; TAPS * width]; planes],
        }
    }

    /// Bytes that it holds.
    pub(super) fn bytes(planes: usize, width: u32) -> u64 {
        4 * (u64::from(width) * (2 + (TAPS * planes) as u64) + 2 * REACH as u64)
    }

    /// Takes row `y` of a plane, made by `fill`, and blurs it along.
    pub(super) fn take(&mut self, plane: usize, y: u32, fill: impl FnOnce(&mut [f32])) {
        fill(&mut self.padded[REACH..][..self.width]);
        blur_along(&self.padded, &mut self.rings[plane][y as usize % TAPS * self.width..][..self.width]);
    }

    /// Row `y` of a plane, blurred both ways. All rows within reach must have been taken, and no more than those.
    pub(super) fn blurred(&self, plane: usize, y: u32, out: &mut [f32]) {
        let ring = &self.rings[plane];
        let rows = std::array::from_fn(|tap| match (y as usize + tap).checked_sub(REACH) {
            Some(row) if row < self.height as usize => &ring[row % TAPS * self.width..][..self.width],
            _ => &self.zeros[..],
        });
        blur_down(rows, out);
    }

    /// The rows that can be blurred both ways once row `y` has been taken and not before.
    pub(super) fn completed_by(&self, y: u32) -> std::ops::Range<u32> {
        let reach = REACH as u32;
        let end = if y + 1 == self.height { self.height } else { (y + 1).saturating_sub(reach) };
        y.saturating_sub(reach).min(end)..end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_completed_once_in_order() {
        for height in 1..20 {
            let window = Window::open(1, 3, height);
            let completed: Vec<u32> = (0..height).flat_map(|y| window.completed_by(y)).collect();
            assert_eq!(completed, (0..height).collect::<Vec<_>>());
        }
    }
}
