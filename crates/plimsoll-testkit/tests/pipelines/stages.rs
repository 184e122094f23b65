//! Three stages that leave their values on the device: words up, words mixed, words down. Exact on every device.

use plimsoll_core::{Bytes, DeviceKind, Fault, Footprint, Ladder, Place, Rung};
use plimsoll_runtime::{Access, Backend, Buffer, Context, Kernel, Launch, Session, Twin, Value, Workload};

/// Words of a workgroup.
const GROUP: usize = 64;

static MIX: Kernel = Kernel {
    name: "mix",
    wgsl: "struct Params { add: u32, a: u32, b: u32, c: u32 }
        @group(0) @binding(0) var<storage, read> source: array<u32>;
        @group(0) @binding(1) var<storage, read_write> target_words: array<u32>;
        @group(0) @binding(2) var<uniform> params: Params;
        @compute @workgroup_size(64)
        fn mix_words(@builtin(global_invocation_id) id: vec3<u32>) {
            if id.x < arrayLength(&source) { target_words[id.x] = (source[id.x] * 1664525u) ^ (params.add + id.x); }
        }",
    entry: "mix_words",
    bindings: &[Access::Read, Access::Write],
    params: 16,
    twin: |twin: &mut Twin<'_>| {
        let [add, ..] = twin.params::<[u32; 4]>();
        let (from, to) = twin.words_from_to(0, 1);
        for (at, (from, to)) in (0..).zip(from.iter().zip(to)) {
            *to = from.wrapping_mul(1_664_525) ^ add.wrapping_add(at);
        }
    },
};

/// What all three stages make of some words, worked out without a device.
pub(crate) fn expected(words: &[u32]) -> Vec<u32> {
    let mix = |word: u32, at: u32, add: u32| word.wrapping_mul(1_664_525) ^ add.wrapping_add(at);
    (0..).zip(words).map(|(at, &word)| (1..=3).fold(word, |word, add| mix(word, at, add))).collect()
}

fn mixed(backend: &mut dyn Backend, from: &Buffer, add: u32) -> Result<Buffer, Fault> {
    let to = backend.allocate(from.bytes())?;
    let groups = (from.bytes().0 as usize / 4).div_ceil(GROUP) as u32;
    let params = [add, 0, 0, 0];
    let params = bytemuck::bytes_of(&params);
    backend.launch(&Launch { kernel: &MIX, buffers: &[from, &to], params, groups: [groups, 1, 1] })?;
    Ok(to)
}

fn ladder(words: usize, keeps: bool) -> Ladder {
    let bytes = Bytes(4 * words as u64);
    let rung = |name, kind| {
        let rung = Rung::new(name, Place::On(kind), Footprint::task(Bytes(2 * bytes.0)));
        rung.with_value(if keeps { bytes } else { Bytes::ZERO })
    };
    Ladder::from(vec![rung("gpu", DeviceKind::Gpu), rung("cpu", DeviceKind::Cpu)])
}

/// Words that stay on a device.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) words: usize,
    pub(crate) value: Value,
}

macro_rules! stage {
    ($(#[$doc:meta])* $name:ident, $input:ty => $output:ty, $words:expr, $keeps:literal, $run:expr) => {
        $(#[$doc])*
        pub(crate) struct $name;

        impl Workload for $name {
            type Input = $input;
            type Reference = ();
            type Prepared = ();
            type Output = $output;

            fn name(&self) -> &str {
                stringify!($name)
            }

            fn units(&self, input: &$input) -> u64 {
                let words: fn(&$input) -> usize = $words;
                words(input) as u64
            }

            fn ladder(&self, input: &$input) -> Ladder {
                ladder(self.units(input) as usize, $keeps)
            }

            fn open(&self, _: &Rung, _: &$input, _: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
                Ok(Box::new(Self))
            }
        }

        impl Session<$name> for $name {
            fn run(&mut self, input: &$input, context: &mut Context<'_, $name>) -> Result<$output, Fault> {
                let run: fn(&$input, &mut Context<'_, $name>) -> Result<$output, Fault> = $run;
                run(input, context)
            }
        }
    };
}

stage! {
    /// Words from the host, mixed once.
    Up, Vec<u32> => Kept, Vec::len, true, |words, context| {
        let from = context.backend.allocate(Bytes(4 * words.len() as u64))?;
        context.backend.write(&from, Bytes::ZERO, bytemuck::cast_slice(words))?;
        let mixed = mixed(context.backend, &from, 1)?;
        Ok(Kept { words: words.len(), value: context.keep(vec![mixed])? })
    }
}

stage! {
    /// Words where they are, mixed again.
    Again, usize => Kept, |words| *words, true, |words, context| {
        let from = context.value(0)?;
        let mixed = mixed(context.backend, &from[0], 2)?;
        Ok(Kept { words: *words, value: context.keep(vec![mixed])? })
    }
}

stage! {
    /// Words back to the host, mixed once more.
    Down, usize => Vec<u32>, |words| *words, false, |words, context| {
        let from = context.value(0)?;
        let mixed = mixed(context.backend, &from[0], 3)?;
        let mut answer = vec![0; *words];
        context.backend.read(&mixed, Bytes::ZERO, bytemuck::cast_slice_mut(&mut answer))?;
        Ok(answer)
    }
}
