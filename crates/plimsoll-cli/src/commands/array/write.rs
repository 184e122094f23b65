//! `plimsoll array write`: a stream of frames in, an array out.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::time::Instant;

use plimsoll::Bytes;
use plimsoll::array::{ArrayError, ArrayOptions, ArraySummary, ArrayWatch, Begin, Layout, write_array};
use serde::Serialize;

use super::args::WriteArgs;
use super::bars::Bars;
use crate::machine_args::MachineArgs;
use crate::output::{self, counted};
use crate::progress::Progress;
use crate::stop::{self, Ended, Stop, warn, with_causes};

/// `plimsoll array write`.
pub(super) fn run(args: &WriteArgs, machine: &MachineArgs) -> Ended {
    let layout = Layout::new(&args.array.spec()?).map_err(Stop::usage)?;
    let store = super::place::store(&args.store)?;
    let (input, length) = input(args)?;
    let watch = ArrayWatch::stopped_by(&stop::on_signal());
    let [levels_on, scatter_on, shuffle_on] = args.stages();
    let options = ArrayOptions {
        begin: begin(args),
        levels_on,
        scatter_on,
        shuffle_on,
        watch: watch.clone(),
        ..ArrayOptions::default()
    };
    let wants_gpu = options.wants_gpu(&layout);
    let orchestrator = super::orchestrator(machine, args.jobs, wants_gpu)?;
    let name = output::clean(args.store.display());
    if args.explain {
        let told = options.explain(&orchestrator, &layout).map_err(|error| failed(&name, &error))?;
        told.lines().for_each(output::aside);
    }
    let is_shown = !args.quiet && !args.json;
    let (mut bars, of_bars) = (Bars::new(), watch.clone());
    let detail = move || Some(bars.line(of_bars.progress()));
    let progress = Progress::start_with(is_shown, length, name.clone(), move || watch.progress().taken, detail);
    let begun = Instant::now();
    let done = write_array(&orchestrator, layout, store, input, &options);
    drop(progress);
    if wants_gpu && let Err(error) = orchestrator.save_profile() {
        warn(error);
    }
    let summary = done.map_err(|error| failed(&name, &error))?;
    report(args, &name, &summary, begun.elapsed().as_secs_f64())
}

fn begin(args: &WriteArgs) -> Begin {
    match (args.overwrite, args.resume) {
        (true, _) => Begin::Replace,
        (_, true) => Begin::Resume,
        _ => Begin::New,
    }
}

fn input(args: &WriteArgs) -> Result<(Box<dyn Read + Send>, Option<u64>), Stop> {
    match args.input.as_deref().filter(|path| path.as_os_str() != "-") {
        Some(path) => {
            let opened = File::open(path).and_then(|file| Ok((file.metadata()?, file)));
            let (metadata, file) =
                opened.map_err(|error| Stop::failed(format_args!("{}: {error}", output::clean(path.display()))))?;
            if metadata.is_dir() {
                let what = format!("{} is a folder", output::clean(path.display()));
                return Err(Stop::failed(format_args!("{what}; --input takes a file of elements")));
            }
            Ok((Box::new(file), metadata.is_file().then_some(metadata.len())))
        }
        None if io::stdin().is_terminal() => {
            Err(Stop::usage("the elements come through stdin or --input FILE, and stdin is a terminal"))
        }
        None => Ok((Box::new(io::stdin()), None)),
    }
}

fn failed(name: &str, error: &ArrayError) -> Stop {
    match error {
        ArrayError::Stopped => {
            let left = format!("the whole shards of {name} are there; the same command with --resume goes on");
            Stop::Interrupted { left }
        }
        ArrayError::Exists { .. } => Stop::failed(format_args!("{name}: {error}")).with_next("--resume or --overwrite"),
        ArrayError::NotResumable { .. } => {
            Stop::failed(format_args!("{name}: {error}")).with_next("plimsoll array info, or --overwrite")
        }
        ArrayError::Spec(error) => Stop::usage(error),
        error => Stop::failed(format_args!("{name}: {}", with_causes(error))),
    }
}

#[derive(Serialize)]
struct Line<'a> {
    store: &'a str,
    steps: u64,
    resumed: u64,
    raw_bytes: u64,
    stored_bytes: u64,
    chunks: u64,
    objects: u64,
    seconds: f64,
}

fn report(args: &WriteArgs, name: &str, summary: &ArraySummary, seconds: f64) -> Ended {
    let ArraySummary { steps, resumed, raw, stored, chunks, objects, .. } = *summary;
    if args.json {
        let line = Line { store: name, steps, resumed, raw_bytes: raw, stored_bytes: stored, chunks, objects, seconds };
        return output::json(&line);
    }
    if args.quiet {
        return Ok(());
    }
    let before = if resumed > 0 { format!(" ({resumed} were there)") } else { String::new() };
    let ratio = raw as f64 / stored.max(1) as f64;
    let speed = raw as f64 / seconds.max(1e-9) / f64::from(1 << 30);
    output::line(format_args!(
        "{name}: {}{before}, {} in {} as {}, {ratio:.2} : 1, {speed:.2} GiB/s",
        counted(steps, "step"),
        Bytes(raw),
        counted(objects, "object"),
        Bytes(stored),
    ))
}
