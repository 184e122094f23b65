//! A separable Gaussian blur of a grey image, its edge pixels repeated outwards: in one piece, or in bands of rows.
//! Never keeps anything on the device between calls.
//! Invariant: bands give the same bits as one piece on the same backend (`conformance`).

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use plimsoll_core::{Bytes, Fault};

use crate::backend::{Backend, Buffer, Launch, read_floats};
use crate::kernel::{Access, Kernel, Twin};

/// Pixels of one workgroup in each direction, as the WGSL says.
const GROUP: usize = 16;

const BINDINGS: &[Access] = &[Access::Read, Access::Write];

/// The pass along the rows.
pub static HORIZONTAL: Kernel = Kernel {
    name: "blur_horizontal",
    wgsl: include_str!("blur.wgsl"),
    entry: "blur_horizontal",
    bindings: BINDINGS,
    params: size_of::<Params>(),
    twin: blur_horizontal,
};

/// The pass down the columns.
pub static VERTICAL: Kernel = Kernel {
    name: "blur_vertical",
    wgsl: include_str!("blur.wgsl"),
    entry: "blur_vertical",
    bindings: BINDINGS,
    params: size_of::<Params>(),
    twin: blur_vertical,
};

/// The uniform of both passes; the WGSL says what each field means.
#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct Params {
    width: u32,
    height: u32,
    radius: u32,
    first_in: u32,
    rows_in: u32,
    first_out: u32,
    rows_out: u32,
    unused: u32,
    weights: [f32; Blur::RADIUS_LIMIT + 1],
}

/// A blur of an image of one size.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Blur {
    width: usize,
    height: usize,
    radius: usize,
}

/// An image or radius that this blur does not do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlurError {
    /// No pixel, or more than a 32-bit index can name.
    #[error("an image of {width} x {height} pixels cannot be blurred")]
    Size {
        /// Pixels in a row.
        width: usize,
        /// Rows.
        height: usize,
    },
    /// More than [`Blur::RADIUS_LIMIT`].
    #[error("a radius of {0} pixels is more than the {limit} that fit in the parameters", limit = Blur::RADIUS_LIMIT)]
    Radius(usize),
    /// Not as many pixels as the image has.
    #[error("{got} pixels given for an image of {wanted}")]
    Pixels {
        /// How many the image has.
        wanted: usize,
        /// How many there were.
        got: usize,
    },
    /// Bands of no rows.
    #[error("a band needs at least one row")]
    EmptyBand,
}

impl Blur {
    /// The largest radius: its weights fill the parameters.
    pub const RADIUS_LIMIT: usize = 47;

    /// A blur of `width` x `height` pixels that looks `radius` pixels far.
    ///
    /// # Errors
    /// [`BlurError`] if the size or radius is out of range.
    pub fn new(width: usize, height: usize, radius: usize) -> Result<Self, BlurError> {
        let pixels = width.checked_mul(height).filter(|&count| count > 0 && u32::try_from(count).is_ok());
        if pixels.is_none() {
            return Err(BlurError::Size { width, height });
        }
        if radius > Self::RADIUS_LIMIT {
            return Err(BlurError::Radius(radius));
        }
        Ok(Self { width, height, radius })
    }

    /// Bytes that [`blur_full`] holds at most, exactly.
    pub fn full_bytes(self) -> Bytes {
        self.strip_bytes(self.height)
    }

    /// Bytes that [`blur_strip`] holds at most with bands of `rows`, exactly.
    pub fn strip_bytes(self, rows: usize) -> Bytes {
        Bytes(self.band_bytes(rows).0.saturating_mul(2))
    }

    /// The tallest bands whose footprint is at most `room` and whose buffers are at most `buffer_limit`; none if not
    /// even single rows fit.
    pub fn strip_rows_within(self, room: Bytes, buffer_limit: Bytes) -> Option<usize> {
        let fits = |rows| self.strip_bytes(rows) <= room && self.band_bytes(rows) <= buffer_limit;
        if fits(self.height) {
            return Some(self.height);
        }
        let row_bytes = self.width as u64 * 4;
        let rows_held = (room.0 / 2).min(buffer_limit.0) / row_bytes;
        let rows = usize::try_from(rows_held).unwrap_or(usize::MAX).checked_sub(2 * self.radius)?;
        (rows > 0 && fits(rows)).then_some(rows)
    }

    /// Bytes of one buffer that holds the tallest band of `rows` rows and what it looks at above and below.
    fn band_bytes(self, rows: usize) -> Bytes {
        let held = rows.saturating_add(2 * self.radius).min(self.height);
        Bytes(held as u64 * self.width as u64 * 4)
    }

    /// The image rows that the rows `out` are made from.
    fn rows_in(self, out: &Range<usize>) -> Range<usize> {
        out.start.saturating_sub(self.radius)..(out.end + self.radius).min(self.height)
    }

    fn params(self, out: &Range<usize>) -> Params {
        let rows_in = self.rows_in(out);
        Params {
            width: self.width as u32,
            height: self.height as u32,
            radius: self.radius as u32,
            first_in: rows_in.start as u32,
            rows_in: rows_in.len() as u32,
            first_out: out.start as u32,
            rows_out: out.len() as u32,
            unused: 0,
            weights: weights(self.radius),
        }
    }

    fn check_pixels(self, pixels: &[f32]) -> Result<(), Fault> {
        let (wanted, got) = (self.width * self.height, pixels.len());
        if wanted == got { Ok(()) } else { Err(Fault::work(BlurError::Pixels { wanted, got })) }
    }
}

/// Gaussian weights by distance, of standard deviation radius / 2, that add up to 1 over both sides.
fn weights(radius: usize) -> [f32; Blur::RADIUS_LIMIT + 1] {
    let deviation = (radius as f64 / 2.0).max(0.5);
    let bell = |distance: usize| (-0.5 * (distance as f64 / deviation).powi(2)).exp();
    let total: f64 = bell(0) + 2.0 * (1..=radius).map(bell).sum::<f64>();
    std::array::from_fn(|distance| if distance <= radius { (bell(distance) / total) as f32 } else { 0.0 })
}

/// Blurs an image that lies on the device as a whole.
///
/// # Errors
/// Whatever the backend reports; [`Fault::WorkFailed`] if `pixels` is not the image's size.
pub fn blur_full(backend: &mut dyn Backend, blur: Blur, pixels: &[f32]) -> Result<Vec<f32>, Fault> {
    blur_strip(backend, blur, pixels, blur.height)
}

/// Blurs an image in bands of `rows` rows, one after the other in the same two buffers.
///
/// # Errors
/// As [`blur_full`]; [`Fault::WorkFailed`] if `rows` is 0.
pub fn blur_strip(backend: &mut dyn Backend, blur: Blur, pixels: &[f32], rows: usize) -> Result<Vec<f32>, Fault> {
    blur.check_pixels(pixels)?;
    if rows == 0 {
        return Err(Fault::work(BlurError::EmptyBand));
    }
    let band = backend.allocate(blur.band_bytes(rows))?;
    let scratch = backend.allocate(blur.band_bytes(rows))?;
    let mut result = Vec::with_capacity(pixels.len());
    for start in (0..blur.height).step_by(rows) {
        let out = start..(start.saturating_add(rows)).min(blur.height);
        let blurred = blur_band(backend, blur, pixels, out, &band, &scratch)?;
        result.extend_from_slice(&blurred);
    }
    Ok(result)
}

/// One band: up into `band`, along the rows into `scratch`, down the columns back into `band`, and out.
fn blur_band(
    backend: &mut dyn Backend,
    blur: Blur,
    pixels: &[f32],
    out: Range<usize>,
    band: &Buffer,
    scratch: &Buffer,
) -> Result<Vec<f32>, Fault> {
    let rows_in = blur.rows_in(&out);
    let held = &pixels[rows_in.start * blur.width..rows_in.end * blur.width];
    let params = blur.params(&out);
    backend.write(band, Bytes::ZERO, bytemuck::cast_slice(held))?;
    backend.poison(scratch)?;
    backend.launch(&pass(&HORIZONTAL, &[band, scratch], &params, rows_in.len()))?;
    backend.poison(band)?;
    backend.launch(&pass(&VERTICAL, &[scratch, band], &params, out.len()))?;
    read_floats(backend, band, out.len() * blur.width)
}

fn pass<'a>(kernel: &'static Kernel, buffers: &'a [&'a Buffer], params: &'a Params, rows: usize) -> Launch<'a> {
    let groups = [(params.width as usize).div_ceil(GROUP) as u32, rows.div_ceil(GROUP) as u32, 1];
    Launch { kernel, buffers, params: bytemuck::bytes_of(params), groups }
}

/// `target[x] += weight * (one[x] + other[x])`: the same operations, in the same order, as the shader's for a pixel.
fn add_pair(target: &mut [f32], weight: f32, one: &[f32], other: &[f32]) {
    for ((target, one), other) in target.iter_mut().zip(one).zip(other) {
        *target += weight * (one + other);
    }
}

fn scale(target: &mut [f32], weight: f32, source: &[f32]) {
    for (target, source) in target.iter_mut().zip(source) {
        *target = weight * source;
    }
}

fn blur_horizontal(twin: &mut Twin<'_>) {
    let params: Params = twin.params();
    let (width, radius) = (params.width as usize, params.radius as usize);
    let (source, target) = twin.floats_from_to(0, 1);
    // A row with its edge pixels repeated needs no clamping, so the inner loops vectorise.
    let mut padded = vec![0.0; width + 2 * radius];
    let rows = source.chunks_exact(width).zip(target.chunks_exact_mut(width));
    for (source, target) in rows.take(params.rows_in as usize) {
        padded[..radius].fill(source[0]);
        padded[radius..radius + width].copy_from_slice(source);
        padded[radius + width..].fill(source[width - 1]);
        scale(target, params.weights[0], source);
        for k in 1..=radius {
            add_pair(target, params.weights[k], &padded[radius - k..], &padded[radius + k..]);
        }
    }
}

fn blur_vertical(twin: &mut Twin<'_>) {
    let params: Params = twin.params();
    let width = params.width as usize;
    let (source, target) = twin.floats_from_to(0, 1);
    let row = |y: u32| &source[(y - params.first_in) as usize * width..][..width];
    let targets = target.chunks_exact_mut(width).take(params.rows_out as usize);
    for (y, target) in (params.first_out..).zip(targets) {
        scale(target, params.weights[0], row(y));
        for k in 1..=params.radius {
            let (above, below) = (y.saturating_sub(k), (y + k).min(params.height - 1));
            add_pair(target, params.weights[k as usize], row(above), row(below));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::CpuDevice;
    use crate::device::Device;

    fn noise(count: usize) -> Vec<f32> {
        (0..count as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 24) as f32).collect()
    }

    /// Straight from the definition: both directions at once, in double precision.
    fn by_definition(blur: Blur, pixels: &[f32]) -> Vec<f64> {
        let weights = weights(blur.radius);
        let reach = blur.radius as isize;
        let clamp = |at: usize, by: isize, size: usize| (at as isize + by).clamp(0, size as isize - 1) as usize;
        let pixel = |x: usize, y: usize| -> f64 {
            let taps = (-reach..=reach).flat_map(|dy| (-reach..=reach).map(move |dx| (dx, dy)));
            taps.map(|(dx, dy)| {
                let at = clamp(y, dy, blur.height) * blur.width + clamp(x, dx, blur.width);
                f64::from(weights[dx.unsigned_abs()]) * f64::from(weights[dy.unsigned_abs()]) * f64::from(pixels[at])
            })
            .sum()
        };
        (0..blur.height).flat_map(|y| (0..blur.width).map(move |x| (x, y))).map(|(x, y)| pixel(x, y)).collect()
    }

    #[test]
    fn twin_follows_the_definition_at_every_edge() {
        let mut slot = CpuDevice::open().open_backend().unwrap();
        for (width, height, radius) in [(1, 1, 3), (3, 5, 6), (17, 2, 4), (2, 19, 1), (16, 16, 0), (33, 31, 5)] {
            let blur = Blur::new(width, height, radius).unwrap();
            let pixels = noise(width * height);
            let got = blur_full(&mut *slot, blur, &pixels).unwrap();
            for (at, (got, wanted)) in got.iter().zip(by_definition(blur, &pixels)).enumerate() {
                assert!((f64::from(*got) - wanted).abs() < 2e-6, "{blur:?} pixel {at}: {got} is not {wanted}");
            }
        }
    }

    #[test]
    fn weights_add_up_to_one() {
        for radius in 0..=Blur::RADIUS_LIMIT {
            let weights = weights(radius);
            let total: f32 = weights[0] + 2.0 * weights[1..].iter().sum::<f32>();
            assert!((total - 1.0).abs() < 1e-6, "radius {radius}: {total}");
        }
    }

    #[test]
    fn what_cannot_be_blurred_is_refused() {
        assert!(matches!(Blur::new(0, 5, 1), Err(BlurError::Size { .. })));
        assert!(matches!(Blur::new(usize::MAX, 2, 1), Err(BlurError::Size { .. })));
        assert_eq!(Blur::new(5, 5, 48), Err(BlurError::Radius(48)));
        let mut slot = CpuDevice::open().open_backend().unwrap();
        let blur = Blur::new(4, 4, 1).unwrap();
        assert!(matches!(blur_full(&mut *slot, blur, &[0.0; 15]), Err(Fault::WorkFailed(_))));
        assert!(matches!(blur_strip(&mut *slot, blur, &[0.0; 16], 0), Err(Fault::WorkFailed(_))));
    }

    #[test]
    fn bands_are_as_tall_as_the_room_allows() {
        let blur = Blur::new(100, 1000, 6).unwrap();
        assert_eq!(blur.strip_rows_within(blur.full_bytes(), Bytes::MAX), Some(1000));
        let rows = blur.strip_rows_within(Bytes(80_000), Bytes::MAX).unwrap();
        assert_eq!(rows, 88);
        assert!(blur.strip_bytes(rows) <= Bytes(80_000) && blur.strip_bytes(rows + 1) > Bytes(80_000));
        assert_eq!(blur.strip_rows_within(Bytes(80_000), Bytes(20_000)), Some(38));
        assert_eq!(blur.strip_rows_within(Bytes(2 * 12 * 400), Bytes::MAX), None);
    }
}
