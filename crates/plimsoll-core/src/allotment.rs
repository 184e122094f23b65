//! Allotments: how much of a device's line each of several orchestrators may promise, in one process or in many.
//! Never reads a clock or a file: whoever keeps the book hands in what it says, and writes down what comes out.
//!
//! The rule. Everything that was allotted, to all together, fits beside what strangers use. What strangers use is what a
//! driver says is used, less our own; it may be a little less, for it counts what other members use as well: what those have
//! held for a while ([`SETTLE`]) comes off, and the lowest of what all members say counts. A limit that several share is
//! for all of them together. Who wants more than there is waits: what others do not use comes first, then what lies idle
//! there, then they take turns ([`TURN`]).
//!
//! Invariant: at the moment of a raise, everything allotted together is within the line of whoever is raised
//! (`tests::nobody_is_raised_past_the_line`); a want that cannot be met keeps nobody back for ever ([`KEEP_MAX`]).

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::{Bytes, Moment, Nanos, Priority};

/// How long bytes were held before they count as held rather than as still to come.
pub const SETTLE: Nanos = Nanos::millis(600);
/// How long somebody who has more than its share keeps it while an equally urgent other waits.
pub const TURN: Nanos = Nanos::seconds(1);
/// After so long a want is met even by those who have no more than their share.
pub const LONG: Nanos = Nanos::seconds(5);
/// So long a want that is not met keeps those behind it from what is free, and not longer: what it waits for may never
/// come back.
pub const KEEP_MAX: Nanos = Nanos::seconds(20);
/// Whoever wants something says so again and again. One that was not heard of for so long has been stopped, and nothing is
/// kept for it.
pub const SILENT_MAX: Nanos = Nanos::seconds(2);

/// How long there is no work before what is not promised is given up.
pub const REST_AFTER: Nanos = Nanos::millis(300);
/// How long all together were allotted more than there is before that counts.
const OVER_FOR: Nanos = Nanos(2 * SETTLE.0);

/// That more is wanted than was allotted.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Want {
    /// How much in all.
    pub bytes: Bytes,
    /// For whom.
    pub priority: Priority,
    /// Since when, by the clock that all share.
    pub since: Moment,
}

/// What the book says of another member on the same device.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// What it may promise.
    pub allotted: Bytes,
    /// What of it it has held for a while.
    pub in_use: Bytes,
    /// What of it it held when it last said so.
    pub in_use_now: Bytes,
    /// What it saw others use, those that are no members included; `None` if that was too long ago.
    pub strangers: Option<Bytes>,
    /// What it wants, if that is more.
    pub wanted: Option<Want>,
    /// The limit it was given, if any.
    pub limit: Option<Bytes>,
    /// What counts its bytes: members with the same counter count each other's bytes as their own. They work in one
    /// process, on one device object or heap.
    pub counter: u64,
    /// Of two wants of the same moment, its goes first.
    pub goes_first: bool,
}

impl Other {
    /// What it wants more than it has.
    fn lacks(&self) -> Bytes {
        self.wanted.map_or(Bytes::ZERO, |want| want.bytes - self.allotted)
    }
}

/// Where one orchestrator stands on one device.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Standing {
    /// What it may promise.
    pub allotted: Bytes,
    /// What is promised.
    pub promised: Bytes,
    /// What of that idle sessions and references hold.
    pub idle: Bytes,
    /// The least that was promised since it last stood here.
    pub least: Bytes,
    /// The most that was promised since it last stood here.
    pub most: Bytes,
    /// What was seen to be allocated.
    pub ours: Bytes,
    /// All the memory there is.
    pub capacity: Bytes,
    /// What others use of it, other members included.
    pub strangers: Bytes,
    /// What of our own we have held for a while.
    pub in_use: Bytes,
    /// What counts our bytes.
    pub counter: u64,
    /// The share of what strangers leave that may be promised.
    pub share: f64,
    /// The limit.
    pub limit: Option<Bytes>,
    /// The most urgent of what runs or is queued there; `None` if nothing is.
    pub urgency: Option<Priority>,
    /// What is wanted, if that is more than was allotted.
    pub wanted: Option<Want>,
    /// Since when it has had what it has.
    pub turn_since: Moment,
    /// There has been no work for a while: what is not promised is not needed.
    pub rests: bool,
    /// Together all have been allotted more than there is for a while.
    pub is_over: bool,
}

/// What comes of standing there.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// What may be promised from now on. What is promised beyond it stays allotted until it comes back.
    pub line: Bytes,
    /// It may promise more than before.
    pub is_raised: bool,
    /// So much of what lies idle should go.
    pub evict: Bytes,
    /// Somebody this urgent wants what lasting holders have: those less urgent should step down.
    pub recall: Option<Priority>,
    /// It stops before its work is done because others wait.
    pub yields: bool,
    /// Others wait for something that is allotted here.
    pub owes: bool,
    /// Together all have been allotted more than there is now.
    pub is_over: bool,
}

/// What one orchestrator remembers of one device from one look at the book to the next.
#[derive(Clone, Debug, Default)]
pub struct Seat {
    /// Since when it has had what it has; `None` if it gave it up for others.
    turn_since: Option<Moment>,
    over_since: Option<Moment>,
    idle_since: Option<Moment>,
    want_since: Option<Moment>,
    /// What was held of late, and when.
    held: VecDeque<(Moment, Bytes)>,
}

impl Seat {
    /// Where an orchestrator stands that was seen so ([`crate::Scheduler::standing`]), may promise so much, and wants so much.
    pub fn stand(
        &mut self,
        now: Moment,
        seen: Standing,
        allotment: Option<Bytes>,
        wanted: Option<(Bytes, Priority)>,
    ) -> Standing {
        self.not_after(now);
        self.want_since = wanted.map(|_| self.want_since.unwrap_or(now));
        let wanted = wanted.zip(self.want_since).map(|((bytes, priority), since)| Want { bytes, priority, since });
        let is_idle = seen.urgency.is_none() && wanted.is_none();
        self.idle_since = is_idle.then(|| self.idle_since.unwrap_or(now));
        Standing {
            // Who was alone until now has what is promised.
            allotted: allotment.unwrap_or(seen.promised).max(seen.promised),
            in_use: self.settled(now, seen.ours.min(seen.least)),
            wanted,
            turn_since: self.turn_since.unwrap_or(Moment::START),
            rests: self.idle_since.is_some_and(|since| now.since(since) >= REST_AFTER),
            is_over: self.over_since.is_some_and(|since| now.since(since) >= OVER_FOR),
            ..seen
        }
    }

    /// The clock that all share may have been set back: what would lie ahead is taken to be now. Otherwise a turn would last,
    /// and what was held be kept, until the clock is where it was.
    fn not_after(&mut self, now: Moment) {
        for since in [&mut self.turn_since, &mut self.over_since, &mut self.idle_since, &mut self.want_since] {
            *since = since.map(|since| since.min(now));
        }
        self.held.iter_mut().for_each(|(at, _)| *at = now.min(*at));
    }

    /// Whether more is wanted than there is.
    pub fn wants(&self) -> bool {
        self.want_since.is_some()
    }

    /// What was decided has been done.
    pub fn heed(&mut self, now: Moment, verdict: &Verdict) {
        self.over_since = verdict.is_over.then(|| self.over_since.unwrap_or(now));
        if verdict.yields {
            self.turn_since = None;
        }
        if verdict.is_raised {
            self.turn_since = self.turn_since.or(Some(now));
            self.want_since = None;
        }
    }

    /// What was held all the time for a while.
    fn settled(&mut self, now: Moment, held: Bytes) -> Bytes {
        if self.held.back().is_some_and(|(at, _)| now.since(*at) > SETTLE) {
            // The least since then is in this figure: there was no look in between.
            self.held.clear();
            self.held.push_back((Moment(now.0 - SETTLE.0), held));
        }
        self.held.push_back((now, held));
        while self.held.get(1).is_some_and(|(at, _)| now.since(*at) >= SETTLE) {
            self.held.pop_front();
        }
        let is_long = self.held.front().is_some_and(|(at, _)| now.since(*at) >= SETTLE);
        if is_long { self.held.iter().map(|(_, held)| *held).min().unwrap_or_default() } else { Bytes::ZERO }
    }
}

/// Decides what one orchestrator may promise, with everybody else's words on the table.
pub fn decide(now: Moment, me: &Standing, others: &[Other]) -> Verdict {
    let most = most_for(me, others, strangers_at_most(me, others));
    let before = wants_before(now, me, others);
    let waited_for: Bytes = before.iter().map(|other| other.lacks()).sum();
    let mut verdict = Verdict { line: me.allotted, ..Verdict::default() };
    if let Some(want) = me.wanted.filter(|want| want.bytes > me.allotted)
        && want.bytes <= most - waited_for
    {
        verdict.is_raised = true;
        verdict.line = raised_to(want.bytes, me.allotted, most, others);
        return verdict;
    }
    // A stranger has come: but a figure that is a moment old says that too easily.
    verdict.is_over = me.allotted > most_for(me, others, strangers_at_least(me, others));
    if verdict.is_over && me.is_over {
        verdict.line = most.min(me.allotted);
    }
    if me.rests {
        verdict.line = verdict.line.min(me.promised);
    }
    let owed = waited_for - (most - me.allotted);
    if owed > Bytes::ZERO && me.allotted > Bytes::ZERO {
        give(now, me, others, &before, owed, &mut verdict);
    }
    verdict
}

/// The most that I may be allotted beside what others were, if strangers use so much.
fn most_for(me: &Standing, others: &[Other], strangers: Bytes) -> Bytes {
    let line = (me.capacity - strangers).share(me.share);
    let beside_others = line - others.iter().map(|other| other.allotted).sum();
    // A limit is for all who were given it, or a tighter one, together: so mine counts, and each that is looser.
    let looser = others.iter().filter_map(|other| other.limit).filter(|theirs| Some(*theirs) >= me.limit);
    let limits = me.limit.into_iter().flat_map(|mine| looser.clone().chain([mine]));
    let beside_sharing = |limit: Bytes| {
        let sharing = others.iter().filter(|other| other.limit.is_some_and(|theirs| theirs <= limit));
        limit - sharing.map(|other| other.allotted).sum()
    };
    limits.map(beside_sharing).fold(beside_others, Bytes::min)
}

/// What strangers use, and surely no more: everybody has seen them together with other members, of whom so much is sure.
fn strangers_at_most(me: &Standing, others: &[Other]) -> Bytes {
    let held = || others.iter().map(|other| (other.counter, other.in_use)).chain([(me.counter, me.in_use)]);
    let seen = others.iter().filter_map(|other| Some((other.counter, other.strangers?)));
    let without_members = |(counter, seen): (u64, Bytes)| {
        // What is on its own counter it has not seen as others'.
        let members: Bytes = held().filter(|(of, _)| *of != counter).map(|(_, held)| held).sum();
        seen - members
    };
    seen.map(without_members).fold(without_members((me.counter, me.strangers)), Bytes::min)
}

/// What strangers use, and surely no less, but for what other members have given back since they last said so.
fn strangers_at_least(me: &Standing, others: &[Other]) -> Bytes {
    me.strangers - others.iter().filter(|other| other.counter != me.counter).map(|other| other.in_use_now).sum()
}

/// Those whose wants come before mine, unless they have kept others back long enough.
fn wants_before<'a>(now: Moment, me: &Standing, others: &'a [Other]) -> Vec<&'a Other> {
    let mine = me.wanted.filter(|want| want.bytes > me.allotted);
    let share = fair_share(me, others);
    // Who has more than its share comes after those who have not: it could want more for ever.
    let rank = |want: Want, allotted: Bytes| (std::cmp::Reverse(want.priority), allotted > share, want.since);
    let comes_before = |other: &&Other| {
        let Some(want) = other.wanted.filter(|_| other.lacks() > Bytes::ZERO) else { return false };
        let is_fresh = now.since(want.since) < KEEP_MAX;
        is_fresh
            && mine.is_none_or(|mine| {
                let (theirs, ours) = (rank(want, other.allotted), rank(mine, me.allotted));
                (theirs, !other.goes_first) < (ours, other.goes_first)
            })
    };
    others.iter().filter(comes_before).collect()
}

/// What everybody would have if all had the same.
fn fair_share(me: &Standing, others: &[Other]) -> Bytes {
    let everything: Bytes = others.iter().map(|other| other.allotted).chain([me.allotted]).sum();
    Bytes(everything.0 / (others.len() as u64 + 1))
}

/// In one large step while nobody else wants anything: the book is not asked for every task, and nothing idle is evicted
/// only because little was allotted.
fn raised_to(wanted: Bytes, allotted: Bytes, most: Bytes, others: &[Other]) -> Bytes {
    if others.iter().any(|other| other.lacks() > Bytes::ZERO) {
        return wanted;
    }
    // Half of what is there stays for whoever comes next.
    most.share(0.5).max(allotted.min(most)).max(wanted)
}

/// Others lack so much of what I have.
fn give(now: Moment, me: &Standing, others: &[Other], before: &[&Other], owed: Bytes, verdict: &mut Verdict) {
    verdict.owes = true;
    let target = verdict.line.min(me.allotted - owed);
    let had_its_turn = now.since(me.turn_since) >= TURN;
    let share = fair_share(me, others);
    let priority = before.iter().filter_map(|other| other.wanted).map(|want| want.priority).max();
    let is_urgent = priority > me.urgency;
    let waits_long = |want: &Want| now.since(want.since) >= LONG;
    let must_take_turns = before
        .iter()
        .filter_map(|other| other.wanted)
        .any(|want| Some(want.priority) >= me.urgency && had_its_turn && (me.allotted > share || waits_long(&want)));
    verdict.yields = is_urgent || must_take_turns;
    // What was used a moment ago will be used again in a moment, while it is one's turn.
    let in_use = if me.urgency.is_some() && !had_its_turn { me.most } else { me.promised };
    verdict.evict = me.idle.min(me.promised - target);
    let keeps = if verdict.yields { Bytes::ZERO } else { in_use - me.idle };
    verdict.line = target.max(keeps);
    verdict.recall = priority.filter(|_| is_urgent && me.promised > target);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    const NOW: Moment = Moment(100_000_000_000);

    fn me(capacity: u64) -> Standing {
        let urgency = Some(Priority::Normal);
        Standing { capacity: Bytes(capacity), share: 1.0, urgency, counter: 1, ..Standing::default() }
    }

    fn other(allotted: u64, in_use: u64) -> Other {
        Other {
            allotted: Bytes(allotted),
            in_use: Bytes(in_use),
            in_use_now: Bytes(in_use),
            strangers: None,
            wanted: None,
            limit: None,
            counter: 2,
            goes_first: false,
        }
    }

    fn want(bytes: u64, ago: Nanos) -> Option<Want> {
        Some(Want { bytes: Bytes(bytes), priority: Priority::Normal, since: Moment(NOW.0 - ago.0) })
    }

    fn raised(me: Standing, others: &[Other]) -> Option<u64> {
        let verdict = decide(NOW, &me, others);
        verdict.is_raised.then_some(verdict.line.0)
    }

    #[test]
    fn what_was_held_all_the_time_for_a_while_counts_as_held() {
        let mut seat = Seat::default();
        let mut in_use = |after: Nanos, held: u64| {
            let seen = Standing { ours: Bytes(held), least: Bytes(held), ..me(100) };
            seat.stand(NOW + after, seen, None, None).in_use.0
        };
        assert_eq!(in_use(Nanos::ZERO, 50), 0, "nobody knows for how long");
        assert_eq!(in_use(Nanos(SETTLE.0 / 2), 40), 0);
        assert_eq!(in_use(SETTLE, 60), 40, "the least of that time");
        assert_eq!(in_use(Nanos(SETTLE.0 / 2 * 3), 60), 40);
        assert_eq!(in_use(Nanos(SETTLE.0 * 2), 60), 60, "less was held longer ago than that");
        assert_eq!(in_use(Nanos(SETTLE.0 * 5), 20), 20, "the least since the last look, which was long ago");
    }

    #[test]
    fn a_clock_that_was_set_back_keeps_nobody_waiting() {
        let mut seat = Seat::default();
        let idle = Standing { urgency: None, ours: Bytes(50), least: Bytes(50), ..me(100) };
        let wants = Some((Bytes(70), Priority::Normal));
        seat.stand(NOW, idle, None, None);
        seat.heed(NOW, &Verdict { is_raised: true, is_over: true, ..Verdict::default() });
        let back = Moment(NOW.0 / 2);
        let standing = seat.stand(back, me(100), None, wants);
        assert_eq!(standing.turn_since, back, "its turn is over in due time");
        assert_eq!(standing.wanted.map(|want| want.since), Some(back));
        let earlier = Moment(back.0 / 2);
        assert_eq!(seat.stand(earlier, me(100), None, wants).wanted.map(|want| want.since), Some(earlier));
        let later = earlier + REST_AFTER.max(OVER_FOR).max(SETTLE);
        seat.stand(earlier, idle, None, None);
        let standing = seat.stand(later, idle, None, None);
        assert!(standing.is_over && standing.rests, "{standing:?}");
        assert!(seat.held.len() <= 3, "{:?}", seat.held);
    }

    #[test]
    fn that_too_much_was_allotted_counts_after_a_while() {
        let mut seat = Seat::default();
        let over = |is_over| Verdict { is_over, ..Verdict::default() };
        let is_over = |seat: &mut Seat, after: Nanos| seat.stand(NOW + after, me(100), None, None).is_over;
        assert!(!is_over(&mut seat, Nanos::ZERO));
        seat.heed(NOW, &over(true));
        assert!(!is_over(&mut seat, Nanos(OVER_FOR.0 - 1)));
        seat.heed(NOW + Nanos(OVER_FOR.0 - 1), &over(true));
        assert!(is_over(&mut seat, OVER_FOR), "since it was first seen");
        seat.heed(NOW + OVER_FOR, &over(false));
        assert!(!is_over(&mut seat, OVER_FOR), "it was no longer so");
    }

    #[test]
    fn what_others_may_still_take_is_not_there() {
        let wants = |bytes| Standing { wanted: want(bytes, Nanos::ZERO), ..me(100) };
        assert_eq!(raised(wants(40), &[]), Some(50), "in large steps, half of all at the most");
        assert_eq!(raised(wants(90), &[other(30, 0)]), None, "30 are another's, used or not");
        assert_eq!(raised(wants(70), &[other(30, 0)]), Some(70));
        let beside_one_that_uses_them = Standing { strangers: Bytes(30), ..wants(70) };
        assert_eq!(raised(beside_one_that_uses_them, &[other(30, 30)]), Some(70), "and counted once if it does");
        assert_eq!(raised(beside_one_that_uses_them, &[other(30, 0)]), None, "but only when that is sure");
        let seen_by_it = Other { strangers: Some(Bytes::ZERO), ..other(30, 0) };
        assert_eq!(
            raised(beside_one_that_uses_them, &[seen_by_it]),
            Some(70),
            "or when it saw that nobody else is there"
        );
    }

    #[test]
    fn members_on_one_counter_see_each_others_bytes_as_their_own() {
        let wants = Standing { wanted: want(70, Nanos::ZERO), ..me(100) };
        let twin = Other { counter: 1, ..other(30, 30) };
        assert_eq!(raised(wants, &[twin]), Some(70));
        let wants = Standing { wanted: want(71, Nanos::ZERO), ..wants };
        assert_eq!(raised(wants, &[twin]), None, "what it uses is not taken off a figure that never had it");
    }

    #[test]
    fn a_limit_is_for_all_who_have_it() {
        let wants = Standing { wanted: want(60, Nanos::ZERO), limit: Some(Bytes(64)), ..me(1000) };
        let limited = |limit| Other { limit: Some(Bytes(limit)), ..other(50, 50) };
        assert_eq!(raised(wants, &[limited(64)]), None);
        assert_eq!(raised(wants, &[limited(10)]), None, "a tighter one is within it");
        assert_eq!(raised(wants, &[limited(128)]), Some(60), "a wider one is not");
        assert_eq!(raised(wants, &[limited(100)]), None, "but what is within it has to fit under it");
        assert_eq!(raised(wants, &[other(50, 50)]), Some(60), "nor is none");
    }

    #[test]
    fn the_first_to_want_goes_first_and_urgent_wants_before_that() {
        let wants = Standing { wanted: want(60, Nanos::millis(10)), ..me(100) };
        let also = |ago| Other { wanted: want(60, ago), ..other(0, 0) };
        assert_eq!(raised(wants, &[also(Nanos::millis(5))]), Some(60));
        assert_eq!(raised(wants, &[also(Nanos::millis(20))]), None);
        assert_eq!(raised(wants, &[Other { goes_first: true, ..also(Nanos::millis(10)) }]), None);
        assert_eq!(raised(wants, &[also(Nanos::millis(10))]), Some(60));
        let mut urgent = also(Nanos::millis(5));
        urgent.wanted = urgent.wanted.map(|want| Want { priority: Priority::High, ..want });
        assert_eq!(raised(wants, &[urgent]), None);
        assert_eq!(raised(wants, &[also(KEEP_MAX)]), Some(60), "nobody is kept back for ever");
    }

    #[test]
    fn who_has_more_than_its_share_gives_however_long_it_has_wanted_more() {
        let holds = Standing { allotted: Bytes(60), promised: Bytes(60), wanted: want(120, LONG), ..me(128) };
        let lasting = other(30, 30);
        let waits = Other { wanted: want(50, TURN), counter: 3, ..other(0, 0) };
        let verdict = decide(NOW, &holds, &[lasting, waits]);
        assert!(verdict.yields && verdict.line == Bytes(48), "{verdict:?}");
        let holds_little = Standing { allotted: Bytes(10), promised: Bytes(10), wanted: want(120, LONG), ..me(128) };
        assert!(!decide(NOW, &holds_little, &[lasting, waits]).owes, "who has no more was first");
    }

    /// It wanted first, and was allotted it: what it does not use yet goes to who still lacks something.
    #[test]
    fn who_has_just_what_it_wants_stands_in_line_no_longer() {
        let has = |bytes| Standing { allotted: Bytes(40), wanted: want(bytes, Nanos::millis(20)), ..me(100) };
        let waits = [Other { wanted: want(80, Nanos::millis(10)), ..other(40, 40) }];
        let verdict = decide(NOW, &has(40), &waits);
        assert_eq!((verdict.line, verdict.owes), (Bytes(20), true));
        let verdict = decide(NOW, &has(41), &waits);
        assert_eq!((verdict.line, verdict.owes), (Bytes(41), false), "who lacks one byte was first");
    }

    #[test]
    fn what_is_not_used_goes_first_then_what_is_idle_then_one_turn_after_the_other() {
        let waits = [Other { wanted: want(60, Nanos::millis(20)), ..other(0, 0) }];
        let holds = |promised: u64, idle: u64, turn: Nanos| Standing {
            allotted: Bytes(100),
            promised: Bytes(promised),
            most: Bytes(promised),
            idle: Bytes(idle),
            turn_since: Moment(NOW.0 - turn.0),
            ..me(100)
        };
        let verdict = decide(NOW, &holds(30, 0, Nanos::ZERO), &waits);
        assert_eq!((verdict.line, verdict.evict, verdict.yields), (Bytes(40), Bytes::ZERO, false));
        let verdict = decide(NOW, &holds(80, 50, Nanos::ZERO), &waits);
        assert_eq!((verdict.line, verdict.evict, verdict.yields), (Bytes(40), Bytes(40), false));
        let verdict = decide(NOW, &holds(80, 0, Nanos::ZERO), &waits);
        assert_eq!((verdict.line, verdict.yields, verdict.owes), (Bytes(80), false, true), "it is its turn");
        let verdict = decide(NOW, &holds(80, 0, TURN), &waits);
        assert_eq!((verdict.line, verdict.yields, verdict.recall), (Bytes(40), true, None), "it has had it");
        let urgent =
            [Other { wanted: waits[0].wanted.map(|want| Want { priority: Priority::High, ..want }), ..waits[0] }];
        let verdict = decide(NOW, &holds(80, 0, Nanos::ZERO), &urgent);
        assert_eq!((verdict.line, verdict.recall), (Bytes(40), Some(Priority::High)));
        let verdict = decide(NOW, &Standing { urgency: Some(Priority::Critical), ..holds(80, 0, TURN) }, &urgent);
        assert!(!verdict.yields && verdict.line == Bytes(80), "who is more urgent goes on");
    }

    #[test]
    fn who_has_no_more_than_its_share_yields_only_after_long() {
        let holds = Standing { allotted: Bytes(30), promised: Bytes(30), most: Bytes(30), ..me(100) };
        let waits = |ago| [Other { wanted: want(90, ago), ..other(40, 40) }];
        assert!(!decide(NOW, &holds, &waits(TURN)).yields);
        assert!(decide(NOW, &holds, &waits(LONG)).yields);
    }

    #[test]
    fn whoever_rests_keeps_what_is_promised() {
        let rests = Standing { allotted: Bytes(80), promised: Bytes(20), rests: true, urgency: None, ..me(100) };
        assert_eq!(decide(NOW, &rests, &[]).line, Bytes(20));
    }

    #[test]
    fn a_stranger_that_stays_lowers_what_is_allotted() {
        let holds = Standing { allotted: Bytes(60), strangers: Bytes(70), ..me(100) };
        let verdict = decide(NOW, &holds, &[]);
        assert_eq!((verdict.line, verdict.is_over), (Bytes(60), true), "it may go again");
        assert_eq!(decide(NOW, &Standing { is_over: true, ..holds }, &[]).line, Bytes(30));
    }

    /// Members with what they are allotted and use, and strangers, all of their own mind: figures are read at one moment
    /// and used at another, in any order.
    #[test]
    fn nobody_is_raised_past_the_line() {
        let mut raises = 0;
        for seed in 0..2_000 {
            let mut rng = Rng::new(seed);
            let capacity = 1_000;
            let strangers = rng.within(0, 400);
            let count = 2 + rng.below(3);
            let mut members = vec![(0_u64, 0_u64); count];
            let mut seen: Vec<Option<u64>> = vec![None; count];
            for _ in 0..60 {
                let at = rng.below(count);
                let (allotted, _) = members[at];
                // Half of them use what they like of what they were allotted, and never hold it for long. The others hold
                // all of it; what was seen before they did is no longer fresh.
                if at % 2 == 1 {
                    members[at].1 = rng.within(0, allotted + 1);
                } else if members[at].1 != allotted {
                    members[at].1 = allotted;
                    seen.fill(None);
                }
                let used = |of: usize, members: &[(u64, u64)]| if of.is_multiple_of(2) { members[of].1 } else { 0 };
                let by_others: u64 = members.iter().enumerate().filter(|(of, _)| *of != at).map(|(_, m)| m.1).sum();
                let describe = |of: usize| Other {
                    strangers: seen[of].map(Bytes),
                    counter: of as u64 + 10,
                    ..other(members[of].0, used(of, &members))
                };
                let others: Vec<Other> = (0..count).filter(|of| *of != at).map(describe).collect();
                let wanted = want(rng.within(1, capacity), Nanos::millis(rng.within(0, 100)));
                let standing = Standing {
                    allotted: Bytes(allotted),
                    promised: Bytes(members[at].1),
                    strangers: Bytes(strangers + by_others),
                    in_use: Bytes(used(at, &members)),
                    counter: at as u64 + 10,
                    wanted,
                    ..me(capacity)
                };
                let verdict = decide(NOW, &standing, &others);
                members[at].0 = verdict.line.0.max(members[at].1);
                let together: u64 = members.iter().map(|(allotted, _)| allotted).sum();
                if verdict.is_raised {
                    raises += 1;
                    assert!(together + strangers <= capacity, "seed {seed}: {together} beside {strangers}");
                }
                seen[at] = rng.chance(0.5).then_some(strangers + by_others);
            }
        }
        assert!(raises > 1_000, "{raises} raises looked at");
    }
}
