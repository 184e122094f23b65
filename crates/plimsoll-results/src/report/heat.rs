//! Heat maps: one scale for all maps of a report, so that they can be compared, and a bar that says what colours mean.
//! Invariant: the same distance has the same colour in every map of a page.

use super::html::{Text, put};
use super::{HeatMap, colour_map, data_uri, numbers};

/// How distances become colours: by their square root, which shows faint differences beside strong ones.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct HeatScale {
    /// This and more is the lightest colour.
    top: f32,
}

/// Part of all places that may lie above the scale: single hot pixels do not make everything else black.
const ABOVE_TOP: f64 = 0.002;

/// Values that are looked at to find the scale; more do not change it visibly.
const SAMPLES_MAX: usize = 1 << 20;

/// The code of a place without a distance.
const UNKNOWN: u8 = 255;
const UNKNOWN_COLOUR: [u8; 3] = [128, 128, 128];

impl HeatScale {
    /// That of files: a difference that is just visible, 1, is half way up.
    pub(crate) const OF_FILES: Self = Self { top: 4.0 };

    /// The scale that suits these maps together.
    pub(crate) fn of<'a>(maps: impl Iterator<Item = &'a HeatMap> + Clone) -> Self {
        let count: usize = maps.clone().map(|map| map.values.len()).sum();
        // Odd, so that it does not walk down the same columns of every map.
        let stride = (count / SAMPLES_MAX) | 1;
        let values = maps.flat_map(|map| map.values.iter().copied());
        let mut samples: Vec<f32> = values.step_by(stride).filter(|value| value.is_finite()).collect();
        if samples.is_empty() {
            return Self { top: 1.0 };
        }
        let at = ((samples.len() - 1) as f64 * (1.0 - ABOVE_TOP)).ceil() as usize;
        let (_, top, _) = samples.select_nth_unstable_by(at, f32::total_cmp);
        Self { top: if *top > 0.0 { round_top(*top) } else { 1.0 } }
    }

    /// Where a distance lies on the bar, from 0 to 1.
    fn place(&self, distance: f32) -> f32 {
        (distance / self.top).clamp(0.0, 1.0).sqrt()
    }

    fn code(&self, distance: f32) -> u8 {
        if distance.is_nan() { UNKNOWN } else { (self.place(distance) * f32::from(UNKNOWN - 1)).round() as u8 }
    }

    /// The place of each value in the [`palette`].
    pub(crate) fn codes(&self, map: &HeatMap) -> Vec<u8> {
        map.values.iter().map(|distance| self.code(*distance)).collect()
    }

    /// The map as a picture.
    pub(crate) fn picture(&self, map: &HeatMap) -> String {
        data_uri::indexed(map.width, map.height, &self.codes(map), &palette())
    }

    /// What the colours mean, where no bar can be drawn.
    pub(crate) fn in_words(&self, what: &str) -> String {
        let top = numbers::round(f64::from(self.top));
        format!("{what}: from 0, dark, to {top} and more, light; the colour goes by the square root")
    }

    /// The bar that tells what the colours mean.
    pub(crate) fn bar(&self, what: &str) -> String {
        let mut bar = String::from("<div class=\"bar\" role=\"img\" aria-label=\"");
        let top = numbers::round(f64::from(self.top));
        put!(bar, "Colours from dark, 0, to light, {top} and more\"><span class=\"bar-what\">");
        put!(bar, "{}</span><span class=\"bar-ramp\"></span><span class=\"bar-ticks\">", Text(what));
        for part in [0.0, 0.0625, 0.25, 0.5625, 1.0] {
            let distance = self.top * part;
            let sign = if part == 1.0 { "≥\u{a0}" } else { "" };
            let text = numbers::round(f64::from(distance));
            put!(bar, "<i style=\"left:{:.1}%\">{sign}{text}</i>", self.place(distance) * 100.0);
        }
        bar.push_str("</span></div>");
        bar
    }
}

/// The next value whose sixteenths, the ticks of the bar, are short to write.
fn round_top(at_least: f32) -> f32 {
    let decade = 10f32.powf(at_least.log10().floor());
    let tops = [0.8, 1.6, 2.4, 3.2, 4.0, 4.8, 6.4, 8.0, 16.0].map(|top| top * decade);
    tops.into_iter().find(|top| *top >= at_least * 0.9999).unwrap_or(at_least)
}

/// The colour of each code: red, green, blue.
pub(crate) fn palette() -> Vec<u8> {
    let colours = (0..UNKNOWN).map(|code| colour_map::colour(f32::from(code) / f32::from(UNKNOWN - 1)));
    colours.chain([UNKNOWN_COLOUR]).flatten().collect()
}

/// The mean and the largest of a map's distances.
pub(crate) fn figures(map: &HeatMap) -> Option<(f64, f64)> {
    let known = || map.values.iter().filter(|value| value.is_finite()).map(|value| f64::from(*value));
    let largest = known().reduce(f64::max)?;
    Some((known().sum::<f64>() / known().count() as f64, largest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(values: Vec<f32>) -> HeatMap {
        HeatMap { width: values.len() as u32, height: 1, values }
    }

    #[test]
    fn the_scale_leaves_out_single_hot_pixels() {
        let mut values = vec![1.0; 10_000];
        values[77] = 1e6;
        assert_eq!(HeatScale::of([map(values)].iter()), HeatScale { top: 1.6 });
        assert_eq!(HeatScale::of([map(vec![3.0]), map(vec![f32::NAN, 5.0])].iter()).top, 6.4);
    }

    #[test]
    fn maps_without_distances_have_a_scale() {
        for values in [vec![], vec![0.0, 0.0], vec![f32::NAN, f32::INFINITY]] {
            assert_eq!(HeatScale::of([map(values)].iter()), HeatScale { top: 1.0 });
        }
    }

    #[test]
    fn codes_grow_with_the_root_of_the_distance() {
        let scale = HeatScale { top: 4.0 };
        let codes = [0.0, 1.0, 4.0, 99.0, f32::INFINITY, -1.0, f32::NAN].map(|distance| scale.code(distance));
        assert_eq!(codes, [0, 127, 254, 254, 254, 0, 255]);
    }

    #[test]
    fn the_bar_has_the_figures_of_its_scale() {
        let bar = HeatScale { top: 4.0 }.bar("<b>");
        assert!(bar.contains("left:50.0%\">1<") && bar.contains("left:100.0%\">≥\u{a0}4<"), "{bar}");
        assert!(bar.contains("&lt;b&gt;"));
    }

    #[test]
    fn figures_leave_out_what_is_unknown() {
        assert_eq!(figures(&map(vec![1.0, f32::NAN, 3.0])), Some((2.0, 3.0)));
        assert_eq!(figures(&map(vec![f32::NAN])), None);
    }
}
