//! Several schedulers that share a device by a book, in virtual time: never past the line together, and everybody's work
//! gets done, also when one of them leaves in the middle.
//! Each member looks at the book in two steps, as its keeper does: what lowers is done before it is written, what raises
//! after; time passes in between.

use super::*;
use crate::allotment::{Other, SETTLE, Seat, Standing, Want, decide};
use crate::line::Memory;
use crate::rng::Rng;

const DEVICE: DeviceId = DeviceId(0);
const CAPACITY: u64 = 1_000;
const STEP: u64 = 5_000_000;

/// A member's entry.
#[derive(Copy, Clone, Debug, Default)]
struct Words {
    allotted: Bytes,
    in_use: Bytes,
    in_use_now: Bytes,
    strangers: Bytes,
    wanted: Option<Want>,
    written: Moment,
}

struct Member {
    scheduler: Scheduler<Nothing>,
    seat: Seat,
    words: Words,
    /// It has lowered what had to be, and writes at its next step.
    about_to_write: Option<Standing>,
    runs: Vec<(Moment, Assignment<Nothing>)>,
    submitted: usize,
    done: usize,
    has_left: bool,
}

struct World {
    rng: Rng,
    now: Moment,
    members: Vec<Member>,
    limit: Option<Bytes>,
    strangers: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let count = 2 + rng.below(2);
        let limit = rng.chance(0.4).then(|| Bytes(rng.within(300, CAPACITY)));
        let strangers = if rng.chance(0.5) { rng.within(0, 400) } else { 0 };
        let member = |_| {
            let mut scheduler = Scheduler::new(Config { lookahead: 0, ..Config::default() }, Moment::START);
            let mut spec = exact(DeviceKind::Gpu, 2, CAPACITY);
            spec.margin.limit = limit;
            let device = scheduler.add_device(spec);
            scheduler.device_opened(Moment::START, device);
            scheduler.set_allotment(Moment::START, device, Some(Bytes::ZERO));
            Member {
                scheduler,
                seat: Seat::default(),
                words: Words::default(),
                about_to_write: None,
                runs: Vec::new(),
                submitted: 0,
                done: 0,
                has_left: false,
            }
        };
        let members = (0..count).map(member).collect();
        Self { rng, now: Moment(1_000 * STEP), members, limit, strangers }
    }

    /// What all together may promise.
    fn line(&self) -> u64 {
        let left = CAPACITY - self.strangers;
        self.limit.map_or(left, |limit| limit.0.min(left))
    }

    fn promised(&self, at: usize) -> u64 {
        self.members[at].scheduler.ledger().promised(DEVICE).0
    }

    fn others(&self, me: usize) -> Vec<Other> {
        let other = |(at, member): (usize, &Member)| Other {
            allotted: member.words.allotted,
            in_use: member.words.in_use,
            in_use_now: member.words.in_use_now,
            strangers: (self.now.since(member.words.written) < SETTLE).then_some(member.words.strangers),
            wanted: member.words.wanted,
            limit: self.limit,
            counter: at as u64,
            goes_first: at < me,
        };
        self.members.iter().enumerate().filter(|(at, member)| *at != me && !member.has_left).map(other).collect()
    }

    fn read_memory(&mut self, at: usize) {
        let used: u64 = self.strangers + (0..self.members.len()).map(|at| self.promised(at)).sum::<u64>();
        let memory = Memory {
            capacity: Bytes(CAPACITY),
            free: Bytes(CAPACITY) - Bytes(used),
            ours: Bytes(self.promised(at)),
            resident: None,
        };
        let scheduler = &mut self.members[at].scheduler;
        scheduler.memory_reading_begins(DEVICE);
        scheduler.set_memory(self.now, DEVICE, memory);
    }

    /// Looks at the book, and does what lowers.
    fn look(&mut self, at: usize) {
        self.read_memory(at);
        let (now, others) = (self.now, self.others(at));
        let member = &mut self.members[at];
        let seen = Standing { counter: at as u64, ..member.scheduler.standing(DEVICE) };
        let wanted = member.scheduler.wanted_allotment(DEVICE);
        let standing = member.seat.stand(now, seen, member.scheduler.ledger().allotment(DEVICE), wanted);
        let verdict = decide(now, &standing, &others);
        if !verdict.is_raised {
            member.seat.heed(now, &verdict);
            let line =
                member.scheduler.ledger().allotment(DEVICE).map_or(verdict.line, |before| verdict.line.min(before));
            member.scheduler.set_allotment(now, DEVICE, Some(line));
            member.scheduler.give_up_idle(now, DEVICE, verdict.evict);
        }
        member.about_to_write = Some(standing);
    }

    /// Writes it down, and does what raises.
    fn write(&mut self, at: usize) {
        let (now, others) = (self.now, self.others(at));
        let member = &mut self.members[at];
        let Some(mut standing) = member.about_to_write.take() else { return };
        let ledger = member.scheduler.ledger();
        let allotted = ledger.allotment(DEVICE).unwrap_or_default().max(ledger.promised(DEVICE));
        standing.allotted = allotted;
        let verdict = decide(now, &standing, &others);
        let allotted = if verdict.is_raised { verdict.line } else { allotted };
        member.words = Words {
            allotted,
            in_use: standing.in_use.min(allotted),
            in_use_now: standing.ours.min(allotted),
            strangers: standing.strangers,
            wanted: standing.wanted.filter(|want| want.bytes > allotted),
            written: now,
        };
        if verdict.is_raised {
            member.seat.heed(now, &verdict);
            member.scheduler.set_allotment(now, DEVICE, Some(verdict.line));
        }
    }

    fn submit(&mut self, at: usize) {
        let bytes = match self.rng.below(3) {
            0 => self.rng.within(1, self.line() / 8 + 2),
            1 => self.rng.within(1, self.line() + 1),
            _ => self.line() * 9 / 10,
        };
        let member = &mut self.members[at];
        let spec = spec(&mut member.scheduler, on_gpu(bytes));
        member.scheduler.submit(self.now, spec, ()).expect("there is space");
        member.submitted += 1;
    }

    fn work(&mut self, at: usize) {
        let now = self.now;
        let (due, still): (Vec<_>, Vec<_>) = self.members[at].runs.drain(..).partition(|(end, _)| *end <= now);
        self.members[at].runs = still;
        for (_, run) in due {
            settle(&mut self.members[at].scheduler, now, &run, None);
            self.members[at].done += 1;
        }
        while let Some(run) = self.members[at].scheduler.take(now, DEVICE) {
            let end = now + Nanos::millis(self.rng.within(5, 300));
            self.members[at].runs.push((end, run));
        }
        self.members[at].scheduler.tick(now);
        let failed = errors(&mut self.members[at].scheduler);
        assert!(failed.is_empty(), "{failed:?}");
    }

    fn step(&mut self) {
        self.now = Moment(self.now.0 + STEP);
        for at in 0..self.members.len() {
            if self.members[at].has_left {
                continue;
            }
            self.work(at);
            // Every 20 ms or so.
            if self.members[at].about_to_write.is_some() {
                self.write(at);
            } else if self.rng.chance(0.25) {
                self.look(at);
            }
        }
        let together: u64 = (0..self.members.len()).map(|at| self.promised(at)).sum();
        let (line, words) = (self.line(), self.members.iter().map(|member| member.words).collect::<Vec<_>>());
        assert!(together <= line, "{together} of {line} at {:?}: {words:#?}", self.now);
    }

    /// One that leaves gives back what it had: its process has ended.
    fn leave(&mut self, at: usize) {
        let member = &mut self.members[at];
        for (_, run) in std::mem::take(&mut member.runs) {
            settle(&mut member.scheduler, self.now, &run, None);
        }
        member.scheduler.discard_warm();
        (member.has_left, member.words) = (true, Words::default());
    }

    fn is_done(&self) -> bool {
        self.members.iter().all(|member| member.has_left || member.done == member.submitted)
    }
}

#[test]
fn members_never_pass_the_line_together_and_all_work_is_done() {
    for seed in 0..600 {
        let mut world = World::new(seed);
        let leaver = world.rng.chance(0.3).then(|| world.rng.below(world.members.len()));
        for step in 0..1_200 {
            let at = world.rng.below(world.members.len());
            if world.rng.chance(0.05) && !world.members[at].has_left && world.members[at].scheduler.unsettled() < 4 {
                world.submit(at);
            }
            if step == 600
                && let Some(leaver) = leaver
            {
                world.leave(leaver);
            }
            world.step();
        }
        let mut more = 0;
        while !world.is_done() {
            more += 1;
            assert!(more < 20_000, "seed {seed}: somebody waits for ever");
            world.step();
        }
    }
}

/// Without the book both have it.
#[test]
fn without_an_allotment_they_do_pass_it() {
    let mut world = World::new(0);
    (world.limit, world.strangers) = (None, 0);
    for at in 0..2 {
        let member = &mut world.members[at];
        member.scheduler.set_allotment(world.now, DEVICE, None);
        let spec = spec(&mut member.scheduler, on_gpu(900));
        member.scheduler.set_margin(DEVICE, crate::line::Margin { share: 1.0, limit: None });
        member.scheduler.set_memory(
            world.now,
            DEVICE,
            Memory { capacity: Bytes(CAPACITY), free: Bytes(CAPACITY), ..Memory::default() },
        );
        member.scheduler.submit(world.now, spec, ()).unwrap();
        assert!(member.scheduler.take(world.now, DEVICE).is_some());
    }
    assert_eq!(world.promised(0) + world.promised(1), 1_800);
}
