//! The machine: a clock, devices in truth, and what happens next. It drives a scheduler as a daemon does: requests and
//! answers go in with the time, news come out, memory is read.
//! Never gives the scheduler anything but what a daemon could know.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use plimsoll_core::line::{Margin, Memory};
use plimsoll_core::rng::Rng;
use plimsoll_core::scheduler::{Config, DeviceSpec, GrantNews, Scheduler};
use plimsoll_core::{Bytes, DeviceId, DeviceKind, GrantId, GrantKind, GrantOwner, Moment, Nanos, SharePolicy, Sharing};

use super::programs::{self, DEVICES, KINDS, Lease, Manners, Program};
use super::{Passed, checks};
use crate::sim::world::Pretend;

/// How often the driver is asked.
const READING: Nanos = Nanos::millis(500);
/// By when everybody has gone once nobody asks any more. The longest lease is under seven minutes, the longest lie two.
const GONE_WITHIN: Nanos = Nanos::seconds(3_600);

#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Ask(usize),
    Leave(usize, GrantId),
    Answer(usize, GrantId),
    Rise(usize, GrantId, usize),
    Item(usize, GrantId),
    Priority(usize, GrantId),
    Pin(usize, GrantId, bool),
    Free(usize),
    Strangers(usize),
    ReadingBegins(usize),
    ReadingEnds(usize),
    Tick,
}

pub(super) struct Machine {
    pub(super) scheduler: Scheduler<Pretend>,
    pub(super) now: Moment,
    rng: Rng,
    pub(super) programs: Vec<Program>,
    /// What programs without a lease have of each device.
    pub(super) strangers: [Bytes; DEVICES.len()],
    /// Whether there are such programs at all.
    pub(super) has_strangers: bool,
    /// Whether the driver tells what each program uses, and not only what all of them do.
    names_owners: bool,
    /// Nobody asks any more.
    is_closing: bool,
    agenda: BinaryHeap<Reverse<(Moment, u64, Happening)>>,
    order: u64,
    pub(super) passed: Passed,
}

impl Machine {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x7368_6172_6564);
        let policy = SharePolicy::NAMES[seed as usize % SharePolicy::NAMES.len()].1;
        let sharing = Sharing { policy, ..Sharing::between_programs() };
        let mut scheduler = Scheduler::new(Config { sharing, ..Config::default() }, Moment::START);
        for memory in DEVICES {
            let mut spec = DeviceSpec::new(DeviceKind::Gpu, 1, memory);
            spec.margin = Margin { share: 1.0, limit: None };
            let device = scheduler.add_device(spec);
            scheduler.device_opened(Moment::START, device);
        }
        let mut machine = Self {
            scheduler,
            now: Moment::START,
            has_strangers: rng.chance(0.5),
            names_owners: rng.chance(0.7),
            rng,
            programs: KINDS.map(Program::new).into(),
            strangers: [Bytes::ZERO; DEVICES.len()],
            is_closing: false,
            agenda: BinaryHeap::new(),
            order: 0,
            passed: Passed::default(),
        };
        for program in 0..machine.programs.len() {
            machine.ask_again(program);
        }
        for device in 0..DEVICES.len() {
            machine.plan(Nanos(1), Happening::ReadingBegins(device));
            if machine.has_strangers {
                machine.plan(Nanos::seconds(5), Happening::Strangers(device));
            }
        }
        machine
    }

    /// Goes on as long as this says, then nobody asks any more, until everybody has gone.
    pub(super) fn run(mut self, goes_on: impl Fn(&Self) -> bool) -> Result<Passed, String> {
        while goes_on(&self) {
            self.step()?;
        }
        self.is_closing = true;
        let until = self.now + GONE_WITHIN;
        while self.programs.iter().any(|program| program.lease.is_some() || !program.lingering.is_empty()) {
            if self.now > until {
                return Err(format!("somebody has not gone by {:?}: {:?}", self.now, self.programs));
            }
            self.step()?;
        }
        let quiet = self.now + self.scheduler.config().return_wait_max + READING + READING;
        while self.now < quiet {
            self.step()?;
        }
        checks::nothing_is_left(&self)?;
        Ok(self.passed)
    }

    fn plan(&mut self, within: Nanos, happening: Happening) {
        self.order += 1;
        self.agenda.push(Reverse((self.now + within, self.order, happening)));
    }

    fn step(&mut self) -> Result<(), String> {
        let Some(Reverse((at, _, happening))) = self.agenda.pop() else {
            return Err("nothing is left to happen".into());
        };
        self.now = self.now.max(at);
        let due = self.scheduler.next_tick();
        self.apply(happening)?;
        self.hear()?;
        let next = self.scheduler.next_tick();
        if let Some(next) = next.filter(|next| due != Some(*next) || happening == Happening::Tick) {
            self.plan(next.since(self.now), Happening::Tick);
        }
        let (grants, leases) = (self.scheduler.grants().count(), self.scheduler.ledger().leases());
        self.passed.grants_max = self.passed.grants_max.max(grants);
        self.passed.leases_max = self.passed.leases_max.max(leases);
        checks::always(self)
    }

    fn apply(&mut self, happening: Happening) -> Result<(), String> {
        let is_a_step = !matches!(
            happening,
            Happening::ReadingBegins(_) | Happening::ReadingEnds(_) | Happening::Tick | Happening::Free(_)
        );
        self.passed.steps += u64::from(is_a_step);
        match happening {
            Happening::Ask(program) => self.ask(program)?,
            Happening::Leave(program, id) if self.has(program, id) => self.leave(program),
            Happening::Answer(program, id) if self.has(program, id) => return self.answer(program),
            Happening::Rise(program, id, rung) if self.has(program, id) => return self.rise(program, rung),
            Happening::Item(program, id) if self.has(program, id) => self.item(program),
            Happening::Priority(program, id) if self.has(program, id) => self.change_priority(program),
            Happening::Pin(program, id, pinned) if self.has(program, id) => self.pin(program, pinned),
            Happening::Free(program) => {
                let now = self.now;
                self.programs[program].lingering.retain(|left| left.frees_at > now);
            }
            Happening::Strangers(device) => self.strangers_move(device),
            Happening::ReadingBegins(device) => {
                self.scheduler.memory_reading_begins(DeviceId(device as u16));
                let takes = Nanos::millis(self.rng.within(1, 50));
                self.plan(takes, Happening::ReadingEnds(device));
                self.plan(READING, Happening::ReadingBegins(device));
            }
            Happening::ReadingEnds(device) => {
                let (capacity, free) = (DEVICES[device], self.physically_free(device));
                self.read(device, Memory { capacity, free, ..Memory::default() });
            }
            Happening::Tick => self.scheduler.tick(self.now),
            // Of a lease that is over.
            _ => {}
        }
        Ok(())
    }

    fn read(&mut self, device: usize, memory: Memory) {
        let on = DeviceId(device as u16);
        if !self.names_owners {
            return self.scheduler.set_memory(self.now, on, memory);
        }
        let uses = |(number, program): (usize, &Program)| (GrantOwner::Program(number as u64), program.really_has(on));
        let used: Vec<_> = self.programs.iter().enumerate().map(uses).collect();
        self.scheduler.set_memory_by_owner(self.now, on, memory, &used);
    }

    /// Bytes of a device that nobody has.
    pub(super) fn physically_free(&self, device: usize) -> Bytes {
        let programs = self.programs.iter().map(|program| program.really_has(DeviceId(device as u16)));
        DEVICES[device] - (self.strangers[device] + programs.sum())
    }

    pub(super) fn sharing(&self) -> Sharing {
        self.scheduler.config().sharing
    }

    fn has(&self, program: usize, id: GrantId) -> bool {
        self.programs[program].lease.as_ref().is_some_and(|lease| lease.id == id)
    }

    pub(super) fn program_of(&self, id: GrantId) -> Result<usize, String> {
        let found = (0..self.programs.len()).find(|program| self.has(*program, id));
        found.ok_or_else(|| format!("there is news of {id}, which nobody has"))
    }

    fn ask_again(&mut self, program: usize) {
        let pause = Nanos::millis(self.rng.within(100, 30_000));
        self.plan(pause, Happening::Ask(program));
    }

    fn ask(&mut self, program: usize) -> Result<(), String> {
        if self.is_closing {
            return Ok(());
        }
        let kind = self.programs[program].kind;
        let spec = programs::wish(&mut self.rng, program, kind);
        let (manners, stays) = (programs::manners(&mut self.rng), programs::stay(&mut self.rng, kind));
        match self.scheduler.request(self.now, spec.clone()) {
            Ok(id) => {
                let (asked_at, rung_since) = (self.now, self.now);
                let (rung, recalled, items_left, is_being_stopped) = (None, None, 0, false);
                let lease = Lease {
                    id,
                    spec,
                    asked_at,
                    manners,
                    stays,
                    rung,
                    rung_since,
                    recalled,
                    items_left,
                    is_being_stopped,
                };
                self.programs[program].lease = Some(lease);
                self.disturb(program, id);
            }
            Err(refusal) => {
                checks::refused_at_once(&spec, refusal)?;
                self.passed.refused += 1;
                self.ask_again(program);
            }
        }
        Ok(())
    }

    /// Some die while they wait or hold, some change their priority, some are pinned for a while.
    fn disturb(&mut self, program: usize, id: GrantId) {
        if self.rng.chance(0.1) {
            let dies = Nanos::millis(self.rng.within(10, 60_000));
            self.plan(dies, Happening::Leave(program, id));
        }
        if self.rng.chance(0.3) {
            let changes = Nanos::millis(self.rng.within(10, 60_000));
            self.plan(changes, Happening::Priority(program, id));
        }
        if self.rng.chance(0.1) {
            let from = self.rng.within(10, 20_000);
            let span = self.rng.within(1_000, 60_000);
            self.plan(Nanos::millis(from), Happening::Pin(program, id, true));
            self.plan(Nanos::millis(from + span), Happening::Pin(program, id, false));
        }
    }

    fn hear(&mut self) -> Result<(), String> {
        while self.scheduler.has_grant_news() {
            for news in self.scheduler.drain_grant_news() {
                self.hear_one(news)?;
            }
        }
        Ok(())
    }

    fn hear_one(&mut self, news: GrantNews<Pretend>) -> Result<(), String> {
        match news {
            GrantNews::Granted { grant, rung, .. } => self.granted(grant, rung),
            GrantNews::Recalled { grant, to, .. } => self.recalled(grant, to),
            GrantNews::Overdue { grant } => {
                let program = self.program_of(grant)?;
                let lease = self.programs[program].lease.as_mut();
                lease.and_then(|lease| lease.recalled.as_mut()).iter_mut().for_each(|(_, overdue)| *overdue = true);
                Ok(())
            }
            GrantNews::Stop { grant, .. } => {
                let program = self.program_of(grant)?;
                checks::may_be_stopped(self, program)?;
                self.programs[program].lease.iter_mut().for_each(|lease| lease.is_being_stopped = true);
                self.passed.stopped += 1;
                self.plan(Nanos::millis(20), Happening::Leave(program, grant));
                Ok(())
            }
            GrantNews::MayRise { grant, rung } => {
                let program = self.program_of(grant)?;
                checks::may_rise(self, program, rung)?;
                self.passed.rose += 1;
                let takes = Nanos::millis(self.rng.within(1, 500));
                self.plan(takes, Happening::Rise(program, grant, rung));
                Ok(())
            }
            GrantNews::Refused { grant, .. } => {
                let program = self.program_of(grant)?;
                checks::refused_in_time(self, program)?;
                self.waited(program);
                self.programs[program].lease = None;
                self.passed.refused += 1;
                self.ask_again(program);
                Ok(())
            }
        }
    }

    fn waited(&mut self, program: usize) {
        let asked_at = self.programs[program].lease.as_ref().map_or(self.now, |lease| lease.asked_at);
        self.passed.waited_max = self.passed.waited_max.max(self.now.since(asked_at));
    }

    fn granted(&mut self, id: GrantId, rung: usize) -> Result<(), String> {
        let program = self.program_of(id)?;
        checks::may_be_given(self, program, rung)?;
        self.waited(program);
        self.passed.given += 1;
        let now = self.now;
        let Some(lease) = self.programs[program].lease.as_mut() else { return Ok(()) };
        (lease.rung, lease.rung_since) = (Some(rung), now);
        let (portions, stays) = (lease.spec.ladder[rung].portions().to_vec(), lease.stays);
        self.programs[program].use_rung(&portions, None);
        if self.programs[program].kind == GrantKind::Batch {
            let items = self.rng.within(1, 30) as u32;
            self.programs[program].lease.iter_mut().for_each(|lease| lease.items_left = items);
            self.scheduler.set_batch(self.now, id, items);
            self.plan(Nanos::millis(200), Happening::Item(program, id));
        } else {
            self.plan(stays, Happening::Leave(program, id));
        }
        Ok(())
    }

    fn recalled(&mut self, id: GrantId, to: Option<usize>) -> Result<(), String> {
        let program = self.program_of(id)?;
        checks::may_be_recalled(self, program, to)?;
        match to {
            Some(_) => self.passed.stepped_down += 1,
            None => self.passed.made_to_leave += 1,
        }
        let Some(lease) = self.programs[program].lease.as_mut() else { return Ok(()) };
        lease.recalled = Some((to, false));
        let answers_after = match lease.manners {
            Manners::Obeys | Manners::Lies => Some(self.rng.within(1, 3_000)),
            Manners::Slow => Some(self.rng.within(12_000, 30_000)),
            Manners::Mute => None,
        };
        if let Some(after) = answers_after {
            self.plan(Nanos::millis(after), Happening::Answer(program, id));
        }
        Ok(())
    }

    /// When bytes that a program gives back now are really free; at once if `None`.
    fn frees_at(&mut self, program: usize) -> Option<Moment> {
        let lies = self.programs[program].lease.as_ref().is_some_and(|lease| lease.manners == Manners::Lies);
        if !lies {
            return None;
        }
        self.passed.lies += 1;
        // Of a sum of all nobody can tell who lied once nobody waits for that any longer.
        let longest = if self.names_owners { 120_000 } else { 9_000 };
        let after = Nanos::millis(self.rng.within(1_000, longest));
        self.plan(after, Happening::Free(program));
        Some(self.now + after)
    }

    fn answer(&mut self, program: usize) -> Result<(), String> {
        let Some((Some(held), Some((to, _)))) =
            self.programs[program].lease.as_ref().map(|lease| (lease.rung, lease.recalled))
        else {
            return Ok(());
        };
        match to {
            None => self.leave(program),
            Some(to) if held < to => self.go_to(program, to)?,
            Some(_) => {}
        }
        Ok(())
    }

    fn go_to(&mut self, program: usize, rung: usize) -> Result<(), String> {
        let frees_at = self.frees_at(program);
        let now = self.now;
        let Some(lease) = self.programs[program].lease.as_mut() else { return Ok(()) };
        (lease.rung, lease.rung_since) = (Some(rung), now);
        if lease.recalled.is_some_and(|(to, _)| to.is_some_and(|to| rung >= to)) {
            lease.recalled = None;
        }
        let (id, portions) = (lease.id, lease.spec.ladder[rung].portions().to_vec());
        self.programs[program].use_rung(&portions, frees_at);
        self.scheduler.stepped_to(now, id, rung).map_err(|refusal| format!("{id} could not go to {rung}: {refusal}"))
    }

    fn rise(&mut self, program: usize, rung: usize) -> Result<(), String> {
        let Some(lease) = self.programs[program].lease.as_ref().filter(|lease| lease.rung > Some(rung)) else {
            return Ok(());
        };
        match self.scheduler.begin_step(self.now, lease.id, rung) {
            Ok(_) => {
                checks::under_the_line(self)?;
                self.go_to(program, rung)
            }
            Err(_) => Ok(()),
        }
    }

    /// It leaves, or dies: whatever it held or waited for is over.
    fn leave(&mut self, program: usize) {
        let Some(id) = self.programs[program].lease.as_ref().map(|lease| lease.id) else { return };
        // What is stopped is gone.
        let is_stopped = self.programs[program].lease.as_ref().is_some_and(|lease| lease.is_being_stopped);
        let frees_at = if is_stopped { None } else { self.frees_at(program) };
        self.programs[program].use_rung(&[], frees_at);
        self.programs[program].lease = None;
        self.scheduler.return_grant(self.now, id);
        self.ask_again(program);
    }

    /// One more item of a batch is done.
    fn item(&mut self, program: usize) {
        let Some(lease) = self.programs[program].lease.as_mut() else { return };
        let id = lease.id;
        lease.items_left = lease.items_left.saturating_sub(1);
        let left = lease.items_left;
        self.scheduler.set_batch(self.now, id, left);
        let takes = Nanos::millis(self.rng.within(500, 15_000));
        let next = if left == 0 { Happening::Leave(program, id) } else { Happening::Item(program, id) };
        self.plan(takes, next);
    }

    fn change_priority(&mut self, program: usize) {
        let priority = programs::priority(&mut self.rng);
        let Some(lease) = self.programs[program].lease.as_mut() else { return };
        lease.spec.priority = priority;
        let id = lease.id;
        self.scheduler.set_priority(self.now, id, priority);
    }

    fn pin(&mut self, program: usize, pinned: bool) {
        let Some(lease) = self.programs[program].lease.as_mut() else { return };
        lease.spec.pinned = pinned;
        let id = lease.id;
        self.scheduler.set_pinned(self.now, id, pinned);
    }

    /// Strangers take some of what nobody has, or give all back.
    fn strangers_move(&mut self, device: usize) {
        let free = self.physically_free(device) + self.strangers[device];
        let share = if self.is_closing { 0.0 } else { [0.0, 0.0, 0.2, 0.5][self.rng.below(4)] };
        self.strangers[device] = DEVICES[device].share(share).min(free);
        let pause = Nanos::millis(self.rng.within(1_000, 60_000));
        self.plan(pause, Happening::Strangers(device));
    }
}
