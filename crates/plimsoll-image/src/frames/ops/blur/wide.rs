//! A wide Gaussian in time that does not grow with its width: two narrower ones, of which the first is computed only at
//! every so many samples, and the second reads only those.
//!
//! Two Gaussians of `sigma / sqrt(2)` make one of `sigma`. What the first leaves has no detail finer than its width, so
//! samples three quarters (for more than 8 bits: three fifths) of `sigma` apart hold all of it, and each step takes about
//! as many taps for each sample of the picture whatever `sigma` is. For any picture, each direction is within 0.4 of a
//! code of the whole Gaussian at 8 bits (both are cut off at 3.5 deviations), and within 3e-5 of the range for more (4.5).
//! Beyond the edges, coarse samples go on as far as they are seen; the picture's last samples are repeated there.

use std::f64::consts::FRAC_1_SQRT_2;

use crate::frames::graph::{Graph, Plane};
use crate::frames::ops::scale::{Windows, weigh_across, weigh_down};

/// The narrowest deviation that is worth it, in samples.
pub(super) const WIDE_MIN: f64 = 5.0;

/// One direction of a plane.
pub(super) struct Wide {
    side: u32,
    coarse: u32,
    shrink: Vec<(u32, Vec<f64>)>,
    grow: Vec<(u32, Vec<f64>)>,
}

impl Wide {
    /// For lines of so many samples.
    pub(super) fn new(side: u32, sigma: f64, depth: u8) -> Self {
        let (apart, deviations) = if depth > 8 { (0.6, 4.5) } else { (0.75, 3.5) };
        let (step, each) = ((apart * sigma).floor(), sigma * FRAC_1_SQRT_2);
        let reach = deviations * each;
        // Coarse sample `at` lies at `(at - before) * step`.
        let before = (reach / step).ceil();
        let coarse = (before + (f64::from(side - 1) + reach) / step).floor() as u32 + 1;
        let place = |at: u32| (f64::from(at) - before) * step;
        let shrink = (0..coarse).map(|at| folded(bell(place(at), 1.0, 0.0, each, reach), side)).collect();
        let grow = (0..side).map(|at| folded(bell(f64::from(at), step, -before * step, each, reach), coarse)).collect();
        Self { side, coarse, shrink, grow }
    }

    pub(super) fn shrink_across(&self, graph: &mut Graph, input: Plane) -> Plane {
        weigh_across(graph, input, self.coarse, Windows::of(&self.shrink, self.side))
    }

    pub(super) fn grow_across(&self, graph: &mut Graph, input: Plane) -> Plane {
        weigh_across(graph, input, self.side, Windows::of(&self.grow, self.coarse))
    }

    pub(super) fn shrink_down(&self, graph: &mut Graph, input: Plane) -> Plane {
        weigh_down(graph, input, self.coarse, Windows::of(&self.shrink, self.side))
    }

    pub(super) fn grow_down(&self, graph: &mut Graph, input: Plane) -> Plane {
        weigh_down(graph, input, self.side, Windows::of(&self.grow, self.coarse))
    }
}

/// The weights of samples that lie `step` apart from `first` on, about a middle: the number of the first and all of them.
fn bell(middle: f64, step: f64, first: f64, sigma: f64, reach: f64) -> (i64, Vec<f64>) {
    let from = ((middle - reach - first) / step).ceil() as i64;
    let to = ((middle + reach - first) / step).floor() as i64;
    let weight = |at: i64| (-0.5 * ((first + at as f64 * step - middle) / sigma).powi(2)).exp();
    let weights: Vec<f64> = (from..=to).map(weight).collect();
    let sum: f64 = weights.iter().sum();
    (from, weights.iter().map(|weight| weight / sum).collect())
}

/// A window of which what lies outside counts for the first or last sample.
fn folded((first, weights): (i64, Vec<f64>), side: u32) -> (u32, Vec<f64>) {
    let last = i64::from(side) - 1;
    let (start, end) = (first.clamp(0, last), (first + weights.len() as i64 - 1).clamp(0, last));
    let mut inside = vec![0.0; (end - start) as usize + 1];
    for (at, weight) in (first..).zip(weights) {
        inside[(at.clamp(0, last) - start) as usize] += weight;
    }
    (start as u32, inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What both steps make of a picture of one bright sample, at each sample.
    fn spread(wide: &Wide, bright: u32) -> Vec<f64> {
        let at = |windows: &(u32, Vec<f64>), of: &dyn Fn(u32) -> f64| -> f64 {
            (windows.0..).zip(&windows.1).map(|(at, weight)| weight * of(at)).sum()
        };
        let coarse: Vec<f64> =
            wide.shrink.iter().map(|window| at(window, &|x| f64::from(u8::from(x == bright)))).collect();
        wide.grow.iter().map(|window| at(window, &|x| coarse[x as usize])).collect()
    }

    /// Edges repeat, so the first and last samples stand for all before and after them.
    fn gaussian(side: u32, sigma: f64, x: u32) -> Vec<f64> {
        let (first, inside) = folded(bell(x.into(), 1.0, 0.0, sigma, 8.0 * sigma), side);
        let mut all = vec![0.0; side as usize];
        all[first as usize..][..inside.len()].copy_from_slice(&inside);
        all
    }

    #[test]
    fn every_picture_comes_within_the_stated_bound() {
        for (depth, bound) in [(8, 0.4 / 255.0), (16, 3e-5)] {
            for (sigma, side) in [(5.0, 120), (5.99, 40), (7.3, 200), (10.0, 7), (20.0, 150), (64.0, 300), (64.0, 1)] {
                let wide = Wide::new(side, sigma, depth);
                let columns: Vec<Vec<f64>> = (0..side).map(|bright| spread(&wide, bright)).collect();
                for x in (0..side).step_by(1 + side as usize / 40) {
                    let wanted = gaussian(side, sigma, x);
                    // The worst picture is black where too little arrives, and white where too much does.
                    let off: f64 = (0..side as usize).map(|at| (columns[at][x as usize] - wanted[at]).max(0.0)).sum();
                    assert!(off < bound, "sigma {sigma}, {depth} bits, sample {x} of {side}: {off}");
                }
            }
        }
    }

    #[test]
    fn taps_do_not_grow_with_the_width() {
        let taps = |sigma: f64| {
            let wide = Wide::new(2000, sigma, 8);
            let taps = |windows: &[(u32, Vec<f64>)]| windows.iter().map(|(_, weights)| weights.len()).sum::<usize>();
            (taps(&wide.shrink) + taps(&wide.grow)) as f64 / 2000.0
        };
        for sigma in [6.0, 10.0, 20.0, 64.0] {
            assert!(taps(sigma) < 19.0, "{sigma}: {} taps a sample", taps(sigma));
        }
    }
}
