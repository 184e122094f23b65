//! The daemon and another program of the same user on one card: the book keeps both below the line together.

use std::time::{Duration, Instant};

use plimsoll::book::{Book, Membership, Promiser, Seen, Warning};
use plimsoll_core::allotment::Standing;
use plimsoll_core::{Bytes, DeviceId, Priority};
use plimsoll_daemon::wire::{Say, Sort};

use crate::rig::{MIB, Rig, until, wants};

const CARD: DeviceId = DeviceId(0);
const CAPACITY: Bytes = Bytes::mib(10_000);

/// A program that promises bytes of the card, as an orchestrator does.
#[derive(Default)]
struct Program {
    allotment: Bytes,
    promised: Bytes,
    wants: Bytes,
}

impl Promiser for Program {
    fn stand(&mut self, _: DeviceId) -> Seen {
        let (promised, urgency) = (self.promised, Some(Priority::Normal));
        let standing = Standing { promised, capacity: CAPACITY, share: 1.0, urgency, ..Standing::default() };
        let wanted = (self.wants > self.allotment).then_some((self.wants, Priority::Normal));
        Seen { standing, allotment: Some(self.allotment), wanted }
    }

    fn lower(&mut self, _: DeviceId, line: Bytes, _: Bytes, _: Option<Priority>) {
        self.allotment = self.allotment.min(line);
    }

    fn allotted(&mut self, _: DeviceId) -> Bytes {
        self.allotment.max(self.promised)
    }

    fn raise(&mut self, _: DeviceId, line: Bytes) {
        self.allotment = line;
    }

    fn go_alone(&mut self, _: DeviceId) {}

    fn warned(&mut self, warning: Option<Warning>) {
        assert!(warning.is_none(), "{warning:?}");
    }
}

fn together(book: &Book) -> Bytes {
    let entries = book.entries().expect("it can be read at any time");
    let together: Bytes = entries.iter().map(|entry| entry.allotted).sum();
    assert!(together <= CAPACITY, "{together} are allotted: {entries:?}");
    together
}

#[test]
fn leases_and_other_programs_stay_below_the_line_together() {
    let rig = Rig::new();
    let book = Book::at(rig.folder.path().join("book"));
    until("the daemon in the book", || match together(&book) {
        Bytes::ZERO => Err("nothing is allotted".to_owned()),
        _ => Ok(()),
    });
    let mut first = rig.client();
    let held = first.hold(wants("first", 2_000)).expect("there is room");
    let mut membership = Membership::new(&book, Program { wants: Bytes::mib(7_000), ..Program::default() });
    membership.add(CARD, "card".to_owned(), 1, false);
    until("the program's part", || {
        membership.look();
        together(&book);
        let program = membership.promiser();
        program.promised = program.wants.min(program.allotment);
        if program.promised == program.wants { Ok(()) } else { Err(format!("{} are allotted", program.allotment)) }
    });
    // It is seen, and a lease that does not fit beside it waits.
    until("the program in the list", || {
        let state = rig.state();
        let found = state.holders.iter().find(|holder| holder.sort == Sort::Member);
        let is_it = found
            .is_some_and(|member| member.pid == Some(std::process::id()) && member.portions[0].promised >= 7_000 * MIB);
        if is_it { Ok(()) } else { Err(format!("{:?}", state.holders)) }
    });
    let mut second = rig.client();
    let Say::Queued(queued) = second.lease(wants("second", 3_000)).unwrap() else { panic!("7,000 are the program's") };
    let end = Instant::now() + Duration::from_secs(1);
    while Instant::now() < end {
        membership.look();
        together(&book);
        assert!(second.wait_for(queued.lease, Some(Duration::from_millis(20))).unwrap().is_none(), "it does not fit");
    }
    // What the program gives up is the lease's.
    (membership.promiser().promised, membership.promiser().wants) = (Bytes::ZERO, Bytes::ZERO);
    until("the second's turn", || {
        membership.look();
        together(&book);
        let turn = second.wait_for(queued.lease, Some(Duration::from_millis(20))).map_err(|error| error.to_string())?;
        turn.map(drop).ok_or_else(|| "it waits".to_owned())
    });
    drop(membership);
    until("the program's end", || match rig.state().devices[0].members {
        0 => Ok(()),
        members => Err(format!("{members} bytes are members'")),
    });
    first.give_back(held.lease).expect("it is held");
}

/// A program that wants what the daemon only keeps at hand has it in a moment.
#[test]
fn what_the_daemon_keeps_at_hand_goes_to_who_wants_it() {
    let rig = Rig::new();
    let book = Book::at(rig.folder.path().join("book"));
    until("the daemon in the book", || if together(&book) > Bytes::ZERO { Ok(()) } else { Err("nothing".to_owned()) });
    let mut membership = Membership::new(&book, Program { wants: CAPACITY, ..Program::default() });
    membership.add(CARD, "card".to_owned(), 1, false);
    until("all of it", || {
        membership.look();
        if membership.promiser().allotment == CAPACITY { Ok(()) } else { Err(together(&book).to_string()) }
    });
}
