// Two to the power of numbers up to 0, within 3e-6 of itself, the same on every device: the built-in one is not.
fn power_of_two(exponent: f32) -> f32 {
    // Less than nothing to whatever it weighs, and still a normal number.
    let bounded = max(exponent, -100.0);
    let whole = round(bounded);
    let part = bounded - whole;
    let power = (((0.0095701019 * part + 0.05591786) * part + 0.24024745) * part + 0.6931218) * part + 0.9999993;
    return bitcast<f32>(bitcast<i32>(power) + (i32(whole) << 23u));
}
