//! Inferno, a colour map of equal steps to the eye, also in print without colour and for all kinds of colour vision.
//! Made by Nathaniel J. Smith and Stéfan van der Walt, published under CC0.

/// Every fifteenth of its 256 published values; between them straight lines, at most 6 of 255 from what was published.
const POINTS: [u32; 18] = [
    0x000004, 0x0a0722, 0x1e0c45, 0x380962, 0x510e6c, 0x69166e, 0x801f6c, 0x982766, 0xb0315b, 0xc63d4d, 0xd94d3d,
    0xe9612b, 0xf47918, 0xfa9407, 0xfcb014, 0xf8cd37, 0xf2ea69, 0xfcffa4,
];

/// The colour of a place from 0 (dark) to 1 (light).
pub(crate) fn colour(place: f32) -> [u8; 3] {
    let along = place.clamp(0.0, 1.0) * (POINTS.len() - 1) as f32;
    let before = (along as usize).min(POINTS.len() - 2);
    let share = along - before as f32;
    let [low, high] = [POINTS[before], POINTS[before + 1]].map(channels);
    std::array::from_fn(|at| (f32::from(low[at]) * (1.0 - share) + f32::from(high[at]) * share).round() as u8)
}

fn channels(rgb: u32) -> [u8; 3] {
    let [_, red, green, blue] = rgb.to_be_bytes();
    [red, green, blue]
}

/// The same map for CSS, which draws the same straight lines.
pub(crate) fn css_gradient() -> String {
    let points: Vec<String> = POINTS.iter().map(|rgb| format!("#{rgb:06x}")).collect();
    format!("linear-gradient(to right,{})", points.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the published table: number and colour.
    const PUBLISHED: [(u8, [u8; 3]); 6] = [
        (0, [0, 0, 4]),
        (50, [64, 10, 103]),
        (100, [144, 37, 104]),
        (150, [217, 77, 61]),
        (200, [251, 157, 7]),
        (255, [252, 255, 164]),
    ];

    #[test]
    fn colours_are_those_published() {
        for (number, published) in PUBLISHED {
            let ours = colour(f32::from(number) / 255.0);
            let furthest = ours.iter().zip(published).map(|(ours, theirs)| ours.abs_diff(theirs)).max();
            assert!(furthest <= Some(6), "{number}: {ours:?} for {published:?}");
        }
    }

    #[test]
    fn more_is_lighter() {
        let luminance = |[red, green, blue]: [u8; 3]| {
            0.2126 * f32::from(red) + 0.7152 * f32::from(green) + 0.0722 * f32::from(blue)
        };
        let steps: Vec<f32> = (0..=64).map(|at| luminance(colour(at as f32 / 64.0))).collect();
        assert!(steps.windows(2).all(|pair| pair[0] < pair[1]), "{steps:?}");
    }

    #[test]
    fn beyond_the_ends_are_the_ends() {
        assert_eq!([colour(-1.0), colour(7.0)], [[0, 0, 4], [252, 255, 164]]);
    }
}
