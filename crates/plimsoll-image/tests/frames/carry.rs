//! What a chain makes of what a stream says about its frames.

use plimsoll_image::Size;
use plimsoll_image::frames::stream::{Interlacing, Ratio, StreamHeader, Y4mReader};
use plimsoll_image::frames::{Carried, Chain, Colour, Matrix, PlanError};

use crate::made::size;

fn stream(tags: &str) -> StreamHeader {
    let line = format!("YUV4MPEG2 {tags}\n");
    *Y4mReader::open(line.as_bytes()).expect("a header").header()
}

fn carried(chain: &str, tags: &str) -> Result<Carried, PlanError> {
    chain.parse::<Chain>().unwrap_or_else(|error| panic!("{chain}: {error}")).carry(stream(tags))
}

fn refused(chain: &str, tags: &str) -> String {
    carried(chain, tags).expect_err("it is refused").to_string()
}

const HD: &str = "W1920 H1080 F25:1 Ip A1:1 C420p10 XCOLORRANGE=LIMITED";

#[test]
fn tone_mapping_asks_for_what_streams_do_not_say() {
    let error = "tonemap=bt2390".parse::<Chain>().expect_err("no transfer").to_string();
    assert!(error.contains("from=pq") && error.contains("from=hlg"), "{error}");
    let error = refused("scale=50%,tonemap=bt2390:from=pq", HD);
    assert!(error.contains("--matrix 2020") && error.contains("assume=2020"), "{error}");
    for chain in ["assume=2020,tonemap=bt2390:from=pq", "yuv=2020,tonemap=hable:from=hlg", "rgb,tonemap=hable:pq"] {
        carried(chain, HD).unwrap_or_else(|error| panic!("{chain}: {error}"));
    }
    // Whoever names the matrix while reading, names it.
    let told = Y4mReader::open(&b"YUV4MPEG2 W8 H8 C420p10\n"[..]).expect("a header").with_matrix(Matrix::Bt2020);
    assert!("tonemap=bt2390:from=pq".parse::<Chain>().expect("a chain").carry(*told.header()).is_ok());
}

#[test]
fn guesses_that_count_are_told() {
    let relied_on = |chain: &str, tags: &str| carried(chain, tags).expect("it can be done").relied_on;
    let guessed = relied_on("rgb", "W64 H48");
    assert!(guessed.matrix && guessed.range);
    let guessed = relied_on("scale=50%,rgb", HD);
    assert!(guessed.matrix && !guessed.range);
    for harmless in
        ["scale=50%", "flip=h", "blur=2", "depth=8", "yuv=444", "yuv=709", "assume=601:limited,rgb", "crop=8x8"]
    {
        assert!(!relied_on(harmless, HD).matrix, "{harmless}");
    }
    assert!(relied_on("yuv=601", HD).matrix);
    assert!(relied_on("mono", "W64 H48 C420jpeg").range);
    assert!(!relied_on("mono", "W64 H48 Cmono").range);
}

#[test]
fn pixels_keep_their_shape() {
    let ratio = |numerator, denominator| Some(Ratio { numerator, denominator });
    let aspect = |chain: &str, tags: &str| carried(chain, tags).expect("it can be done").header.aspect;
    let pal = "W720 H576 A64:45 C420mpeg2";
    // 16:9 PAL to square pixels, turned, and to half the width.
    assert_eq!(aspect("scale=1024x576", pal), ratio(1, 1));
    assert_eq!(aspect("rotate=90", pal), ratio(45, 64));
    assert_eq!(aspect("rotate=90,rotate=270", pal), ratio(64, 45));
    assert_eq!(aspect("rotate=180,flip=h,crop=64x64", pal), ratio(64, 45));
    assert_eq!(aspect("scale=360x576", pal), ratio(128, 45));
    // A shape that is kept but for whole pixels is kept.
    assert_eq!(aspect("scale=50%,scale=100x-1", "W1366 H768 A1:1"), ratio(1, 1));
    assert_eq!(aspect("scale=10x10", "W20 H40"), None);
    let turned = carried("rotate=90", pal).expect("it can be done").header;
    assert_eq!(turned.format.size(), size(576, 720));
}

#[test]
fn rows_of_two_fields_are_not_mixed() {
    for tags in ["W64 H48 It C420mpeg2", "W64 H48 Ib C422", "W64 H48 Im Cmono"] {
        for mixing in ["scale=50%", "blur=1", "rotate=90", "sobel", "unsharp=1", "denoise=temporal", "crop=8x8+0+1"] {
            if mixing == "rotate=90" && tags.contains("422") || mixing.starts_with("crop") && tags.contains("420") {
                continue;
            }
            let error = refused(mixing, tags);
            assert!(error.contains("interlaced") && error.contains("bwdif"), "{mixing} on {tags}: {error}");
        }
        for harmless in ["flip=h", "depth=10", "gamma=1.2", "crop=8x8+0+4", "pad=80x80+2+4", "levels=0.1:0.9", "mono"] {
            let carried = carried(harmless, tags).unwrap_or_else(|error| panic!("{harmless} on {tags}: {error}"));
            assert_eq!(carried.header.interlacing, stream(tags).interlacing, "{harmless}");
        }
        let carried = carried("assume=progressive,scale=50%", tags).expect("it was said to be progressive");
        assert_eq!(carried.header.interlacing, Interlacing::Progressive);
    }
    // Chroma rows belong to fields too: two rows of luma are one of them.
    let error = refused("crop=8x8+0+2", "W64 H48 It C420mpeg2");
    assert!(error.contains("exchange the two fields"), "{error}");
    assert!(refused("flip=v", "W64 H48 It C422").contains("exchange the two fields"));
    assert!(refused("rgb", "W64 H48 It C420mpeg2").contains("mixes rows"), "chroma is made finer down the columns");
    assert!(carried("rgb", "W64 H48 It C422").is_ok());
    for tags in ["W64 H48 Ip C420mpeg2", "W64 H48 I? C420mpeg2", "W64 H48 C420mpeg2"] {
        assert!(carried("scale=50%", tags).is_ok(), "{tags}");
    }
}

#[test]
fn what_is_assumed_changes_no_sample() {
    let after = |chain: &str, tags: &str| carried(chain, tags).expect("it can be done").header.format;
    let Colour::Yuv(yuv) = after("assume=2020:full:left", "W8 H8 C420jpeg").colour() else { panic!("yuv") };
    assert_eq!((yuv.matrix.to_string(), yuv.range.to_string(), yuv.siting.to_string()), {
        ("2020".to_owned(), "full".to_owned(), "left".to_owned())
    });
    assert!(refused("assume=709", "W8 H8 Cmono").contains("no matrix"));
    for wrong in ["assume", "assume=709:601", "assume=420", "assume=progressive:progressive"] {
        assert!(wrong.parse::<Chain>().is_err(), "{wrong}");
    }
    assert_eq!(after("assume=limited", "W8 H8 Cmono").size(), Size { width: 8, height: 8 });
}
