//! How soon a fragment is expected: one over the uses until then, so that what is expected never is 0.
//!
//! Where its past gives several intervals, the answer is the best that waiting can give: over every time that one could wait,
//! how likely it comes by then over how long one waits. (Gittins' index of a wait that may be given up.) It needs no notion
//! of what is regular: an interval that always comes makes a fragment worth more the nearer it is; one that comes half of the
//! time, half of that; when it has passed, the next longer one counts.

/// How many forecasts there are.
pub(super) const FORECASTS: usize = 3;
/// Intervals that are kept of each fragment.
const INTERVALS: usize = 8;
/// Next uses of a fragment that are kept of hints: this pass, and the one behind it.
const HINTS: usize = 2;
/// What is counted of all fragments together before older ones count half, so that habits may change.
const COUNTED: f64 = 4_096.0;
/// Lengths of intervals that are told apart when all fragments are counted together: two for each power of two.
const LENGTHS: usize = 64;

/// What a fragment's next use is forecast by.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Forecast {
    /// It comes after intervals that it came after before.
    Regularity,
    /// It comes as soon as it did not come for: what was used last comes first.
    Recency,
    /// It comes as often as it always did.
    Frequency,
}

impl Forecast {
    /// The first is followed while none was better.
    pub(super) const ALL: [Self; FORECASTS] = [Self::Regularity, Self::Recency, Self::Frequency];

    /// How near the next use is of what was used more than once, and last so many uses ago.
    pub(super) fn nearness(self, intervals: &Intervals, uses: u32, age: u64, now: u64) -> f64 {
        match self {
            Self::Regularity => intervals.nearness(age),
            Self::Recency => beyond(age),
            Self::Frequency => f64::from(uses) / now.max(1) as f64,
        }
    }
}

/// What has not come for longer than it ever took says nothing but that: it is expected to take as long again.
fn beyond(age: u64) -> f64 {
    1.0 / (age + 1) as f64
}

/// The best that waiting can give. `after` has intervals longer than `age`, shortest first, and how often each came; `all` is
/// how many might have come, those that never did among them.
fn best_wait(after: impl Iterator<Item = (f64, f64)>, age: f64, all: f64) -> f64 {
    let (mut came, mut waited, mut best) = (0.0, 0.0, 0.0_f64);
    for (interval, count) in after {
        let wait = interval - age;
        came += count;
        waited += count * wait;
        best = best.max(came / (waited + (all - came) * wait));
    }
    best
}

/// How long it took from one use to the next, the last few times.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Intervals {
    last: [u32; INTERVALS],
    count: u8,
    next: u8,
}

impl Intervals {
    pub(super) fn add(&mut self, interval: u64) {
        self.last[usize::from(self.next)] = interval.min(u64::from(u32::MAX)) as u32;
        self.next = (self.next + 1) % INTERVALS as u8;
        self.count = (self.count + 1).min(INTERVALS as u8);
    }

    fn nearness(&self, age: u64) -> f64 {
        let mut longer = [0_u32; INTERVALS];
        let mut count = 0;
        for interval in &self.last[..usize::from(self.count)] {
            if u64::from(*interval) > age {
                longer[count] = *interval;
                count += 1;
            }
        }
        if count == 0 {
            return beyond(age);
        }
        longer[..count].sort_unstable();
        // One more than was seen: the next may be longer than all of them.
        best_wait(longer[..count].iter().map(|x| (f64::from(*x), 1.0)), age as f64, count as f64 + 1.0)
    }
}

/// What became of fragments after their first use, all together.
#[derive(Copy, Clone, Debug)]
pub(super) struct Firsts {
    seen: f64,
    /// For each length of interval, how many came back after it, and the sum of their intervals.
    came_back: [(f64, f64); LENGTHS],
}

impl Default for Firsts {
    fn default() -> Self {
        Self { seen: 0.0, came_back: [(0.0, 0.0); LENGTHS] }
    }
}

impl Firsts {
    pub(super) fn see(&mut self) {
        self.seen += 1.0;
        if self.seen > COUNTED {
            self.seen /= 2.0;
            self.came_back.iter_mut().for_each(|(count, sum)| (*count, *sum) = (*count / 2.0, *sum / 2.0));
        }
    }

    pub(super) fn come_back(&mut self, interval: u64) {
        let length = (interval.max(1) as f64).log2() * 2.0;
        let (count, sum) = &mut self.came_back[(length as usize).min(LENGTHS - 1)];
        (*count, *sum) = (*count + 1.0, *sum + interval as f64);
    }

    /// How near the second use is of what was used once, so many uses ago.
    pub(super) fn nearness(&self, age: u64) -> f64 {
        let age = age as f64;
        let came = self.came_back.iter().filter(|(count, _)| *count > 0.0).map(|(count, sum)| (sum / count, *count));
        let earlier: f64 = came.clone().filter(|(interval, _)| *interval <= age).map(|(_, count)| count).sum();
        let later = came.filter(|(interval, _)| *interval > age);
        best_wait(later, age, (self.seen + 1.0 - earlier).max(1.0))
    }
}

/// How many of those that were counted did what they were expected to. One is counted in advance.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Share {
    did: f64,
    counted: f64,
}

impl Share {
    fn count(&mut self, did: bool) {
        self.counted += 1.0;
        self.did += f64::from(u8::from(did));
        if self.counted > COUNTED {
            (self.did, self.counted) = (self.did / 2.0, self.counted / 2.0);
        }
    }

    pub(super) fn share(&self) -> f64 {
        (self.did + 1.0) / (self.counted + 1.0)
    }
}

/// When somebody said that a fragment is used next, in order; zero for none.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Hints([u64; HINTS]);

impl Hints {
    /// It will be used then; what was said of then and later counts no more.
    pub(super) fn say(&mut self, at: u64, now: u64, kept: &mut Share) {
        if self.0[0] != 0 && self.0[0] <= now {
            self.withdraw(kept);
        }
        match self.0.iter().position(|hint| *hint == 0 || *hint >= at) {
            Some(place) if self.0[place] != at => {
                self.0[place] = at;
                self.0[place + 1..].fill(0);
            }
            _ => {}
        }
    }

    /// It was used: that was the use that was expected next.
    pub(super) fn take_first(&mut self, kept: &mut Share) {
        if self.0[0] != 0 {
            kept.count(true);
            self.0.rotate_left(1);
            self.0[HINTS - 1] = 0;
        }
    }

    /// It will not be used as was said.
    pub(super) fn withdraw(&mut self, kept: &mut Share) {
        self.0.iter().filter(|hint| **hint != 0).for_each(|_| kept.count(false));
        self.0 = [0; HINTS];
    }

    pub(super) fn next(&self, now: u64) -> Option<u64> {
        self.0.iter().copied().find(|hint| *hint > now)
    }
}
