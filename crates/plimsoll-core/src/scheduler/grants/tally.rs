//! The tally: what is asked of all grants at once, kept as each of them changes. A daemon has thousands, and most requests
//! change one.
//! Never looks at a grant by itself: `book` tells it how one stood and how it stands, whenever it changes one.
//! Invariant: it is what counting all grants anew would give (`Grants::check`).

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::book::Grant;
use crate::grant::{GrantId, GrantPhase};
use crate::{Moment, Priority};

/// Where one stands that wants to rise now or later: batches first, then the most urgent, then the oldest.
type PlaceInRising = (Reverse<bool>, Reverse<Priority>, GrantId);

/// What one grant adds to the tally.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    grant: GrantId,
    is_held: bool,
    is_within_batch: bool,
    wants_to_rise: bool,
    is_coming_down: bool,
    below: Option<PlaceInRising>,
    due: Option<Moment>,
    spares_batches_until: Option<Moment>,
}

impl Mark {
    pub(super) fn of(id: GrantId, grant: &Grant) -> Self {
        let is_below = grant.wants_to_rise() || grant.has_fallen_within_batch();
        let place = (Reverse(grant.is_within_batch()), Reverse(grant.spec.priority), id);
        Self {
            grant: id,
            is_held: grant.is_held(),
            is_within_batch: grant.is_within_batch(),
            wants_to_rise: grant.wants_to_rise(),
            is_coming_down: grant.is_coming_down(),
            below: is_below.then_some(place),
            due: grant.due(),
            spares_batches_until: grant.spares_batches_until.filter(|_| grant.phase == GrantPhase::Waiting),
        }
    }
}

/// What is known of all grants together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    held: usize,
    within_batch: usize,
    /// Those that want to rise now, oldest first.
    rising: BTreeSet<GrantId>,
    /// Those that want to rise now or later.
    below: BTreeSet<PlaceInRising>,
    /// Those that were asked to step down or to leave and still have time, oldest first.
    coming_down: BTreeSet<GrantId>,
    /// When something of each is due, but for what only counts beside a batch.
    due: BTreeSet<(Moment, GrantId)>,
    /// Until when those that wait leave batches alone.
    sparing: BTreeSet<(Moment, GrantId)>,
}

impl Tally {
    pub(super) fn add(&mut self, mark: Mark) {
        let Mark { grant, is_held, is_within_batch, wants_to_rise, is_coming_down, below, due, spares_batches_until } =
            mark;
        self.held += usize::from(is_held);
        self.within_batch += usize::from(is_within_batch);
        self.rising.extend(wants_to_rise.then_some(grant));
        self.coming_down.extend(is_coming_down.then_some(grant));
        self.below.extend(below);
        self.due.extend(due.map(|at| (at, grant)));
        self.sparing.extend(spares_batches_until.map(|at| (at, grant)));
    }

    pub(super) fn remove(&mut self, mark: Mark) {
        let Mark { grant, is_held, is_within_batch, wants_to_rise, is_coming_down, below, due, spares_batches_until } =
            mark;
        self.held -= usize::from(is_held);
        self.within_batch -= usize::from(is_within_batch);
        if wants_to_rise {
            self.rising.remove(&grant);
        }
        if is_coming_down {
            self.coming_down.remove(&grant);
        }
        below.map(|place| self.below.remove(&place));
        due.map(|at| self.due.remove(&(at, grant)));
        spares_batches_until.map(|at| self.sparing.remove(&(at, grant)));
    }

    /// A grant stands otherwise than before.
    pub(super) fn replace(&mut self, before: Mark, after: Mark) {
        if before != after {
            self.remove(before);
            self.add(after);
        }
    }

    #[inline]
    pub(super) fn are_held(&self) -> bool {
        self.held > 0
    }

    #[inline]
    pub(super) fn any_rises(&self) -> bool {
        !self.rising.is_empty()
    }

    /// Those that want to rise now, oldest first.
    pub(super) fn rising(&self) -> impl Iterator<Item = GrantId> {
        self.rising.iter().copied()
    }

    /// Those that were asked to step down or to leave and still have time, oldest first.
    pub(super) fn coming_down(&self) -> impl Iterator<Item = GrantId> {
        self.coming_down.iter().copied()
    }

    /// Those that want to rise now or later: batches first, then the most urgent, then the oldest.
    pub(super) fn below(&self) -> impl Iterator<Item = GrantId> {
        self.below.iter().map(|(.., id)| *id)
    }

    /// When something of a grant is due next. Who leaves batches alone has nothing to wait for where there is none.
    pub(super) fn next_due(&self) -> Option<Moment> {
        let sparing = self.sparing.first().filter(|_| self.within_batch > 0);
        self.due.first().into_iter().chain(sparing).map(|(at, _)| *at).min()
    }

    /// Grants of which something is due now, oldest first.
    pub(super) fn due_by(&self, now: Moment) -> Vec<GrantId> {
        let up_to = ..=(now, GrantId(u64::MAX));
        let due: BTreeSet<GrantId> =
            self.due.range(up_to).chain(self.sparing.range(up_to)).map(|(_, id)| *id).collect();
        due.into_iter().collect()
    }
}
