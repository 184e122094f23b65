//! One piece of work as a pipeline has it: prepared, kicked with its readback, drained later.
//! Never takes its expectation from the kernel or its twin: a closed form says what comes out.

use std::time::Duration;

use bytemuck::{Pod, Zeroable};
use plimsoll_core::{Bytes, Fault};
use plimsoll_runtime::{Access, Backend, Buffer, Fence, FenceState, Kernel, Launch, Readback};

/// Longer than any piece of this suite takes.
pub(super) const LONG: Duration = Duration::from_secs(600);

/// The generator: `word * FACTOR + STEP`.
const FACTOR: u32 = 1_664_525;
const STEP: u32 = 1_013_904_223;
/// Invocations of a workgroup.
const GROUP: usize = 64;

static STIR: Kernel = Kernel {
    name: "stir",
    wgsl: include_str!("stir.wgsl"),
    entry: "stir",
    bindings: &[Access::Write],
    params: size_of::<Params>(),
    twin: |twin| {
        let rounds = twin.params::<Params>().rounds;
        let words: &mut [u32] = bytemuck::cast_slice_mut(twin.floats_mut(0));
        for word in words {
            *word = (0..rounds).fold(*word, |word, _| word.wrapping_mul(FACTOR).wrapping_add(STEP));
        }
    },
};

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct Params {
    rounds: u32,
    unused: [u32; 3],
}

/// How much work a piece is.
#[derive(Copy, Clone, Debug)]
pub(super) struct Weight {
    pub(super) words: usize,
    pub(super) rounds: u32,
}

impl Weight {
    /// Done at once.
    pub(super) const LIGHT: Self = Self { words: 1000, rounds: 7 };

    /// Mesa's software GPU ends every loop after 65,535 rounds. So few words that two pieces fit into what any device stages
    /// at once: the second is kicked while the first is under way.
    pub(super) fn heavy(rounds: u32) -> Self {
        Self { words: 1 << 14, rounds: rounds.min(65_535) }
    }

    pub(super) fn bytes(self) -> Bytes {
        Bytes(4 * self.words as u64)
    }

    /// Where a piece of this seed starts.
    pub(super) fn input(self, seed: u32) -> Vec<u32> {
        (0..self.words as u32).map(|at| at.wrapping_mul(2_654_435_761) ^ seed).collect()
    }

    /// Where it ends: the step of many rounds is found by doubling.
    pub(super) fn output(self, seed: u32) -> Vec<u32> {
        let (mut factor, mut step) = (1_u32, 0_u32);
        let (mut power, mut power_step, mut left) = (FACTOR, STEP, self.rounds);
        while left > 0 {
            if left & 1 == 1 {
                (factor, step) = (power.wrapping_mul(factor), power.wrapping_mul(step).wrapping_add(power_step));
            }
            (power, power_step) = (power.wrapping_mul(power), power.wrapping_mul(power_step).wrapping_add(power_step));
            left >>= 1;
        }
        self.input(seed).into_iter().map(|word| word.wrapping_mul(factor).wrapping_add(step)).collect()
    }
}

/// A piece that was kicked.
pub(super) struct Piece {
    pub(super) fence: Fence,
    pub(super) readback: Readback,
    pub(super) wanted: Vec<u32>,
}

/// Records a piece up to its last launch; gives its buffer.
pub(super) fn record(slot: &mut dyn Backend, seed: u32, weight: Weight) -> Buffer {
    let buffer = slot.allocate(weight.bytes()).expect("memory");
    slot.write(&buffer, Bytes::ZERO, bytemuck::cast_slice(&weight.input(seed))).expect("a write");
    let params = Params { rounds: weight.rounds, unused: [0; 3] };
    let groups = [weight.words.div_ceil(GROUP) as u32, 1, 1];
    let launch = Launch { kernel: &STIR, buffers: &[&buffer], params: bytemuck::bytes_of(&params), groups };
    slot.launch(&launch).expect("a launch");
    buffer
}

/// Records a piece with its readback, and kicks it. Its buffer is dropped at once: the device keeps what it needs.
pub(super) fn kick(slot: &mut dyn Backend, seed: u32, weight: Weight) -> Piece {
    let buffer = record(slot, seed, weight);
    let readback = slot.stage_read(&buffer, Bytes::ZERO, weight.bytes()).expect("a readback");
    let fence = slot.kick().expect("a kick");
    Piece { fence, readback, wanted: weight.output(seed) }
}

/// Waits for a piece and checks what comes out, on any slot of its device.
pub(super) fn drain(slot: &mut dyn Backend, piece: Piece) {
    assert_eq!(slot.wait(&piece.fence, LONG).expect("a wait"), FenceState::Done);
    assert!(collected(slot, piece.readback).expect("a collection") == piece.wanted, "the piece is right");
}

/// What a readback has brought.
pub(super) fn collected(slot: &mut dyn Backend, readback: Readback) -> Result<Vec<u32>, Fault> {
    let mut words = vec![0_u32; readback.bytes().0 as usize / 4];
    slot.collect(readback, bytemuck::cast_slice_mut(&mut words))?;
    Ok(words)
}
