//! `plimsoll fragments pull`.

use std::time::{Duration, Instant};

use plimsoll::Bytes;
use plimsoll::fragments::{PullWatch, Pulled, StoredModel};
use serde_json::json;

use super::args::PullArgs;
use super::failed;
use crate::machine_args::MachineArgs;
use crate::output;
use crate::progress::Progress;
use crate::stop::{self, Ended, Stop};

/// How often it looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// `plimsoll fragments pull`.
pub(super) fn run(args: &PullArgs, machine: &MachineArgs) -> Ended {
    if !super::is_url(&args.model) {
        return Err(Stop::usage(format_args!("{} is no http or https address; a file needs no pull", args.model)));
    }
    let orchestrator = super::orchestrator(machine, None)?;
    let begun = Instant::now();
    let model = super::open(&orchestrator, &args.model, &args.store)?;
    if !model.has_server() {
        return Err(Stop::failed(format_args!("{} does not answer", args.model)));
    }
    let pulled = fetched(&model, args.quality, !args.quiet && !args.json)?;
    let seconds = begun.elapsed().as_secs_f64();
    let name = output::clean(&args.model);
    if args.json {
        return output::json(&json!({
            "model": name, "id": model.model().id.to_string(), "fragments": pulled.fragments, "bytes": pulled.bytes,
            "fetched_bytes": pulled.fetched, "quality": args.quality, "seconds": seconds,
        }));
    }
    if args.quiet {
        return Ok(());
    }
    output::line(format_args!(
        "{name}: {}, {} are in the store, {} were fetched",
        output::counted(pulled.fragments, "fragment"),
        Bytes(pulled.bytes),
        Bytes(pulled.fetched)
    ))
}

/// Fetches what a quality needs; Ctrl-C leaves what came.
pub(super) fn fetched(model: &StoredModel, quality: f64, is_shown: bool) -> Result<Pulled, Stop> {
    let watch = PullWatch::default();
    let (sign, stopped, followed) = (stop::on_signal(), watch.clone(), watch.clone());
    let total = model.model().index.fragments_for(quality).iter().map(|fragment| fragment.bytes).sum();
    // Ends with the process; there is nothing to wait for.
    std::thread::spawn(move || {
        while !sign.is_raised() {
            std::thread::sleep(LOOK);
        }
        stopped.stop();
    });
    let progress = Progress::start(is_shown, Some(total), output::clean(&model.model().name), move || followed.there());
    let pulled = model.pull(quality, &watch);
    drop(progress);
    pulled.map_err(|error| failed(&error))
}
