//! Pressure is no figure of its own here: it is what a device has queued and promised, which is what the expected finish of
//! a choice is made of. After any burst nothing is queued, and what is promised is only what is kept warm.

use std::io::{self, Cursor, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll::pack::{Format, Method, PackOptions, PackWatch, Packer, PackerOptions};
use plimsoll::{Bytes, Device, Orchestrator};
use plimsoll_core::rng::Rng;
use plimsoll_runtime::cpu::CpuDevice;
use plimsoll_testkit::virtual_device::{Calls, ScriptedFault, VirtualDevice};

use crate::data::mixed;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
const BURSTS: u64 = 24;

fn packer(gpu: &Arc<VirtualDevice>) -> Packer {
    let cpu: Arc<dyn Device> = Arc::new(CpuDevice::builder().slots(2).build());
    let gpu: Arc<dyn Device> = Arc::<VirtualDevice>::clone(gpu);
    let orchestrator = Orchestrator::builder().devices(vec![cpu, gpu]).build();
    Packer::new(orchestrator, PackerOptions::default())
}

fn staged(format: Format) -> PackOptions {
    PackOptions { format, method: Some(Method::Staged), block: Some(Bytes(64 << 10)), ..PackOptions::default() }
}

/// Tasks queued or running, on each device.
fn depths(packer: &Packer) -> Vec<usize> {
    packer.orchestrator().reports().iter().map(|report| report.figures.depth).collect()
}

/// What is promised beyond what is kept warm for later.
fn promised(packer: &Packer) -> Vec<Bytes> {
    packer.orchestrator().reports().iter().map(|report| report.promised).collect()
}

/// Looks again until it is so.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Takes so many bytes, then none.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn random_fault(rng: &mut Rng, calls: Calls) -> Option<ScriptedFault> {
    let soon = 1 + rng.below(6) as u64;
    match rng.below(6) {
        0 => Some(ScriptedFault::OutOfMemory { allocation: calls.allocations + soon }),
        1 => Some(ScriptedFault::Lost { launch: calls.launches + soon }),
        2 => Some(ScriptedFault::WrongAnswer { read: calls.reads + soon }),
        _ => None,
    }
}

/// Bursts of any size, through any format, with a GPU that fails now and then, and outputs that fill up.
#[test]
fn after_any_burst_nothing_is_queued() {
    let raw = mixed(1_500_000, 70);
    for seed in 0..BURSTS {
        let mut rng = Rng::new(seed);
        let gpu = Arc::new(VirtualDevice::gpu("bursts").slots(1 + rng.below(2)).build());
        let packer = packer(&gpu);
        for _ in 0..1 + rng.below(3) {
            random_fault(&mut rng, gpu.calls()).into_iter().for_each(|fault| gpu.add_fault(fault));
            let recipe = staged([Format::Zstd, Format::Gzip][rng.below(2)]).recipe(None).unwrap();
            let input = Cursor::new(raw[..rng.below(raw.len())].to_vec());
            let room = if rng.chance(0.3) { rng.below(200_000) } else { usize::MAX };
            _ = packer.pack(input, &mut Full(room), &recipe, &PackWatch::default());
        }
        wait_until(&format!("seed {seed}: every queue is empty"), || depths(&packer).iter().all(|depth| *depth == 0));
        let after_one = settled(&packer);
        pack_once(&packer, &raw);
        wait_until(&format!("seed {seed}: every queue is empty again"), || depths(&packer) == [0, 0]);
        let after_two = settled(&packer);
        // Sessions stay warm within their bound; what a burst promised beyond them is given back.
        for (before, after) in after_one.iter().zip(&after_two) {
            assert!(after.0 <= before.0 + (64 << 20), "seed {seed}: {before} promised, then {after}");
        }
    }
}

/// What is promised once nobody runs.
fn settled(packer: &Packer) -> Vec<Bytes> {
    let mut last = promised(packer);
    wait_until("what is promised stays", || {
        let now = promised(packer);
        std::mem::replace(&mut last, now.clone()) == now
    });
    last
}

fn pack_once(packer: &Packer, raw: &[u8]) {
    let recipe = staged(Format::Zstd).recipe(None).unwrap();
    packer.pack(Cursor::new(raw.to_vec()), &mut io::sink(), &recipe, &PackWatch::default()).expect("it is packed");
}
