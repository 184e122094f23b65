//! First lines of streams: as ffmpeg and mjpegtools write them, and as nobody should.

use plimsoll_image::frames::stream::{
    HeaderError, Interlacing, Ratio, StreamError, StreamHeader, Y4mReader, likely_matrix,
};
use plimsoll_image::frames::{Colour, FormatError, Matrix, Range, Sampling, Siting, Yuv};
use plimsoll_image::{Image, Size};

fn header(line: &str) -> Result<StreamHeader, HeaderError> {
    match Y4mReader::open(format!("YUV4MPEG2 {line}\n").as_bytes()) {
        Ok(reader) => Ok(*reader.header()),
        Err(StreamError::Header(refused)) => Err(refused),
        Err(other) => panic!("{line}: {other}"),
    }
}

fn colours(tags: &str) -> (u8, Colour) {
    let format = header(&format!("W4 H2 {tags}")).unwrap_or_else(|refused| panic!("{tags}: {refused}")).format;
    (format.depth(), format.colour())
}

fn yuv(sampling: Sampling, siting: Siting, range: Range) -> Colour {
    Colour::Yuv(Yuv { matrix: Matrix::Bt601, range, sampling, siting })
}

#[test]
fn colour_spaces_say_sampling_siting_and_depth() {
    use Range::Limited;
    let limited = |sampling, siting| yuv(sampling, siting, Limited);
    for (tags, depth, colour) in [
        ("", 8, limited(Sampling::S420, Siting::Centre)),
        ("C420", 8, limited(Sampling::S420, Siting::Centre)),
        ("C420jpeg XYSCSS=420JPEG", 8, limited(Sampling::S420, Siting::Centre)),
        ("C420mpeg2 XYSCSS=420MPEG2", 8, limited(Sampling::S420, Siting::Left)),
        ("C420paldv", 8, limited(Sampling::S420, Siting::TopLeft)),
        ("C422", 8, limited(Sampling::S422, Siting::Left)),
        ("C444", 8, limited(Sampling::S444, Siting::Left)),
        ("Cmono", 8, Colour::Mono(Range::Full)),
        ("Cmono16", 16, Colour::Mono(Range::Full)),
        ("C420p9", 9, limited(Sampling::S420, Siting::Left)),
        ("C422p11", 11, limited(Sampling::S422, Siting::Left)),
        ("C444p16", 16, limited(Sampling::S444, Siting::Left)),
        ("XYSCSS=422P10", 10, limited(Sampling::S422, Siting::Left)),
        ("XYSCSS=420MPEG2 Xother", 8, limited(Sampling::S420, Siting::Left)),
    ] {
        assert_eq!(colours(tags), (depth, colour), "{tags}");
    }
}

#[test]
fn only_the_tag_says_the_range() {
    assert_eq!(colours("C420jpeg XCOLORRANGE=FULL").1, yuv(Sampling::S420, Siting::Centre, Range::Full));
    assert_eq!(colours("C444 XCOLORRANGE=LIMITED").1, yuv(Sampling::S444, Siting::Left, Range::Limited));
    assert_eq!(colours("Cmono XCOLORRANGE=LIMITED").1, Colour::Mono(Range::Limited));
}

#[test]
fn rates_aspects_and_interlacing_are_read() {
    let of = |line| header(line).unwrap();
    let ratio = |numerator, denominator| Some(Ratio { numerator, denominator });
    let full = of("W4 H2 F30000:1001 It A64:45 C420jpeg");
    assert_eq!((full.rate, full.aspect, full.interlacing), (ratio(30000, 1001), ratio(64, 45), Interlacing::TopFirst));
    let bare = of("H2  W4 ");
    assert_eq!((bare.rate, bare.aspect, bare.interlacing), (None, None, Interlacing::Unknown));
    let unknown = of("W4 H2 F0:0 A0:0 I?");
    assert_eq!((unknown.rate, unknown.aspect, unknown.interlacing), (None, None, Interlacing::Unknown));
    assert_eq!(of("W4 H2 Im").interlacing, Interlacing::Mixed);
}

#[test]
fn unknown_letters_are_passed_over() {
    assert!(header("W4 H2 Q9 Xanything=goes").is_ok());
}

#[test]
fn the_matrix_follows_the_size_unless_it_is_given() {
    let of = |width, height| likely_matrix(Size { width, height });
    assert_eq!([of(720, 576), of(640, 480), of(1279, 300)], [Matrix::Bt601; 3]);
    assert_eq!([of(1280, 536), of(720, 577), of(1920, 1080), of(3840, 2160)], [Matrix::Bt709; 4]);
    let reader = Y4mReader::open(&b"YUV4MPEG2 W4 H2 C444\n"[..]).unwrap().with_matrix(Matrix::Bt2020);
    let Colour::Yuv(told) = reader.header().format.colour() else { panic!("no chroma") };
    assert_eq!(told.matrix, Matrix::Bt2020);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let message = |line| header(line).map(|_| ()).unwrap_err().to_string();
    assert_eq!(message("H2"), "the Y4M header has no width (W)");
    assert_eq!(message("W2 C444"), "the Y4M header has no height (H)");
    assert_eq!(message("W-4 H2"), "'W-4' in the Y4M header is not a width");
    assert_eq!(message("W4294967296 H2"), "'W4294967296' in the Y4M header is not a width");
    assert_eq!(message("W4 H"), "'H' in the Y4M header is not a height");
    assert_eq!(message("W4 H2 F25"), "'F25' in the Y4M header is not a rate such as F25:1");
    assert_eq!(message("W4 H2 A1:\u{e9}"), "'A1:\\xc3\\xa9' in the Y4M header is not an aspect such as A1:1");
    assert_eq!(message("W4 H2 Ix"), "'Ix' in the Y4M header is not one of Ip It Ib Im I?");
    let none = Size { width: 0, height: 2 };
    assert_eq!(header("W0 H2"), Err(FormatError::Size(none).into()));
    let huge = Size { width: u32::MAX, height: u32::MAX };
    assert_eq!(header("W4294967295 H4294967295"), Err(FormatError::Size(huge).into()));
    assert!(u64::from(u32::MAX) > Image::PIXELS_MAX);
}

#[test]
fn colour_spaces_that_are_not_read_are_refused_with_what_to_do() {
    let message = |tags: &str| header(&format!("W4 H2 {tags}")).map(|_| ()).unwrap_err().to_string();
    assert_eq!(
        message("C444alpha"),
        "frames of the colour space '444alpha' are not read; drop or blend the alpha plane first (ffmpeg: -pix_fmt \
         yuv444p)"
    );
    assert_eq!(
        message("C411"),
        "frames of the colour space '411' are not read; convert to 4:2:2 first (ffmpeg: -pix_fmt yuv422p)"
    );
    for tags in ["C", "C420p", "C420p8", "C420p17", "C420p010", "Cmono1", "C420jpg", "C444p10x"] {
        assert!(message(tags).contains("4:2:0, 4:2:2, 4:4:4 and mono of 8 to 16 bits are"), "{tags}");
    }
}

#[test]
fn other_streams_are_told_from_damaged_ones() {
    let message = |bytes: &[u8]| Y4mReader::open(bytes).map(|_| ()).unwrap_err().to_string();
    assert_eq!(message(b""), "the stream is empty; the program that writes it may have failed");
    assert_eq!(
        message(b"\x89PNG\r\n\x1a\n"),
        "the stream begins with '\\x89PNG\\r' and not with YUV4MPEG2; it is no Y4M (ffmpeg writes it with -f \
         yuv4mpegpipe)"
    );
    assert!(message(&[0; 5000]).starts_with("the stream begins with '\\x00"));
    assert!(message(b"YUV4MPEG2000 W4 H2\n").starts_with("the stream begins with 'YUV4MPEG2000 W4 H2'"));
    let endless = [&b"YUV4MPEG2 W4 H2 X"[..], &[b'x'; 5000]].concat();
    assert_eq!(message(&endless), "the Y4M header does not end within 1024 bytes; the stream is damaged");
}

#[test]
fn lines_before_frames_may_say_more() {
    let read = |stream: &[u8]| -> Vec<Result<Vec<u8>, String>> {
        let frames = Y4mReader::open(stream).unwrap();
        frames.map(|frame| frame.map(|frame| frame.into_bytes()).map_err(|error| error.to_string())).collect()
    };
    let stream = b"YUV4MPEG2 W2 H1 Im Cmono\nFRAME Ipp1 Xnote\nabFRAME\ncdFRAME \nef";
    assert_eq!(read(stream), [Ok(b"ab".to_vec()), Ok(b"cd".to_vec()), Ok(b"ef".to_vec())]);
    let cut = b"YUV4MPEG2 W2 H1 Cmono\nFRAME\nabFRAME Ipp";
    let message = "the stream ends in the header of frame 2; the frame before it is whole".to_owned();
    assert_eq!(read(cut), [Ok(b"ab".to_vec()), Err(message)]);
    let endless = [&b"YUV4MPEG2 W2 H1 Cmono\nFRAME "[..], &[b'x'; 5000]].concat();
    assert!(read(&endless)[0].as_ref().is_err_and(|error| error.starts_with("frame 1 begins with 'FRAME xxx")));
    assert!(read(b"YUV4MPEG2 W2 H1 Cmono\nFRAMES\nab")[0].is_err());
}
