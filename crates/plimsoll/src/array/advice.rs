//! Chunks and shards for an array that must be written in so much memory.
//! Never looks at data: shape, type and memory are all it knows.

use std::sync::Arc;

use plimsoll_arrays::{ArraySpec, Layout};
use plimsoll_core::Bytes;
use plimsoll_runtime::Orchestrator;

use super::plan::ArrayPlan;

/// Bytes of chunks that are tried, best first: large ones pack better and are found faster, small ones are read sooner.
const CHUNK_BYTES: [u64; 5] = [1 << 20, 512 << 10, 256 << 10, 128 << 10, 64 << 10];
/// Bytes of a shard that file systems and object stores are good at.
const SHARD_BYTES: u64 = 256 << 20;

/// The same array with chunks and shards that can be written in this memory; none if nothing that is tried can.
///
/// Chunks are as even along all dimensions but the first as they can be, so that no direction of reading is slow; shards are
/// whole steps of the array if these are not too large.
pub fn advise(orchestrator: &Orchestrator, spec: &ArraySpec, memory: Bytes) -> Option<(ArraySpec, ArrayPlan)> {
    CHUNK_BYTES.into_iter().find_map(|bytes| {
        let chunk = chunk(spec, bytes);
        let advised = ArraySpec { shard: Some(shard(spec, &chunk)), chunk, ..spec.clone() };
        let layout = Arc::new(Layout::new(&advised).ok()?);
        let plan = ArrayPlan::new(orchestrator, &layout);
        (plan.memory() <= memory).then_some((advised, plan))
    })
}

/// A chunk of at most so many bytes: one step, and the longest side halved until it fits; more steps where one is small.
fn chunk(spec: &ArraySpec, bytes: u64) -> Vec<u64> {
    let element = spec.data_type.bytes() as u64;
    let mut chunk: Vec<u64> = spec.shape.iter().map(|size| size.next_power_of_two().max(1)).collect();
    chunk[0] = 1;
    let total = |chunk: &[u64]| chunk.iter().fold(element, |total, size| total.saturating_mul(*size));
    while total(&chunk) > bytes
        && let Some(longest) = chunk.iter_mut().rev().max_by_key(|size| **size).filter(|size| **size > 1)
    {
        *longest /= 2;
    }
    let length = if spec.shape[0] == 0 { u64::MAX } else { spec.shape[0] };
    chunk[0] = (bytes / total(&chunk)).clamp(1, length);
    chunk.iter().zip(&spec.shape).map(|(chunk, size)| if *size == 0 { *chunk } else { *chunk.min(size) }).collect()
}

/// Chunks side by side from the last dimension on, until a shard has enough.
fn shard(spec: &ArraySpec, chunk: &[u64]) -> Vec<u64> {
    let mut shard = chunk.to_vec();
    let mut bytes = chunk.iter().product::<u64>() * spec.data_type.bytes() as u64;
    for at in (0..shard.len()).rev() {
        let chunks = if spec.shape[at] == 0 { u64::MAX } else { spec.shape[at].div_ceil(chunk[at]) };
        let side = chunks.min((SHARD_BYTES / bytes).max(1));
        shard[at] = chunk[at] * side;
        bytes *= side;
    }
    shard
}

#[cfg(test)]
mod tests {
    use plimsoll_arrays::DataType;

    use super::*;

    fn advised(shape: &[u64], memory: u64) -> Option<(Vec<u64>, Option<Vec<u64>>)> {
        let orchestrator = Orchestrator::builder().cpu(2).build();
        let spec = ArraySpec::new(shape.to_vec(), DataType::U16, vec![1; shape.len()]);
        advise(&orchestrator, &spec, Bytes(memory)).map(|(spec, _)| (spec.chunk, spec.shard))
    }

    #[test]
    fn chunks_are_even_and_shards_whole_steps() {
        let shape = [0, 2048, 2304];
        let advice = advised(&shape, 1 << 30).unwrap();
        assert_eq!(advice, (vec![1, 512, 1024], Some(vec![21, 2048, 3072])));
        assert_eq!(advised(&[0, 256, 256, 256], 1 << 30).unwrap().0, [1, 64, 64, 128]);
    }

    #[test]
    fn small_steps_are_put_together() {
        assert_eq!(advised(&[0, 128, 128], 1 << 30).unwrap().0, [32, 128, 128]);
        assert_eq!(advised(&[10], 1 << 30).unwrap().0, [10]);
    }

    #[test]
    fn what_fits_into_no_memory_is_told() {
        assert_eq!(advised(&[0, 65_536, 65_536], 1 << 30), None);
        assert_eq!(advised(&[0, 2048, 2304], 64 << 20), None, "not even the frames fit");
    }
}
