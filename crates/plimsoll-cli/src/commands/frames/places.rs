//! Where frames come from and where they go, as typed: names, not yet opened.
//! Never keeps a file open; looks only what kind of thing a name is, and how a file begins whose name does not tell.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use plimsoll::image::encode::Encoding;
use plimsoll::image::frames::stream::{Ratio, Selection};

use super::args::{Args, with_rate};
use super::draft;
use super::numbered::Numbered;
use crate::stop::{Ended, Stop};

/// Both ends.
pub(super) struct Places {
    pub(super) input: InputPlace,
    pub(super) output: OutputPlace,
}

/// Where frames come from.
#[derive(Debug, PartialEq)]
pub(super) enum InputPlace {
    /// A stream; `None` for stdin.
    Stream(Option<PathBuf>),
    /// Image files.
    Images(Vec<PathBuf>),
}

/// Where frames go.
#[derive(Debug, PartialEq)]
pub(super) enum OutputPlace {
    /// A Y4M stream; `None` for stdout.
    Y4m(Option<PathBuf>),
    /// Raw frames; `None` for stdout.
    Raw(Option<PathBuf>),
    /// Images, one file for each frame.
    Images(ImageNames),
}

/// The names of image files.
#[derive(Debug, PartialEq)]
pub(super) enum ImageNames {
    /// As the frames were called, in another folder or under another name.
    Kept(Vec<PathBuf>),
    /// Numbers in a name.
    Numbered(Numbered),
}

/// How files of raw frames are called.
const RAW_ENDINGS: [&str; 9] = ["raw", "rgb", "yuv", "gray", "nv12", "rgba", "bgra", "bgr", "gbrp"];
/// How a Y4M stream begins.
const Y4M: &[u8] = b"YUV4MPEG2";
/// How files are called that ffmpeg takes apart.
const VIDEO_ENDINGS: [&str; 9] = ["mkv", "mp4", "m4v", "mov", "webm", "avi", "ts", "mpg", "mxf"];
/// The name of a pipe.
const PIPE: &str = "-";

impl Places {
    pub(super) fn of(args: &Args, selection: &Selection) -> Result<Self, Stop> {
        let (inputs, output) = ends(args)?;
        let input = match input(inputs, args.raw.is_some())? {
            InputPlace::Images(files) => InputPlace::Images(chosen(files, selection, args.rate)?),
            stream => stream,
        };
        let output = output_place(&output, &input, args)?;
        if output.is_stdout() && io::stdout().is_terminal() {
            return Err(Stop::usage(
                "frames are nothing to read on a terminal; pipe them into a program, or name a file",
            ));
        }
        Ok(Self { input, output })
    }
}

/// The images that go on. Those of a stream are chosen as they come.
fn chosen(files: Vec<PathBuf>, selection: &Selection, rate: Option<Ratio>) -> Result<Vec<PathBuf>, Stop> {
    selection.rate(rate).map_err(with_rate)?;
    let files = files.into_iter().map(Ok::<_, Infallible>);
    let files: Vec<PathBuf> = selection.select(files, rate).map(|Ok(file)| file).collect();
    if files.is_empty() { Err(Stop::usage("no image is left of those that were named")) } else { Ok(files) }
}

/// The names of the inputs and of the output.
fn ends(args: &Args) -> Result<(Vec<PathBuf>, PathBuf), Stop> {
    match (&args.out, &args.files[..]) {
        (Some(out), files) => Ok((files.to_vec(), out.clone())),
        (None, [input, output]) => Ok((vec![input.clone()], output.clone())),
        (None, [_]) => Err(Stop::usage("frames go nowhere; name an output after the input, - for a pipe")),
        (None, _) => Err(Stop::usage(
            "there are more names than INPUT and OUTPUT; name where the frames of many files go with --out",
        )),
    }
}

fn input(files: Vec<PathBuf>, is_raw: bool) -> Result<InputPlace, Stop> {
    if let Some(video) = files.iter().find(|path| VIDEO_ENDINGS.contains(&ending(path).as_str())) {
        return Err(Stop::usage(format_args!(
            "{video} is for ffmpeg to take apart; write ffmpeg -i {video} -f yuv4mpegpipe - | plimsoll frames … - -",
            video = video.display()
        )));
    }
    if let Some(folder) = files.iter().find(|path| path.is_dir()) {
        let files = folder.join("*.png");
        return Err(Stop::usage(format_args!(
            "{} is a folder; name its images, as {}",
            folder.display(),
            files.display()
        )));
    }
    if let [pattern] = &files[..]
        && !is_raw
        && let Some(numbered) = Numbered::of(pattern)
        && !pattern.exists()
    {
        return numbered.files().map(InputPlace::Images);
    }
    let is_stream = |path: &Path| is_raw || path == Path::new(PIPE) || ending(path) == "y4m" || is_y4m(path);
    match &files[..] {
        [one] if is_stream(one) => Ok(InputPlace::Stream((one != Path::new(PIPE)).then(|| one.clone()))),
        files if files.iter().any(|path| is_stream(path)) => {
            Err(Stop::usage("one stream at a time, and none beside images; run the command for each"))
        }
        _ => Ok(InputPlace::Images(files)),
    }
}

/// Whether something is a stream although its name does not say so: a named pipe or a device, which can be read only once,
/// or a file that begins as Y4M does.
fn is_y4m(path: &Path) -> bool {
    let Ok(metadata) = path.metadata() else { return false };
    if !metadata.is_file() {
        return true;
    }
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(Y4M.len() as u64).read_to_end(&mut start));
    read.is_ok() && start == Y4M
}

fn output_place(path: &Path, input: &InputPlace, args: &Args) -> Result<OutputPlace, Stop> {
    let is_folder = path.is_dir() || path.to_string_lossy().ends_with(['/', '\\']);
    let is_raw = args.raw.is_some() || args.raw_out.is_some();
    if let Some(numbered) = Numbered::of(path)
        && Encoding::of_path(path).is_ok()
        && !path.exists()
    {
        return Ok(OutputPlace::Images(ImageNames::Numbered(numbered)));
    }
    match ending(path).as_str() {
        _ if path == Path::new(PIPE) && is_raw => Ok(OutputPlace::Raw(None)),
        _ if path == Path::new(PIPE) => Ok(OutputPlace::Y4m(None)),
        _ if is_folder => folder(path, input),
        "y4m" if args.raw_out.is_some() => {
            Err(Stop::usage("--raw-out writes frames without a header, and .y4m files have one; leave one of them out"))
        }
        "y4m" => Ok(OutputPlace::Y4m(Some(path.to_owned()))),
        ending if RAW_ENDINGS.contains(&ending) => Ok(OutputPlace::Raw(Some(path.to_owned()))),
        "" if args.out.is_some() => folder(path, input),
        // A device or a named pipe has no ending to go by.
        "" if path.exists() && is_raw => Ok(OutputPlace::Raw(Some(path.to_owned()))),
        "" if path.exists() => Ok(OutputPlace::Y4m(Some(path.to_owned()))),
        _ if args.raw_out.is_some() => Ok(OutputPlace::Raw(Some(path.to_owned()))),
        _ if Encoding::of_path(path).is_ok() => match input {
            InputPlace::Images(files) if files.len() == 1 => {
                Ok(OutputPlace::Images(ImageNames::Kept(vec![path.to_owned()])))
            }
            _ => Err(Stop::usage(
                "many frames do not go into one image; name a folder with --out, or names as out%04d.png",
            )),
        },
        _ => Err(Stop::usage(format_args!(
            "{} is not written here; write .y4m, .raw, an image's ending or a folder with --out, or - and pipe it into \
             ffmpeg",
            path.display()
        ))),
    }
}

fn folder(path: &Path, input: &InputPlace) -> Result<OutputPlace, Stop> {
    let InputPlace::Images(files) = input else {
        return Ok(OutputPlace::Images(ImageNames::Numbered(Numbered::in_folder(path))));
    };
    let mut names: Vec<PathBuf> = files.iter().map(|file| path.join(kept_name(file))).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(same) => Err(Stop::usage(format_args!(
            "two of the images would both become {}; put them into the folder one after the other",
            same[0].display()
        ))),
        None => {
            let names = files.iter().map(|file| path.join(kept_name(file)));
            Ok(OutputPlace::Images(ImageNames::Kept(names.collect())))
        }
    }
}

/// The same name, with an ending that can be written.
fn kept_name(file: &Path) -> PathBuf {
    let name = PathBuf::from(file.file_name().unwrap_or(file.as_os_str()));
    if Encoding::of_path(&name).is_ok() { name } else { name.with_extension("png") }
}

pub(super) fn there_already(file: &Path) -> String {
    format!("{} is there already; --overwrite replaces it", file.display())
}

fn ending(path: &Path) -> String {
    path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
}

impl OutputPlace {
    /// Refuses to replace files unasked, before anything is worked on. Frames that nobody counted count as one;
    /// the others are looked for as they come.
    pub(super) fn check(&self, frames: Option<u64>, overwrite: bool) -> Ended {
        let there = match self {
            _ if overwrite => None,
            Self::Y4m(path) | Self::Raw(path) => path.as_deref().and_then(draft::would_be_lost),
            Self::Images(names) => {
                let mut files = (0..frames.unwrap_or(1)).map(|number| names.of(number));
                files.find(|file| file.exists()).map(|file| there_already(&file))
            }
        };
        there.map_or(Ok(()), |what| Err(Stop::failed(what)))
    }

    /// Whether frames go to stdout, so that nothing else may.
    pub(super) fn is_stdout(&self) -> bool {
        matches!(self, Self::Y4m(None) | Self::Raw(None))
    }
}

impl ImageNames {
    /// The file of a frame.
    pub(super) fn of(&self, number: u64) -> PathBuf {
        match self {
            Self::Kept(names) => names.get(number as usize).cloned().unwrap_or_default(),
            Self::Numbered(numbered) => numbered.name(number + 1),
        }
    }
}
