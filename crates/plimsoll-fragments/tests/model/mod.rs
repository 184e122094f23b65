//! A small model to test with.

use std::fs::File;
use std::path::{Path, PathBuf};

use plimsoll_fragments::data_type::Float;
use plimsoll_fragments::pack::{PackSpec, PackWriter, pieces};
use plimsoll_fragments::safetensors::Safetensors;

use crate::weights::{Kind, to_bytes};

/// A safetensors file of these tensors: name, type, shape, bytes.
pub(crate) fn safetensors(tensors: &[(&str, &str, &[usize], Vec<u8>)]) -> Vec<u8> {
    let mut end = 0;
    let entries: Vec<String> = tensors
        .iter()
        .map(|(name, dtype, shape, bytes)| {
            let begin = end;
            end += bytes.len();
            format!("{name:?}:{{\"dtype\":\"{dtype}\",\"shape\":{shape:?},\"data_offsets\":[{begin},{end}]}}")
        })
        .collect();
    let header = format!("{{\"__metadata__\":{{\"format\":\"pt\"}},{}}}", entries.join(","));
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    tensors.iter().for_each(|(.., bytes)| file.extend_from_slice(bytes));
    file
}

/// Some of everything: types that are quantised and not, small and large.
pub(crate) fn small_model() -> Vec<u8> {
    let floats = |kind: Kind, count, seed, float| to_bytes(&kind.weights(count, seed), float);
    safetensors(&[
        ("embed", "BF16", &[256, 300], floats(Kind::Gaussian, 256 * 300, 1, Float::BF16)),
        ("norm", "F32", &[300], floats(Kind::Gaussian, 300, 2, Float::F32)),
        ("ids", "I64", &[3, 2], (0_i64..6).flat_map(i64::to_le_bytes).collect()),
        ("up", "F16", &[300, 200], floats(Kind::HeavyTails, 60_000, 3, Float::F16)),
        ("down", "F32", &[200, 300], floats(Kind::OutlierChannels, 60_000, 4, Float::F32)),
        ("empty", "F32", &[0], Vec::new()),
    ])
}

/// Packs a safetensors file beside itself.
pub(crate) fn packed(folder: &Path, bytes: &[u8]) -> PathBuf {
    let (input, output) = (folder.join("model.safetensors"), folder.join("model.frags"));
    std::fs::write(&input, bytes).unwrap();
    let mut file = File::open(&input).unwrap();
    let (safetensors, spec) = (Safetensors::open(&input, &mut file).unwrap(), PackSpec::default());
    let written = File::options().read(true).write(true).create(true).truncate(true).open(&output).unwrap();
    let mut writer = PackWriter::new(&output, written, &safetensors, &spec);
    for piece in pieces(&safetensors) {
        writer.add(piece.pack(&file, &input, &spec).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    output
}
