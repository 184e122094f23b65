//! How figures are written: sizes, rates and scores, each with the digits that matter.

/// Bits for each pixel; `None` where the size is not known.
pub(crate) fn bits_per_pixel(width: u32, height: u32, bytes: u64) -> Option<f64> {
    let pixels = f64::from(width) * f64::from(height);
    (pixels > 0.0 && bytes > 0).then(|| bytes as f64 * 8.0 / pixels)
}

/// A rate with three digits that matter, as long as it has a fraction.
pub(crate) fn rate(bits: f64) -> String {
    format!("{bits:.*}", decimals(bits, 3))
}

/// A file's size for people: `842 B`, `12.3 kB`, `1.20 MB`.
pub(crate) fn size(bytes: u64) -> String {
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    match units.into_iter().find(|(unit, _)| bytes as f64 >= *unit) {
        Some((unit, name)) => format!("{} {name}", rate(bytes as f64 / unit)),
        None => format!("{bytes} B"),
    }
}

/// Every byte of a size, in groups of three.
pub(crate) fn exact(bytes: u64) -> String {
    let digits = bytes.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    grouped
}

/// How many decimals all scores of a column get, so that the largest has four digits that matter.
pub(crate) fn column_decimals(scores: impl Iterator<Item = f64>) -> usize {
    let largest = scores.filter(|score| score.is_finite()).fold(0.0, |largest: f64, score| largest.max(score.abs()));
    if largest == 0.0 { 2 } else { decimals(largest, 4) }
}

/// A score in a column with so many decimals.
pub(crate) fn score(value: f64, decimals: usize) -> String {
    if value == f64::INFINITY {
        "∞".to_owned()
    } else if value == f64::NEG_INFINITY {
        "−∞".to_owned()
    } else if value != 0.0 && value.abs() < 10f64.powi(1 - decimals as i32) {
        // The column's decimals would leave less than two digits of it.
        format!("{value:.2e}").replace('-', "−")
    } else {
        format!("{value:.decimals$}").replace('-', "−")
    }
}

/// A round value, without the zeros that say nothing.
pub(crate) fn round(value: f64) -> String {
    let text = plain(value);
    if text.contains('.') && !text.contains('e') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A value by itself, with three digits that matter.
pub(crate) fn plain(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { score(value, decimals(value.abs(), 3)) }
}

fn decimals(value: f64, digits: i32) -> usize {
    let whole = value.abs().log10().floor() as i32 + 1;
    usize::try_from((digits - whole).clamp(0, 9)).expect("not below 0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits() {
        assert_eq!(
            [0, 842, 1000, 12_345, 1_204_000, 3_000_000_000].map(size),
            ["0 B", "842 B", "1.00 kB", "12.3 kB", "1.20 MB", "3.00 GB"]
        );
        assert_eq!([7, 1234, 1_234_567].map(exact), ["7", "1\u{202f}234", "1\u{202f}234\u{202f}567"]);
    }

    #[test]
    fn rates_need_a_size() {
        assert_eq!(bits_per_pixel(100, 10, 250), Some(2.0));
        assert_eq!(bits_per_pixel(0, 10, 250), None);
        assert_eq!(bits_per_pixel(10, 10, 0), None);
        assert_eq!([0.0123, 0.5, 2.0, 24.0].map(rate), ["0.0123", "0.500", "2.00", "24.0"]);
    }

    #[test]
    fn a_column_shares_its_decimals() {
        assert_eq!(column_decimals([87.32, 9.1].into_iter()), 2);
        assert_eq!(column_decimals([0.00123].into_iter()), 6);
        assert_eq!(column_decimals([f64::INFINITY, f64::NAN].into_iter()), 2);
        assert_eq!(score(-2.345, 2), "−2.35");
        assert_eq!([score(f64::INFINITY, 2), score(2.5e-7, 5), score(0.0, 2)], ["∞", "2.50e−7", "0.00"]);
        assert_eq!([0.0, 0.05, 12.34].map(plain), ["0", "0.0500", "12.3"]);
        assert_eq!([0.2, 3.0, 100.0, 0.0].map(round), ["0.2", "3", "100", "0"]);
    }
}
