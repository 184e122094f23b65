//! Makes a picture or a map small enough for a page: each new value is the mean of the area that it covers.
//! Never enlarges. Invariant: the mean of the whole stays what it was (in linear light, for pictures).

use std::sync::LazyLock;

use super::{HeatMap, Picture};

/// A picture whose longer side is at most `side_max`. Light is averaged, not its sRGB code: fine patterns keep their
/// brightness.
pub(crate) fn picture(picture: &Picture, side_max: u32) -> Picture {
    let (width, height) = fitted(picture.width, picture.height, side_max);
    if (width, height) == (picture.width, picture.height) {
        return picture.clone();
    }
    let light = means([picture.width, picture.height], [width, height], 3, |at| LIGHT[usize::from(picture.rgb[at])]);
    Picture { width, height, rgb: light.into_iter().map(code).collect() }
}

/// A map whose longer side is at most `side_max`.
pub(crate) fn heat_map(map: &HeatMap, side_max: u32) -> HeatMap {
    let (width, height) = fitted(map.width, map.height, side_max);
    let values = means([map.width, map.height], [width, height], 1, |at| map.values[at]);
    HeatMap { width, height, values }
}

fn fitted(width: u32, height: u32, side_max: u32) -> (u32, u32) {
    let longest = width.max(height);
    if longest <= side_max {
        return (width, height);
    }
    let scaled = |side: u32| (f64::from(side) * f64::from(side_max) / f64::from(longest)).round().max(1.0) as u32;
    (scaled(width), scaled(height))
}

/// Means over the areas of a coarser grid; `channels` values to a place.
fn means(from: [u32; 2], to: [u32; 2], channels: usize, value: impl Fn(usize) -> f32) -> Vec<f32> {
    let row_length = from[0] as usize * channels;
    let columns: Vec<Span> = (0..to[0]).map(|at| Span::of(at, from[0], to[0])).collect();
    let mut row = vec![0.0f32; row_length];
    let mut all = Vec::with_capacity(to[0] as usize * to[1] as usize * channels);
    for y in 0..to[1] {
        row.fill(0.0);
        for (source, weight) in Span::of(y, from[1], to[1]).weights() {
            let start = source * row_length;
            row.iter_mut().enumerate().for_each(|(at, sum)| *sum += weight * value(start + at));
        }
        for column in &columns {
            for channel in 0..channels {
                all.push(column.weights().map(|(x, weight)| weight * row[x * channels + channel]).sum());
            }
        }
    }
    all
}

/// What one place of the coarser grid covers of the finer one.
struct Span {
    start: f64,
    end: f64,
}

impl Span {
    fn of(at: u32, from: u32, to: u32) -> Self {
        let edge = |at: u32| f64::from(at) * f64::from(from) / f64::from(to);
        Self { start: edge(at), end: edge(at + 1).min(f64::from(from)) }
    }

    /// The covered places with their share; the shares add up to 1.
    fn weights(&self) -> impl Iterator<Item = (usize, f32)> {
        let Self { start, end } = *self;
        (start.floor() as usize..end.ceil() as usize).map(move |at| {
            let covered = end.min(at as f64 + 1.0) - start.max(at as f64);
            (at, (covered / (end - start)) as f32)
        })
    }
}

/// The light of each sRGB code.
static LIGHT: LazyLock<[f32; 256]> = LazyLock::new(|| {
    std::array::from_fn(|code| {
        let code = code as f64 / 255.0;
        let light = if code <= 0.04045 { code / 12.92 } else { ((code + 0.055) / 1.055).powf(2.4) };
        light as f32
    })
});

/// The sRGB code whose light is nearest.
fn code(light: f32) -> u8 {
    let above = LIGHT.partition_point(|known| *known < light).min(255);
    let below = above.saturating_sub(1);
    let nearest = if light - LIGHT[below] < LIGHT[above] - light { below } else { above };
    u8::try_from(nearest).expect("256 codes")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grey(width: u32, height: u32, value: impl Fn(u32, u32) -> u8) -> Picture {
        let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        Picture { width, height, rgb: places.flat_map(|(x, y)| [value(x, y); 3]).collect() }
    }

    #[test]
    fn every_code_survives() {
        assert!((0..=255u8).all(|given| code(LIGHT[usize::from(given)]) == given));
    }

    #[test]
    fn light_is_averaged() {
        let chequered = grey(64, 32, |x, y| if (x + y) % 2 == 0 { 255 } else { 0 });
        let small = picture(&chequered, 16);
        assert_eq!((small.width, small.height), (16, 8));
        // Half of the light of white is code 188; half of its code would be 128.
        assert!(small.rgb.iter().all(|&value| value == 188), "{:?}", &small.rgb[..6]);
    }

    #[test]
    fn flat_stays_flat_at_any_ratio() {
        for side_max in [1, 7, 31, 100] {
            let small = picture(&grey(101, 37, |_, _| 77), side_max);
            assert_eq!(small.rgb.len(), (small.width * small.height * 3) as usize);
            assert!(small.rgb.iter().all(|&value| value == 77));
        }
    }

    #[test]
    fn a_small_picture_is_left_alone() {
        let small = grey(20, 10, |x, y| (x * y) as u8);
        assert_eq!(picture(&small, 320), small);
    }

    #[test]
    fn areas_are_weighed_by_what_they_cover() {
        let map = HeatMap { width: 3, height: 1, values: vec![0.0, 3.0, 6.0] };
        assert_eq!(heat_map(&map, 2).values, [1.0, 5.0]);
        let whole = HeatMap { width: 5, height: 5, values: (0..25).map(|at| at as f32).collect() };
        assert!((heat_map(&whole, 1).values[0] - 12.0).abs() < 1e-5);
    }

    #[test]
    fn a_thin_picture_keeps_a_row() {
        let small = picture(&grey(5000, 2, |_, _| 9), 320);
        assert_eq!((small.width, small.height), (320, 1));
    }
}
