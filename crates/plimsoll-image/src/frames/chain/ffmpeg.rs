//! Names that ffmpeg's users type: those that mean an operation of ours are put into our words, others answered with what
//! to write. Never changes a name that is ours.

use super::super::operation::OperationError;
use super::args::{Args, number};

/// What becomes of a name of ffmpeg's.
pub(super) enum Meant {
    /// The same in our words.
    Ours(String),
    /// There is nothing that is the same; what there is instead.
    Instead(&'static str),
}

/// What a name of ffmpeg's means; `None` if it is none that is known here.
///
/// # Errors
/// [`OperationError`] if its arguments mean nothing here.
pub(super) fn meant(name: &str, args: &mut Args<'_>) -> Option<Result<Meant, OperationError>> {
    let ours = |text: Result<String, OperationError>| Some(text.map(Meant::Ours));
    match name {
        "hflip" => ours(Ok("flip=h".to_owned())),
        "vflip" => ours(Ok("flip=v".to_owned())),
        "transpose" => ours(transpose(args)),
        "gblur" => ours(gblur(args)),
        "lut3d" | "lut1d" => ours(lut(args)),
        "format" => ours(format(args)),
        "eq" => ours(eq(args)),
        "bilateral" if args.is_empty() => ours(Ok("denoise=bilateral".to_owned())),
        "grayscale" | "greyscale" => ours(Ok("mono".to_owned())),
        _ => instead(name).map(|text| Ok(Meant::Instead(text))),
    }
}

/// What to write for names whose arguments do not carry over.
fn instead(name: &str) -> Option<&'static str> {
    Some(match name {
        "boxblur" | "avgblur" | "smartblur" => "blur=SIGMA (a box of 2 R + 1 pixels blurs about as SIGMA = 0.6 R does)",
        "hqdn3d" | "nlmeans" | "atadenoise" | "vaguedenoiser" | "owdenoise" => "denoise=temporal or denoise=bilateral",
        "bilateral" => "denoise=bilateral:SIGMA:RANGE",
        "cas" | "sharpen" => "unsharp=SIGMA:AMOUNT",
        "convolution" => "convolve=A B C/D E F/G H I",
        "prewitt" | "roberts" | "edgedetect" => "sobel",
        "perspective" => "warp=X0:Y0:X1:Y1:X2:Y2:X3:Y3",
        "colorspace" | "colormatrix" | "zscale" => {
            "yuv=709 for a matrix, yuv=limited or yuv=full for a range, scale=… for a size"
        }
        "setparams" | "setrange" | "setfield" => "assume=MATRIX:RANGE:SITING:progressive",
        "colorlevels" | "curves" | "lutrgb" | "lutyuv" | "lut2" | "colorcorrect" => {
            "levels=…, gamma=… or lut=FILE.cube"
        }
        "negate" => "levels=0:1:1:1:0",
        "vibrance" | "huesaturation" => "saturation=S or hue=DEGREES:S",
        "yadif" | "bwdif" | "w3fdif" | "estdif" | "kerndeint" => {
            "nothing: frames are not deinterlaced here; let ffmpeg do it (-vf bwdif) before"
        }
        "drawtext" | "subtitles" | "ass" | "drawbox" => "overlay=FILE with a drawn image",
        "blend" => "overlay=FILE:mode=multiply (one image over every frame)",
        _ => return None,
    })
}

/// `0` to `3`, or `clock` and its like.
fn transpose(args: &mut Args<'_>) -> Result<String, OperationError> {
    let ways = [
        ("0", "rotate=90,flip=h"),
        ("cclock_flip", "rotate=90,flip=h"),
        ("1", "rotate=90"),
        ("clock", "rotate=90"),
        ("2", "rotate=270"),
        ("cclock", "rotate=270"),
        ("3", "rotate=90,flip=v"),
        ("clock_flip", "rotate=90,flip=v"),
    ];
    args.one_of("dir", &ways, ways[0].1).map(str::to_owned)
}

/// `gblur=SIGMA`, as `gblur=sigma=2`.
fn gblur(args: &mut Args<'_>) -> Result<String, OperationError> {
    Ok(format!("blur={}", args.take("sigma").unwrap_or("0.5")))
}

/// `lut3d=FILE`, `lut3d=file=FILE:interp=trilinear`.
fn lut(args: &mut Args<'_>) -> Result<String, OperationError> {
    let file = args.require("file")?;
    let between = args.take("interp").map(|way| if way == "linear" { String::new() } else { format!(":{way}") });
    Ok(format!("lut={file}{}", between.unwrap_or_default()))
}

/// A name of pixels: what of it a chain decides.
fn format(args: &mut Args<'_>) -> Result<String, OperationError> {
    let name = args.take("pix_fmts").ok_or_else(|| OperationError::because("a pixel format is missing"))?;
    let refused = || {
        OperationError::because(format_args!(
            "frames do not become '{name}' here; write rgb, mono or yuv=420 (422, 444), and depth=10 for more bits"
        ))
    };
    let (model, depth) = match name.split_once('p').filter(|_| name.starts_with("yuv")) {
        Some((sampling, depth)) => (sampling.replacen("yuv", "yuv=", 1), depth),
        None if name == "rgb24" => return Ok("rgb,depth=8".to_owned()),
        None if name == "rgb48le" || name == "rgb48" => return Ok("rgb,depth=16".to_owned()),
        None => ("mono".to_owned(), name.strip_prefix("gray").ok_or_else(refused)?),
    };
    let known = ["yuv=420", "yuv=422", "yuv=444", "mono"].contains(&model.as_str());
    let bits = if depth.is_empty() { "8" } else { depth.strip_suffix("le").unwrap_or(depth) };
    let known = known && ["8", "10", "12", "14", "16"].contains(&bits);
    known.then(|| format!("{model},depth={bits}")).ok_or_else(refused)
}

/// Contrast about the middle, brightness, then gamma, and saturation: a straight line within black and white is what
/// `levels` has. Values count from black to white here, and not from code to code.
fn eq(args: &mut Args<'_>) -> Result<String, OperationError> {
    let mut take = |name: &str, lowest: f64, highest: f64, usual: f64| {
        args.take(name).map_or(Ok(usual), |text| number(name, text, lowest..=highest))
    };
    let (contrast, brightness) = (take("contrast", 0.01, 100.0, 1.0)?, take("brightness", -1.0, 1.0, 0.0)?);
    let (saturation, gamma) = (take("saturation", 0.0, 3.0, 1.0)?, take("gamma", 0.1, 10.0, 1.0)?);
    let mut all = Vec::new();
    if (contrast, brightness) != (1.0, 0.0) {
        let out = |value: f64| (0.5 + contrast * (value - 0.5) + brightness).clamp(0.0, 1.0);
        let from = |value: f64| (0.5 + (value - 0.5 - brightness) / contrast).clamp(0.0, 1.0);
        let (black, white) = (from(0.0), from(1.0));
        if black >= white {
            return Err(OperationError::because("all of the picture would become black or white"));
        }
        all.push(format!("levels={black}:{white}:1:{}:{}", out(black), out(white)));
    }
    if gamma != 1.0 {
        all.push(format!("gamma={gamma}"));
    }
    if saturation != 1.0 {
        all.push(format!("saturation={saturation}"));
    }
    match all.is_empty() {
        true => Err(OperationError::because("contrast, brightness, saturation and gamma are all as they were")),
        false => Ok(all.join(",")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Chain, ChainError};

    #[test]
    fn names_of_ffmpeg_become_ours() {
        for (typed, ours) in [
            ("hflip,vflip", "flip=h,flip=v"),
            ("transpose=1", "rotate=90"),
            ("transpose=dir=cclock", "rotate=270"),
            ("transpose", "rotate=90,flip=h"),
            ("transpose=clock_flip", "rotate=90,flip=v"),
            ("gblur=sigma=2", "blur=2"),
            ("gblur=1.5", "blur=1.5"),
            ("format=yuv420p", "yuv=420,depth=8"),
            ("format=pix_fmts=yuv444p10le", "yuv=444,depth=10"),
            ("format=gray", "mono,depth=8"),
            ("format=rgb48le", "rgb,depth=16"),
            ("bilateral", "denoise=bilateral"),
            ("eq=saturation=1.5", "saturation=1.5"),
            ("eq=contrast=2:gamma=1.2", "levels=0.25:0.75:1:0:1,gamma=1.2"),
            ("eq=1:0.25", "levels=0:0.75:1:0.25:1"),
        ] {
            assert_eq!(typed.parse::<Chain>().map(|chain| chain.to_string()), Ok(ours.to_owned()), "{typed}");
        }
    }

    #[test]
    fn others_are_answered_with_ours() {
        for (typed, said) in [
            ("boxblur=5", "blur=SIGMA"),
            ("yadif", "-vf bwdif"),
            ("colorspace=bt709", "yuv=709"),
            ("scale=1280:720:force_original_aspect_ratio=decrease", "fit=WxH:inside"),
            ("format=nv12", "yuv=420"),
            ("format=yuv411p", "yuv=420"),
            ("eq", "all as they were"),
            ("hflip=5", "'5' is too much"),
            ("gblur=sigma=2:steps=3", "'steps' is too much"),
            ("lut3d=nowhere.cube", "nowhere.cube"),
            ("pad=64:48", "W:H:0:0"),
            ("hfip", "there is no operation 'hfip'"),
        ] {
            let error = typed.parse::<Chain>().unwrap_err().to_string();
            assert!(error.contains(said), "{typed}: {error}");
        }
        let elsewhere = "boxblur".parse::<Chain>();
        assert!(matches!(elsewhere, Err(ChainError::OfFfmpeg { .. })));
    }
}
