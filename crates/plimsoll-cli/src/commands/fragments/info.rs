//! `plimsoll fragments info`: bytes and measured errors of levels.

use comfy_table::CellAlignment::{Left, Right};
use plimsoll::Bytes;
use plimsoll::fragments::{Index, Tensor};
use serde_json::json;

use super::args::InfoArgs;
use crate::machine_args::MachineArgs;
use crate::output;
use crate::stop::Ended;

/// One level of all quantised tensors together.
struct LevelFacts {
    name: String,
    /// Up to this level.
    bytes: u64,
    bits_a_weight: f64,
    error_mean: f64,
    error_worst: f64,
}

fn weights(tensor: &Tensor) -> u64 {
    tensor.info.bytes / tensor.info.data_type.bytes()
}

fn quantised(index: &Index) -> Vec<&Tensor> {
    index.tensors.iter().filter(|tensor| tensor.float().is_some()).collect()
}

fn levels(index: &Index) -> Vec<LevelFacts> {
    let tensors = quantised(index);
    let all: u64 = tensors.iter().map(|tensor| weights(tensor)).sum();
    let count = tensors.iter().map(|tensor| tensor.levels()).max().unwrap_or(0);
    let facts = |level: usize| {
        let bytes: u64 = tensors.iter().map(|tensor| tensor.bytes_to(level)).sum();
        let errors: f64 = tensors.iter().map(|tensor| tensor.error(level) * weights(tensor) as f64).sum();
        LevelFacts {
            name: index.bits.as_slice().get(level).map_or_else(|| "exact".to_owned(), |bits| format!("{bits} bits")),
            bytes,
            bits_a_weight: bytes as f64 * 8.0 / all.max(1) as f64,
            error_mean: errors / all.max(1) as f64,
            error_worst: tensors.iter().map(|tensor| tensor.error(level)).fold(0.0, f64::max),
        }
    };
    (0..count).map(facts).collect()
}

/// `plimsoll fragments info`.
pub(super) fn run(args: &InfoArgs, machine: &MachineArgs) -> Ended {
    let orchestrator = super::orchestrator(machine, None)?;
    let model = super::open(&orchestrator, &args.model, &args.store)?;
    let (model, index) = (model.model(), &model.model().index);
    if args.json {
        return output::json(&as_json(args, index, &model.id.to_string()));
    }
    let kept: u64 =
        index.tensors.iter().filter(|tensor| tensor.float().is_none()).map(|tensor| tensor.bytes_to(0)).sum();
    output::line(format_args!(
        "{}: {}, {} as safetensors; {} of small tensors and whole numbers are kept as they are",
        output::clean(&model.name),
        output::counted(index.tensors.len() as u64, "tensor"),
        Bytes(index.file_bytes()),
        Bytes(kept)
    ))?;
    let mut table = output::table(&[
        ("LEVEL", Left),
        ("BYTES", Right),
        ("BITS A WEIGHT", Right),
        ("ERROR", Right),
        ("WORST", Right),
        ("QUALITY", Right),
    ]);
    for level in levels(index) {
        table.add_row([
            level.name,
            Bytes(level.bytes).to_string(),
            format!("{:.2}", level.bits_a_weight),
            format!("{:.3} %", 100.0 * level.error_mean),
            format!("{:.3} %", 100.0 * level.error_worst),
            format!("{:.4}", 1.0 - level.error_worst),
        ]);
    }
    output::print_table(&table)?;
    if args.tensors { print_tensors(index) } else { Ok(()) }
}

fn print_tensors(index: &Index) -> Ended {
    let mut table =
        output::table(&[("TENSOR", Left), ("TYPE", Left), ("SHAPE", Left), ("BYTES", Right), ("ERRORS", Left)]);
    for tensor in &index.tensors {
        let shape: Vec<String> = tensor.info.shape.iter().map(u64::to_string).collect();
        let errors: Vec<String> = tensor.errors.iter().map(|error| format!("{:.2} %", 100.0 * error)).collect();
        table.add_row([
            output::clean(&tensor.info.name),
            format!("{:?}", tensor.info.data_type),
            shape.join(" × "),
            Bytes(tensor.info.bytes).to_string(),
            if errors.is_empty() { "kept as it is".to_owned() } else { errors.join(", ") },
        ]);
    }
    output::print_table(&table)
}

fn as_json(args: &InfoArgs, index: &Index, id: &str) -> serde_json::Value {
    let level = |level: &LevelFacts| {
        json!({
            "level": level.name, "bytes": level.bytes, "bits_a_weight": level.bits_a_weight,
            "error": level.error_mean, "error_worst": level.error_worst,
        })
    };
    let tensor = |tensor: &Tensor| {
        json!({
            "name": tensor.info.name, "dtype": format!("{:?}", tensor.info.data_type), "shape": tensor.info.shape,
            "bytes": tensor.info.bytes, "errors": tensor.errors,
        })
    };
    let tensors: Option<Vec<_>> = args.tensors.then(|| index.tensors.iter().map(tensor).collect());
    json!({
        "id": id, "bits": index.bits.as_slice(), "exact": index.exact, "tensor_count": index.tensors.len(),
        "raw_bytes": index.file_bytes(), "levels": levels(index).iter().map(level).collect::<Vec<_>>(), "tensors": tensors,
    })
}
