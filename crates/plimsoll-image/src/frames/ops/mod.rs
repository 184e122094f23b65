//! The operations: the one table of them, and one file or folder for each.
//!
//! What several of them share:
//!
//! | file | what it owns |
//! |---|---|
//! | `colour_value.rs` | colours as they are written, in the planes of a picture |
//! | `edges.rs`, `taps.rs` | what filters see beyond the edge; their weights as a table |
//! | `exp2.rs` | two to a power, the same on every device |
//! | `expression.rs`, `geometry.rs` | sums, sizes and positions as they are written, in the planes of a picture |
//! | `planes.rs` | which planes an operation changes |

mod assume;
mod blur;
mod colour_value;
mod convolve;
mod crop;
mod denoise;
mod depth;
mod edges;
mod exp2;
mod expression;
mod fit;
mod flip;
mod gamma;
mod geometry;
mod hue;
mod levels;
mod lut;
mod mono;
mod overlay;
mod pad;
mod planes;
mod rgb;
mod rotate;
mod saturation;
mod scale;
mod sobel;
mod taps;
mod tonemap;
mod unsharp;
mod warp;
mod yuv;

use super::operation::About;

/// Every operation.
pub(super) const ALL: &[About] = &[
    assume::ABOUT,
    blur::ABOUT,
    convolve::ABOUT,
    crop::ABOUT,
    denoise::ABOUT,
    depth::ABOUT,
    fit::ABOUT,
    flip::ABOUT,
    gamma::ABOUT,
    hue::ABOUT,
    levels::ABOUT,
    lut::ABOUT,
    mono::ABOUT,
    overlay::ABOUT,
    pad::ABOUT,
    rgb::ABOUT,
    rotate::ABOUT,
    saturation::ABOUT,
    scale::ABOUT,
    sobel::ABOUT,
    tonemap::ABOUT,
    unsharp::ABOUT,
    warp::ABOUT,
    yuv::ABOUT,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_tells_each_in_the_same_way() {
        assert!(ALL.is_sorted_by_key(|about| about.name));
        for About { name, usage, what, .. } in ALL {
            let arguments = usage.strip_prefix(name).unwrap_or_else(|| panic!("{usage} is not how {name} is written"));
            assert!(arguments.is_empty() || arguments.starts_with(['=', '[']), "{usage}");
            assert_eq!(arguments.matches('[').count(), arguments.matches(']').count(), "{usage}");
            assert!(what.starts_with(|first: char| first.is_lowercase()), "{name}: {what}");
            assert!(!what.ends_with('.'), "{name}: {what}");
        }
    }
}
