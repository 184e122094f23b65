//! The memory of the CPU: what our own tasks have on the heap is promised already, and must not count a second time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_core::{Bytes, DeviceKind, Footprint, Ladder, Place, Rung};
use plimsoll_runtime::{Device, MemoryReading, Orchestrator, Registered, Task, Ticket};
use plimsoll_testkit::virtual_device::VirtualDevice;

use crate::bounded::{Gate, bounded, eventually, within};
use crate::hooked::Hooked;
use crate::scripted::{Answer, FIRST, Piece, Scripted, anywhere};

const RAM: Bytes = Bytes::mib(1_000);
/// What the process has before anything runs.
const PROGRAM: Bytes = Bytes::mib(100);
/// Longer than a reading counts.
const STALE: Duration = Duration::from_millis(600);

/// A machine as the system tells of it: what tasks have on the heap is no longer free, and only the process as a whole
/// can be measured.
struct Host {
    orchestrator: Orchestrator,
    work: Registered<Scripted>,
    heap: Arc<AtomicU64>,
    others: Arc<AtomicU64>,
    reads: Arc<AtomicUsize>,
    running: Arc<AtomicUsize>,
    leave: Gate,
}

impl Host {
    fn new(slots: usize, share: f64) -> Self {
        let (heap, others) = (Arc::new(AtomicU64::new(PROGRAM.0)), Arc::new(AtomicU64::new(0)));
        let reads = Arc::<AtomicUsize>::default();
        let (process, outside, count) = (Arc::clone(&heap), Arc::clone(&others), Arc::clone(&reads));
        let device = Hooked::new(Arc::new(VirtualDevice::cpu("host").memory(RAM).slots(slots).build()));
        let device = device.on_memory(move |reading| {
            count.fetch_add(1, Ordering::SeqCst);
            let resident = Bytes(process.load(Ordering::SeqCst));
            let free = RAM - resident - Bytes(outside.load(Ordering::SeqCst)) - reading.ours;
            MemoryReading { free, resident: Some(resident), ..reading }
        });
        let orchestrator = Orchestrator::builder().device(device.device()).margin(share).build();
        let work = orchestrator.register(Scripted::default());
        let running = Arc::default();
        Self { orchestrator, work, heap, others, reads, running, leave: Gate::default() }
    }

    /// A task that says it needs so much, and has so much on the heap until it may leave.
    fn start(&self, needs: Bytes, has: Bytes) -> Ticket<Answer> {
        let (heap, running, leave) = (Arc::clone(&self.heap), Arc::clone(&self.running), self.leave.clone());
        let piece = Piece::new(1).units(needs.0).ladder(anywhere(Footprint::task(needs)));
        let piece = piece.on_run(move |_, _| {
            heap.fetch_add(has.0, Ordering::SeqCst);
            running.fetch_add(1, Ordering::SeqCst);
            leave.pass();
            running.fetch_sub(1, Ordering::SeqCst);
            heap.fetch_sub(has.0, Ordering::SeqCst);
            Ok(())
        });
        self.orchestrator.submit(&self.work, Task::new(piece)).unwrap()
    }

    fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    fn line(&self) -> Bytes {
        self.orchestrator.reports()[0].line
    }

    /// Waits until memory was read from beginning to end.
    fn read_anew(&self) {
        let before = self.reads.load(Ordering::SeqCst);
        eventually("memory is read", || {
            // Asks for a reading where nothing runs.
            self.orchestrator.why(&self.work, Task::new(Piece::new(0)));
            self.reads.load(Ordering::SeqCst) >= before + 2
        });
    }

    fn end(self, tickets: impl IntoIterator<Item = Ticket<Answer>>) {
        self.leave.open();
        tickets.into_iter().for_each(|ticket| drop(within(ticket, "a task").unwrap()));
    }
}

#[test]
fn eighty_five_percent_of_the_memory_can_be_used() {
    bounded(|| {
        let host = Host::new(20, 0.85);
        let each = Bytes::mib(45);
        // 85 % of the 900 MiB that the program itself leaves.
        let tickets: Vec<_> = (1..=17)
            .map(|n| {
                let ticket = host.start(each, each);
                eventually("it runs beside the others", || host.running() == n);
                host.read_anew();
                ticket
            })
            .collect();
        assert_eq!((host.line(), host.orchestrator.reports()[0].promised), (Bytes::mib(765), Bytes::mib(765)));
        let one_more = host.start(each, each);
        std::thread::sleep(STALE);
        assert_eq!(host.running(), 17, "not past the line");
        host.end(tickets.into_iter().chain([one_more]));
    });
}

/// Whatever fits beside the first runs beside it, and what fits after it waits for it; nothing fails.
#[test]
fn a_second_task_beside_the_first() {
    for (mib, others, beside) in [(300, 0, 2), (380, 0, 2), (300, 190, 2), (300, 340, 1), (450, 0, 1), (600, 0, 1)] {
        bounded(move || {
            let host = Host::new(2, 0.85);
            host.others.store(Bytes::mib(others).0, Ordering::SeqCst);
            host.read_anew();
            let first = host.start(Bytes::mib(mib), Bytes::mib(mib));
            eventually("the first runs", || host.running() == 1);
            host.read_anew();
            let second = host.start(Bytes::mib(mib), Bytes::mib(mib));
            if beside == 2 {
                eventually("the second runs beside it", || host.running() == 2);
            }
            std::thread::sleep(STALE);
            assert_eq!(host.running(), beside, "{mib} MiB twice, others hold {others}");
            host.end([first, second]);
        });
    }
}

#[test]
fn what_others_take_meanwhile_still_counts() {
    bounded(|| {
        let host = Host::new(2, 1.0);
        let ticket = host.start(Bytes::mib(300), Bytes::mib(300));
        eventually("it runs", || host.running() == 1);
        host.read_anew();
        assert_eq!(host.line(), Bytes::mib(900));
        host.others.store(Bytes::mib(500).0, Ordering::SeqCst);
        host.read_anew();
        eventually("the line sinks by what others took", || host.line() == Bytes::mib(400));
        host.end([ticket]);
    });
}

/// The caller's own program is not ours to promise: not what it has when nothing runs, and beyond what we promised and
/// do not use, not what it takes while something does.
#[test]
fn what_the_caller_itself_takes_is_not_promised() {
    bounded(|| {
        let host = Host::new(2, 1.0);
        host.heap.fetch_add(Bytes::mib(200).0, Ordering::SeqCst);
        host.read_anew();
        eventually("before anything runs", || host.line() == Bytes::mib(700));
        let ticket = host.start(Bytes::mib(300), Bytes::mib(300));
        eventually("it runs", || host.running() == 1);
        host.read_anew();
        assert_eq!(host.line(), Bytes::mib(700), "our own use does not move it");
        host.heap.fetch_add(Bytes::mib(150).0, Ordering::SeqCst);
        host.read_anew();
        eventually("while it runs", || host.line() == Bytes::mib(550));
        assert!(host.orchestrator.lease(&[(FIRST, Bytes::mib(251))]).is_err(), "550 less the 300 of the task");
        host.end([ticket]);
    });
}

/// The same on the real CPU: two GiB that a task touches are ours.
#[test]
fn our_own_heap_does_not_lower_the_line_of_the_real_cpu() {
    bounded(|| {
        const HEAP: Bytes = Bytes::gib(2);
        let orchestrator = Orchestrator::builder().cpu(1).build();
        let work = orchestrator.register(Scripted::default());
        let before = orchestrator.reports()[0].line;
        let (entered, leave) = (Gate::default(), Gate::default());
        let (tell, wait) = (entered.clone(), leave.clone());
        let cpu = Ladder::new([Rung::new("cpu", Place::On(DeviceKind::Cpu), Footprint::task(HEAP))]);
        let piece = Piece::new(1).ladder(cpu).on_run(move |_, _| {
            let heap = vec![1_u8; HEAP.0 as usize];
            tell.open();
            wait.pass();
            assert!(heap.iter().step_by(4096).all(|byte| *byte == 1));
            Ok(())
        });
        let ticket = orchestrator.submit(&work, Task::new(piece)).unwrap();
        entered.pass();
        std::thread::sleep(STALE);
        let during = orchestrator.reports().remove(0);
        leave.open();
        within(ticket, "the task").unwrap();
        let sank = before - during.line;
        assert!(sank < Bytes::gib(1), "the line sank by {sank} for our own {HEAP}, which are promised as well");
    });
}

/// The real device says what the process holds.
#[cfg(target_os = "linux")]
#[test]
fn the_real_cpu_tells_what_the_process_holds() {
    const HEAP: Bytes = Bytes::mib(256);
    let cpu = plimsoll_runtime::cpu::CpuDevice::open();
    let before = cpu.memory().resident.expect("Linux tells");
    let heap = std::hint::black_box(vec![1_u8; HEAP.0 as usize]);
    let during = cpu.memory().resident.expect("Linux tells");
    assert!(during - before > HEAP.share(0.5), "{before} before, {during} with {HEAP} more");
    drop(heap);
}
