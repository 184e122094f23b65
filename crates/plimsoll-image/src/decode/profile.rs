//! What colour profiles mean: which are sRGB, and profiles from the short descriptions that PNG and
//! QOI carry. Never touches samples.

use moxcms::{
    Chromaticity, CicpColorPrimaries, CicpProfile, ColorPrimaries, ColorProfile, DataColorSpace, MatrixCoefficients,
    ToneReprCurve, TransferCharacteristics, Xyzd, curve_from_gamma,
};

use crate::transfer;

/// How far a curve (as coded samples) or a primary (as XYZ) may be from sRGB and still count as such: a quarter of an 8-bit
/// step, for profiles round their numbers. The red of Display P3 is 0.08 away.
const SRGB_TOLERANCE: f64 = 0.001;

/// The profile in these bytes.
pub(super) fn of_icc(bytes: &[u8]) -> Result<ColorProfile, String> {
    ColorProfile::new_from_slice(bytes).map_err(|error| format!("a broken ICC profile: {error}"))
}

/// Whether this is sRGB, or grey with the curve of sRGB, whatever it calls itself.
pub(super) fn is_srgb(profile: &ColorProfile) -> bool {
    let tables = [&profile.lut_a_to_b_perceptual, &profile.lut_a_to_b_colorimetric, &profile.lut_a_to_b_saturation];
    if tables.iter().any(|table| table.is_some()) {
        return false;
    }
    if profile.color_space == DataColorSpace::Gray {
        return has_srgb_curve(profile.gray_trc.as_ref());
    }
    let srgb = ColorProfile::new_srgb();
    let curves = [&profile.red_trc, &profile.green_trc, &profile.blue_trc];
    let primaries = [
        (profile.red_colorant, srgb.red_colorant),
        (profile.green_colorant, srgb.green_colorant),
        (profile.blue_colorant, srgb.blue_colorant),
    ];
    primaries.into_iter().all(|(a, b)| close(a, b)) && curves.into_iter().all(|curve| has_srgb_curve(curve.as_ref()))
}

fn close(a: Xyzd, b: Xyzd) -> bool {
    [a.x - b.x, a.y - b.y, a.z - b.z].into_iter().all(|difference| difference.abs() < SRGB_TOLERANCE)
}

fn has_srgb_curve(curve: Option<&ToneReprCurve>) -> bool {
    let Some(Ok(curve)) = curve.map(ToneReprCurve::make_linear_evaluator) else { return false };
    (0..=255_u8).all(|sample| {
        let coded = f32::from(sample) / 255.0;
        let back = transfer::coded(curve.evaluate_value(coded));
        f64::from(back - coded).abs() < SRGB_TOLERANCE
    })
}

/// Code points of ITU-T H.273, as PNG stores them. None if they name nothing that can be converted.
pub(super) fn of_code_points(primaries: u8, transfer: u8) -> Option<ColorProfile> {
    let cicp = CicpProfile {
        color_primaries: CicpColorPrimaries::try_from(primaries).ok()?,
        transfer_characteristics: TransferCharacteristics::try_from(transfer).ok()?,
        matrix_coefficients: MatrixCoefficients::Identity,
        full_range: true,
    };
    let profile = ColorProfile::new_from_cicp(cicp);
    profile.is_matrix_shaper().then_some(profile)
}

/// White, red, green and blue as x, y.
pub(super) type Corners = [(f32, f32); 4];

/// A power curve, or that of sRGB, with some primaries, or those of sRGB.
pub(super) fn of_gamma(exponent: Option<f32>, corners: Option<Corners>) -> ColorProfile {
    let mut profile = ColorProfile::new_srgb();
    if let Some(corners) = corners {
        let [white, red, green, blue] = corners.map(|(x, y)| Chromaticity::new(x, y));
        profile.update_rgb_colorimetry(white.to_xyyb(), ColorPrimaries { red, green, blue });
    }
    if let Some(exponent) = exponent {
        let curve = curve_from_gamma(exponent);
        profile.red_trc = Some(curve.clone());
        profile.green_trc = Some(curve.clone());
        profile.blue_trc = Some(curve);
    }
    // The code points of sRGB would win over what was just set.
    profile.cicp = None;
    profile
}
