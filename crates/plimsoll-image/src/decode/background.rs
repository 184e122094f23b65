//! What shows through where an image is transparent.

use std::fmt;
use std::str::FromStr;

/// A colour behind an image: 8-bit sRGB.
///
/// ```
/// use plimsoll_image::decode::Background;
/// assert_eq!("#ff8000".parse(), Ok(Background::rgb(255, 128, 0)));
/// assert_eq!(Background::default().to_string(), "white");
/// assert!("puce".parse::<Background>().is_err());
/// ```
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Background([u8; 3]);

/// Not a background.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a background; say white, black, grey, or #rrggbb")]
pub struct BackgroundError(String);

impl Background {
    /// `#ffffff`, as on most pages.
    pub const WHITE: Self = Self([255; 3]);
    /// `#000000`
    pub const BLACK: Self = Self([0; 3]);
    /// `#808080`
    pub const GREY: Self = Self([128; 3]);

    /// Any colour.
    pub const fn rgb(red: u8, green: u8, blue: u8) -> Self {
        Self([red, green, blue])
    }

    /// Red, green and blue.
    pub const fn channels(self) -> [u8; 3] {
        self.0
    }
}

impl Default for Background {
    fn default() -> Self {
        Self::WHITE
    }
}

impl fmt::Display for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.0;
        match *self {
            Self::WHITE => f.pad("white"),
            Self::BLACK => f.pad("black"),
            Self::GREY => f.pad("grey"),
            _ => f.pad(&format!("#{red:02x}{green:02x}{blue:02x}")),
        }
    }
}

impl FromStr for Background {
    type Err = BackgroundError;

    fn from_str(text: &str) -> Result<Self, BackgroundError> {
        match text {
            "white" => Ok(Self::WHITE),
            "black" => Ok(Self::BLACK),
            "grey" | "gray" => Ok(Self::GREY),
            text => hexadecimal(text).ok_or_else(|| BackgroundError(text.to_owned())),
        }
    }
}

fn hexadecimal(text: &str) -> Option<Background> {
    let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6)?;
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let [_, red, green, blue] = u32::from_str_radix(digits, 16).ok()?.to_be_bytes();
    Some(Background([red, green, blue]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_can_be_said() {
        for background in [Background::WHITE, Background::BLACK, Background::GREY, Background::rgb(1, 0xab, 255)] {
            assert_eq!(background.to_string().parse(), Ok(background));
        }
        for text in ["", "#", "#fff", "ffffff", "#12345g", "#+12345", "White ", "#é1234"] {
            assert_eq!(text.parse::<Background>(), Err(BackgroundError(text.to_owned())));
        }
    }
}
