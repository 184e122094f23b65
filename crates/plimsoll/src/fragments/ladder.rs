//! The levels of a set of tensors as rungs of a grant: each rung down, every tensor has at most one level less.
//! Invariant: a lower rung needs fewer bytes, and none goes below the least quality that was asked for.

use plimsoll_core::{Bytes, DeviceId, GrantRung, Priority, Quality};
use plimsoll_fragments::index::{Index, Tensor};
use plimsoll_fragments::work::difference_bytes;
use plimsoll_runtime::GrantRequest;
use std::time::Duration;

/// What is to be held.
#[derive(Clone, Debug)]
#[must_use = "nothing is held before `Holder::hold`"]
pub struct HoldRequest {
    pub(super) device: DeviceId,
    pub(super) tensors: Option<Vec<String>>,
    pub(super) quality: f64,
    pub(super) quality_min: f64,
    pub(super) priority: Priority,
    pub(super) patience: Duration,
}

impl HoldRequest {
    /// All quantised tensors of a model on a device, exact, or as good as there is room for.
    pub fn new(device: DeviceId) -> Self {
        Self {
            device,
            tensors: None,
            quality: 1.0,
            quality_min: 0.0,
            priority: Priority::default(),
            patience: Duration::from_secs(60),
        }
    }

    /// Only these tensors.
    pub fn tensors(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tensors = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Each tensor at the coarsest level that is at least so good; 1 is the very weights, if the model has them. The exact
    /// level takes as much room on a device as the tensor itself, beside the levels before it.
    pub fn quality(mut self, quality: f64) -> Self {
        self.quality = quality;
        self
    }

    /// It never steps down below this; if there is no room for it, it leaves.
    pub fn quality_min(mut self, quality: f64) -> Self {
        self.quality_min = quality;
        self
    }

    /// How urgent it is. Only what is more urgent takes levels away.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// How long it waits for room.
    pub fn patience(mut self, at_most: Duration) -> Self {
        self.patience = at_most;
        self
    }
}

/// Bytes of the first levels of a tensor on a device: the exact level lies there unpacked.
fn on_device(tensor: &Tensor, count: usize) -> u64 {
    let planes = tensor.errors.len().min(count);
    let exact = |piece| tensor.float().map_or(0, |float| difference_bytes(float, tensor.piece_elements(piece)));
    let exact: u64 = (0..tensor.pieces.len()).filter(|_| count > planes).map(exact).sum();
    tensor.bytes_to(planes - 1) + exact
}

/// The rungs of a holder.
#[derive(Clone, Debug)]
pub(super) struct LevelLadder {
    /// The numbers of the tensors.
    pub(super) tensors: Vec<usize>,
    /// For each rung, how many levels of each of them are held.
    rungs: Vec<Vec<usize>>,
    bytes: Vec<Bytes>,
    qualities: Vec<f64>,
}

impl LevelLadder {
    /// Of these tensors; those that are not quantised are not held on devices.
    pub(super) fn new(index: &Index, tensors: Vec<usize>, quality: f64, quality_min: f64) -> Self {
        let counts = |quality: f64| -> Vec<usize> {
            tensors.iter().map(|at| index.tensors[*at].level_for(quality) + 1).collect()
        };
        let (best, least) = (counts(quality), counts(quality_min.min(quality)));
        let down = best.iter().zip(&least).map(|(best, least)| best - least).max().unwrap_or(0);
        let rung = |down: usize| -> Vec<usize> {
            best.iter().zip(&least).map(|(best, least)| best.saturating_sub(down).max(*least)).collect()
        };
        let rungs: Vec<Vec<usize>> = (0..=down).map(rung).collect();
        let each = |counts: &[usize]| {
            tensors.iter().zip(counts).map(|(at, count)| (&index.tensors[*at], *count)).collect::<Vec<_>>()
        };
        let bytes =
            |counts: &Vec<usize>| Bytes(each(counts).iter().map(|(tensor, count)| on_device(tensor, *count)).sum());
        let quality = |counts: &Vec<usize>| {
            each(counts).iter().map(|(tensor, count)| Tensor::quality(tensor, count - 1)).fold(1.0, f64::min)
        };
        Self {
            bytes: rungs.iter().map(bytes).collect(),
            qualities: rungs.iter().map(quality).collect(),
            rungs,
            tensors,
        }
    }

    /// Levels of each tensor on a rung.
    pub(super) fn counts(&self, rung: usize) -> &[usize] {
        &self.rungs[rung.min(self.rungs.len() - 1)]
    }

    pub(super) fn bytes(&self, rung: usize) -> Bytes {
        self.bytes[rung.min(self.bytes.len() - 1)]
    }

    pub(super) fn request(&self, wanted: &HoldRequest) -> GrantRequest {
        let rung = |at: usize| {
            GrantRung::new(&[(wanted.device, self.bytes[at])]).with_quality(Quality::new(self.qualities[at] as f32))
        };
        let first = GrantRequest::new(&[(wanted.device, self.bytes[0])]);
        let all = (1..self.bytes.len()).fold(first, |request, at| request.or_rung(rung(at)));
        all.priority(wanted.priority).patience(wanted.patience).may_rise()
    }
}
