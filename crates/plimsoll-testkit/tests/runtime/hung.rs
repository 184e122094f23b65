//! Calls that never come back: spare slots step in, and a device that has none left says so everywhere.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plimsoll_core::{Ailment, Bytes, Ladder, Refusal};
use plimsoll_runtime::{Orchestrator, Registered, Task, Ticket};

use crate::bounded::{Gate, bounded, eventually, within};
use crate::scripted::{Answer, Piece, Scripted, as_device, gpu, virtual_gpu};

/// A GPU on which so many calls hang until the gate opens; it has been reopened since.
struct Hung {
    orchestrator: Orchestrator,
    work: Registered<Scripted>,
    leave: Gate,
    tickets: Vec<Ticket<Answer>>,
}

fn hung(slots: usize, width: usize, calls: usize) -> Hung {
    let card = virtual_gpu("hung", |gpu| gpu.slots(slots).width_first(width));
    let orchestrator = Orchestrator::builder().device(as_device(&card)).stall_after(Duration::from_millis(100)).build();
    let work = orchestrator.register(Scripted::default());
    let leave = Gate::default();
    let mut tickets = Vec::new();
    for _ in 0..calls {
        let (entered, hangs) = (Gate::default(), AtomicBool::new(true));
        let (tell, wait) = (entered.clone(), leave.clone());
        let piece = Piece::new(1).ladder(Ladder::new([gpu(Bytes::ZERO)])).on_run(move |_, _| {
            if hangs.swap(false, Ordering::SeqCst) {
                tell.open();
                wait.pass();
            }
            Ok(())
        });
        tickets.push(orchestrator.submit(&work, Task::new(piece)).unwrap());
        entered.pass();
    }
    eventually("it is reopened", || card.calls().reopenings > 0);
    Hung { orchestrator, work, leave, tickets }
}

impl Hung {
    fn next(&self) -> Task<Scripted> {
        Task::new(Piece::new(2).ladder(Ladder::new([gpu(Bytes::ZERO)])).checked())
    }

    fn end(self) {
        self.leave.open();
        for ticket in self.tickets {
            assert_eq!(within(ticket, "one that hung, done again").unwrap().output.value, 1);
        }
    }
}

#[test]
fn a_spare_slot_steps_in_for_one_that_hangs() {
    bounded(|| {
        for (slots, width, calls) in [(2, 1, 1), (4, 2, 2), (4, 2, 1)] {
            let hung = hung(slots, width, calls);
            let ticket = hung.orchestrator.submit(&hung.work, hung.next()).unwrap();
            assert_eq!(within(ticket, "a task beside the hung ones").unwrap().output.value, 2);
            hung.end();
        }
    });
}

#[test]
fn a_device_all_of_whose_slots_hang_says_so_in_reports_and_in_why() {
    bounded(|| {
        let hung = hung(1, 1, 1);
        let ailment = || hung.orchestrator.reports()[0].health.ailment();
        eventually("it counts as stalled", || ailment() == Some(Ailment::Stalled));
        let why = hung.orchestrator.why(&hung.work, hung.next());
        assert_eq!(why[0].refusal, Some(Refusal::Unwell(Ailment::Stalled)));
        let ticket = hung.orchestrator.submit(&hung.work, hung.next()).unwrap();
        hung.leave.open();
        assert_eq!(within(ticket, "a task that waited").unwrap().output.value, 2);
        hung.end();
    });
}
