//! A small kernel whose answer is known without running it: the kernel loops, the expectation is a closed form.
//! Never takes the expectation from the twin, which could be wrong in the same way.
//! Invariant: every word of the answer depends on the nonce, so what an earlier check left behind cannot pass.

use bytemuck::{Pod, Zeroable};
use plimsoll_core::{Bytes, Fault};

use crate::backend::{Backend, Launch};
use crate::kernel::{Access, Kernel, Twin};

/// Invocations of a launch.
const LANES: usize = 256;
/// Invocations of a workgroup, which mirrors its whole numbers through shared memory.
const GROUP: usize = 64;
/// Halvings of the fraction: with factors up to 1000 everything stays exact in 24 bits.
const HALVINGS: u32 = 12;

/// The kernel.
pub static KERNEL: Kernel = Kernel {
    name: "known_answer",
    wgsl: include_str!("known_answer.wgsl"),
    entry: "known_answer",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<Params>(),
    twin: known_answer,
};

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct Params {
    nonce: u32,
    unused: [u32; 3],
}

/// Bytes that [`run`] holds at most, exactly.
pub const BYTES: Bytes = Bytes(4 * 3 * LANES as u64);

/// Runs the kernel and gives back what the device answered.
///
/// # Errors
/// Whatever the backend reports.
pub fn run(backend: &mut dyn Backend, nonce: u32) -> Result<Vec<u32>, Fault> {
    let steps: Vec<u32> = (0..LANES).map(steps_of).collect();
    let input = backend.allocate(Bytes(4 * LANES as u64))?;
    let output = backend.allocate(Bytes(8 * LANES as u64))?;
    backend.write(&input, Bytes::ZERO, bytemuck::cast_slice(&steps))?;
    backend.launch(&Launch {
        kernel: &KERNEL,
        buffers: &[&input, &output],
        params: bytemuck::bytes_of(&Params { nonce, unused: [0; 3] }),
        groups: [(LANES / GROUP) as u32, 1, 1],
    })?;
    let mut answer = vec![0; 2 * LANES];
    backend.read(&output, Bytes::ZERO, bytemuck::cast_slice_mut(&mut answer))?;
    Ok(answer)
}

/// How many steps a lane takes: 1 to 101, neighbours far apart.
fn steps_of(lane: usize) -> u32 {
    1 + (lane as u32 * 7) % 101
}

/// What a right device answers: `n(n+1)(2n+1)/6` for the squares up to n, `f - f/2^n` for f times the halves up to n.
pub fn expected(nonce: u32) -> Vec<u32> {
    let squares = (0..LANES).map(|lane| {
        let mirrored = lane / GROUP * GROUP + (GROUP - 1 - lane % GROUP);
        let n = steps_of(mirrored);
        n * (n + 1) * (2 * n + 1) / 6
    });
    let factor = (1 + nonce % 1000) as f32;
    let halves = (0..LANES).map(|lane| {
        let n = steps_of(lane).min(HALVINGS);
        (factor - factor / (1_u32 << n) as f32).to_bits()
    });
    squares.chain(halves).map(|word| word ^ nonce).collect()
}

fn known_answer(twin: &mut Twin<'_>) {
    let nonce = twin.params::<Params>().nonce;
    let (steps, answers) = twin.words_from_to(0, 1);
    let (squares, fractions) = answers.split_at_mut(LANES);
    for (steps, squares) in steps.chunks_exact(GROUP).zip(squares.chunks_exact_mut(GROUP)) {
        for (count, answer) in steps.iter().rev().zip(squares) {
            *answer = (1..=*count).map(|k| k * k).sum::<u32>() ^ nonce;
        }
    }
    for (count, answer) in steps.iter().zip(fractions) {
        let (_, halves) =
            (1..=HALVINGS.min(*count)).fold((1.0_f32, 0.0), |(half, sum), _| (half * 0.5, sum + half * 0.5));
        *answer = (halves * (1 + nonce % 1000) as f32).to_bits() ^ nonce;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_words_are_known_by_heart() {
        let answer = expected(0);
        assert_eq!(answer.len(), 512);
        // Lane 0 gets lane 63's 38 steps: 1 + 4 + … + 1444.
        assert_eq!(answer[0], 19_019);
        // Lane 63 gets lane 0's single step.
        assert_eq!(answer[63], 1);
        // One half; and 12 halvings, 4095/4096.
        assert_eq!(answer[256], 0x3f00_0000);
        assert_eq!(answer[258], 0x3f7f_f000);
        assert_eq!(expected(0xdead_beef)[63], 0xdead_beee);
    }
}
