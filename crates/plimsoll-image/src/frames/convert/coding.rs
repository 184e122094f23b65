//! What the numbers of planes stand for, and the sums that take one coding to another. All in 64 bits, while a chain is
//! planned; kernels get the finished coefficients.

use crate::frames::format::{Colour, Format, Matrix, Range, Sampling, Siting, Yuv};

/// The matrix of luma where nothing says which: what screens show.
const USUAL_MATRIX: Matrix = Matrix::Bt709;

/// How the numbers of a plane stand for values: `number = gain * value + offset`. Values of luma, red, green and blue
/// go from 0 to 1 in the nominal range, those of chroma from -1/2 to 1/2.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct Coding {
    pub(crate) gain: f64,
    pub(crate) offset: f64,
}

impl Coding {
    /// Numbers are the values.
    const PLAIN: Self = Self { gain: 1.0, offset: 0.0 };

    /// Of a plane of a format.
    pub(crate) fn of(format: Format, plane: usize) -> Self {
        let depth = format.depth();
        match format.colour() {
            Colour::Rgb => Self::PLAIN,
            Colour::Mono(range) => Self::luma(range, depth),
            Colour::Yuv(yuv) if plane == 0 => Self::luma(yuv.range, depth),
            Colour::Yuv(yuv) => Self::chroma(yuv.range, depth),
        }
    }

    fn luma(range: Range, depth: u8) -> Self {
        match range {
            Range::Full => Self::PLAIN,
            Range::Limited => Self::codes(219.0, 16.0, depth),
        }
    }

    /// The middle is a code, also where all codes are used: the value 1/2 is then half a code too high.
    fn chroma(range: Range, depth: u8) -> Self {
        match range {
            Range::Full => Self { gain: 1.0, ..Self::codes(0.0, 128.0, depth) },
            Range::Limited => Self::codes(224.0, 128.0, depth),
        }
    }

    /// From codes at eight bits; more bits are more steps between the same codes.
    fn codes(gain: f64, offset: f64, depth: u8) -> Self {
        let highest = 2_f64.powi(i32::from(depth)) - 1.0;
        let unit = 2_f64.powi(i32::from(depth) - 8) / highest;
        Self { gain: gain * unit, offset: offset * unit }
    }

    /// What takes numbers of this coding to those of another: `to = gain * from + offset`.
    pub(crate) fn to(self, other: Self) -> Self {
        let gain = other.gain / self.gain;
        Self { gain, offset: other.offset - self.offset * gain }
    }

    /// Whether it leaves numbers as they are: far below what 32 bits tell apart.
    pub(crate) fn is_nothing(self) -> bool {
        (self.gain - 1.0).abs() < 1e-12 && self.offset.abs() < 1e-12
    }
}

/// Three sums of three numbers and a constant.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct Affine(pub(crate) [[f64; 4]; 3]);

impl Affine {
    /// What takes the planes of one format to those of another, if both have three and mean the same primaries.
    pub(crate) fn between(from: Format, to: Format) -> Self {
        let mut all = decoded(from);
        if let Colour::Yuv(yuv) = from.colour() {
            all = all.then(&rgb_of_yuv(yuv.matrix));
        }
        if let Colour::Yuv(yuv) = to.colour() {
            all = all.then(&yuv_of_rgb(yuv.matrix));
        }
        all.then(&encoded(to))
    }

    /// What takes red, green and blue from 0 to 1 to the numbers of a format's planes; where there is luma only, the
    /// first sum alone counts.
    pub(crate) fn from_rgb(format: Format) -> Self {
        let to = match format.colour() {
            Colour::Mono(range) => {
                Colour::Yuv(Yuv { matrix: USUAL_MATRIX, range, sampling: Sampling::S444, siting: Siting::Left })
            }
            colour => colour,
        };
        Self::between(format.with_colour(Colour::Rgb), format.with_colour(to))
    }

    /// What it makes of three numbers.
    pub(crate) fn of(&self, [first, second, third]: [f64; 3]) -> [f64; 3] {
        self.0.map(|row| row[0] * first + row[1] * second + row[2] * third + row[3])
    }

    /// What turns red, green and blue about grey, as the usual matrix has it.
    pub(crate) fn hue(cosine: f64, sine: f64) -> Self {
        let turn = Self([[1.0, 0.0, 0.0, 0.0], [0.0, cosine, -sine, 0.0], [0.0, sine, cosine, 0.0]]);
        yuv_of_rgb(USUAL_MATRIX).then(&turn).then(&rgb_of_yuv(USUAL_MATRIX))
    }

    /// The sums alone: what becomes of differences.
    pub(crate) fn without_constants(&self) -> Self {
        Self(self.0.map(|[first, second, third, _]| [first, second, third, 0.0]))
    }

    /// This, and another after it.
    fn then(&self, next: &Self) -> Self {
        Self(next.0.map(|row| {
            let sum = |column: usize| (0..3).map(|at| row[at] * self.0[at][column]).sum::<f64>();
            [sum(0), sum(1), sum(2), sum(3) + row[3]]
        }))
    }

    /// As kernels take it.
    pub(crate) fn coefficients(&self) -> [[f32; 4]; 3] {
        self.0.map(|row| row.map(|value| value as f32))
    }
}

/// The values of numbers.
fn decoded(format: Format) -> Affine {
    diagonal(std::array::from_fn(|plane| Coding::of(format, plane).to(Coding::PLAIN)))
}

/// The numbers of values.
fn encoded(format: Format) -> Affine {
    diagonal(std::array::from_fn(|plane| Coding::of(format, plane)))
}

fn diagonal(of: [Coding; 3]) -> Affine {
    Affine(std::array::from_fn(|plane| {
        let mut row = [0.0, 0.0, 0.0, of[plane].offset];
        row[plane] = of[plane].gain;
        row
    }))
}

fn yuv_of_rgb(matrix: Matrix) -> Affine {
    let (red, blue) = matrix.red_and_blue();
    let luma = [red, 1.0 - red - blue, blue, 0.0];
    // What a channel has more than luma, made to fill -1/2 to 1/2.
    let more = |channel: usize| {
        let scale = 0.5 / (1.0 - luma[channel]);
        std::array::from_fn(|at| if at == channel { 0.5 } else { -luma[at] * scale })
    };
    Affine([luma, more(2), more(0)])
}

fn rgb_of_yuv(matrix: Matrix) -> Affine {
    let (red, blue) = matrix.red_and_blue();
    let green = 1.0 - red - blue;
    let (red_more, blue_more) = (2.0 * (1.0 - red), 2.0 * (1.0 - blue));
    Affine([
        [1.0, 0.0, red_more, 0.0],
        [1.0, -blue * blue_more / green, -red * red_more / green, 0.0],
        [1.0, blue_more, 0.0, 0.0],
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back_is_nothing() {
        for matrix in [Matrix::Bt601, Matrix::Bt709, Matrix::Bt2020] {
            let both = yuv_of_rgb(matrix).then(&rgb_of_yuv(matrix));
            for (at, row) in both.0.iter().enumerate() {
                for (column, value) in row.iter().enumerate() {
                    let wanted = if at == column { 1.0 } else { 0.0 };
                    assert!((value - wanted).abs() < 1e-12, "{matrix}: {both:?}");
                }
            }
        }
    }

    #[test]
    fn the_standards_coefficients_come_out() {
        // ITU-R BT.709-6, item 3.3, to its four places; JFIF 1.02 to its five.
        let close = |got: f64, wanted: f64, places: f64| assert!((got - wanted).abs() < places, "{got}, not {wanted}");
        let Affine(hd) = yuv_of_rgb(Matrix::Bt709);
        close(hd[1][2], (1.0 - 0.0722) / 1.8556, 1e-12);
        close(hd[2][0], (1.0 - 0.2126) / 1.5748, 1e-12);
        let Affine(jpeg) = rgb_of_yuv(Matrix::Bt601);
        close(jpeg[0][2], 1.402, 1e-5);
        close(jpeg[1][1], -0.34414, 1e-5);
        close(jpeg[1][2], -0.71414, 1e-5);
        close(jpeg[2][1], 1.772, 1e-5);
    }
}
