//! `plimsoll array info`, `verify` and `plan`: nothing is written.

use std::sync::Arc;

use comfy_table::CellAlignment::{Left, Right};
use plimsoll::Bytes;
use plimsoll::array::read::{Store, VerifyOptions};
use plimsoll::array::{ArrayPlan, Layout, verify_store};
use serde_json::json;

use super::args::{PlanArgs, StoreArgs};
use crate::machine_args::MachineArgs;
use crate::output;
use crate::stop::{Ended, Stop, with_causes};

fn open(args: &StoreArgs) -> Result<Store, Stop> {
    Store::open(super::store(&args.store)).map_err(|error| failed(args, &error))
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
    let (store, orchestrator) = (Arc::new(open(args)?), super::orchestrator(machine, None)?);
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
            "{name}: a run was cut short, {} objects lie behind the published end; `plimsoll array write --resume` goes on",
            found.behind_end
        ));
    }
    match found.is_sound() {
        true if args.json => Ok(()),
        true => output::line(format_args!("{name}: {} chunks in {} objects, all sound", found.chunks, found.objects)),
        false => Err(Stop::failed(format_args!("{name}: {} faults", found.fault_count))),
    }
}

/// `plimsoll array plan`.
pub(super) fn plan(args: &PlanArgs, machine: &MachineArgs) -> Ended {
    let layout = Arc::new(Layout::new(&args.array.spec()?).map_err(Stop::usage)?);
    let orchestrator = super::orchestrator(machine, args.jobs)?;
    let plan = ArrayPlan::new(&orchestrator, &layout);
    if args.json {
        output::json(&json!({
            "memory": plan.memory().0, "slab_steps": plan.slab_steps, "slab": plan.slab.0, "slabs": plan.slabs.0,
            "chunks": plan.chunks.0, "codecs": plan.codecs.0, "levels": layout.levels().len(),
        }))?;
    } else {
        let mut table = output::table(&[("FOR", Left), ("BYTES", Right)]);
        table.add_row([
            format!("slabs of {} steps, {} each, of all levels", plan.slab_steps, plan.slab),
            plan.slabs.to_string(),
        ]);
        table.add_row(["chunks being packed, or waiting for the store".to_owned(), plan.chunks.to_string()]);
        table.add_row(["codecs".to_owned(), plan.codecs.to_string()]);
        table.add_row(["together".to_owned(), plan.memory().to_string()]);
        output::print_table(&table)?;
    }
    match args.memory {
        Some(budget) if plan.memory() > budget => Err(Stop::failed(format_args!(
            "this takes {}, more than {budget}; fewer --jobs, chunks with fewer steps, or fewer levels take less",
            plan.memory()
        ))),
        _ => Ok(()),
    }
}
