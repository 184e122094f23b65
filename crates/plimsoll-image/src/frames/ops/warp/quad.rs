//! Four corners, and the projective map that takes a rectangle to them. All in `f64`, on the host, while planning.
//! Invariant: a map exists only for a convex quad whose nearest corner is not [`DEPTH_MAX`] times nearer than its
//! farthest, so it divides by nothing small.

use crate::frames::operation::OperationError;
use crate::image::Size;

/// How many times nearer than another corner of the quad a corner may be. Beyond it, a picture would be stretched from
/// less than a pixel.
const DEPTH_MAX: f64 = 256.0;

/// The least share of the quad's own square size that the triangle at each corner must have: below it, it is a line.
const FLATNESS_MIN: f64 = 1e-6;

/// A place: across, down. A pixel covers the square from its number to the next, so a picture's corners are `0, 0` and
/// its size.
pub(super) type Point = [f64; 2];

/// The corners of a quad: top left, top right, bottom right, bottom left.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Quad(pub(super) [Point; 4]);

/// A projective map: rows of a matrix over `x, y, 1`.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Map([[f64; 3]; 3]);

impl Quad {
    /// The map that takes the corners of a rectangle of this size to this quad's.
    pub(super) fn map_from(&self, size: Size) -> Result<Map, OperationError> {
        self.check()?;
        let [[x0, y0], [x1, y1], [x2, y2], [x3, y3]] = self.0;
        // How far the quad is from a parallelogram; those need no division, so whole numbers stay exact.
        let (skew_x, skew_y) = (x0 - x1 + x2 - x3, y0 - y1 + y2 - y3);
        let (g, h) = if skew_x == 0.0 && skew_y == 0.0 {
            (0.0, 0.0)
        } else {
            let (right, bottom) = ([x1 - x2, y1 - y2], [x3 - x2, y3 - y2]);
            let across = right[0] * bottom[1] - bottom[0] * right[1];
            ((skew_x * bottom[1] - bottom[0] * skew_y) / across, (right[0] * skew_y - skew_x * right[1]) / across)
        };
        let depths = [1.0, 1.0 + g, 1.0 + g + h, 1.0 + h];
        let (near, far) = (depths.iter().copied().fold(f64::MAX, f64::min), depths.iter().copied().fold(0.0, f64::max));
        if near * DEPTH_MAX < far {
            return Err(OperationError::because("the four corners are too nearly in one line"));
        }
        let (width, height) = (f64::from(size.width), f64::from(size.height));
        let row = |first: f64, across: f64, down: f64| [across / width, down / height, first];
        Ok(Map([
            row(x0, x1 - x0 + g * x1, x3 - x0 + h * x3),
            row(y0, y1 - y0 + g * y1, y3 - y0 + h * y3),
            row(1.0, g, h),
        ]))
    }

    fn check(&self) -> Result<(), OperationError> {
        let corner = |at: usize| self.0[at % 4];
        let away = |from: Point, to: Point| [to[0] - from[0], to[1] - from[1]];
        let turns = [0, 1, 2, 3].map(|at| {
            let (first, second) = (away(corner(at), corner(at + 1)), away(corner(at + 1), corner(at + 2)));
            first[0] * second[1] - first[1] * second[0]
        });
        let sides = [0, 1, 2, 3].map(|at| away(corner(at), corner(at + 1)).map(f64::abs));
        let extent = sides.into_iter().flatten().fold(0.0, f64::max);
        let least = FLATNESS_MIN * extent * extent;
        if turns.iter().any(|turn| turn.abs() <= least) {
            return Err(OperationError::because("three of the four corners lie on one line, or two in one place"));
        }
        match turns.iter().all(|turn| *turn > 0.0) || turns.iter().all(|turn| *turn < 0.0) {
            true => Ok(()),
            false => Err(OperationError::because(
                "the four corners make no convex shape; give them as top left, top right, bottom right, bottom left",
            )),
        }
    }
}

/// Where the samples of a plane lie: the `n`-th at `first + n * step`, across and down.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Grid {
    pub(super) first: Point,
    pub(super) step: Point,
}

/// A projective map near one place, as it is computed with: `value + (across * p + down * q) / (1 + g * p + h * q)` for
/// `p` and `q` steps away from it.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Near {
    pub(super) value: Point,
    pub(super) across: Point,
    pub(super) down: Point,
    pub(super) depth: [f64; 2],
}

impl Map {
    /// The same map between the numbers of samples on a grid.
    pub(super) fn between(self, grid: Grid) -> Self {
        let Self([x, y, depth]) = self;
        let from = |[across, down, first]: [f64; 3]| {
            let [at_x, at_y] = grid.first;
            [across * grid.step[0], down * grid.step[1], across * at_x + down * at_y + first]
        };
        let (x, y, depth) = (from(x), from(y), from(depth));
        let to =
            |row: [f64; 3], axis: usize| [0, 1, 2].map(|at| (row[at] - grid.first[axis] * depth[at]) / grid.step[axis]);
        Self([to(x, 0), to(y, 1), depth])
    }

    /// Where a place goes.
    pub(super) fn at(&self, x: f64, y: f64) -> Point {
        let [to_x, to_y, depth] = self.0.map(|[across, down, first]| across * x + down * y + first);
        [to_x / depth, to_y / depth]
    }

    /// The map as seen from one place.
    pub(super) fn near(&self, x: f64, y: f64) -> Near {
        let [row_x, row_y, row_depth] = self.0;
        let value = self.at(x, y);
        let depth = row_depth[0] * x + row_depth[1] * y + row_depth[2];
        let slope = |axis: usize| {
            [(row_x[axis] - row_depth[axis] * value[0]) / depth, (row_y[axis] - row_depth[axis] * value[1]) / depth]
        };
        Near { value, across: slope(0), down: slope(1), depth: [row_depth[0] / depth, row_depth[1] / depth] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size { width: 641, height: 479 };

    #[test]
    fn corners_go_to_corners() {
        let quad = Quad([[10.0, 20.0], [600.5, -3.0], [650.0, 470.0], [-20.0, 400.0]]);
        let map = quad.map_from(SIZE).unwrap();
        let corners = [[0.0, 0.0], [641.0, 0.0], [641.0, 479.0], [0.0, 479.0]];
        for (from, to) in corners.into_iter().zip(quad.0) {
            let [x, y] = map.at(from[0], from[1]);
            assert!((x - to[0]).abs() < 1e-9 && (y - to[1]).abs() < 1e-9, "{from:?} to {x} {y}, not {to:?}");
        }
    }

    #[test]
    fn what_is_no_shape_is_refused() {
        let refused = |corners| Quad(corners).map_from(SIZE).is_err();
        assert!(refused([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0]]), "a line");
        assert!(refused([[5.0, 5.0]; 4]), "a point");
        assert!(refused([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0], [9.0, 9.0]]), "crossed");
        assert!(refused([[0.0, 0.0], [9.0, 0.0], [2.0, 2.0], [0.0, 9.0]]), "dented");
        assert!(refused([[0.0, 0.0], [9.0, 0.0], [9.0, 9.0], [4.5, 0.0]]), "three in a line");
        assert!(!refused([[9.0, 0.0], [0.0, 0.0], [0.0, 9.0], [9.0, 9.0]]), "mirrored is a shape");
    }

    #[test]
    fn seen_from_any_place_it_is_the_same_map() {
        let map = Quad([[10.0, 20.0], [600.5, -3.0], [650.0, 470.0], [-20.0, 400.0]]).map_from(SIZE).unwrap();
        let near = map.near(320.0, 240.0);
        for (p, q) in [(0.0, 0.0), (-320.0, 100.0), (7.0, -240.0)] {
            let depth = 1.0 + near.depth[0] * p + near.depth[1] * q;
            let wanted = map.at(320.0 + p, 240.0 + q);
            for axis in [0, 1] {
                let got = near.value[axis] + (near.across[axis] * p + near.down[axis] * q) / depth;
                assert!((got - wanted[axis]).abs() < 1e-9);
            }
        }
    }
}
