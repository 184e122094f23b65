//! The words that stand after flags: devices, weights, rates, raw formats.

use std::fmt;

use plimsoll::Strategy;
use plimsoll::image::Size;
use plimsoll::image::encode::JpegQuality;
use plimsoll::image::frames::stream::{NoRateError, Ratio, RawFormat};
use plimsoll::image::frames::{Matrix, Range};
use plimsoll::machine::DeviceName;

/// What stands in --devices.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum DeviceChoice {
    All,
    AnyGpu,
    One(DeviceName),
}

impl DeviceChoice {
    pub(super) fn means(self, name: DeviceName) -> bool {
        match self {
            Self::All => true,
            Self::AnyGpu => matches!(name, DeviceName::Gpu(_)),
            Self::One(asked) => asked == name,
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.pad("all"),
            Self::AnyGpu => f.pad("gpu"),
            Self::One(name) => name.fmt(f),
        }
    }
}

pub(super) fn parse_device(text: &str) -> Result<DeviceChoice, String> {
    match text {
        "all" => Ok(DeviceChoice::All),
        "gpu" => Ok(DeviceChoice::AnyGpu),
        _ => named(text).map(DeviceChoice::One),
    }
}

/// `gpu:0` and `gpu0` are the same.
fn named(text: &str) -> Result<DeviceName, String> {
    let refused = || format!("'{text}' is not a device; write all, cpu, gpu, gpu:0, gpu:1 and so on");
    text.parse().map_err(|_| refused())
}

pub(super) fn parse_strategy(text: &str) -> Result<Strategy, String> {
    text.parse().map_err(|error: plimsoll_core::balancer::ParseStrategyError| error.to_string())
}

pub(super) fn parse_weight(text: &str) -> Result<(DeviceName, f64), String> {
    let refused = || format!("'{text}' is not a share; write gpu0=2 or cpu=0.5");
    let (name, weight) = text.split_once('=').ok_or_else(refused)?;
    let weight = weight.parse().ok().filter(|weight: &f64| weight.is_finite() && *weight > 0.0);
    Ok((named(name)?, weight.ok_or_else(refused)?))
}

pub(super) fn parse_matrix(text: &str) -> Result<Matrix, String> {
    let all = [Matrix::Bt601, Matrix::Bt709, Matrix::Bt2020];
    all.into_iter().find(|matrix| matrix.to_string() == text).ok_or_else(|| "write 601, 709 or 2020".to_owned())
}

pub(super) fn parse_range(text: &str) -> Result<Range, String> {
    let all = [Range::Limited, Range::Full];
    all.into_iter().find(|range| range.to_string() == text).ok_or_else(|| "write limited or full".to_owned())
}

pub(super) fn parse_rate(text: &str) -> Result<Ratio, String> {
    text.parse().map_err(|error: NoRateError| error.to_string())
}

/// What stands after --raw.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct RawFrames(pub(super) RawFormat);

pub(super) fn parse_raw(text: &str) -> Result<RawFrames, String> {
    let (size, name) = text.split_once(':').unwrap_or((text, "rgb24"));
    let size = size
        .split_once(['x', 'X'])
        .and_then(|(width, height)| Some(Size { width: width.parse().ok()?, height: height.parse().ok()? }));
    let size = size.ok_or("write a size as 1920x1080, and a format as 1920x1080:yuv420p if it is not rgb24")?;
    RawFormat::named(name, size).map(RawFrames).map_err(|error| error.to_string())
}

/// What stands after --raw-out: frames of another size have the same layout.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct RawName(pub(super) RawFormat);

pub(super) fn parse_raw_name(name: &str) -> Result<RawName, String> {
    let any = Size { width: 2, height: 2 };
    RawFormat::named(name, any).map(RawName).map_err(|error| error.to_string())
}

pub(super) fn parse_quality(text: &str) -> Result<JpegQuality, String> {
    text.parse().ok().and_then(JpegQuality::new).ok_or_else(|| "write a number from 1 to 100".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_named_as_people_type_them() {
        assert_eq!(parse_device("all"), Ok(DeviceChoice::All));
        assert_eq!(parse_device("gpu:1"), parse_device("gpu1"));
        assert_eq!(parse_device("cpu"), Ok(DeviceChoice::One(DeviceName::Cpu)));
        assert!(parse_device("tpu").is_err() && parse_device("gpu::1").is_err());
        assert_eq!(parse_weight("gpu:0=2.5"), Ok((DeviceName::Gpu(0), 2.5)));
        assert!(["gpu0", "gpu0=", "gpu0=-1", "x=1", "cpu=inf"].iter().all(|text| parse_weight(text).is_err()));
    }

    #[test]
    fn rates_are_ratios() {
        let ratio = |numerator, denominator| Ok(Ratio { numerator, denominator });
        assert_eq!(parse_rate("25"), ratio(25, 1));
        assert_eq!(parse_rate("30000/1001"), ratio(30000, 1001));
        assert_eq!(parse_rate("23.976"), ratio(23976, 1000));
        assert!(["", "0", "25/0", "fast", "-1", "1.23456789"].iter().all(|text| parse_rate(text).is_err()));
    }

    #[test]
    fn raw_frames_have_a_size_and_a_format() {
        let bytes = |text| parse_raw(text).map(|raw| raw.0.stream_bytes());
        assert_eq!(bytes("4x2"), Ok(24));
        assert_eq!(bytes("4x2:rgba"), Ok(32));
        assert_eq!(bytes("4x2:yuv420p"), Ok(12));
        assert!(["", "4", "0x2", "4x2:rgb565"].iter().all(|text| bytes(text).is_err()));
    }
}
