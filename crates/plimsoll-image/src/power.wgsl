// Powers in basic steps (the twin is `power.rs`): WGSL lets the error of `pow` grow with the exponent, and these take
// powers of 79. Prepended to the kernels that need it.

fn log2_of(x: f32) -> f32 {
    let bits = bitcast<u32>(x) - 0x3f3504f3u;
    let exponent = bitcast<i32>(bits) >> 23u;
    let mantissa = bitcast<f32>((bits & 0x007fffffu) + 0x3f3504f3u);
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let s = t * t;
    let series = 2.88539 + s * (0.9617967 + s * (0.577078 + s * (0.4121986 + s * 0.3205989)));
    return f32(exponent) + t * series;
}

fn exp2_of(x: f32) -> f32 {
    let within = clamp(x, -126.0, 127.0);
    let whole = floor(within + 0.5);
    let f = within - whole;
    let high = 0.05550411 + f * (0.00961813 + f * (0.00133336 + f * 0.00015403));
    let poly = 1.0 + f * (0.6931472 + f * (0.2402265 + f * high));
    return bitcast<f32>(bitcast<u32>(poly) + (bitcast<u32>(i32(whole)) << 23u));
}

fn power(x: f32, exponent: f32) -> f32 {
    return exp2_of(exponent * log2_of(x));
}
