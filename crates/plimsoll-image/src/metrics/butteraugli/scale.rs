//! Butteraugli at one resolution: what stays of a reference, and the map of distances of an image from it. Knows
//! nothing of bands: planes of any size, whole images or parts of them.
//! Invariant: a pixel of the map depends on pixels up to [`HALO`] away and no others.

use plimsoll_core::Fault;
use plimsoll_runtime::Buffer;

use super::kernels::difference::{self, Low};
use super::kernels::fir::Filter;
use super::kernels::malta::{FINEST_X, FINEST_Y, HIGH_X, HIGH_Y, MIDDLE_X, MIDDLE_Y};
use super::kernels::mask::{self, Differences, EROSION_REACH};
use super::kernels::{opsin, split};
use crate::planes::Planes;
use crate::run::Run;

/// A blur by how wide it is. It reaches 2.25 times as far, rounded down.
#[derive(Copy, Clone)]
struct Blur(f32);

/// Leaves low frequencies.
const LOW: Blur = Blur(7.155_933_4);
/// Leaves middle frequencies of what is faster than low ones.
const MIDDLE: Blur = Blur(3.224_899);
/// Leaves high frequencies of what is faster than middle ones.
const HIGH: Blur = Blur(1.564_163_3);
/// Spreads activity.
const ACTIVITY: Blur = Blur(2.7);

/// How far a distance sees: 37 pixels. Light is blurred for the sensitivity (2), then come low (16), middle (7) and high
/// frequencies (3), each from what is left by the one before. From there two ways lead to the map: the lines of Malta
/// (4), and activity (6), which is eroded (3). The longer one counts: 2 + 16 + 7 + 3 + 6 + 3. All that a plane's edge
/// changes lies within this, so a band with so many rows more on either side has the right distances in its middle.
pub(super) const HALO: u32 =
    opsin::RADIUS + LOW.radius() + MIDDLE.radius() + HIGH.radius() + ACTIVITY.radius() + EROSION_REACH;

impl Blur {
    const fn radius(self) -> u32 {
        (self.0 * 2.25) as u32
    }

    /// Blurs a plane through a scratch plane. Beyond the edge lies nothing, and what is inside weighs the more.
    fn apply(
        self,
        run: &mut Run<'_>,
        size: [u32; 2],
        from: &Buffer,
        scratch: &Buffer,
        to: &Buffer,
    ) -> Result<(), Fault> {
        let bell = |at: u32| (-((at * at) as f32) / (2.0 * self.0 * self.0)).exp();
        let weights: Vec<f32> = (0..=self.radius()).map(bell).collect();
        Filter::new(&weights).apply(run, size, from, scratch, to)
    }
}

/// What stays of a reference at one resolution: eleven planes.
pub(super) struct ReferenceScale {
    /// Red, green and blue come here. Then these are the finest frequencies of X and Y, and all of B.
    pub(super) colour: Planes,
    low: [Buffer; 2],
    middle: [Buffer; 2],
    high: [Buffer; 2],
    activity: Buffer,
    mask: Buffer,
}

/// Planes to compare an image in. Red, green and blue come into `colour`; the distances end up in `map`.
#[derive(Copy, Clone)]
pub(super) struct Desk<'a> {
    pub(super) colour: [&'a Buffer; 3],
    pub(super) spare: [&'a Buffer; 3],
    pub(super) detail: &'a Buffer,
    pub(super) map: &'a Buffer,
}

impl ReferenceScale {
    /// Room for a reference of this many pixels.
    pub(super) fn open(run: &mut Run<'_>, pixels: u64) -> Result<Self, Fault> {
        let colour = Planes::open(run, pixels)?;
        let mut plane = || run.allocate(pixels);
        Ok(Self {
            colour,
            low: [plane()?, plane()?],
            middle: [plane()?, plane()?],
            high: [plane()?, plane()?],
            activity: plane()?,
            mask: plane()?,
        })
    }

    /// Prepares the reference whose linear light lies in `colour`.
    pub(super) fn prepare(&self, run: &mut Run<'_>, size: [u32; 2], spare: [&Buffer; 3]) -> Result<(), Fault> {
        let (scratch, fast) = (spare[0], [self.colour.each()[0], self.colour.each()[1]]);
        opsin::see(run, size, self.colour.each(), spare)?;
        for ((fast, low), middle) in fast.into_iter().zip(&self.low).zip(&self.middle) {
            LOW.apply(run, size, fast, scratch, low)?;
            split::take_away(run, size, fast, low)?;
            MIDDLE.apply(run, size, fast, scratch, middle)?;
        }
        split::middle(run, size, fast, self.middle.each_ref())?;
        for (fast, high) in fast.into_iter().zip(&self.high) {
            HIGH.apply(run, size, fast, scratch, high)?;
        }
        split::high(run, size, fast, self.high.each_ref(), spare[1])?;
        ACTIVITY.apply(run, size, spare[1], scratch, &self.activity)?;
        mask::erode_activity(run, size, &self.activity, &self.mask)
    }

    /// Maps the distances of the image whose linear light lies on the desk.
    pub(super) fn compare(&self, run: &mut Run<'_>, size: [u32; 2], desk: Desk<'_>) -> Result<(), Fault> {
        let [scratch, a, b] = desk.spare;
        let [x, y, blue] = desk.colour;
        opsin::see(run, size, desk.colour, desk.spare)?;
        // All that is done with blue is linear, so its difference goes the way of the image alone.
        split::take_away(run, size, blue, self.colour.each()[2])?;
        self.compare_low(run, size, desk)?;

        MIDDLE.apply(run, size, blue, scratch, a)?;
        difference::blue(run, size, a, desk.detail)?;
        MIDDLE.apply(run, size, x, scratch, a)?;
        MIDDLE.apply(run, size, y, scratch, b)?;
        split::middle(run, size, [x, y], [a, b])?;
        MIDDLE_X.add_difference(run, size, &self.middle[0], a, desk.detail)?;
        MIDDLE_Y.add_difference(run, size, &self.middle[1], b, desk.detail)?;

        let activity = blue;
        HIGH.apply(run, size, x, scratch, a)?;
        HIGH.apply(run, size, y, scratch, b)?;
        split::high(run, size, [x, y], [a, b], activity)?;
        HIGH_X.add_difference(run, size, &self.high[0], a, desk.detail)?;
        HIGH_Y.add_difference(run, size, &self.high[1], b, desk.detail)?;
        FINEST_X.add_difference(run, size, self.colour.each()[0], x, desk.detail)?;
        FINEST_Y.add_difference(run, size, self.colour.each()[1], y, desk.detail)?;

        ACTIVITY.apply(run, size, activity, scratch, a)?;
        let differences =
            Differences { mask: &self.mask, activity: &self.activity, activity_image: a, detail: desk.detail };
        differences.combine(run, size, desk.map)
    }

    /// Compares low frequencies, and leaves on the desk what is faster.
    fn compare_low(&self, run: &mut Run<'_>, size: [u32; 2], desk: Desk<'_>) -> Result<(), Fault> {
        let [scratch, a, b] = desk.spare;
        let low = [a, b, desk.detail];
        for (plane, low) in desk.colour.into_iter().zip(low) {
            LOW.apply(run, size, plane, scratch, low)?;
        }
        let [reference, image] = [self.low.each_ref(), [a, b]];
        Low { reference, image, blue: desk.detail }.differ(run, size, desk.map)?;
        for (plane, low) in desk.colour.into_iter().zip(low) {
            split::take_away(run, size, plane, low)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distance_sees_37_pixels_far() {
        assert_eq!([LOW, MIDDLE, HIGH, ACTIVITY].map(Blur::radius), [16, 7, 3, 6]);
        assert_eq!(HALO, 37);
    }
}
