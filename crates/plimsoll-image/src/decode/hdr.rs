//! Files made for HDR. They are refused, for the metrics take 1 for the white of a page; who meets one is told the
//! command that maps its tones. Never maps tones itself: how that is to look is the user's choice.

use moxcms::{ColorProfile, TransferCharacteristics};

use super::DecodeError;

/// The transfer curve of a file made for HDR.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum HdrCurve {
    Pq,
    Hlg,
}

/// The command reads colours from its own words: ffmpeg before 7 does not see what a PNG says of them.
macro_rules! to_sdr {
    ($transfer:literal) => {
        concat!(
            "ffmpeg -i FILE -vf setparams=color_primaries=bt2020:color_trc=",
            $transfer,
            ":colorspace=gbr,zscale=p=bt709:t=linear:npl=203,tonemap=hable,zscale=t=iec61966-2-1,format=rgb48 out.png"
        )
    };
}

impl HdrCurve {
    /// By its number in ITU-T H.273.
    pub(super) fn of_code_point(transfer: u8) -> Option<Self> {
        match transfer {
            16 => Some(Self::Pq),
            18 => Some(Self::Hlg),
            _ => None,
        }
    }

    pub(super) fn of_profile(profile: &ColorProfile) -> Option<Self> {
        match profile.cicp?.transfer_characteristics {
            TransferCharacteristics::Smpte2084 => Some(Self::Pq),
            TransferCharacteristics::Hlg => Some(Self::Hlg),
            _ => None,
        }
    }

    /// Why such a file is refused, and the command that makes one that is not.
    pub(super) fn refused(self) -> DecodeError {
        let (curve, command) = match self {
            Self::Pq => ("PQ", to_sdr!("smpte2084")),
            Self::Hlg => ("HLG", to_sdr!("arib-std-b67")),
        };
        DecodeError::MadeForHdr { curve, command }
    }
}
