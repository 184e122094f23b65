//! One scale of an image as rows that pass by: what is needed of them is kept in windows of a few rows, small enough
//! for the processor's cache. Never holds a plane.
//! Invariant: every row is smoothed once and blurred once, in order.

use super::rows::{self, REACH, Three};
use crate::image::Size;

/// Rows in a window: more than the seven from the newest back to the oldest that a blur still needs.
const WINDOW_ROWS: usize = 8;

/// The last rows of a plane.
pub(super) struct Window {
    width: usize,
    values: Vec<f32>,
}

impl Window {
    pub(super) fn new(width: usize) -> Self {
        Self { width, values: vec![0.0; width * WINDOW_ROWS] }
    }

    pub(super) fn row(&self, y: usize) -> &[f32] {
        &self.values[y % WINDOW_ROWS * self.width..][..self.width]
    }

    pub(super) fn row_mut(&mut self, y: usize) -> &mut [f32] {
        &mut self.values[y % WINDOW_ROWS * self.width..][..self.width]
    }

    /// The rows that the blur of row `y` needs, in a plane of `height` rows.
    fn around(&self, y: usize, height: usize) -> [&[f32]; 5] {
        [-2, -1, 0, 1, 2].map(|away| self.row(mirrored_row(y, away, height)))
    }
}

fn mirrored_row(y: usize, away: isize, height: usize) -> usize {
    rows::mirrored(y as isize + away, height)
}

/// A blur, with the row that lies between its two directions.
pub(super) struct Blur {
    padded: Vec<f32>,
}

impl Blur {
    pub(super) fn new(width: usize) -> Self {
        Self { padded: vec![0.0; width + 2 * REACH] }
    }

    /// Row `y` of a plane of `height` rows, blurred in both directions.
    pub(super) fn row(&mut self, window: &Window, y: usize, height: usize, out: &mut [f32]) {
        self.of(window.around(y, height), out);
    }

    /// The middle one of five rows, blurred in both directions.
    pub(super) fn of(&mut self, around: [&[f32]; 5], out: &mut [f32]) {
        rows::blur_down(around, &mut self.padded[REACH..][..out.len()]);
        rows::mirror_ends(&mut self.padded);
        rows::blur_along(&self.padded, out);
    }
}

/// Who uses the rows of a scale.
pub(super) trait Follower {
    /// Whether there is another image to be compared with.
    const COMPARES: bool;

    /// A row of Lab with its chroma smoothed. `distances` takes the squared distances from the other image,
    /// if there is one.
    fn smoothed(&mut self, y: usize, lab: Three<'_>, distances: &mut [f32]);

    /// The same row blurred, as are the squares and the distances.
    fn blurred(&mut self, y: usize, row: &rows::Blurred<'_>);
}

/// One scale of an image, row by row.
pub(super) struct Stream {
    height: usize,
    taken: usize,
    smoothed: usize,
    finished: usize,
    /// Lightness, then smoothed chroma.
    lab: [Window; 3],
    chroma: [Window; 2],
    squares: Window,
    distances: Window,
    blur: Blur,
    blurred: [Vec<f32>; 5],
    upper: [Vec<f32>; 3],
    halved: [Vec<f32>; 3],
}

impl Stream {
    /// A scale of this size.
    pub(super) fn new(size: Size) -> Self {
        let (width, height) = (size.width as usize, size.height as usize);
        let window = || Window::new(width);
        Self {
            height,
            taken: 0,
            smoothed: 0,
            finished: 0,
            lab: [window(), window(), window()],
            chroma: [window(), window()],
            squares: window(),
            distances: window(),
            blur: Blur::new(width),
            blurred: std::array::from_fn(|_| vec![0.0; width]),
            upper: std::array::from_fn(|_| vec![0.0; width]),
            halved: std::array::from_fn(|_| vec![0.0; width / 2]),
        }
    }

    /// Floats that a stream of this width holds.
    pub(super) fn floats(width: u64) -> u64 {
        7 * WINDOW_ROWS as u64 * width + (width + 2 * REACH as u64) + 8 * width + 3 * (width / 2)
    }

    /// Begins anew, with another image.
    pub(super) fn restart(&mut self) {
        (self.taken, self.smoothed, self.finished) = (0, 0, 0);
    }

    /// Takes the next row of linear light, and passes on what that completes.
    pub(super) fn take(&mut self, light: Three<'_>, follower: &mut impl Follower) {
        let y = self.taken;
        let [red_green, blue_yellow] = &mut self.chroma;
        rows::lab(light, self.lab[0].row_mut(y), red_green.row_mut(y), blue_yellow.row_mut(y));
        self.taken += 1;
        while self.smoothed < ready(self.taken, self.height) {
            self.smooth(follower);
            while self.finished < ready(self.smoothed, self.height) {
                self.finish(follower);
            }
        }
    }

    /// The next row of the scale half as large, if the row that was just taken completes one.
    pub(super) fn halve(&mut self, light: Three<'_>) -> Option<Three<'_>> {
        if self.taken % 2 == 1 {
            self.upper.iter_mut().zip(light).for_each(|(upper, light)| upper.copy_from_slice(light));
            return None;
        }
        for ((upper, lower), halved) in self.upper.iter().zip(light).zip(&mut self.halved) {
            rows::halve(upper, lower, halved);
        }
        Some(self.halved.each_ref().map(Vec::as_slice))
    }

    fn smooth<F: Follower>(&mut self, follower: &mut F) {
        let y = self.smoothed;
        let [_, smooth @ ..] = &mut self.lab;
        for (chroma, smooth) in self.chroma.iter().zip(smooth) {
            self.blur.row(chroma, y, self.height, smooth.row_mut(y));
        }
        let lab = self.lab.each_ref().map(|window| window.row(y));
        rows::squares(lab, self.squares.row_mut(y));
        follower.smoothed(y, lab, self.distances.row_mut(y));
        self.smoothed += 1;
    }

    fn finish<F: Follower>(&mut self, follower: &mut F) {
        let y = self.finished;
        let [a, b, c] = &self.lab;
        let windows = [a, b, c, &self.squares, &self.distances];
        let count = if F::COMPARES { 5 } else { 4 };
        for (window, out) in windows.into_iter().zip(&mut self.blurred).take(count) {
            self.blur.row(window, y, self.height, out);
        }
        let [a, b, c, squares, distances] = &self.blurred;
        follower.blurred(y, &rows::Blurred { means: [a, b, c], squares, distances });
        self.finished += 1;
    }
}

/// How many rows can be blurred when this many are there.
fn ready(there: usize, height: usize) -> usize {
    if there == height { height } else { there.saturating_sub(REACH) }
}
