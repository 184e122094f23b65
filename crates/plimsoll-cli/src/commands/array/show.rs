//! `plimsoll array info`, `verify` and `plan`: nothing is written.

use std::sync::Arc;

use comfy_table::CellAlignment::{Left, Right};
use plimsoll::array::read::{Store, VerifyOptions};
use plimsoll::array::{ArrayPlan, ArraySpec, Layout, advise, verify_store};
use plimsoll::{Bytes, Orchestrator};
use serde_json::json;

use super::args::{PlanArgs, StoreArgs};
use crate::machine_args::MachineArgs;
use crate::output::{self, counted};
use crate::stop::{Ended, Stop, with_causes};

fn open(args: &StoreArgs) -> Result<Store, Stop> {
    Store::open(super::place::store(&args.store)?).map_err(|error| failed(args, &error))
}

fn failed(args: &StoreArgs, error: &dyn std::error::Error) -> Stop {
    Stop::failed(format_args!("{}: {}", output::clean(args.store.display()), with_causes(error)))
}

fn shape(sizes: &[u64]) -> String {
    sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(" × ")
}

/// `plimsoll array info`.
pub(super) fn info(args: &StoreArgs) -> Ended {
    let info = open(args)?.info().map_err(|error| failed(args, &error))?;
    if args.json {
        let levels: Vec<_> = info
            .levels
            .iter()
            .map(|level| {
                json!({
                    "path": level.path, "shape": level.grid.shape, "chunk": level.grid.chunk, "shard": level.grid.shard,
                    "chunks": level.chunks, "stored_chunks": level.stored_chunks, "objects": level.objects,
                    "bytes": level.stored_bytes, "ratio": level.ratio(),
                })
            })
            .collect();
        return output::json(&json!({
            "data_type": info.data_type.zarr_name(), "codec": info.codec.to_string(), "levels": levels,
            "bytes": info.levels.iter().map(|level| level.stored_bytes).sum::<u64>(), "attributes": info.attributes,
        }));
    }
    output::line(format_args!("{} elements, packed by {}", info.data_type.zarr_name(), info.codec))?;
    let mut table = output::table(&[
        ("LEVEL", Left),
        ("SHAPE", Left),
        ("CHUNK", Left),
        ("SHARD", Left),
        ("STORED", Right),
        ("BYTES", Right),
        ("RATIO", Right),
    ]);
    for level in &info.levels {
        let path = if level.path.is_empty() { "." } else { &level.path };
        table.add_row([
            path.to_owned(),
            shape(&level.grid.shape),
            shape(&level.grid.chunk),
            level.grid.shard.as_deref().map_or_else(|| "-".to_owned(), shape),
            format!("{} of {}", level.stored_chunks, level.chunks),
            Bytes(level.stored_bytes).to_string(),
            level.ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")),
        ]);
    }
    output::print_table(&table)
}

/// `plimsoll array verify`.
pub(super) fn verify(args: &StoreArgs, machine: &MachineArgs) -> Ended {
    let (store, orchestrator) = (Arc::new(open(args)?), super::orchestrator(machine, None, false)?);
    let found = verify_store(&orchestrator, &store, &VerifyOptions::default()).map_err(|error| failed(args, &error))?;
    let name = output::clean(args.store.display());
    if args.json {
        let faults: Vec<_> = found.faults.iter().map(ToString::to_string).collect();
        output::json(&json!({ "store": name, "objects": found.objects, "chunks": found.chunks, "faults": faults,
            "behind_end": found.behind_end, "is_unfinished": found.is_unfinished }))?;
    } else {
        for fault in &found.faults {
            output::line(output::clean(fault))?;
        }
    }
    if found.behind_end > 0 || found.is_unfinished {
        output::aside(format_args!(
            "{name}: a run was cut short, with {} behind the published end; `plimsoll array write --resume` goes on",
            counted(found.behind_end, "object")
        ));
    }
    match found.is_sound() {
        true if args.json => Ok(()),
        true => {
            let (chunks, objects) = (counted(found.chunks, "chunk"), counted(found.objects, "object"));
            output::line(format_args!("{name}: {chunks} in {objects}, all sound"))
        }
        false => Err(Stop::failed(format_args!("{name}: {}", counted(found.fault_count, "fault")))),
    }
}

/// `plimsoll array plan`.
pub(super) fn plan(args: &PlanArgs, machine: &MachineArgs) -> Ended {
    let orchestrator = super::orchestrator(machine, args.jobs, false)?;
    let budget = args.memory.unwrap_or_else(|| half_of_free(&orchestrator));
    let Some(chunk) = &args.array.chunk else {
        return advice(args, &orchestrator, budget);
    };
    let layout = Layout::new(&ArraySpec { chunk: chunk.clone(), ..args.array.spec_without_chunk()? });
    let layout = Arc::new(layout.map_err(Stop::usage)?);
    let plan = ArrayPlan::new(&orchestrator, &layout);
    print_plan(args, &plan, None)?;
    if args.memory.is_none() || plan.memory() <= budget {
        return Ok(());
    }
    let takes = format!("this takes {}, more than {budget}", plan.memory());
    match advise(&orchestrator, &args.array.spec_without_chunk()?, budget) {
        Some((spec, _)) => Err(Stop::failed(takes).with_next(options(&spec))),
        None => Err(Stop::failed(format_args!("{takes}; fewer --jobs or levels, or smaller steps, take less"))),
    }
}

fn half_of_free(orchestrator: &Orchestrator) -> Bytes {
    let lines = orchestrator.reports();
    Bytes(lines.iter().map(|report| report.line.0).max().unwrap_or(0) / 2)
}

fn advice(args: &PlanArgs, orchestrator: &Orchestrator, budget: Bytes) -> Ended {
    match advise(orchestrator, &args.array.spec_without_chunk()?, budget) {
        Some((spec, plan)) => print_plan(args, &plan, Some(&spec)),
        None => Err(Stop::failed(format_args!(
            "no chunks of such an array can be written in {budget}; fewer --jobs or levels, or smaller steps, take less"
        ))),
    }
}

/// Chunks and shards as they are typed.
fn options(spec: &ArraySpec) -> String {
    let list = |sizes: &[u64]| sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
    format!("--chunk {} --shard {}", list(&spec.chunk), list(spec.shard.as_deref().unwrap_or_default()))
}

fn print_plan(args: &PlanArgs, plan: &ArrayPlan, advised: Option<&ArraySpec>) -> Ended {
    if args.json {
        return output::json(&json!({
            "memory": plan.memory().0, "slab_steps": plan.slab_steps, "slab": plan.slab.0, "slabs": plan.slabs.0,
            "chunks": plan.chunks.0, "codecs": plan.codecs.0,
            "chunk": advised.map(|spec| &spec.chunk), "shard": advised.map(|spec| &spec.shard),
        }));
    }
    if let Some(spec) = advised {
        output::line(options(spec))?;
    }
    let steps = counted(plan.slab_steps, "step");
    let slabs = format!("{} slabs of {steps}, {} each, and their levels", plan.slab_count, plan.slab);
    let mut table = output::table(&[("FOR", Left), ("BYTES", Right)]);
    for (what, bytes) in [
        (slabs.as_str(), plan.slabs),
        ("chunks being packed, or waiting for the store", plan.chunks),
        ("codecs", plan.codecs),
        ("together", plan.memory()),
    ] {
        table.add_row([what.to_owned(), bytes.to_string()]);
    }
    output::print_table(&table)
}
