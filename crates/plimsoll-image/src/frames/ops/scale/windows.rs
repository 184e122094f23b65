//! Which samples make up each sample of a scaled row or column, and with what weights.
//! Never touches a picture. Invariant: every window lies inside the input, its weights add up to one, and no window
//! starts before the one it follows.
//!
//! Coordinates are those of edges: sample `i` covers `i..i + 1` and has its middle at `i + 0.5`. Shrinking widens a filter
//! by the ratio, so that it lets no frequency pass that the output cannot hold. Weights that fall outside are dropped,
//! and the rest made to add up to one.

use std::f64::consts::PI;

/// How samples between samples are found.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::frames::ops) enum Filter {
    /// The sample that lies there.
    Nearest,
    /// Straight lines from sample to sample.
    Bilinear,
    /// Cubics from sample to sample with `a` = -0.5 (Catmull-Rom): of all such cubics the one that renders straight lines
    /// and parabolas exactly.
    Bicubic,
    /// The ideal low-pass with a window of three lobes.
    Lanczos,
    /// The mean over the area that a new sample covers.
    Area,
}

/// One direction of a plane that is scaled. The middle of output sample `i` lies at `(i + 0.5) * ratio + shift` in the
/// input, where the ratio is that of the picture's sides: an odd side makes a chroma plane's own a little different.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Axis {
    pub(super) input: u32,
    pub(super) output: u32,
    /// The picture's side before and after.
    pub(super) whole: (u32, u32),
    pub(super) shift: f64,
}

/// For each output sample a run of `taps` input samples.
#[derive(Debug, PartialEq)]
pub(in crate::frames::ops) struct Windows {
    pub(super) taps: u32,
    /// The first sample of each window as the bits of an integer, then the weights of each window.
    pub(super) table: Vec<f32>,
}

impl Windows {
    /// Windows over so many input samples: the first sample and the weights of each.
    pub(in crate::frames::ops) fn of(windows: &[(u32, Vec<f64>)], input: u32) -> Self {
        let taps = windows.iter().map(|(_, weights)| weights.len()).max().unwrap_or(1);
        let (mut starts, mut weights) = (Vec::new(), Vec::with_capacity(windows.len() * taps));
        for (start, window) in windows {
            // All windows are made equally long; one that would stick out begins earlier, with weights of zero.
            let inside = (*start).min(input - taps as u32);
            starts.push(f32::from_bits(inside));
            let before = (start - inside) as usize;
            let padded = (0..taps).map(|tap| tap.checked_sub(before).and_then(|tap| window.get(tap)));
            weights.extend(padded.map(|weight| weight.copied().unwrap_or(0.0) as f32));
        }
        Self { taps: taps as u32, table: [starts, weights].concat() }
    }
}

impl Axis {
    /// Input samples for each output sample.
    pub(super) fn ratio(&self) -> f64 {
        f64::from(self.whole.0) / f64::from(self.whole.1)
    }

    /// Whether samples stay what and where they are.
    pub(super) fn is_idle(&self) -> bool {
        self.whole.0 == self.whole.1
    }

    /// About how many samples each window of a filter holds.
    pub(super) fn taps(&self, filter: Filter) -> f64 {
        filter.reach(self.ratio()).map_or(1.0, |reach| (2.0 * reach).clamp(1.0, f64::from(self.input)))
    }

    /// The windows of a filter.
    pub(super) fn windows(&self, filter: Filter) -> Windows {
        let windows: Vec<(u32, Vec<f64>)> = (0..self.output).map(|at| self.window(filter, at)).collect();
        Windows::of(&windows, self.input)
    }

    /// The first sample and the weights of one window.
    fn window(&self, filter: Filter, at: u32) -> (u32, Vec<f64>) {
        // Divided last: a middle between two samples is exactly there, and which of them is nearest no accident.
        let middle = (f64::from(at) + 0.5) * f64::from(self.whole.0) / f64::from(self.whole.1) + self.shift;
        let last = f64::from(self.input - 1);
        let nearest = (middle.floor().clamp(0.0, last) as u32, vec![1.0]);
        let Some(reach) = filter.reach(self.ratio()) else { return nearest };
        // Samples whose middle lies less than that away.
        let first = (middle - reach + 0.5).floor().clamp(0.0, last);
        let end = (middle + reach - 0.5).ceil().clamp(first + 1.0, last + 1.0);
        let weight = |sample| filter.weight(f64::from(sample) + 0.5 - middle, self.ratio());
        let weights: Vec<f64> = (first as u32..end as u32).map(weight).collect();
        let sum: f64 = weights.iter().sum();
        // A chroma sample beyond the last one may reach none.
        if sum == 0.0 { nearest } else { (first as u32, weights.iter().map(|weight| weight / sum).collect()) }
    }
}

impl Filter {
    /// How far from its middle a window reaches to the middles of input samples; `None` for the one sample that lies
    /// there.
    fn reach(self, ratio: f64) -> Option<f64> {
        let widened = ratio.max(1.0);
        match self {
            Self::Nearest => None,
            Self::Bilinear => Some(widened),
            Self::Bicubic => Some(2.0 * widened),
            Self::Lanczos => Some(3.0 * widened),
            Self::Area => Some(ratio / 2.0 + 0.5),
        }
    }

    /// The weight of a sample whose middle lies `away` from that of the window, before all are made to add up to one.
    fn weight(self, away: f64, ratio: f64) -> f64 {
        let x = away.abs() / ratio.max(1.0);
        match self {
            Self::Nearest => 1.0,
            Self::Bilinear => (1.0 - x).max(0.0),
            Self::Bicubic if x < 1.0 => (1.5 * x - 2.5) * x * x + 1.0,
            Self::Bicubic if x < 2.0 => ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0,
            Self::Lanczos if x < 3.0 => sinc(x) * sinc(x / 3.0),
            Self::Bicubic | Self::Lanczos => 0.0,
            Self::Area => ((away + 0.5).min(ratio / 2.0) - (away - 0.5).max(-ratio / 2.0)).max(0.0),
        }
    }
}

fn sinc(x: f64) -> f64 {
    if x == 0.0 { 1.0 } else { (PI * x).sin() / (PI * x) }
}

/// The first sample of the `at`-th of `count` windows, and its weights.
pub(super) fn window(table: &[f32], count: u32, taps: u32, at: u32) -> (u32, &[f32]) {
    let (starts, weights) = table.split_at(count as usize);
    (starts[at as usize].to_bits(), &weights[at as usize * taps as usize..][..taps as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILTERS: [Filter; 5] = [Filter::Nearest, Filter::Bilinear, Filter::Bicubic, Filter::Lanczos, Filter::Area];

    fn axis(input: u32, output: u32) -> Axis {
        Axis { input, output, whole: (input, output), shift: 0.0 }
    }

    fn all(axis: Axis, filter: Filter) -> Vec<(u32, Vec<f32>)> {
        let Windows { taps, table } = axis.windows(filter);
        let of = |at| window(&table, axis.output, taps, at);
        (0..axis.output).map(of).map(|(start, weights)| (start, weights.to_vec())).collect()
    }

    #[test]
    fn known_windows() {
        assert_eq!(all(axis(4, 2), Filter::Nearest), [(1, vec![1.0]), (3, vec![1.0])]);
        assert_eq!(all(axis(4, 2), Filter::Area), [(0, vec![0.5, 0.5]), (2, vec![0.5, 0.5])]);
        // Three samples to two: each covers one and a half.
        let third = 1.0_f32 / 3.0;
        assert_eq!(all(axis(3, 2), Filter::Area), [(0, vec![2.0 * third, third]), (1, vec![third, 2.0 * third])]);
        let bilinear = [(0, vec![1.0, 0.0]), (0, vec![0.75, 0.25]), (0, vec![0.25, 0.75]), (0, vec![0.0, 1.0])];
        assert_eq!(all(axis(2, 4), Filter::Bilinear), bilinear);
    }

    #[test]
    fn a_cubic_halfway_between_samples_has_the_known_weights() {
        let halfway = Axis { shift: 0.5, ..axis(9, 9) };
        let (start, weights) = &all(halfway, Filter::Bicubic)[4];
        assert_eq!((*start, weights.as_slice()), (3, [-0.0625, 0.5625, 0.5625, -0.0625].as_slice()));
    }

    #[test]
    fn windows_lie_inside_in_order_and_keep_flat_pictures_flat() {
        for filter in FILTERS {
            for (input, output) in [(1, 1), (1, 9), (9, 1), (641, 479), (479, 641), (1920, 1280), (5, 1000)] {
                for shift in [0.0, -0.25, 0.25, 3.0] {
                    let axis = Axis { shift, ..axis(input, output) };
                    let windows = all(axis, filter);
                    assert!(windows.is_sorted_by_key(|(start, _)| *start), "{filter:?} {axis:?}");
                    for (start, weights) in windows {
                        assert!(start as usize + weights.len() <= input as usize, "{filter:?} {axis:?}");
                        let sum: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
                        assert!((sum - 1.0).abs() < 1e-6, "{filter:?} {axis:?}: {sum}");
                    }
                }
            }
        }
    }

    #[test]
    fn samples_that_are_hit_stay_what_they_are() {
        assert!(axis(7, 7).is_idle());
        assert!(!axis(7, 8).is_idle());
        for filter in FILTERS {
            for (at, (start, weights)) in all(axis(7, 7), filter).into_iter().enumerate() {
                let own = weights[at - start as usize];
                assert!((own - 1.0).abs() < 1e-6, "{filter:?}: {own}");
            }
        }
    }
}
