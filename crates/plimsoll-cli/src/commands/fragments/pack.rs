//! `plimsoll fragments pack` and `restore`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use plimsoll::Bytes;
use plimsoll::fragments::{Fragments, FragmentsWatch, PackSpec, pack_file, restore_file};
use serde_json::json;

use super::args::{PackArgs, RestoreArgs};
use super::failed;
use crate::machine_args::MachineArgs;
use crate::output;
use crate::progress::Progress;
use crate::stop::{self, Ended};

fn speed(bytes: u64, seconds: f64) -> f64 {
    bytes as f64 / seconds.max(1e-9) / f64::from(1 << 30)
}

/// `plimsoll fragments pack`.
pub(super) fn pack(args: &PackArgs, machine: &MachineArgs) -> Ended {
    let output: PathBuf = args.output.clone().unwrap_or_else(|| args.model.with_extension("frags"));
    let orchestrator = super::orchestrator(machine, args.common.jobs)?;
    let spec = PackSpec { bits: args.levels.clone(), exact: !args.no_exact };
    let watch = FragmentsWatch::stopped_by(&stop::on_signal());
    let (followed, is_shown) = (watch.clone(), !args.common.quiet && !args.common.json);
    let name = output::clean(output.display());
    let length = std::fs::metadata(&args.model).ok().map(|metadata| metadata.len());
    let progress = Progress::start(is_shown, length, name.clone(), move || followed.done());
    let begun = Instant::now();
    let done = pack_file(&orchestrator, &args.model, &output, &spec, args.common.force, &watch);
    drop(progress);
    let summary = done.map_err(|error| failed(&error))?;
    let seconds = begun.elapsed().as_secs_f64();
    let tensors = summary.index.tensors.len();
    if args.common.json {
        return output::json(&json!({
            "file": name, "tensors": tensors, "raw_bytes": summary.raw, "bytes": summary.packed, "seconds": seconds,
            "levels": args.levels.as_slice(), "exact": spec.exact,
        }));
    }
    if args.common.quiet {
        return Ok(());
    }
    output::line(format_args!(
        "{name}: {}, {} as {}, {:.2} GiB/s",
        output::counted(tensors as u64, "tensor"),
        Bytes(summary.raw),
        Bytes(summary.packed),
        speed(summary.raw, seconds)
    ))
}

/// `plimsoll fragments restore`.
pub(super) fn restore(args: &RestoreArgs, machine: &MachineArgs) -> Ended {
    let orchestrator = super::orchestrator(machine, args.common.jobs)?;
    let model = super::open(&orchestrator, &args.model, &args.store)?;
    let index = model.model().index.clone();
    if model.has_server() {
        super::pull::fetched(&model, args.quality, !args.common.quiet && !args.common.json)?;
    }
    let watch = FragmentsWatch::stopped_by(&stop::on_signal());
    let (followed, is_shown) = (watch.clone(), !args.common.quiet && !args.common.json);
    let name = output::clean(args.output.display());
    let progress = Progress::start(is_shown, Some(index.file_bytes()), name.clone(), move || followed.done());
    let begun = Instant::now();
    let from: Arc<dyn Fragments> = Arc::new(model);
    let done = restore_file(&orchestrator, &from, &index, &args.output, args.quality, args.common.force, &watch);
    drop(progress);
    let summary = done.map_err(|error| failed(&error))?;
    let seconds = begun.elapsed().as_secs_f64();
    if args.common.json {
        return output::json(&json!({
            "file": name, "bytes": summary.bytes, "exact": summary.is_exact, "quality": args.quality, "seconds": seconds,
        }));
    }
    if args.common.quiet {
        return Ok(());
    }
    let how = if summary.is_exact {
        "the very bytes".to_owned()
    } else {
        format!("at a quality of at least {}", args.quality)
    };
    output::line(format_args!("{name}: {}, {how}, {:.2} GiB/s", Bytes(summary.bytes), speed(summary.bytes, seconds)))
}
