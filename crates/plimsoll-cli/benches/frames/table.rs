//! What is done to frames in each row of the table, as we write it and as ffmpeg does, and how alike both must be.

/// What goes in.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// 1920 x 1080, 8 bit.
    Hd,
    /// 3840 x 2160, 8 bit.
    Uhd,
    /// 1920 x 1080, 10 bit.
    Hd10,
    /// The same with little colour and contrast. As PQ, the codes of the other inputs are colours that no display has and
    /// light far above any peak; what programs do about those differs, and is not what is compared.
    Pq,
}

impl Input {
    pub(crate) const ALL: [Self; 4] = [Self::Hd, Self::Uhd, Self::Hd10, Self::Pq];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Hd => "hd",
            Self::Uhd => "uhd",
            Self::Hd10 => "hd10",
            Self::Pq => "pq",
        }
    }

    pub(crate) fn size(self) -> &'static str {
        if self == Self::Uhd { "3840x2160" } else { "1920x1080" }
    }

    pub(crate) fn pixel_format(self) -> &'static str {
        if matches!(self, Self::Hd10 | Self::Pq) { "yuv420p10le" } else { "yuv420p" }
    }

    /// What is done to the test picture.
    pub(crate) fn filters(self) -> &'static str {
        if self == Self::Pq { "hue=s=0.1,eq=contrast=0.6" } else { "null" }
    }

    /// How many frames of it are as much as this many of the first.
    pub(crate) fn frames(self, frames: usize) -> usize {
        match self {
            Self::Hd => frames,
            Self::Uhd => frames.div_ceil(4),
            Self::Hd10 | Self::Pq => frames.div_ceil(2),
        }
    }
}

/// One chain and its equal.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) input: Input,
    pub(crate) ours: &'static str,
    pub(crate) theirs: &'static str,
    /// Below this the sides do not do the same. Two filters of one name have two kernels, so it differs from row to row.
    pub(crate) psnr_min: f64,
    /// Whether only luma is compared: the sides do different things to chroma.
    pub(crate) luma_only: bool,
    /// Why it takes longer than ffmpeg, where it does; printed beside such a row.
    pub(crate) reason: &'static str,
}

const fn row(name: &'static str, ours: &'static str, theirs: &'static str, psnr_min: f64) -> Row {
    Row { name, input: Input::Hd, ours, theirs, psnr_min, luma_only: false, reason: "" }
}

const fn from(input: Input, row: Row) -> Row {
    Row { input, ..row }
}

/// Frames are read, moved and written; next to nothing is computed.
const START: &str =
    "to start takes some milliseconds of processor time, however short the film is; each frame little more";
const TURNING: &str = "turning is a third of our processor time; reading, writing and starting are the rest";
const MIXED: &str = "rows under the image are mixed as floats";
const PLACES: &str = "places are found in floats, with two divisions each; ffmpeg finds them to a 256th of a sample";
const FLOATS: &str = "frames go through RGB as floats; ffmpeg rounds them to 8 bits between";

const WHOLE_WINDOWS: &str =
    "every sample of the window is weighed; ffmpeg's filter is recursive, four passes whatever the window";

const fn because(reason: &'static str, row: Row) -> Row {
    Row { reason, ..row }
}

/// The logo that is laid over frames; it is made beside the inputs, where both sides run.
pub(crate) const LOGO: &str = "logo.png";

const TONEMAP: &str = "setparams=color_primaries=bt2020:color_trc=smpte2084:colorspace=bt2020nc:range=tv,\
     zscale=transfer=linear:npl=100,format=gbrpf32le,zscale=primaries=bt709,tonemap=hable:desat=0:peak=10,\
     zscale=transfer=bt709:matrix=bt709:range=tv,format=yuv420p10le";

/// Every row.
pub(crate) const ROWS: &[Row] = &[
    row("bicubic", "scale=1280x720:bicubic", "scale=1280:720:flags=bicubic", 40.0),
    row("bilinear", "scale=1280x720:bilinear", "scale=1280:720:flags=bilinear", 40.0),
    row("lanczos", "scale=1280x720:lanczos", "scale=1280:720:flags=lanczos", 40.0),
    row("bicubic, zscale", "scale=1280x720:bicubic", "zscale=1280:720:filter=bicubic", 40.0),
    from(Input::Uhd, row("4K to 1080p", "scale=1920x1080:bicubic", "scale=1920:1080:flags=bicubic", 40.0)),
    because(START, row("1080p to 4K", "scale=3840x2160:bicubic", "scale=3840:2160:flags=bicubic", 40.0)),
    from(Input::Hd10, row("10 bit", "scale=1280x720:bicubic", "scale=1280:720:flags=bicubic", 40.0)),
    row("crop", "crop=1280x720", "crop=1280:720", 100.0),
    row("copy", "crop=1920x1080", "null", 100.0),
    row("pad", "pad=2048x1152+64+36", "pad=2048:1152:64:36", 100.0),
    because(START, row("hflip", "flip=h", "hflip", 100.0)),
    because(START, row("vflip", "flip=v", "vflip", 100.0)),
    because(TURNING, row("rotate", "rotate=90", "transpose=1", 100.0)),
    from(Input::Pq, row("tonemap", "tonemap=hable:from=pq", TONEMAP, 34.0)),
    because(MIXED, row("overlay", "overlay=logo.png:+100+100", "movie=logo.png[l];[in][l]overlay=100:100", 40.0)),
    because(
        WHOLE_WINDOWS,
        row("bilateral", "denoise=bilateral:1.5:0.05", "bilateral=sigmaS=1.5:sigmaR=0.05:planes=7", 30.0),
    ),
    row("convolve", "convolve=0 -1 0/-1 5 -1/0 -1 0", "convolution=0 -1 0 -1 5 -1 0 -1 0", 50.0),
    row("gamma", "gamma=1.5", "eq=gamma=1.5", 30.0),
    because(
        PLACES,
        row(
            "warp",
            "warp=50:30:1900:10:1920:1040:0:1080",
            "perspective=50:30:1900:10:0:1080:1920:1040:interpolation=linear",
            35.0,
        ),
    ),
    row("blur=2", "blur=2", "gblur=sigma=2", 34.0),
    row("blur=10", "blur=10", "gblur=sigma=10", 34.0),
    row("unsharp", "unsharp=1:1", "unsharp=5:5:1", 30.0),
    Row { luma_only: true, ..row("sobel", "sobel", "sobel=planes=1:scale=0.25:delta=16", 45.0) },
    because(FLOATS, row("yuv-rgb-yuv", "rgb,yuv=709:420", "format=rgb24,format=yuv420p", 30.0)),
];
