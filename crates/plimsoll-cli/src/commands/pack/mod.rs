//! `plimsoll pack` and `plimsoll unpack`: files in standard formats, over every device. Reads like a table of contents.
//! Never compresses anything itself.
//!
//! | file | what it owns |
//! |---|---|
//! | `args.rs` | what can be typed |
//! | `places.rs` | where each file comes from and goes to |
//! | `target.rs` | an output that appears under its name when it is whole |
//! | `crew.rs` | the devices that the work needs, and no more |
//! | `report.rs` | figures at the end |
//! | `telemetry.rs` | where the slots' time went |

mod args;
mod crew;
mod places;
mod report;
mod target;
mod telemetry;

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use plimsoll::StopSign;
use plimsoll::pack::{Draft, PackError, PackWatch, Recipe, UnpackError, UnpackOptions};

use self::args::Common;
pub(crate) use self::args::{PackArgs, UnpackArgs};
use self::crew::Crew;
use self::places::{Place, Source};
use self::report::Report;
use self::target::Target;
use crate::machine_args::MachineArgs;
use crate::progress::Progress;
use crate::stop::{self, Ended, Stop, with_causes};

/// `plimsoll pack`.
pub(crate) fn pack(args: &PackArgs, machine: &MachineArgs) -> Ended {
    if args.test {
        return each(&args.common, |place| test(place, &args.common, machine, None));
    }
    let options = args.options()?;
    let sign = on_signal(&args.common, |place| crew::is_soon_packed(place.length()))?;
    each(&args.common, |place| {
        let source = place.source()?;
        let recipe = options.recipe(source.length()).map_err(Stop::usage)?;
        let output = place.packed_name(&args.common, recipe.format)?;
        let target = Target::create(output.as_deref(), &args.common, true)?;
        let crew = Crew::for_packing(args, machine, &recipe, source.length())?;
        pack_one(place, source, target, &recipe, &crew, args, &sign)?;
        crew.finish()
    })
}

fn pack_one(
    place: &Place,
    source: Source,
    mut target: Target,
    recipe: &Recipe,
    crew: &Crew,
    args: &PackArgs,
    sign: &StopSign,
) -> Ended {
    let watch = PackWatch::stopped_by(sign);
    let progress = follow(&args.common, &watch, source.length(), place);
    let (begun, metadata) = (Instant::now(), source.metadata());
    let done = crew.pack(source.into_file(), &mut target, recipe, &watch);
    drop(progress);
    let summary = done.map_err(|error| failed(place, error))?;
    if args.index {
        target.write_beside(".gzi", summary.index.as_deref().unwrap_or_default())?;
    }
    let shown = Report::packing(place, target.name(), recipe, &summary, begun.elapsed(), crew);
    end(place, target, metadata, &args.common)?;
    shown.print(&args.common)
}

/// `plimsoll unpack`.
pub(crate) fn unpack(args: &UnpackArgs, machine: &MachineArgs) -> Ended {
    if args.test {
        return each(&args.common, |place| test(place, &args.common, machine, args.limit));
    }
    let into_draft = |output: Option<&Path>| args.range.is_none() && target::is_drafted(output);
    let is_soon_unpacked = |place: &Place| {
        let output = place.unpacked_name(&args.common).ok().flatten();
        place.source().is_ok_and(|source| crew::is_soon_unpacked(&source, into_draft(output.as_deref())))
    };
    let sign = on_signal(&args.common, is_soon_unpacked)?;
    each(&args.common, |place| {
        let source = place.source()?;
        let output = place.unpacked_name(&args.common)?;
        let into_draft = into_draft(output.as_deref());
        let target = Target::create(output.as_deref(), &args.common, false)?;
        let crew = Crew::for_unpacking(&args.common, machine, &source, into_draft)?;
        unpack_one(place, source, target, &crew, args, &sign)?;
        crew.finish()
    })
}

fn unpack_one(
    place: &Place,
    source: Source,
    mut target: Target,
    crew: &Crew,
    args: &UnpackArgs,
    sign: &StopSign,
) -> Ended {
    let watch = PackWatch::stopped_by(sign);
    let progress = follow(&args.common, &watch, None, place);
    let (begun, metadata) = (Instant::now(), source.metadata());
    let (options, draft) = (UnpackOptions { limit: args.limit }, target.draft());
    let range = args.range.as_ref().map(|range| &range.0);
    let done = crew.unpack(source.into_file(), &mut target, draft, range, &options, &watch);
    drop(progress);
    let summary = done.map_err(|error| failed(place, error))?;
    let shown = Report::unpacking(place, target.name(), &summary, begun.elapsed(), crew);
    end(place, target, metadata, &args.common)?;
    shown.print(&args.common)
}

/// Ctrl-C ends it in order. What is over in a moment needs no thread for that.
fn on_signal(common: &Common, is_soon_done: impl Fn(&Place) -> bool) -> Result<StopSign, Stop> {
    Ok(if Place::all(common)?.iter().all(is_soon_done) { stop::on_signal_in_a_moment() } else { stop::on_signal() })
}

/// Where it does not matter what is written.
struct Nowhere;

impl Draft for Nowhere {
    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Ok(())
    }
}

/// Unpacks a file to nowhere: is it whole and right?
fn test(place: &Place, common: &Common, machine: &MachineArgs, limit: Option<plimsoll::Bytes>) -> Ended {
    let source = place.source()?;
    let crew = Crew::for_unpacking(common, machine, &source, true)?;
    let watch = PackWatch::default();
    let progress = follow(common, &watch, None, place);
    let begun = Instant::now();
    let (options, nowhere) = (UnpackOptions { limit }, Arc::new(Nowhere));
    let done = crew.unpack(source.into_file(), &mut io::sink(), Some(nowhere), None, &options, &watch);
    drop(progress);
    let summary = done.map_err(|error| failed(place, error))?;
    Report::unpacking(place, None, &summary, begun.elapsed(), &crew).print(common)?;
    crew.finish()
}

fn follow(common: &Common, watch: &PackWatch, total: Option<u64>, place: &Place) -> Progress {
    let watch = watch.clone();
    Progress::start(!common.quiet && !common.json, total, place.name(), move || watch.done().0)
}

/// The output gets its name, and the input goes if that was asked for.
fn end(place: &Place, target: Target, metadata: Option<std::fs::Metadata>, common: &Common) -> Ended {
    let has_name = target.name().is_some();
    target.finish(metadata.as_ref())?;
    if common.rm && !common.keep && has_name {
        place.remove()?;
    }
    Ok(())
}

/// Does something to each file. One that fails does not keep the others back, and the exit code tells.
fn each(common: &Common, mut work: impl FnMut(&Place) -> Ended) -> Ended {
    let places = Place::all(common)?;
    let [only] = &places[..] else {
        let mut failures = 0;
        for place in &places {
            match work(place) {
                Ok(()) => {}
                Err(Stop::Failed { what, .. }) => {
                    crate::output::error_line(what);
                    failures += 1;
                }
                Err(stop) => return Err(stop),
            }
        }
        return match failures {
            0 => Ok(()),
            failures => Err(Stop::failed(format_args!("{failures} of {} files failed", places.len()))),
        };
    };
    work(only)
}

fn failed(place: &Place, error: PackError) -> Stop {
    match error {
        PackError::Output(reason) if reason.kind() == io::ErrorKind::BrokenPipe => Stop::ReaderLeft,
        PackError::Output(reason) => {
            Stop::failed(format_args!("the output cannot be written: {reason}; make room, or send it elsewhere"))
        }
        PackError::Stopped => {
            Stop::Interrupted { left: format!("{} was not finished, and nothing is left of it", place.name()) }
        }
        error => match error.damage() {
            Some(damage @ UnpackError::OverLimit { .. }) => {
                Stop::failed(format_args!("{}: {damage}", place.name())).with_next("a higher --limit")
            }
            Some(damage) => Stop::failed(format_args!("{}: {damage}", place.name())),
            None => Stop::failed(format_args!("{}: {}", place.name(), with_causes(&error))),
        },
    }
}

/// Stdin as a file, so that nothing is buffered twice.
#[cfg(unix)]
fn stdin() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

#[cfg(windows)]
fn stdin() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(File::from(io::stdin().as_handle().try_clone_to_owned()?))
}

/// Stdout without the buffer that looks for lines.
#[cfg(unix)]
fn stdout() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

#[cfg(windows)]
fn stdout() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(File::from(io::stdout().as_handle().try_clone_to_owned()?))
}
