//! Staged work on the CPU, on a virtual device and on a real Vulkan device, at every depth: the bytes of a plain loop, the
//! bytes of memory that were said, and no item lost whatever fails. A machine without a Vulkan device fails here: install
//! Mesa's software one (`mesa-vulkan-drivers`).

use std::any::Any;
use std::sync::Arc;

use plimsoll_core::staged::{Facts, Memory, Mode, Plan};
use plimsoll_core::{Bytes, DeviceKind, Fault, Footprint, Ladder, Place, Rung};
use plimsoll_runtime::cpu::CpuDevice;
use plimsoll_runtime::staged::{Acquired, Payload, Published, StagedSession};
use plimsoll_runtime::{
    Access, Backend, Buffer, Context, Device, Kernel, Launch, Orchestrator, Session, Task, Twin, Workload,
};
use plimsoll_testkit::patience::in_time;
use plimsoll_testkit::sim::staged::samples::{self, FRAME, LEVEL};
use plimsoll_testkit::virtual_device::{ScriptedFault, VirtualDevice};
use plimsoll_wgpu::{OpenOptions, discover};

const WORDS: usize = FRAME as usize / 4;
const LEVEL_WORDS: usize = LEVEL as usize / 4;
const ITEMS: u32 = 9;
/// Kernels that one item launches.
const LAUNCHES: u64 = 2;
const STAGES: [&str; 5] = ["upload", "scatter", "reduce", "download", "collect"];

// -------------------------------------------------------------------------------------------------------------- the work

static SCATTER: Kernel = Kernel {
    name: "scatter",
    wgsl: "@group(0) @binding(0) var<storage, read> frame: array<u32>;
        @group(0) @binding(1) var<storage, read_write> chunks: array<u32>;
        @compute @workgroup_size(64)
        fn scatter(@builtin(global_invocation_id) id: vec3<u32>) {
            chunks[id.x] = frame[(id.x % 16u) * 16u + id.x / 16u] * 3u + 1u;
        }",
    entry: "scatter",
    bindings: &[Access::Read, Access::Write],
    params: 0,
    twin: |twin: &mut Twin<'_>| {
        let (frame, chunks) = twin.words_from_to(0, 1);
        for (at, word) in chunks.iter_mut().enumerate() {
            *word = scattered(frame, at);
        }
    },
};

static REDUCE: Kernel = Kernel {
    name: "reduce",
    wgsl: "@group(0) @binding(0) var<storage, read> chunks: array<u32>;
        @group(0) @binding(1) var<storage, read_write> carry: array<u32>;
        @group(0) @binding(2) var<storage, read_write> level: array<u32>;
        @compute @workgroup_size(64)
        fn reduce(@builtin(global_invocation_id) id: vec3<u32>) {
            let at = 4u * id.x;
            let sum = chunks[at] + chunks[at + 1u] + chunks[at + 2u] + chunks[at + 3u];
            carry[id.x] = carry[id.x] * 31u + sum;
            level[id.x] = carry[id.x];
        }",
    entry: "reduce",
    bindings: &[Access::Read, Access::Write, Access::Write],
    params: 0,
    twin: |twin: &mut Twin<'_>| {
        let chunks = twin.words(0).to_vec();
        for at in 0..LEVEL_WORDS {
            let sum = chunks[4 * at..][..4].iter().fold(0_u32, |sum, word| sum.wrapping_add(*word));
            let carried = twin.words(1)[at].wrapping_mul(31).wrapping_add(sum);
            twin.words_mut(1)[at] = carried;
            twin.words_mut(2)[at] = carried;
        }
    },
};

fn launch(kernel: &'static Kernel, buffers: &[&Buffer], groups: usize, backend: &mut dyn Backend) -> Result<(), Fault> {
    backend.launch(&Launch { kernel, buffers, params: &[], groups: [groups as u32, 1, 1] })
}

fn scattered(frame: &[u32], at: usize) -> u32 {
    frame[(at % 16) * 16 + at / 16].wrapping_mul(3).wrapping_add(1)
}

/// Frames that are told apart by their number.
#[derive(Clone, Debug, PartialEq)]
struct Frames(u32);

impl Frames {
    fn words(&self) -> Vec<u32> {
        (0..WORDS as u32).map(|at| at.wrapping_mul(2_654_435_761) ^ self.0).collect()
    }
}

/// What one item gives in a plain loop without a device, and what it carries on.
fn plainly(item: &Frames, carry: &mut [u32]) -> Vec<u32> {
    let frame = item.words();
    let chunks: Vec<u32> = (0..WORDS).map(|at| scattered(&frame, at)).collect();
    for (carried, four) in carry.iter_mut().zip(chunks.chunks_exact(4)) {
        let sum = four.iter().fold(0_u32, |sum, word| sum.wrapping_add(*word));
        *carried = carried.wrapping_mul(31).wrapping_add(sum);
    }
    [&chunks, &*carry].concat()
}

fn plain_loop(items: u32) -> Vec<Vec<u32>> {
    let mut carry = vec![0; LEVEL_WORDS];
    (0..items).map(|item| plainly(&Frames(item), &mut carry)).collect()
}

/// The stages' payload. What is carried is the last part of every output, so whoever goes on elsewhere knows it.
struct Pyramid {
    /// What the first item goes on from, until it has.
    begin: Option<Vec<u32>>,
    /// What was carried on by the last item that was drained.
    carried: Vec<u32>,
    fails: Option<(&'static str, Frames)>,
}

impl Pyramid {
    fn new(carried: Vec<u32>) -> Self {
        Self { begin: Some(carried.clone()), carried, fails: None }
    }

    fn check(&self, stage: &'static str, item: &Frames) -> Result<(), Fault> {
        match &self.fails {
            Some((at, which)) if *at == stage && which == item => Err(Fault::work("on purpose")),
            _ => Ok(()),
        }
    }
}

impl Payload for Pyramid {
    type Item = Frames;
    type Output = Vec<u32>;

    fn run(
        &mut self,
        stage: &'static str,
        item: &Frames,
        buffers: &mut Acquired<'_>,
        backend: &mut dyn Backend,
    ) -> Result<(), Fault> {
        self.check(stage, item)?;
        match stage {
            "upload" => backend.write(buffers.buffer("staging")?, Bytes::ZERO, bytemuck::cast_slice(&item.words())),
            "scatter" => {
                assert!(buffers.buffer("levels").is_err(), "what a stage does not use it does not get");
                let bound = [buffers.buffer("staging")?, buffers.buffer("chunks")?];
                launch(&SCATTER, &bound, WORDS / 64, backend)
            }
            "reduce" => {
                if let Some(begin) = self.begin.take() {
                    backend.write(buffers.buffer("carry")?, Bytes::ZERO, bytemuck::cast_slice(&begin))?;
                }
                let bound = [buffers.buffer("chunks")?, buffers.buffer("carry")?, buffers.buffer("levels")?];
                launch(&REDUCE, &bound, LEVEL_WORDS / 64, backend)
            }
            "download" => {
                buffers.stage_read("chunks", Bytes::ZERO, Bytes(FRAME), backend)?;
                buffers.stage_read("levels", Bytes::ZERO, Bytes(LEVEL), backend)?;
                let full = buffers.stage_read("levels", Bytes::ZERO, Bytes(4), backend);
                assert!(matches!(full, Err(Fault::WorkFailed(_))), "no more than the pool has");
                Ok(())
            }
            other => Err(Fault::work(format!("there is no stage {other}"))),
        }
    }

    fn drained(&mut self, item: &Frames, bytes: Vec<u8>) -> Result<Vec<u32>, Fault> {
        self.check("collect", item)?;
        let words: Vec<u32> = bytemuck::pod_collect_to_vec(&bytes);
        self.carried = words[WORDS..].to_vec();
        Ok(words)
    }
}

fn plan(depth: usize, sharers: usize) -> Plan {
    Plan::select(&samples::pyramid(), Facts { sharers, ..Facts::depth(depth) })
}

/// Each depth, and one slot on a device that others share.
fn plans() -> [Plan; 4] {
    [plan(1, 1), plan(2, 1), plan(3, 1), plan(1, 3)]
}

fn open(plan: Plan, backend: &mut dyn Backend) -> StagedSession<Pyramid> {
    StagedSession::open(plan, Pyramid::new(vec![0; LEVEL_WORDS]), backend).expect("it fits")
}

fn gpu() -> Arc<dyn Device> {
    let found = discover();
    let found = found.first().expect("a Vulkan device; Debian has a software one in mesa-vulkan-drivers");
    let options = OpenOptions::default().with_memory_limit(Bytes::mib(256)).with_slots(1);
    found.open(&options).expect("the device opens").remove(0)
}

fn cpu() -> Arc<dyn Device> {
    Arc::new(CpuDevice::builder().slots(1).memory_limit(Bytes::mib(64)).build())
}

fn devices() -> [(&'static str, Arc<dyn Device>); 3] {
    [("cpu", cpu()), ("virtual", Arc::new(VirtualDevice::gpu("v").build())), ("wgpu", gpu())]
}

type Out = Vec<Published<Frames, Vec<u32>>>;

fn outputs(published: Out) -> Vec<Vec<u32>> {
    published.into_iter().map(|each| each.result.unwrap_or_else(|fault| panic!("{:?}: {fault}", each.item))).collect()
}

// ------------------------------------------------------------------------------------------------------------- the tests

#[test]
fn every_device_and_depth_gives_the_bytes_of_a_plain_loop() {
    for (name, device) in devices() {
        for plan in plans() {
            let mut slot = device.open_backend().expect("a slot");
            let mut session = open(plan.clone(), &mut *slot);
            let mut published = Vec::new();
            for item in 0..ITEMS {
                published.extend(session.feed(Frames(item), &mut *slot));
                assert!(!session.is_complete());
            }
            let under_way = if plan.mode() == Mode::DrainAfterKick { 0 } else { plan.depth() };
            assert_eq!(published.len(), ITEMS as usize - under_way, "{name}, {plan}");
            published.extend(session.flush(&mut *slot));
            assert!(outputs(published) == plain_loop(ITEMS), "{name}, {plan}: wrong bytes");
            assert!(session.is_complete() && session.report().is_clean(), "{name}, {plan}: {}", session.report());
        }
    }
}

#[test]
fn what_is_allocated_is_the_footprint() {
    for (name, device) in devices() {
        for plan in plans() {
            let mut slot = device.open_backend().expect("a slot");
            let before = device.memory().ours;
            let held = || device.memory().ours - before;
            let mut session = open(plan.clone(), &mut *slot);
            let (pools, most) = (plan.bytes(Memory::Device), plan.footprint());
            assert_eq!(held(), pools, "{name}, {plan}");
            for item in 0..ITEMS {
                session.feed(Frames(item), &mut *slot);
                let under_way = plan.depth().min(item as usize + 1) as u64;
                let under_way = if plan.mode() == Mode::DrainAfterKick { 0 } else { under_way };
                assert_eq!(held(), pools + Bytes(under_way * (FRAME + LEVEL)), "{name}, {plan}, item {item}");
            }
            assert!(held() == most || plan.mode() == Mode::DrainAfterKick, "{name}, {plan}");
            session.flush(&mut *slot);
            assert_eq!(held(), pools);
            drop(session);
            assert_eq!(held(), Bytes::ZERO);
        }
    }
}

#[test]
fn a_fault_at_each_stage_costs_its_item_alone_and_is_told_in_its_turn() {
    for (name, device) in devices() {
        for plan in plans() {
            for stage in STAGES {
                let mut slot = device.open_backend().expect("a slot");
                let failing = Frames(4);
                let fails = Some((stage, failing.clone()));
                let payload = Pyramid { fails, ..Pyramid::new(vec![0; LEVEL_WORDS]) };
                let mut session = StagedSession::open(plan.clone(), payload, &mut *slot).expect("it fits");
                let mut published: Out = Vec::new();
                for item in 0..ITEMS {
                    published.extend(session.feed(Frames(item), &mut *slot));
                    let is_told = published.iter().any(|each| each.item == failing);
                    let is_kick = stage != "collect";
                    assert!(is_told || item < failing.0 || !is_kick, "a failed kick is told by the call that kicked");
                }
                published.extend(session.flush(&mut *slot));
                let wanted = without(&failing, ["download", "collect"].contains(&stage));
                for (number, each) in published.iter().enumerate() {
                    assert_eq!(each.item, Frames(number as u32), "{name}, {plan}, {stage}");
                    assert!(each.result.as_ref().ok() == wanted[number].as_ref(), "{name}, {plan}, {stage}: {number}");
                }
                assert_eq!(published.len(), ITEMS as usize);
                assert!(!session.is_complete(), "a failed item is no completion");
                assert!(session.report().is_clean(), "{name}, {plan}, {stage}: {}", session.report());
            }
        }
    }
}

/// A plain loop in which one item fails, before or after it was carried on.
fn without(failing: &Frames, is_carried: bool) -> Vec<Option<Vec<u32>>> {
    let mut carry = vec![0; LEVEL_WORDS];
    let item = |number| {
        let item = Frames(number);
        if item != *failing {
            return Some(plainly(&item, &mut carry));
        }
        if is_carried {
            plainly(&item, &mut carry);
        }
        None
    };
    (0..ITEMS).map(item).collect()
}

#[test]
fn a_lost_device_loses_no_item_and_the_rest_is_done_elsewhere() {
    for plan in plans() {
        for launch in 1..=LAUNCHES * u64::from(ITEMS) {
            let device = VirtualDevice::gpu("v").fault(ScriptedFault::Lost { launch }).build();
            let mut slot = device.open_backend().expect("a slot");
            let mut session = open(plan.clone(), &mut *slot);
            let (mut done, mut again) = (Vec::new(), Vec::new());
            for item in 0..ITEMS {
                sort_out(session.feed(Frames(item), &mut *slot), &mut done, &mut again);
            }
            if again.is_empty() {
                sort_out(session.flush(&mut *slot), &mut done, &mut again);
            }
            assert!(!again.is_empty() && !session.is_complete(), "{plan}: the loss was not told");
            let published = done.len() + again.len();
            let (payload, abandoned) = session.abandon();
            let unpublished: Vec<Frames> = (published as u32..ITEMS).map(Frames).collect();
            assert_eq!(abandoned, unpublished, "{plan}: exactly those that were not published");
            again.extend(abandoned);
            // On the CPU, from what was drained last.
            let mut slot = cpu().open_backend().expect("a slot");
            let payload = Pyramid::new(payload.carried);
            let mut session = StagedSession::open(self::plan(2, 1), payload, &mut *slot).expect("it fits");
            for item in again {
                done.extend(outputs(session.feed(item, &mut *slot)));
            }
            done.extend(outputs(session.flush(&mut *slot)));
            assert!(done == plain_loop(ITEMS), "{plan}, lost at launch {launch}: wrong bytes");
        }
    }
}

/// What was done before anything went wrong counts; the rest is done again.
fn sort_out(published: Out, done: &mut Vec<Vec<u32>>, again: &mut Vec<Frames>) {
    for Published { item, result } in published {
        match result {
            Ok(output) if again.is_empty() => done.push(output),
            Ok(_) => again.push(item),
            Err(fault) => {
                assert!(matches!(fault, Fault::DeviceLost { .. }), "{fault}");
                again.push(item);
            }
        }
    }
}

#[test]
fn abandoning_gives_back_exactly_what_is_under_way() {
    for (name, device) in devices() {
        for depth in 1..=3 {
            for fed in 0..ITEMS {
                let mut slot = device.open_backend().expect("a slot");
                let mut session = open(plan(depth, 1), &mut *slot);
                let published: usize = (0..fed).map(|item| session.feed(Frames(item), &mut *slot).len()).sum();
                let (_, items) = session.abandon();
                let wanted: Vec<Frames> = (published as u32..fed).map(Frames).collect();
                assert_eq!(items, wanted, "{name}, depth {depth}, {fed} fed");
                assert_eq!(items.len(), depth.min(fed as usize));
            }
        }
    }
}

#[test]
fn what_one_queue_cannot_do_is_refused_before_anything_is_allocated() {
    let device = cpu();
    let mut slot = device.open_backend().expect("a slot");
    let plan = Plan::select(&samples::gated(), Facts::depth(2));
    let refused = StagedSession::open(plan, Pyramid::new(Vec::new()), &mut *slot);
    assert!(matches!(refused.err(), Some(Fault::WorkFailed(cause)) if cause.to_string().contains("'copy'")));
    assert_eq!(device.memory().ours, Bytes::ZERO);
}

// -------------------------------------------------------------------------------------------------- depth as a rung

/// The work as a workload whose session is held: depth 3, 2, 1, then the CPU.
struct Writer;

#[derive(Clone)]
enum Order {
    Write(Frames),
    Flush,
}

/// What goes along when the session steps down.
struct Left {
    carried: Vec<u32>,
    outputs: Vec<Vec<u32>>,
}

struct WriterSession {
    staged: StagedSession<Pyramid>,
    /// Drained when the session before this one had to leave, and not given to anybody yet.
    outputs: Vec<Vec<u32>>,
}

fn depth_of(rung: &str) -> usize {
    rung.strip_prefix("depth ").and_then(|depth| depth.parse().ok()).unwrap_or(1)
}

impl WriterSession {
    fn open(rung: &Rung, left: &Left, backend: &mut dyn Backend) -> Result<Box<dyn Session<Writer>>, Fault> {
        let payload = Pyramid::new(left.carried.clone());
        let staged = StagedSession::open(plan(depth_of(rung.name), 1), payload, backend)?;
        Ok(Box::new(Self { staged, outputs: left.outputs.clone() }))
    }

    fn keep(&mut self, published: Out) -> Result<(), Fault> {
        for each in published {
            self.outputs.push(each.result?);
        }
        Ok(())
    }
}

impl Workload for Writer {
    type Input = Order;
    type Reference = ();
    type Prepared = ();
    type Output = Vec<Vec<u32>>;

    fn name(&self) -> &str {
        "writer"
    }

    fn ladder(&self, _: &Order) -> Ladder {
        let rung = |name: &'static str, kind| {
            let session = plan(depth_of(name), 1).footprint();
            let footprint = Footprint { session, task: Bytes::ZERO, reference: Bytes::ZERO };
            Rung::new(name, Place::On(kind), footprint)
        };
        let deep = ["depth 3", "depth 2", "depth 1"].map(|name| rung(name, DeviceKind::Gpu));
        Ladder::from(deep.into_iter().chain([rung("cpu", DeviceKind::Cpu)]).collect::<Vec<_>>())
    }

    fn open(&self, rung: &Rung, _: &Order, backend: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        WriterSession::open(rung, &Left { carried: vec![0; LEVEL_WORDS], outputs: Vec::new() }, backend)
    }

    fn resume(
        &self,
        rung: &Rung,
        _: &Order,
        state: &(dyn Any + Send),
        backend: &mut dyn Backend,
    ) -> Result<Box<dyn Session<Self>>, Fault> {
        let left: &Left = state.downcast_ref().ok_or_else(|| Fault::work("what it held is of another kind"))?;
        WriterSession::open(rung, left, backend)
    }
}

impl Session<Writer> for WriterSession {
    fn run(&mut self, order: &Order, context: &mut Context<'_, Writer>) -> Result<Vec<Vec<u32>>, Fault> {
        let published = match order {
            Order::Write(item) => self.staged.feed(item.clone(), context.backend),
            Order::Flush => self.staged.flush(context.backend),
        };
        self.keep(published)?;
        Ok(std::mem::take(&mut self.outputs))
    }

    fn leave(&mut self, backend: &mut dyn Backend) -> Result<Box<dyn Any + Send>, Fault> {
        let published = self.staged.flush(backend);
        self.keep(published)?;
        let carried = self.staged.payload().carried.clone();
        Ok(Box::new(Left { carried, outputs: std::mem::take(&mut self.outputs) }))
    }
}

#[test]
fn depth_is_a_rung_that_a_held_session_steps_down_without_changing_a_byte() {
    let orchestrator = Orchestrator::builder().devices([gpu(), cpu()]).build();
    let writer = orchestrator.register(Writer);
    let held = orchestrator.hold(&writer);
    let submit = |task| held.submit(task).expect("there is queue space");
    let mut outputs = Vec::new();
    for (at, rung) in (0..).zip(["depth 3", "depth 2", "depth 1", "cpu"]) {
        assert!(at == 0 || held.recall(rung));
        let items = at * ITEMS..(at + 1) * ITEMS;
        let tickets: Vec<_> = items.map(|item| submit(Task::new(Order::Write(Frames(item))))).collect();
        for ticket in tickets {
            let done = in_time(ticket).expect("no item is lost");
            assert_eq!(done.report.rung, rung);
            outputs.extend(done.output);
        }
    }
    outputs.extend(in_time(submit(Task::new(Order::Flush).drains())).expect("a flush").output);
    assert!(outputs == plain_loop(4 * ITEMS), "the bytes changed");
}
