//! Where frames come from and where they go, as typed: names, not yet opened.
//! Never opens a file; looks only whether a folder is one.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use plimsoll::image::encode::Encoding;

use super::args::Args;
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
    /// Numbers in a folder.
    Numbered(PathBuf),
}

/// How files of raw frames are called.
const RAW_ENDINGS: [&str; 4] = ["raw", "rgb", "yuv", "gray"];
/// How files are called that ffmpeg takes apart.
const VIDEO_ENDINGS: [&str; 9] = ["mkv", "mp4", "m4v", "mov", "webm", "avi", "ts", "mpg", "mxf"];
/// The name of a pipe.
const PIPE: &str = "-";

impl Places {
    pub(super) fn of(args: &Args) -> Result<Self, Stop> {
        let (inputs, output) = ends(args)?;
        let input = input(inputs, args.raw.is_some())?;
        let output = output_place(&output, &input, args)?;
        if output.is_stdout() && io::stdout().is_terminal() {
            return Err(Stop::usage(
                "frames are nothing to read on a terminal; pipe them into a program, or name a file",
            ));
        }
        Ok(Self { input, output })
    }
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
    let is_stream = |path: &Path| is_raw || path == Path::new(PIPE) || ending(path) == "y4m";
    match &files[..] {
        [one] if is_stream(one) => Ok(InputPlace::Stream((one != Path::new(PIPE)).then(|| one.clone()))),
        files if files.iter().any(|path| is_stream(path)) => {
            Err(Stop::usage("one stream at a time, and none beside images; run the command for each"))
        }
        _ => Ok(InputPlace::Images(files)),
    }
}

fn output_place(path: &Path, input: &InputPlace, args: &Args) -> Result<OutputPlace, Stop> {
    let is_folder = path.is_dir() || path.to_string_lossy().ends_with(['/', '\\']);
    match ending(path).as_str() {
        _ if path == Path::new(PIPE) && args.raw.is_some() => Ok(OutputPlace::Raw(None)),
        _ if path == Path::new(PIPE) => Ok(OutputPlace::Y4m(None)),
        _ if is_folder => folder(path, input),
        "y4m" => Ok(OutputPlace::Y4m(Some(path.to_owned()))),
        ending if RAW_ENDINGS.contains(&ending) => Ok(OutputPlace::Raw(Some(path.to_owned()))),
        "" if args.out.is_some() => folder(path, input),
        // A device or a named pipe has no ending to go by.
        "" if path.exists() && args.raw.is_some() => Ok(OutputPlace::Raw(Some(path.to_owned()))),
        "" if path.exists() => Ok(OutputPlace::Y4m(Some(path.to_owned()))),
        _ if Encoding::of_path(path).is_ok() => match input {
            InputPlace::Images(files) if files.len() == 1 => {
                Ok(OutputPlace::Images(ImageNames::Kept(vec![path.to_owned()])))
            }
            _ => Err(Stop::usage("many frames do not go into one image; name a folder with --out")),
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
        return Ok(OutputPlace::Images(ImageNames::Numbered(path.to_owned())));
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
            Self::Y4m(path) | Self::Raw(path) => path.clone().filter(|path| path.is_file()),
            Self::Images(names) => (0..frames.unwrap_or(1)).map(|number| names.of(number)).find(|file| file.exists()),
        };
        match there {
            Some(file) => Err(Stop::failed(there_already(&file))),
            None => Ok(()),
        }
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
            Self::Numbered(folder) => folder.join(format!("{:06}.png", number + 1)),
        }
    }
}
