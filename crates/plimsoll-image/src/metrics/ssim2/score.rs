//! From sums over maps to a score: the published weights, and what they leave out.
//! Never looks at pixels.

use crate::image::Size;

/// The most levels that count.
pub(super) const LEVELS_MAX: usize = 6;
/// A level below one that is smaller than this does not exist.
const LEVEL_SIDE_MIN: u32 = 8;

/// The weights of SSIMULACRA 2.1, as published: for each channel and, within it, each level, those of the
/// [terms](Sums). An image of fewer levels takes the rows one after the other all the same.
const WEIGHTS: [[f64; 6]; 3 * LEVELS_MAX] = [
    [0.0, 0.000_737_660_670_740_658_6, 0.0, 0.0, 0.000_779_348_168_286_730_9, 0.0],
    [
        0.0,
        0.000_437_115_573_010_737_9,
        0.0,
        1.104_172_642_665_734_6,
        0.000_662_848_341_292_71,
        0.000_152_316_327_837_187_52,
    ],
    [0.0, 0.001_640_643_745_659_975_4, 0.0, 1.842_245_552_053_929_8, 11.441_172_603_757_666, 0.0],
    [0.000_798_910_943_601_516_3, 0.000_176_816_438_078_653, 0.0, 1.878_759_497_954_638_7, 10.949_069_906_051_42, 0.0],
    [
        0.000_728_934_699_150_807_2,
        0.967_793_708_062_683_3,
        0.0,
        0.000_140_034_242_854_358_84,
        0.998_176_697_785_496_7,
        0.000_319_497_559_344_350_53,
    ],
    [0.000_455_099_211_379_206_3, 0.0, 0.0, 0.001_364_876_616_324_339_8, 0.0, 0.0],
    [0.0, 0.0, 0.0, 7.466_890_328_078_848, 0.0, 17.445_833_984_131_262],
    [0.000_623_560_163_404_146_6, 0.0, 0.0, 6.683_678_146_179_332, 0.000_377_244_079_796_112_96, 1.027_889_937_768_264],
    [225.205_153_008_492_74, 0.0, 0.0, 19.213_238_186_143_016, 0.001_140_152_458_661_836_1, 0.001_237_755_635_509_985],
    [176.393_175_984_506_94, 0.0, 0.0, 24.433_009_998_704_76, 0.285_208_026_121_177_57, 0.000_448_543_692_383_340_8],
    [0.0, 0.0, 0.0, 34.779_063_444_837_72, 44.835_625_328_877_896, 0.0],
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    [0.0, 0.000_868_055_657_329_169_8, 0.0, 0.0, 0.0, 0.0],
    [0.0, 0.000_531_319_187_435_874_7, 0.0, 0.000_165_338_141_613_791_12, 0.0, 0.0],
    [0.0, 0.0, 0.0, 0.000_417_917_180_325_133_6, 0.001_729_082_823_472_283_3, 0.0],
    [0.002_082_700_584_663_643_7, 0.0, 0.0, 8.826_982_764_996_862, 23.192_433_439_989_26, 0.0],
    [
        95.108_049_881_108_6,
        0.986_397_803_440_068_2,
        0.983_438_279_246_535_3,
        0.001_228_640_504_827_849_3,
        171.266_725_589_730_7,
        0.980_785_887_243_537_9,
    ],
    [0.0, 0.0, 0.0, 0.000_513_006_458_899_067_9, 0.0, 0.000_108_540_578_584_115_37],
];

/// The sums of a channel of a level over its pixels, in the order of their weights: structure, artefacts, lost detail,
/// then the fourth powers of the same.
pub(super) type Sums = [f64; 6];

/// One level of an image.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Level {
    /// Its pixels in each direction.
    pub(super) size: Size,
    /// What is wanted of each channel.
    pub(super) wanted: [Wanted; 3],
}

/// What of a channel of a level has any weight. What has none is not computed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// The structure term; without it there is no need for variances.
    pub(super) structure: bool,
    /// Anything at all.
    pub(super) any: bool,
}

impl Wanted {
    fn of(weights: &[f64; 6]) -> Self {
        let weighs = |term: usize| weights[term] != 0.0;
        Self { structure: weighs(0) || weighs(3), any: (0..6).any(weighs) }
    }
}

/// The levels of an image, the image itself first: each is half of the one before, rounded up.
pub(super) fn levels(size: Size) -> Vec<Level> {
    let half = |size: &Size| {
        let large = size.width.min(size.height) >= LEVEL_SIDE_MIN;
        large.then(|| Size { width: size.width.div_ceil(2), height: size.height.div_ceil(2) })
    };
    let sizes: Vec<Size> = std::iter::successors(Some(size), half).take(LEVELS_MAX).collect();
    let wanted = |level: usize| [0, 1, 2].map(|channel| Wanted::of(&WEIGHTS[channel * sizes.len() + level]));
    sizes.iter().enumerate().map(|(at, &size)| Level { size, wanted: wanted(at) }).collect()
}

/// The score from the sums of each level's channels.
pub(super) fn score(levels: &[Level], sums: &[[Sums; 3]]) -> f64 {
    let of_channel =
        |channel: usize| levels.iter().zip(sums).map(move |(level, sums)| (level.size.pixels() as f64, &sums[channel]));
    let weighed = (0..3).flat_map(of_channel).zip(&WEIGHTS).map(|((pixels, sums), weights)| {
        let term = |at: usize| {
            let mean = sums[at] / pixels;
            weights[at] * if at < 3 { mean } else { mean.sqrt().sqrt() }
        };
        (0..6).map(term).sum::<f64>()
    });
    scaled(weighed.sum())
}

/// The published polynomial that spreads scores as opinions spread.
fn scaled(weighed: f64) -> f64 {
    let sum = weighed * 0.956_238_261_683_484_4;
    let spread = ((6.248_496_625_763_138e-5 * sum - 0.020_884_521_182_843_837) * sum + 2.326_765_642_916_932) * sum;
    if spread > 0.0 { 100.0 - 10.0 * spread.powf(0.627_633_646_783_138_7) } else { 100.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(width: u32, height: u32) -> Size {
        Size { width, height }
    }

    fn sizes(width: u32, height: u32) -> Vec<Size> {
        levels(size(width, height)).iter().map(|level| level.size).collect()
    }

    #[test]
    fn a_level_halves_one_of_eight_pixels_or_more() {
        assert_eq!(sizes(8, 9), [size(8, 9), size(4, 5)]);
        assert_eq!(sizes(17, 15), [size(17, 15), size(9, 8), size(5, 4)]);
        assert_eq!(sizes(4096, 300).len(), LEVELS_MAX);
    }

    #[test]
    fn what_has_no_weight_is_not_wanted() {
        let levels = levels(size(512, 512));
        assert_eq!(levels[0].wanted[0], Wanted { structure: false, any: true });
        assert_eq!(levels[0].wanted[1], Wanted { structure: true, any: true });
        assert_eq!(levels[5].wanted[1], Wanted { structure: false, any: false });
    }

    #[test]
    fn no_difference_is_perfect_and_more_is_worse() {
        let levels = levels(size(8, 8));
        let of = |sum: f64| score(&levels, &[[[sum; 6]; 3]; 2]);
        assert_eq!(of(0.0), 100.0);
        assert!(of(1e-4) > of(1e-3) && of(1e-3) > of(1.0));
    }
}
