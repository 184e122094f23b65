//! Width: how many slots of a device are used at once. A second run hides its copies behind the first one's kernels, a
//! third one may or may not: what it gives is measured, not guessed.
//!
//! While the device is saturated, the width in use is compared with one more, and with one less, in the order *this,
//! other, other, this*, so that a machine that gets slower meanwhile favours neither. The wider one is kept only if it
//! gives clearly more, the narrower one if it gives as much; between the two lies a band in which nothing changes, so
//! noise does not make it flap. After that it rests, and looks again later.
//!
//! Throughput is counted as width × units ÷ time in the slot. While no slot is ever without work that is the same as
//! units ÷ time on the clock, without the error of runs cut by the ends of a window.
//!
//! Never starts or stops a run: `take` asks how many may run.
//! Invariant: 1 ≤ width ≤ most. A device that did not ask for it always has all its slots.

use crate::{Moment, Nanos};

/// A wider device must give this many times as much: each slot costs memory.
const GAIN_MIN: f64 = 1.05;
/// A narrower one must give at least this part: less is what a few runs of noise can take away.
const LOSS_MAX: f64 = 0.98;
/// Runs of a window, for each slot in use.
const RUNS_PER_SLOT: usize = 8;
/// Time in slots that a window takes at least: runs of microseconds are noise alone.
const WINDOW_MIN: Nanos = Nanos::millis(20);
/// Rest between two looks.
const REST_MIN: Nanos = Nanos::seconds(30);
/// Rest for each time that a look took: a width that turns out worse costs at most a small part of all time.
const REST_PER_LOOK: u64 = 16;
/// Runs without more work behind them after which a trial is given up, for each run that a window needs.
const LULLS_MAX: usize = 8;

/// How many slots are used at once, and what is being tried.
#[derive(Clone, Debug)]
pub(crate) struct Width<K> {
    most: usize,
    /// The width that was best so far.
    kept: usize,
    state: State<K>,
}

#[derive(Clone, Debug)]
enum State<K> {
    Fixed,
    Resting { until: Moment },
    Looking(Look<K>),
}

/// One slot's run that ended.
#[derive(Copy, Clone, Debug)]
pub(crate) struct SlotRun<K> {
    /// What can be compared: runs of one session key.
    pub(crate) key: K,
    pub(crate) units: u64,
    pub(crate) started_at: Moment,
    /// Whether every slot in use had a run, and another was waiting.
    pub(crate) saturated: bool,
}

/// Whether one more or one less is tried.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Step {
    Wider,
    Narrower,
}

/// Which window of a comparison is being filled.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Phase {
    Before,
    Trial,
    After,
}

#[derive(Copy, Clone, Debug)]
struct Look<K> {
    began: Moment,
    step: Step,
    /// Whether a wider one was kept in this look: what is narrower was then already compared.
    widened: bool,
    phase: Phase,
    /// Runs that started before this were under way at another width.
    since: Moment,
    /// Runs seen since then. The first of each slot had others beside it for a part of its time only.
    early: usize,
    key: K,
    window: Tally,
    before: Tally,
    trial: Tally,
    lulls: usize,
}

/// Runs of a window.
#[derive(Copy, Clone, Debug, Default)]
struct Tally {
    runs: usize,
    units: f64,
    time: f64,
    /// Left out in the end: a slot's first run opens it.
    slowest: (f64, f64),
}

impl Tally {
    fn add(&mut self, units: u64, took: Nanos) {
        let (units, time) = (units.max(1) as f64, took.0.max(1) as f64);
        self.runs += 1;
        self.units += units;
        self.time += time;
        if time * self.slowest.0 >= self.slowest.1 * units {
            self.slowest = (units, time);
        }
    }

    /// Units for each nanosecond of one slot in these windows, each without its slowest run.
    fn rate<const N: usize>(windows: [Self; N]) -> f64 {
        let units: f64 = windows.iter().map(|window| window.units - window.slowest.0).sum();
        let time: f64 = windows.iter().map(|window| window.time - window.slowest.1).sum();
        units / time.max(1.0)
    }
}

impl<K: Copy + PartialEq> Width<K> {
    /// All slots, always.
    pub(crate) fn fixed(slots: usize) -> Self {
        Self { most: slots.max(1), kept: slots.max(1), state: State::Fixed }
    }

    /// Starts at `first` and is measured from then on, never beyond `most`.
    pub(crate) fn measured(first: usize, most: usize) -> Self {
        let most = most.max(1);
        let kept = first.clamp(1, most);
        let state = if most == 1 { State::Fixed } else { State::Resting { until: Moment::START } };
        Self { most, kept, state }
    }

    /// How many slots are used at once.
    pub(crate) fn slots(&self) -> usize {
        match &self.state {
            State::Looking(Look { phase: Phase::Trial, step, .. }) => self.beside(*step),
            _ => self.kept,
        }
    }

    /// Things may have changed: rests no longer.
    pub(crate) fn look_again(&mut self) {
        if !matches!(self.state, State::Fixed) {
            self.state = State::Resting { until: Moment::START };
        }
    }

    /// A run ended now in a slot. Says whether the width is another from now on.
    pub(crate) fn settled(&mut self, now: Moment, run: SlotRun<K>) -> bool {
        let before = self.slots();
        match &self.state {
            State::Resting { until } if now >= *until && run.saturated => self.begin_look(now, run.key),
            State::Looking(_) => self.count(now, run),
            _ => {}
        }
        self.slots() != before
    }

    fn beside(&self, step: Step) -> usize {
        match step {
            Step::Wider => self.kept + 1,
            Step::Narrower => self.kept - 1,
        }
    }

    fn begin_look(&mut self, now: Moment, key: K) {
        let step = if self.kept < self.most { Step::Wider } else { Step::Narrower };
        let (phase, empty) = (Phase::Before, Tally::default());
        let look = Look {
            began: now,
            step,
            widened: false,
            phase,
            since: now,
            early: 0,
            key,
            window: empty,
            before: empty,
            trial: empty,
            lulls: 0,
        };
        self.state = State::Looking(look);
    }

    /// Starts the comparison of this look anew.
    fn compare(&mut self, now: Moment, look: Look<K>) {
        let (phase, window) = (Phase::Before, Tally::default());
        self.state = State::Looking(Look { phase, since: now, early: 0, window, lulls: 0, ..look });
    }

    fn count(&mut self, now: Moment, run: SlotRun<K>) {
        let slots = self.slots();
        let State::Looking(look) = &mut self.state else { return };
        if look.key != run.key {
            let look = Look { key: run.key, ..*look };
            return self.compare(now, look);
        }
        let needed = RUNS_PER_SLOT * slots * if look.phase == Phase::Trial { 2 } else { 1 };
        if !run.saturated {
            look.window = Tally::default();
            look.early = 0;
            look.lulls += 1;
            if look.lulls > LULLS_MAX * needed {
                let began = look.began;
                self.rest(now, began);
            }
            return;
        }
        if run.started_at < look.since {
            return;
        }
        if look.early < slots {
            look.early += 1;
            return;
        }
        look.window.add(run.units, now.since(run.started_at));
        if look.window.runs > needed && look.window.time >= WINDOW_MIN.0 as f64 {
            self.window_is_full(now);
        }
    }

    fn window_is_full(&mut self, now: Moment) {
        let State::Looking(look) = &mut self.state else { return };
        let window = std::mem::take(&mut look.window);
        (look.since, look.early, look.lulls) = (now, 0, 0);
        match look.phase {
            Phase::Before => {
                look.before = window;
                look.phase = Phase::Trial;
            }
            Phase::Trial => {
                look.trial = window;
                look.phase = Phase::After;
            }
            Phase::After => {
                let rate = Tally::rate([look.before, window]);
                let look = *look;
                let gain = Tally::rate([look.trial]) * self.beside(look.step) as f64 / (rate * self.kept as f64);
                self.judge(now, gain, look);
            }
        }
    }

    fn judge(&mut self, now: Moment, gain: f64, look: Look<K>) {
        let step = look.step;
        let kept = match step {
            Step::Wider => gain >= GAIN_MIN,
            Step::Narrower => gain >= LOSS_MAX,
        };
        if kept {
            self.kept = self.beside(step);
        }
        let widened = look.widened || (kept && step == Step::Wider);
        let next = match step {
            Step::Wider if kept && self.kept < self.most => Some(Step::Wider),
            Step::Wider if !widened && self.kept > 1 => Some(Step::Narrower),
            Step::Narrower if kept && self.kept > 1 => Some(Step::Narrower),
            _ => None,
        };
        match next {
            Some(step) => self.compare(now, Look { step, widened, ..look }),
            None => self.rest(now, look.began),
        }
    }

    fn rest(&mut self, now: Moment, began: Moment) {
        let rest = Nanos(now.since(began).0.saturating_mul(REST_PER_LOOK)).max(REST_MIN);
        self.state = State::Resting { until: now + rest };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    const FRAME: u64 = 1_000;

    /// A device of which nothing is true but how many frames a second it gives at each width.
    struct Scripted {
        width: Width<u8>,
        now: Moment,
        /// The start and the end of each run.
        runs: Vec<(Moment, Moment)>,
        rng: Rng,
        /// How far a run may be off, as a part of its time.
        noise: f64,
        changes: usize,
    }

    impl Scripted {
        fn new(first: usize, most: usize, noise: f64) -> Self {
            let (width, runs) = (Width::measured(first, most), Vec::new());
            Self { width, now: Moment::START, runs, rng: Rng::new(3), noise, changes: 0 }
        }

        /// Plays this many frames at so many frames a second for each width.
        fn play(&mut self, frames: usize, per_second: &[f64]) -> usize {
            self.play_key(frames, per_second, |_| 0, |_| true)
        }

        fn play_key(
            &mut self,
            frames: usize,
            per_second: &[f64],
            key: impl Fn(usize) -> u8,
            saturated: impl Fn(usize) -> bool,
        ) -> usize {
            for frame in 0..frames {
                while self.runs.len() < self.width.slots() {
                    let at_once = self.runs.len() + 1;
                    let off = 1.0 + self.noise * (self.rng.below(2_001) as f64 / 1_000.0 - 1.0);
                    let took = self.width.slots().max(at_once) as f64 / per_second[self.width.slots() - 1];
                    self.runs.push((self.now, self.now + Nanos((took * off * 1e9) as u64)));
                }
                let (at, _) = self.runs.iter().enumerate().min_by_key(|(_, (_, end))| *end).expect("one is running");
                let (started_at, end) = self.runs.swap_remove(at);
                self.now = end;
                let run = SlotRun { key: key(frame), units: FRAME, started_at, saturated: saturated(frame) };
                self.changes += usize::from(self.width.settled(self.now, run));
            }
            self.width.slots()
        }

        fn rests(&self) -> bool {
            matches!(self.width.state, State::Resting { until } if until > self.now)
        }
    }

    #[test]
    fn more_helps_so_it_widens_and_stays() {
        let mut device = Scripted::new(2, 4, 0.03);
        assert_eq!(device.play(1_000, &[100.0, 178.0, 220.0, 250.0]), 4);
        assert!(device.rests());
        let changes = device.changes;
        assert_eq!(device.play(200, &[100.0, 178.0, 220.0, 250.0]), 4);
        assert_eq!(device.changes, changes);
    }

    #[test]
    fn it_widens_only_as_far_as_it_helps() {
        let mut device = Scripted::new(2, 4, 0.03);
        assert_eq!(device.play(1_000, &[100.0, 178.0, 220.0, 222.0]), 3);
        assert!(device.rests());
        assert_eq!(device.changes, 5, "3 and 4 are tried and compared; 2 was compared with 3 already");
    }

    #[test]
    fn without_a_gain_it_goes_back() {
        let mut device = Scripted::new(2, 4, 0.03);
        assert_eq!(device.play(1_000, &[100.0, 178.0, 178.0, 178.0]), 2);
        assert!(device.rests());
    }

    #[test]
    fn a_second_slot_that_gives_nothing_is_given_up() {
        let mut device = Scripted::new(2, 4, 0.03);
        assert_eq!(device.play(1_000, &[100.0, 100.0, 100.0, 100.0]), 1);
        let mut device = Scripted::new(3, 4, 0.0);
        assert_eq!(device.play(1_000, &[100.0, 100.0, 100.0, 100.0]), 1, "and the one after it, in one look");
        let mut software = Scripted::new(1, 2, 0.03);
        assert_eq!(software.play(1_000, &[100.0, 101.0]), 1);
        let mut software = Scripted::new(1, 2, 0.03);
        assert_eq!(software.play(1_000, &[100.0, 120.0]), 2);
    }

    /// Feeds runs that end one after the other, each begun when the one before had ended, and says how many it took
    /// until another width was in use.
    fn runs_until_a_change(width: &mut Width<u8>, now: &mut Moment, took: Nanos) -> usize {
        let changes = |_: &usize| {
            let run = SlotRun { key: 0, units: FRAME, started_at: *now, saturated: true };
            *now = *now + took;
            width.settled(*now, run)
        };
        (1..1_000).find(changes).expect("it looks")
    }

    fn lull(width: &mut Width<u8>, now: Moment) {
        width.settled(now, SlotRun { key: 0, units: FRAME, started_at: now, saturated: false });
    }

    /// One begins the look, one for each slot was under way when the window began, one more is the slowest.
    #[test]
    fn a_window_is_eight_runs_for_each_slot_and_twice_as_many_in_a_trial() {
        let (mut width, mut now) = (Width::measured(2, 4), Moment::START);
        let runs = [0; 2].map(|_| runs_until_a_change(&mut width, &mut now, Nanos::millis(10)));
        assert_eq!(runs, [1 + 2 + 16 + 1, 3 + 48 + 1]);
        let (mut width, mut now) = (Width::measured(2, 4), Moment::START);
        assert_eq!(runs_until_a_change(&mut width, &mut now, Nanos::millis(1)), 1 + 2 + 20, "twenty milliseconds");
    }

    #[test]
    fn a_window_begins_anew_after_a_lull() {
        let (mut width, mut now) = (Width::measured(2, 4), Moment::START);
        for _ in 0..10 {
            let run = SlotRun { key: 0, units: FRAME, started_at: now, saturated: true };
            now = now + Nanos::millis(10);
            width.settled(now, run);
        }
        lull(&mut width, now);
        assert_eq!(runs_until_a_change(&mut width, &mut now, Nanos::millis(10)), 2 + 16 + 1);
    }

    #[test]
    fn a_look_is_given_up_after_eight_lulls_for_each_run_it_needs() {
        let mut width = Width::measured(2, 4);
        let run = SlotRun { key: 0, units: FRAME, started_at: Moment::START, saturated: true };
        width.settled(Moment::START, run);
        for _ in 0..8 * 16 {
            lull(&mut width, Moment(1));
            assert!(matches!(width.state, State::Looking(_)));
        }
        lull(&mut width, Moment(1));
        assert!(matches!(width.state, State::Resting { .. }));
    }

    /// The machine is half as fast in the end as it was in the beginning; what was tried between the two gave less than
    /// their mean, though more than the last.
    #[test]
    fn a_machine_that_gets_slower_favours_neither() {
        let (mut width, mut now) = (Width::measured(2, 3), Moment::START);
        runs_until_a_change(&mut width, &mut now, Nanos::millis(10));
        assert_eq!(width.slots(), 3);
        runs_until_a_change(&mut width, &mut now, Nanos::millis(25));
        assert_eq!(width.slots(), 2);
        runs_until_a_change(&mut width, &mut now, Nanos::millis(20));
        assert_eq!((width.kept, width.slots()), (2, 1), "it goes on with a narrower one");
    }

    #[test]
    fn throughput_counts_units_and_leaves_the_slowest_run_out() {
        let mut tally = Tally::default();
        for (units, took) in [(100, 1_000), (10, 900), (300, 3_000)] {
            tally.add(units, Nanos(took));
        }
        assert_eq!((tally.runs, Tally::rate([tally])), (3, 400.0 / 4_000.0));
        let mut other = Tally::default();
        for units in [0, 1, 1] {
            other.add(units, Nanos(1_000));
        }
        assert_eq!(Tally::rate([tally, other]), 402.0 / 6_000.0, "no units count as one");
    }

    /// Once it rests, half an hour of looking again ends where it began, whatever the noise.
    #[test]
    fn noise_does_not_make_it_flap() {
        for (gains, best) in [([100.0, 178.0, 178.0, 178.0], 2), ([100.0, 100.0, 100.0, 100.0], 1)] {
            for seed in 0..10 {
                let mut device = Scripted { rng: Rng::new(seed), ..Scripted::new(2, 4, 0.03) };
                device.play(2_000, &gains);
                let mut kept = Vec::new();
                while device.now < Moment(Nanos::seconds(1_800).0) {
                    device.play(5, &gains);
                    kept.push(device.width.kept);
                }
                assert!(kept.iter().all(|&kept| kept == best), "seed {seed}: {best} became another");
            }
        }
    }

    #[test]
    fn it_looks_again_when_things_have_changed() {
        let mut device = Scripted::new(2, 4, 0.0);
        assert_eq!(device.play(1_000, &[100.0, 100.0, 100.0, 100.0]), 1);
        let (narrow, wide) = (device.play(100, &[100.0, 190.0, 270.0, 300.0]), device.now);
        assert_eq!(narrow, 1, "it rests");
        device.play(20_000, &[100.0, 190.0, 270.0, 300.0]);
        assert_eq!(device.width.kept, 4);
        assert!(device.now.since(wide) > REST_MIN);
        let mut returned = Scripted::new(2, 4, 0.0);
        assert_eq!(returned.play(1_000, &[100.0, 100.0, 100.0, 100.0]), 1);
        returned.width.look_again();
        assert_eq!(returned.play(1_000, &[100.0, 190.0, 270.0, 300.0]), 4);
    }

    #[test]
    fn a_trial_takes_a_small_part_of_all_time() {
        let mut device = Scripted::new(2, 4, 0.0);
        device.play(1_000, &[1.0, 1.9, 1.9, 1.9]);
        let (mut tried, mut all) = (0, 0);
        while device.now < Moment(Nanos::seconds(80_000).0) {
            device.play(1, &[1.0, 1.9, 1.9, 1.9]);
            all += 1;
            tried += usize::from(device.width.slots() != 2);
        }
        assert!(tried * 15 < all && tried > 0, "{tried} of {all}");
    }

    #[test]
    fn runs_of_two_keys_are_never_compared() {
        let mut device = Scripted::new(2, 4, 0.0);
        device.play_key(5_000, &[100.0, 178.0, 220.0, 250.0], |frame| (frame % 8) as u8, |_| true);
        assert_eq!((device.changes, device.width.slots()), (0, 2));
        // A change of key in a trial takes it back at once.
        let mut device = Scripted::new(2, 4, 0.0);
        while device.width.slots() == 2 {
            device.play(1, &[100.0, 178.0, 220.0, 250.0]);
        }
        assert_eq!(device.play_key(1, &[100.0, 178.0, 220.0, 250.0], |_| 1, |_| true), 2);
    }

    #[test]
    fn an_idle_device_is_not_measured() {
        let mut device = Scripted::new(2, 4, 0.0);
        device.play_key(5_000, &[100.0, 178.0, 220.0, 250.0], |_| 0, |frame| frame % 8 != 0);
        assert_eq!(device.changes, 0);
        while device.width.slots() == 2 {
            device.play(1, &[100.0, 178.0, 220.0, 250.0]);
        }
        assert_eq!(device.play_key(5_000, &[100.0, 178.0, 220.0, 250.0], |_| 0, |_| false), 2, "a trial ends");
    }

    #[test]
    fn a_fixed_width_is_all_slots() {
        let mut device = Scripted { width: Width::fixed(4), ..Scripted::new(2, 4, 0.0) };
        device.width.look_again();
        assert_eq!(device.play(1_000, &[100.0, 100.0, 100.0, 100.0]), 4);
        assert_eq!(device.changes, 0);
        assert_eq!(Width::<u8>::measured(2, 1).slots(), 1);
    }
}
