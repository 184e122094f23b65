//! The displays that images are seen on: how bright, in which light, and how many pixels a degree of sight spans.
//! Names and figures are those of ColorVideoVDP's own list (`display_models.json` of version 0.5.7).

use std::f64::consts::PI;
use std::fmt;
use std::str::FromStr;

/// A display that ColorVideoVDP knows, seen from where its users sit.
///
/// On a display of standard range, white is as bright as the display gets. On one of high range (those with `hdr` in
/// their name, except `lg_oled_2017_hdr`, which the list has as a display for sRGB), white is 203 cd/m² (ITU-R BT.2408)
/// and linear samples above 1 are brighter, up to the display's peak.
///
/// ```
/// use plimsoll_image::metrics::Display;
/// let phone: Display = "standard_phone".parse()?;
/// assert_eq!(phone.to_string(), "standard_phone");
/// assert_eq!(Display::STANDARD.to_string(), "standard_4k");
/// # Ok::<(), plimsoll_image::metrics::ParseDisplayError>(())
/// ```
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Display(u8);

/// No display has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no display '{name}'; there are {all}", all = Display::ALL.map(Display::name).join(", "))]
pub struct ParseDisplayError {
    name: String,
}

/// The light of a linear sample: `clamp(sample * gain, low, high) + offset`, in cd/m².
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Light {
    pub(super) gain: f32,
    pub(super) low: f32,
    pub(super) high: f32,
    pub(super) offset: f32,
}

/// How large it is to the eye.
enum Seen {
    From { metres: f64, diagonal_inches: f64 },
    Across { degrees: f64 },
}

/// What white is.
#[derive(PartialEq)]
enum White {
    /// The display's peak.
    Peak,
    /// That of graphics on a display of high range.
    Graphics,
}

/// A row of the list. Luminances in cd/m².
struct Model {
    name: &'static str,
    pixels: [f64; 2],
    seen: Seen,
    peak: f64,
    black: f64,
    lux: f64,
    white: White,
}

/// How many displays there are.
const COUNT: usize = 26;
/// The white of graphics on displays of high range, in cd/m² (ITU-R BT.2408).
const WHITE_GRAPHICS: f64 = 203.0;
/// How much of the room's light a screen throws back.
const REFLECTED: f64 = 0.005;
/// The darkest light that the model tells from none, in cd/m².
const DARKEST: f64 = 0.005;

impl Display {
    /// The usual one: a 30-inch 4K monitor of 200 cd/m² in an office, seen from twice its height.
    pub const STANDARD: Self = Self(0);

    /// Every display.
    pub const ALL: [Self; COUNT] = {
        let mut all = [Self(0); COUNT];
        let mut at = 0;
        while at < all.len() {
            all[at] = Self(at as u8);
            at += 1;
        }
        all
    };

    /// Its name on the command line and in results.
    pub fn name(self) -> &'static str {
        self.model().name
    }

    fn model(self) -> &'static Model {
        &MODELS[usize::from(self.0)]
    }

    /// Pixels in a degree of sight, in the middle of the display.
    pub(super) fn pixels_per_degree(self) -> f64 {
        let Model { pixels: [width, height], ref seen, .. } = *self.model();
        let distance_in_pixels = match *seen {
            Seen::From { metres, diagonal_inches } => metres * width.hypot(height) / (diagonal_inches * 0.0254),
            Seen::Across { degrees } => width.hypot(height) / (2.0 * (degrees / 2.0).to_radians().tan()),
        };
        1.0 / (2.0 * (0.5 / distance_in_pixels).atan().to_degrees())
    }

    /// The light that samples become on it.
    pub(super) fn light(self) -> Light {
        let Model { peak, black, lux, ref white, .. } = *self.model();
        let reflected = lux / PI * REFLECTED;
        let [gain, low, high, offset] = match white {
            White::Peak => [peak - black, 0.0, peak - black, black + reflected],
            White::Graphics => [WHITE_GRAPHICS, DARKEST.max(black), peak, reflected],
        };
        Light { gain: gain as f32, low: low as f32, high: high as f32, offset: offset as f32 }
    }
}

impl fmt::Display for Display {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Display {
    type Err = ParseDisplayError;

    fn from_str(name: &str) -> Result<Self, ParseDisplayError> {
        Self::ALL
            .into_iter()
            .find(|display| display.name() == name)
            .ok_or_else(|| ParseDisplayError { name: name.to_owned() })
    }
}

#[rustfmt::skip]
static MODELS: [Model; COUNT] = [
    model("standard_4k", [3840.0, 2160.0], from(0.747_2, 30.0), [200.0, 0.2], 250.0, White::Peak),
    model("standard_hdr_pq", [3840.0, 2160.0], from(0.747_2, 30.0), [1500.0, 0.001_5], 10.0, White::Graphics),
    model("standard_hdr_hlg", [3840.0, 2160.0], from(0.747_2, 30.0), [1500.0, 0.001_5], 10.0, White::Graphics),
    model("standard_hdr_linear", [3840.0, 2160.0], from(0.747_2, 30.0), [1500.0, 0.001_5], 10.0, White::Graphics),
    model("standard_hdr_linear_dark", [3840.0, 2160.0], from(0.747_2, 30.0), [1500.0, 0.001_5], 0.0, White::Graphics),
    model("standard_hdr_linear_zoom", [3840.0, 2160.0], from(0.25, 30.0), [10_000.0, 0.01], 10.0, White::Graphics),
    model("standard_fhd", [1920.0, 1080.0], from(0.6, 24.0), [200.0, 0.2], 250.0, White::Peak),
    model("standard_hmd", [1440.0, 1600.0], across(110.0), [100.0, 0.1], 0.0, White::Peak),
    model("standard_phone", [2400.0, 1080.0], from(0.4, 6.0), [500.0, 0.05], 250.0, White::Peak),
    model("sdr_4k_30", [3840.0, 2160.0], from(0.6, 30.0), [100.0, 0.1], 250.0, White::Peak),
    model("sdr_fhd_24", [1920.0, 1080.0], from(0.6, 24.0), [100.0, 0.1], 250.0, White::Peak),
    model("htc_vive_pro", [1440.0, 1600.0], across(110.0), [133.3, 0.1], 0.0, White::Peak),
    model("iphone_12_pro", [2532.0, 1170.0], from(0.508, 6.1), [825.0, 0.000_4], 250.0, White::Peak),
    model("iphone_14_pro", [2532.0, 1170.0], from(0.508, 6.1), [1025.0, 0.000_4], 250.0, White::Peak),
    model("iphone_14_pro_vert", [1170.0, 2532.0], from(0.508, 6.1), [1025.0, 0.000_4], 250.0, White::Peak),
    model("iphone_14_pro_hdr", [2532.0, 1170.0], from(0.508, 6.1), [1590.0, 0.000_4], 10.0, White::Graphics),
    model("iphone_14_pro_hdr_vert", [1170.0, 2532.0], from(0.508, 6.1), [1590.0, 0.000_4], 10.0, White::Graphics),
    model("ipad_pro_12_9", [2732.0, 2048.0], from(0.508, 12.9), [600.0, 0.37], 250.0, White::Peak),
    model("macbook_pro_16", [3072.0, 1920.0], from(0.635, 16.0), [500.0, 0.37], 250.0, White::Peak),
    model("lg_oled_2017_sdr", [3840.0, 2160.0], from(2.565_4, 64.5), [272.0, 0.014], 100.0, White::Peak),
    model("lg_oled_2017_hdr", [3840.0, 2160.0], from(2.565_4, 64.5), [754.0, 0.038], 100.0, White::Peak),
    model("eizo_CG3146", [4096.0, 2160.0], from(0.734_06, 31.063), [300.0, 0.1], 0.0, White::Peak),
    model("65inch_hdr_pq_4knit", [3840.0, 2160.0], from(1.98, 65.0), [4000.0, 0.004], 5.0, White::Graphics),
    model("65inch_hdr_pq_2Knit", [3840.0, 2160.0], from(1.98, 65.0), [2000.0, 0.002], 5.0, White::Graphics),
    model("65inch_hdr_pq_1Knit", [3840.0, 2160.0], from(1.98, 65.0), [1000.0, 0.001], 5.0, White::Graphics),
    model("lg_oled_2026_hdr_pq", [3840.0, 2160.0], from(2.200_148, 64.9), [3000.0, 0.000_5], 5.0, White::Graphics),
];

const fn model(
    name: &'static str,
    pixels: [f64; 2],
    seen: Seen,
    [peak, black]: [f64; 2],
    lux: f64,
    white: White,
) -> Model {
    Model { name, pixels, seen, peak, black, lux, white }
}

const fn from(metres: f64, diagonal_inches: f64) -> Seen {
    Seen::From { metres, diagonal_inches }
}

const fn across(degrees: f64) -> Seen {
    Seen::Across { degrees }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_finds_its_display() {
        for display in Display::ALL {
            assert_eq!(display.to_string().parse(), Ok(display));
        }
        let error = "standard_8k".parse::<Display>().expect_err("there is none");
        assert!(error.to_string().contains("'standard_8k'; there are standard_4k, "), "{error}");
    }

    /// Figures that the authors' tool prints for these displays (`pix_per_deg` of version 0.5.7).
    #[test]
    fn a_degree_spans_as_many_pixels_as_in_the_authors_tool() {
        let printed = [
            ("standard_4k", 75.402_449_345),
            ("standard_fhd", 37.842_503_853),
            ("standard_hmd", 13.153_262_507),
            ("standard_phone", 120.560_815_479),
            ("iphone_14_pro_vert", 159.611_877_403),
            ("lg_oled_2026_hdr_pq", 102.630_641_470),
        ];
        for (name, pixels) in printed {
            let display: Display = name.parse().expect("in the list");
            assert!((display.pixels_per_degree() - pixels).abs() < 1e-6, "{name}: {}", display.pixels_per_degree());
        }
    }
}
