//! The suite that every device must pass, whatever it is made of: a backend exists when it passes.
//! Never skips: a device that cannot do something must say so in its [`Subject`], and that is then tested.
//! Invariant: nothing here knows which device it tests.

macro_rules! assert_fault {
    ($result:expr, $fault:ident $rest:tt, $($what:tt)+) => {
        match $result {
            Err(Fault::$fault $rest) => {}
            Err(other) => panic!("{}: {other:?} instead of {}", format!($($what)+), stringify!($fault)),
            Ok(_) => panic!("{}: succeeded instead of {}", format!($($what)+), stringify!($fault)),
        }
    };
}

mod fences;
mod fetches;
mod piece;

pub use fences::*;
pub use fetches::*;

use std::sync::Arc;
use std::thread;

use plimsoll_core::{Bytes, Fault};
use plimsoll_runtime::cpu::CpuDevice;
use plimsoll_runtime::gauge::Gauge;
use plimsoll_runtime::probe::{Blur, blur_full, blur_strip, known_answer, sum, sum_bytes};
use plimsoll_runtime::{Backend, Buffer, Device, Launch, POISON, check};

use piece::Weight;

/// The memory limit with which a device must be opened for this suite: small enough to fill it quickly.
pub const MEMORY: Bytes = Bytes::mib(64);

/// How far a blurred pixel may be from the CPU twin's, for pixels from 0 to 1. A GPU may fuse multiply and add.
pub const BLUR_TOLERANCE: f32 = 2e-6;

/// How far a sum may be from the CPU twin's, as a share of it. WGSL lets a driver reorder additions.
pub const SUM_TOLERANCE: f32 = 2e-6;

/// A device to be tested.
pub struct Subject {
    device: Arc<dyn Device>,
    lose: Option<Box<dyn Fn() + Send + Sync>>,
    beside: Beside,
}

type Hold = Box<dyn Fn(Option<u64>) + Send + Sync>;

/// Whether what a device does goes on beside what we do.
enum Beside {
    /// Every call took effect when it returns.
    AtOnce,
    /// Work that was handed over goes on by itself, and work of this weight lasts long beside a call.
    Asynchronous(Weight),
    /// Work that was handed over goes on by itself, and the test can hold it up: only so many of the kicks from now on end,
    /// or all.
    Held(Hold),
}

impl Subject {
    /// A device that cannot be lost, and has done what it was called for when the call returns.
    pub fn new(device: impl Device + 'static) -> Self {
        Self { device: Arc::new(device), lose: None, beside: Beside::AtOnce }
    }

    /// A device, and how to lose it.
    pub fn that_can_be_lost<D: Device + 'static>(device: Arc<D>, lose: impl Fn(&D) + Send + Sync + 'static) -> Self {
        let inner = Arc::clone(&device);
        Self { device, lose: Some(Box::new(move || lose(&inner))), beside: Beside::AtOnce }
    }

    /// It works beside us, and a kick of so many rounds of one instruction for each of 16,384 words, fewer than 65,536, is
    /// still under way long after the call.
    #[must_use]
    pub fn asynchronous(mut self, rounds: u32) -> Self {
        self.beside = Beside::Asynchronous(Weight::heavy(rounds));
        self
    }

    /// It works beside us, and this holds its work up: of what is kicked from then on only so many pieces end. With `None`
    /// all end.
    #[must_use]
    pub fn that_can_be_held(mut self, hold: impl Fn(Option<u64>) + Send + Sync + 'static) -> Self {
        self.beside = Beside::Held(Box::new(hold));
        self
    }

    fn slot(&self) -> Box<dyn Backend> {
        self.device.open_backend().expect("the device opens a slot")
    }

    /// Work that is still under way after a kick, if the device works beside us.
    fn heavy(&self) -> Weight {
        match self.beside {
            Beside::Asynchronous(weight) => weight,
            Beside::AtOnce | Beside::Held(_) => Weight::LIGHT,
        }
    }

    fn ours(&self) -> Bytes {
        self.device.memory().ours
    }
}

/// Makes one test of each property for each device: `conformance! { cpu => Subject::new(CpuDevice::open()) }`.
#[macro_export]
macro_rules! conformance {
    ($($name:ident => $subject:expr),+ $(,)?) => {
        $(mod $name {
            use super::*;
            $crate::conformance_tests! { $subject;
                tells_its_facts
                reads_what_was_written
                buffers_are_made_from_pieces
                outputs_start_poisoned
                calls_take_effect_in_order
                known_answer_is_right
                blur_agrees_with_its_twin
                sum_agrees_with_its_twin
                strips_give_the_same_bits
                footprints_are_exact
                bytes_are_counted_until_dropped
                more_than_there_is_is_out_of_memory
                a_full_device_recovers
                misuse_is_the_works_fault
                slots_work_side_by_side
                slots_share_buffers
                abandoned_work_leaves_nothing_behind
                loss_is_told_and_survived
                fences_are_done_after_their_work
                a_kick_does_not_wait
                a_piece_is_drained_while_the_next_is_under_way
                pieces_follow_each_other
                fences_are_for_every_slot
                kicks_not_drained_are_bounded
                readbacks_are_exact
                foreign_fences_are_the_works_fault
                a_loss_between_kick_and_wait_is_told
                fetches_bytes_from_any_thread
                fetches_after_what_was_handed_over
                fetches_refuse_what_is_not_there
            }
        })+
    };
}

/// One test for each named property.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_tests {
    ($subject:expr; $($property:ident)+) => {
        $(#[test]
        fn $property() {
            $crate::conformance::$property(&$subject);
        })+
    };
}

/// Values from 0 to 1 that look random and are the same everywhere.
fn noise(count: usize, seed: u32) -> Vec<f32> {
    let word = |i: u32| (i ^ seed.wrapping_mul(0x85eb_ca6b)).wrapping_mul(2_654_435_761);
    (0..count as u32).map(|i| (word(i) >> 8) as f32 / (1 << 24) as f32).collect()
}

/// The CPU's answer, which every other device's is held against.
fn on_the_cpu<T>(work: impl FnOnce(&mut dyn Backend) -> Result<T, Fault>) -> T {
    let mut slot = CpuDevice::open().open_backend().expect("the CPU opens a slot");
    work(&mut *slot).expect("the CPU does the work")
}

fn words(slot: &mut dyn Backend, buffer: &Buffer) -> Vec<u32> {
    let mut words = vec![0; buffer.bytes().0 as usize / 4];
    slot.read(buffer, Bytes::ZERO, bytemuck::cast_slice_mut(&mut words)).expect("a read");
    words
}

#[track_caller]
fn assert_close(got: &[f32], wanted: &[f32], tolerance: f32, what: &str) {
    assert_eq!(got.len(), wanted.len(), "{what}");
    for (at, (got, wanted)) in got.iter().zip(wanted).enumerate() {
        assert!((got - wanted).abs() <= tolerance, "{what}: value {at} is {got}, should be {wanted}");
    }
}

/// Facts are filled in; memory adds up and nothing is held before a slot is open.
pub fn tells_its_facts(subject: &Subject) {
    let facts = subject.device.facts();
    assert!(!facts.name.is_empty() && !facts.key.is_empty() && !facts.api.is_empty(), "{facts:?}");
    assert!(facts.slots >= 1, "{facts:?}");
    let memory = subject.device.memory();
    let usable = memory.limit.unwrap_or(memory.capacity);
    assert_eq!(usable, MEMORY, "the suite is for a device opened with its limit");
    assert!(memory.free <= memory.capacity, "{memory:?}");
    assert_eq!(memory.ours, Bytes::ZERO);
    assert!(!memory.source.is_empty());
    let slots: Vec<_> = (0..facts.slots).map(|_| subject.slot()).collect();
    assert_eq!(subject.ours(), subject.device.overhead(), "what open slots hold for themselves");
    drop(slots);
    assert_eq!(subject.ours(), Bytes::ZERO);
}

/// Whole and partial writes, of sizes below and above any staging buffer, last write wins.
pub fn reads_what_was_written(subject: &Subject) {
    let mut slot = subject.slot();
    for count in [1_usize, 3, 64, 4097, 1_300_001] {
        let buffer = slot.allocate(Bytes(4 * count as u64)).expect("memory");
        let mut wanted: Vec<u32> = (0..count as u32).map(|i| i.wrapping_mul(2_654_435_761) ^ 0x55).collect();
        slot.write(&buffer, Bytes::ZERO, bytemuck::cast_slice(&wanted)).expect("a write");
        let middle = count / 2;
        wanted[middle] = 7;
        slot.write(&buffer, Bytes(4 * middle as u64), bytemuck::cast_slice(&[7_u32])).expect("a write");
        assert_eq!(words(&mut *slot, &buffer), wanted, "{count} words");
        let mut last = [0_u32];
        let end = Bytes(4 * (count as u64 - 1));
        slot.read(&buffer, end, bytemuck::cast_slice_mut(&mut last)).expect("a read");
        assert_eq!(last[0], wanted[count - 1]);
    }
    let buffer = slot.allocate(Bytes(4)).expect("memory");
    slot.write(&buffer, Bytes(4), &[]).expect("writing nothing is allowed");
    slot.read(&buffer, Bytes(4), &mut []).expect("reading nothing is allowed");
}

/// A buffer that is made from pieces holds them one behind the other, wherever they lie; pieces that do not fill it are the
/// work's fault, and their memory is free again.
pub fn buffers_are_made_from_pieces(subject: &Subject) {
    let mut slot = subject.slot();
    let base = subject.ours();
    // One byte behind a word, so that no piece lies where words do.
    let bytes: Vec<u8> = (0..4 * 1_300_001_u32 + 1).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for (from, count, piece) in
        [(0, 4, 4), (1, 4, 4), (0, 1024, 1024), (1, 5_200_004, 262_144), (0, 5_200_004, 8 << 20)]
    {
        let wanted = &bytes[from..from + count];
        let made = slot.allocate_from(Bytes(count as u64), &mut wanted.chunks(piece)).expect("memory");
        let words = words(&mut *slot, &made);
        assert!(bytemuck::cast_slice::<u32, u8>(&words) == wanted, "{count} bytes in pieces of {piece}");
        assert_eq!(subject.ours(), base + Bytes(count as u64));
    }
    for (room, pieces) in [(8, vec![4]), (8, vec![4, 8]), (8, vec![12]), (8, vec![2, 6]), (8, vec![]), (0, vec![])] {
        let mut given = pieces.iter().map(|&length| &bytes[..length]);
        assert_fault!(slot.allocate_from(Bytes(room), &mut given), WorkFailed(_), "{pieces:?} for {room} bytes");
    }
    slot.abandon();
    assert_eq!(subject.ours(), base);
    check::known_answer(&mut *slot).expect("right after misuse");
}

/// New buffers, and buffers poisoned again, hold poison everywhere that nothing has written.
pub fn outputs_start_poisoned(subject: &Subject) {
    let mut slot = subject.slot();
    for count in [1_usize, 5, 300_001] {
        let buffer = slot.allocate(Bytes(4 * count as u64)).expect("memory");
        assert!(words(&mut *slot, &buffer).iter().all(|&word| word == POISON), "{count} fresh words");
        slot.write(&buffer, Bytes::ZERO, bytemuck::cast_slice(&[1_u32])).expect("a write");
        let read = words(&mut *slot, &buffer);
        assert!(read[0] == 1 && read[1..].iter().all(|&word| word == POISON), "{count} words, one written");
        slot.poison(&buffer).expect("poison");
        assert!(words(&mut *slot, &buffer).iter().all(|&word| word == POISON), "{count} words poisoned again");
    }
    let buffer = slot.allocate(Bytes(4)).expect("memory");
    assert_fault!(
        plimsoll_runtime::read_floats(&mut *slot, &buffer, 1),
        WrongAnswer { .. },
        "reading what nothing has written"
    );
}

/// A write after a launch does not reach that launch, however many are on their way before anything is read.
pub fn calls_take_effect_in_order(subject: &Subject) {
    const ROUNDS: u32 = 200;
    let mut slot = subject.slot();
    let source = slot.allocate(Bytes(4)).expect("memory");
    let target = slot.allocate(Bytes(4 * u64::from(ROUNDS))).expect("memory");
    for round in 0..ROUNDS {
        slot.write(&source, Bytes::ZERO, bytemuck::bytes_of(&(round as f32))).expect("a write");
        // The sum of one value, put at place `round`.
        let params = [1, round, 0, 0];
        let launch = Launch {
            kernel: &sum::KERNEL,
            buffers: &[&source, &target],
            params: bytemuck::bytes_of(&params),
            groups: [1, 1, 1],
        };
        slot.launch(&launch).expect("a launch");
    }
    let wanted: Vec<u32> = (0..ROUNDS).map(|round| (round as f32).to_bits()).collect();
    assert_eq!(words(&mut *slot, &target), wanted);
}

/// The known-answer kernel gives the closed form's words, every time, as does its twin.
pub fn known_answer_is_right(subject: &Subject) {
    let mut slot = subject.slot();
    for _ in 0..3 {
        check::known_answer(&mut *slot).expect("the known answer");
    }
    for nonce in [0, 1, 999, 0xffff_ffff] {
        let answer = known_answer::run(&mut *slot, nonce).expect("an answer");
        assert_eq!(answer, known_answer::expected(nonce));
        assert_eq!(answer, on_the_cpu(|cpu| known_answer::run(cpu, nonce)));
    }
}

/// Blur of odd sizes.
pub fn blur_agrees_with_its_twin(subject: &Subject) {
    let mut slot = subject.slot();
    for (width, height, radius) in [
        (1, 1, 6),
        (3, 5, 2),
        (1, 40, 3),
        (40, 1, 3),
        (16, 16, 0),
        (257, 129, 6),
        (65, 33, Blur::RADIUS_LIMIT),
        (511, 300, 2),
    ] {
        let blur = Blur::new(width, height, radius).expect("a size that can be blurred");
        let pixels = noise(width * height, 1);
        let wanted = on_the_cpu(|cpu| blur_full(cpu, blur, &pixels));
        let got = blur_full(&mut *slot, blur, &pixels).expect("a blur");
        assert_close(&got, &wanted, BLUR_TOLERANCE, &format!("{blur:?}"));
    }
}

/// Sums of one value up to several levels and pieces.
pub fn sum_agrees_with_its_twin(subject: &Subject) {
    let mut slot = subject.slot();
    for count in [0, 1, 3, 1023, 1024, 1025, 77_777, (1 << 20) + 1] {
        let values = noise(count, 2);
        let wanted = on_the_cpu(|cpu| sum(cpu, &values));
        let exact: f64 = values.iter().copied().map(f64::from).sum();
        let got = sum(&mut *slot, &values).expect("a sum");
        assert!((got - wanted).abs() <= SUM_TOLERANCE * wanted, "{count} values: {got}, should be {wanted}");
        assert!((f64::from(got) - exact).abs() <= 1e-5 * exact, "{count} values: {got}, is exactly {exact}");
    }
}

/// A blur in bands has the very bits of the blur in one piece, whatever the bands' height.
pub fn strips_give_the_same_bits(subject: &Subject) {
    let mut slot = subject.slot();
    let blur = Blur::new(257, 129, 6).expect("a size that can be blurred");
    let pixels = noise(257 * 129, 3);
    let full = blur_full(&mut *slot, blur, &pixels).expect("a blur");
    let bits = |pixels: &[f32]| pixels.iter().map(|pixel| pixel.to_bits()).collect::<Vec<_>>();
    for rows in [1, 7, 64, 128, 129, 5000] {
        let strip = blur_strip(&mut *slot, blur, &pixels, rows).expect("a blur");
        assert!(bits(&strip) == bits(&full), "bands of {rows} rows");
    }
}

/// Each kernel's peak is its formula, to the byte, and nothing is left when it is done.
pub fn footprints_are_exact(subject: &Subject) {
    let mut slot = subject.slot();
    let base = subject.ours();
    let mut exactly = |what: &str, wanted: Bytes, work: &mut dyn FnMut(&mut dyn Backend) -> Result<(), Fault>| {
        let scope = Arc::new(Gauge::default());
        let before = slot.charge_to(Arc::clone(&scope));
        work(&mut *slot).expect(what);
        assert_eq!(scope.peak(), wanted, "{what}");
        assert_eq!(scope.now(), Bytes::ZERO, "{what}");
        assert_eq!(subject.ours(), base, "{what}");
        assert!(Arc::ptr_eq(&slot.charge_to(before), &scope));
    };
    for (width, height, radius, rows) in [(1, 1, 1, 1), (257, 129, 6, 20), (100, 90, 3, 84), (33, 20, 9, 1)] {
        let blur = Blur::new(width, height, radius).expect("a size that can be blurred");
        let pixels = noise(width * height, 4);
        exactly("blur_full", blur.full_bytes(), &mut |slot| blur_full(slot, blur, &pixels).map(drop));
        exactly("blur_strip", blur.strip_bytes(rows), &mut |slot| blur_strip(slot, blur, &pixels, rows).map(drop));
    }
    for count in [0, 1, 1024, 1025, 5000, (1 << 20) + 5] {
        let values = noise(count, 5);
        exactly("sum", sum_bytes(count), &mut |slot| sum(slot, &values).map(drop));
    }
    exactly("known_answer", known_answer::BYTES, &mut |slot| check::known_answer(slot));
}

/// A buffer counts on the device and on the scope it was made under, until it is dropped, whoever is charged by then.
pub fn bytes_are_counted_until_dropped(subject: &Subject) {
    let mut slot = subject.slot();
    let base = subject.ours();
    let (first, second) = (Arc::new(Gauge::default()), Arc::new(Gauge::default()));
    slot.charge_to(Arc::clone(&first));
    let one = slot.allocate(Bytes(4000)).expect("memory");
    slot.charge_to(Arc::clone(&second));
    let other = slot.allocate(Bytes(100)).expect("memory");
    assert_eq!((first.now(), second.now(), subject.ours()), (Bytes(4000), Bytes(100), base + Bytes(4100)));
    drop(slot);
    drop(one);
    assert_eq!((first.now(), first.peak(), second.now()), (Bytes::ZERO, Bytes(4000), Bytes(100)));
    drop(other);
    assert_eq!((second.now(), subject.ours()), (Bytes::ZERO, Bytes::ZERO));
}

/// A request that can never fit is refused as such, changes nothing, and the device is still right.
pub fn more_than_there_is_is_out_of_memory(subject: &Subject) {
    let mut slot = subject.slot();
    let base = subject.ours();
    let limit = slot.buffer_limit();
    for bytes in [MEMORY + Bytes(4), limit + Bytes(4), Bytes::gib(1 << 20), Bytes(!3)] {
        assert_fault!(slot.allocate(bytes), OutOfMemory { .. }, "{bytes}");
        assert_eq!(subject.ours(), base, "{bytes}");
    }
    check::known_answer(&mut *slot).expect("right after a memory fault");
}

/// A device filled to the line refuses the next buffer, and goes on once there is room.
pub fn a_full_device_recovers(subject: &Subject) {
    let mut slot = subject.slot();
    let base = subject.ours();
    let piece = Bytes::mib(8);
    let mut held = Vec::new();
    let refusal = loop {
        match slot.allocate(piece) {
            Ok(buffer) => held.push(buffer),
            Err(fault) => break fault,
        }
        assert!(subject.ours() <= MEMORY, "past the line");
    };
    assert_fault!(Err::<(), _>(refusal), OutOfMemory { .. }, "a full device");
    assert!(held.len() >= 7, "only {} pieces of {piece} fit in {MEMORY}", held.len());
    // Work on what is there, and then on what was freed.
    for round in 0..3_u32 {
        held.pop();
        let buffer = slot.allocate(piece).expect("room for what was given back");
        slot.write(&buffer, Bytes::ZERO, bytemuck::cast_slice(&[round; 1000])).expect("a write");
        assert_eq!(words(&mut *slot, &buffer)[..1001], [vec![round; 1000], vec![POISON]].concat());
        held.push(buffer);
    }
    held.clear();
    assert_eq!(subject.ours(), base);
    check::known_answer(&mut *slot).expect("right after a memory fault");
}

/// Calls that make no sense are the workload's error on every device, and harm nothing.
pub fn misuse_is_the_works_fault(subject: &Subject) {
    let mut slot = subject.slot();
    let (one, other) = (slot.allocate(Bytes(1024)).expect("memory"), slot.allocate(Bytes(4096)).expect("memory"));
    for bytes in [0, 1, 1023] {
        assert_fault!(slot.allocate(Bytes(bytes)), WorkFailed(_), "a buffer of {bytes} bytes");
    }
    for (offset, length) in [(0, 1028), (1024, 4), (2, 4), (0, 3), (!3, 8)] {
        assert_fault!(slot.write(&one, Bytes(offset), &vec![0; length]), WorkFailed(_), "write {length} at {offset}");
        assert_fault!(slot.read(&one, Bytes(offset), &mut vec![0; length]), WorkFailed(_), "read {length} at {offset}");
    }
    let foreign = CpuDevice::open().open_backend().expect("a slot").allocate(Bytes(1024)).expect("memory");
    assert_fault!(slot.write(&foreign, Bytes::ZERO, &[0; 4]), WorkFailed(_), "a foreign buffer");
    assert_fault!(slot.read(&foreign, Bytes::ZERO, &mut [0; 4]), WorkFailed(_), "a foreign buffer");
    assert_fault!(slot.poison(&foreign), WorkFailed(_), "a foreign buffer");
    let kernel = &known_answer::KERNEL;
    let right = Launch { kernel, buffers: &[&one, &other], params: &[0; 16], groups: [4, 1, 1] };
    let wrong = [
        Launch { buffers: &[&one], ..right },
        Launch { buffers: &[&one, &other, &foreign], ..right },
        Launch { buffers: &[&one, &one], ..right },
        Launch { buffers: &[&foreign, &other], ..right },
        Launch { params: &[], ..right },
        Launch { params: &[0; 32], ..right },
        Launch { groups: [65_536, 1, 1], ..right },
    ];
    for launch in &wrong {
        assert_fault!(slot.launch(launch), WorkFailed(_), "{launch:?}");
    }
    check::known_answer(&mut *slot).expect("right after misuse");
}

/// Two workers at once do not disturb each other.
pub fn slots_work_side_by_side(subject: &Subject) {
    let blur = Blur::new(61, 47, 4).expect("a size that can be blurred");
    let worker = |seed: u32| {
        let pixels = noise(61 * 47, seed);
        let wanted = on_the_cpu(|cpu| blur_full(cpu, blur, &pixels));
        let total = on_the_cpu(|cpu| sum(cpu, &pixels));
        let device = &*subject.device;
        move || {
            let mut slot = device.open_backend().expect("a slot");
            for round in 0..8 {
                let got = blur_full(&mut *slot, blur, &pixels).expect("a blur");
                assert_close(&got, &wanted, BLUR_TOLERANCE, &format!("worker {seed}, round {round}"));
                let got = sum(&mut *slot, &pixels).expect("a sum");
                assert!((got - total).abs() <= SUM_TOLERANCE * total, "worker {seed}, round {round}");
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(worker(10));
        scope.spawn(worker(11));
    });
    assert_eq!(subject.ours(), Bytes::ZERO);
}

/// What one slot has made, another finds as soon as the first has finished its work.
pub fn slots_share_buffers(subject: &Subject) {
    let (mut maker, mut user) = (subject.slot(), subject.slot());
    let values = noise(5000, 6);
    let source = maker.allocate(Bytes(4 * 5000)).expect("memory");
    let reduced = maker.allocate(Bytes(4 * 5)).expect("memory");
    maker.write(&source, Bytes::ZERO, bytemuck::cast_slice(&values)).expect("a write");
    let params: [u32; 4] = [5000, 0, 0, 0];
    let launch = Launch {
        kernel: &sum::KERNEL,
        buffers: &[&source, &reduced],
        params: bytemuck::bytes_of(&params),
        groups: [5, 1, 1],
    };
    maker.launch(&launch).expect("a launch");
    maker.finish().expect("work like any other");
    assert_eq!(words(&mut *user, &source), bytemuck::cast_slice::<f32, u32>(&values));
    let found = words(&mut *user, &reduced);
    assert!(!found.contains(&POISON));
    let total: f32 = found.into_iter().map(f32::from_bits).sum();
    let wanted = on_the_cpu(|cpu| sum(cpu, &values));
    assert!((total - wanted).abs() <= 1e-5 * wanted, "{total}, should be {wanted}");
    drop(maker);
    user.poison(&reduced).expect("poison");
    user.launch(&launch).expect("a launch on another slot's buffers");
    assert!(!words(&mut *user, &reduced).contains(&POISON));
}

/// A task that fails leaves what it had recorded: the next one on its slot never hears of it, what was there before is as it
/// was, and fresh outputs are poisoned as ever.
pub fn abandoned_work_leaves_nothing_behind(subject: &Subject) {
    let mut slot = subject.slot();
    // Before anything else: a slot holds nothing that a first task could take with it.
    slot.abandon();
    let values = noise(5000, 8);
    let source = slot.allocate(Bytes(4 * 5000)).expect("memory");
    slot.write(&source, Bytes::ZERO, bytemuck::cast_slice(&values)).expect("a write");
    slot.finish().expect("work like any other");
    let held = subject.ours();
    let params: [u32; 4] = [5000, 0, 0, 0];
    // From one word to more than any staging buffer holds.
    for count in [5_usize, 4097, 1_300_001] {
        let target = slot.allocate(Bytes(4 * count as u64)).expect("memory");
        slot.write(&target, Bytes::ZERO, &vec![0xab; 4 * count]).expect("a write");
        let launch = Launch {
            kernel: &sum::KERNEL,
            buffers: &[&source, &target],
            params: bytemuck::bytes_of(&params),
            groups: [5, 1, 1],
        };
        slot.launch(&launch).expect("a launch");
        slot.abandon();
        drop(target);
        assert_eq!(subject.ours(), held, "{count} words");
        slot.finish().expect("nothing is left to complain of");
        let next = slot.allocate(Bytes(4 * count as u64)).expect("memory");
        assert!(words(&mut *slot, &next).iter().all(|&word| word == POISON), "{count} fresh words");
        slot.write(&next, Bytes::ZERO, bytemuck::cast_slice(&[1_u32, 2, 3, 4, 5])).expect("a write");
        assert_eq!(words(&mut *slot, &next)[..5], [1, 2, 3, 4, 5]);
        check::known_answer(&mut *slot).expect("right after work was abandoned");
    }
    assert_eq!(words(&mut *slot, &source), bytemuck::cast_slice::<f32, u32>(&values), "what was only read");
}

/// A lost device says so on every call, never gives a wrong success, and works again once reopened. One that cannot be
/// lost can be reopened all the same.
pub fn loss_is_told_and_survived(subject: &Subject) {
    let mut slot = subject.slot();
    let (one, other) = (slot.allocate(Bytes(1024)).expect("memory"), slot.allocate(Bytes(2048)).expect("memory"));
    let launch =
        Launch { kernel: &known_answer::KERNEL, buffers: &[&one, &other], params: &[0; 16], groups: [4, 1, 1] };
    slot.write(&one, Bytes::ZERO, &[0; 1024]).expect("a write");
    slot.launch(&launch).expect("a launch");
    if let Some(lose) = &subject.lose {
        lose();
        let mut into = [0; 2048];
        assert_fault!(slot.read(&other, Bytes::ZERO, &mut into), DeviceLost { .. }, "read after a loss");
        assert_fault!(slot.allocate(Bytes(4)), DeviceLost { .. }, "allocate after a loss");
        assert_fault!(slot.poison(&other), DeviceLost { .. }, "poison after a loss");
        assert_fault!(slot.write(&one, Bytes::ZERO, &[0; 4]), DeviceLost { .. }, "write after a loss");
        assert_fault!(slot.launch(&launch), DeviceLost { .. }, "launch after a loss");
        assert_fault!(slot.finish(), DeviceLost { .. }, "finish after a loss");
        slot.abandon();
        assert_fault!(slot.finish(), DeviceLost { .. }, "finish after a loss, with nothing left of it");
        assert_fault!(subject.device.open_backend(), DeviceLost { .. }, "a slot of a lost device");
    }
    subject.device.reopen().expect("the device comes back");
    let mut fresh = subject.slot();
    check::known_answer(&mut *fresh).expect("right after coming back");
    if subject.lose.is_some() {
        assert_fault!(fresh.read(&one, Bytes::ZERO, &mut [0; 4]), DeviceLost { .. }, "a buffer of an earlier life");
        assert_fault!(fresh.launch(&launch), DeviceLost { .. }, "buffers of an earlier life");
        assert_fault!(slot.allocate(Bytes(4)), DeviceLost { .. }, "a slot of an earlier life");
        assert_fault!(slot.finish(), DeviceLost { .. }, "a slot of an earlier life");
    }
    drop((slot, one, other));
    check::known_answer(&mut *fresh).expect("right after the earlier life is gone");
    let blur = Blur::new(33, 17, 2).expect("a size that can be blurred");
    let pixels = noise(33 * 17, 7);
    let wanted = on_the_cpu(|cpu| blur_full(cpu, blur, &pixels));
    let got = blur_full(&mut *fresh, blur, &pixels).expect("a blur");
    assert_close(&got, &wanted, BLUR_TOLERANCE, "after coming back");
    drop(fresh);
    assert_eq!(subject.ours(), Bytes::ZERO);
}
