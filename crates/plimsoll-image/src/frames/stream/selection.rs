//! Which frames of a stream go on, and how often: `trim`, `select` and `fps`, as they are written among operations.
//! Never looks into a frame. Invariant: frames go on in their order; a frame that is not wanted is dropped as soon as it
//! is known to be.

use super::y4m::Ratio;

/// Parts of a selection at most: far beyond any use.
const PARTS_MAX: usize = 16;

/// How each part is written, and what it does.
pub const SELECTIONS: [(&str, &str, &str); 3] = [
    ("trim", "trim=FIRST:LAST", "only these frames, counted from 1; either may be left out, as in trim=:100"),
    ("select", "select=N[:FIRST]", "every Nth frame, beginning with the first or with this one"),
    (
        "fps",
        "fps=RATE",
        "so many frames a second: some are left out, or come again, as with ffmpeg's filter of this name",
    ),
];

/// Which frames go on, and how often. Reads like operations: `trim=10:50,fps=12`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection(Vec<Part>);

/// Why some text selects nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// The words after the name cannot be meant.
    #[error("{text}: {why}; write {usage}")]
    Arguments {
        /// As it was written.
        text: String,
        /// What is wrong.
        why: &'static str,
        /// How to write it.
        usage: &'static str,
    },
    /// There are far too many.
    #[error("a chain has at most {PARTS_MAX} of trim, select and fps")]
    Length,
    /// Nobody knows how long a frame lasts.
    #[error("fps needs to know how many frames a second come in, and the input does not say; say it")]
    RateUnknown,
}

#[derive(Copy, Clone, Debug, PartialEq)]
enum Part {
    /// Frames from `first` to `last`, counted from 0.
    Trim {
        first: u64,
        last: u64,
    },
    /// Every `step`th, from `first` on, counted from 0.
    Select {
        step: u64,
        first: u64,
    },
    Fps(Ratio),
}

impl Selection {
    /// Reads one part of a chain's text; `None` if it is none of these.
    ///
    /// # Errors
    /// [`SelectionError`], if it is one but cannot be meant.
    pub fn part(text: &str) -> Option<Result<Self, SelectionError>> {
        let (name, words) = text.split_once('=').unwrap_or((text, ""));
        let (_, usage, _) = SELECTIONS.into_iter().find(|(known, ..)| *known == name.trim())?;
        let refused = |why| SelectionError::Arguments { text: text.to_owned(), why, usage };
        let part = match name.trim() {
            "trim" => trim(words),
            "select" => select(words),
            _ => fps(words),
        };
        Some(part.map(|part| Self(vec![part])).map_err(refused))
    }

    /// This one, and then another.
    ///
    /// # Errors
    /// [`SelectionError::Length`].
    pub fn then(mut self, next: Self) -> Result<Self, SelectionError> {
        self.0.extend(next.0);
        if self.0.len() > PARTS_MAX { Err(SelectionError::Length) } else { Ok(self) }
    }

    /// Whether every frame goes on, once.
    pub fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    /// The rate of what goes on, if frames come in at this one.
    ///
    /// # Errors
    /// [`SelectionError::RateUnknown`].
    pub fn rate(&self, rate: Option<Ratio>) -> Result<Option<Ratio>, SelectionError> {
        self.0.iter().try_fold(rate, |rate, part| match part {
            Part::Trim { .. } => Ok(rate),
            Part::Select { step, .. } => Ok(rate.map(|rate| slower(rate, *step))),
            Part::Fps(wanted) => rate.ok_or(SelectionError::RateUnknown).map(|_| Some(*wanted)),
        })
    }

    /// How many frames go on of so many.
    pub fn count(&self, frames: u64, rate: Option<Ratio>) -> u64 {
        // Counted by selecting numbers: long streams have some million.
        self.select((0..frames).map(Ok::<_, ()>), rate).count() as u64
    }

    /// The frames of a stream that go on. An error goes on too, and is the last.
    pub fn select<T: Clone, E, I: Iterator<Item = Result<T, E>>>(
        &self,
        frames: I,
        rate: Option<Ratio>,
    ) -> impl Iterator<Item = Result<T, E>> + use<T, E, I> {
        let mut sieves = Vec::with_capacity(self.0.len());
        let mut rate = rate;
        for part in &self.0 {
            sieves.push(Sieve::new(*part, rate));
            rate = Self(vec![*part]).rate(rate).unwrap_or(None);
        }
        Selected { frames, sieves, again: None, over: false }
    }
}

/// The same frames at a step of so many.
fn slower(rate: Ratio, step: u64) -> Ratio {
    let below = u64::from(rate.denominator).saturating_mul(step);
    match u32::try_from(below) {
        Ok(denominator) => Ratio { denominator, ..rate },
        Err(_) => Ratio { numerator: (u64::from(rate.numerator) / step).max(1) as u32, ..rate },
    }
}

/// What a part still has to count.
struct Sieve {
    part: Part,
    /// Frames a second that come in.
    rate: Ratio,
    /// Frames that came.
    came: u64,
    /// Frames that went on.
    went: u64,
}

/// What becomes of a frame.
enum Fate {
    /// It goes on so many times.
    Goes(u64),
    /// Neither it nor any that follows goes on.
    Over,
}

impl Sieve {
    fn new(part: Part, rate: Option<Ratio>) -> Self {
        Self { part, rate: rate.unwrap_or(Ratio { numerator: 1, denominator: 1 }), came: 0, went: 0 }
    }

    fn next(&mut self) -> Fate {
        let number = self.came;
        self.came += 1;
        match self.part {
            Part::Trim { last, .. } if number > last => Fate::Over,
            Part::Trim { first, .. } => Fate::Goes(u64::from(number >= first)),
            Part::Select { step, first } => {
                Fate::Goes(u64::from(number.checked_sub(first).is_some_and(|after| after.is_multiple_of(step))))
            }
            Part::Fps(wanted) => {
                let until = self.due_before(number + 1, wanted);
                let times = until.saturating_sub(self.went);
                self.went += times;
                Fate::Goes(times)
            }
        }
    }

    /// How many frames go on before the time at which so many have come, rounded: as ffmpeg's filter of this name does it,
    /// a frame goes on from its own rounded time until that of the next one.
    fn due_before(&self, count: u64, wanted: Ratio) -> u64 {
        let (rate, wanted) = (ratio(self.rate), ratio(wanted));
        let (above, below) = (u128::from(count) * wanted.0 * rate.1, wanted.1 * rate.0);
        ((2 * above + below) / (2 * below)) as u64
    }
}

fn ratio(ratio: Ratio) -> (u128, u128) {
    (u128::from(ratio.numerator.max(1)), u128::from(ratio.denominator.max(1)))
}

struct Selected<I, T> {
    frames: I,
    sieves: Vec<Sieve>,
    /// A frame that goes on so many times more.
    again: Option<(T, u64)>,
    over: bool,
}

impl<I, T> Selected<I, T> {
    /// How often a frame goes on through all sieves; `None` if nothing goes on any more.
    fn times(&mut self) -> Option<u64> {
        let mut times = 1;
        for sieve in &mut self.sieves {
            let mut through = 0;
            for _ in 0..times {
                match sieve.next() {
                    Fate::Goes(more) => through += more,
                    Fate::Over => return (through > 0).then_some(through),
                }
            }
            times = through;
        }
        Some(times)
    }
}

impl<T: Clone, E, I: Iterator<Item = Result<T, E>>> Iterator for Selected<I, T> {
    type Item = Result<T, E>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.again.take() {
                Some((frame, 1)) => return Some(Ok(frame)),
                Some((frame, times @ 2..)) => {
                    self.again = Some((frame.clone(), times - 1));
                    return Some(Ok(frame));
                }
                Some((_, 0)) | None => {}
            }
            if self.over {
                return None;
            }
            match self.frames.next() {
                None => self.over = true,
                Some(Err(error)) => {
                    self.over = true;
                    return Some(Err(error));
                }
                Some(Ok(frame)) => match self.times() {
                    None => self.over = true,
                    Some(times) => self.again = Some((frame, times)),
                },
            }
        }
    }
}

/// `10:50`, `10`, `10:`, `:50`; frames are counted from 1.
fn trim(words: &str) -> Result<Part, &'static str> {
    let (first, last) = words.split_once(':').unwrap_or((words, ""));
    if first.trim().is_empty() && last.trim().is_empty() {
        return Err("neither a first nor a last frame is given");
    }
    let first = number(first, 1)?;
    let last = number(last, u64::MAX)?;
    if first > last {
        return Err("the first frame comes after the last");
    }
    Ok(Part::Trim { first: first - 1, last: last - 1 })
}

fn select(words: &str) -> Result<Part, &'static str> {
    let (step, first) = words.split_once(':').unwrap_or((words, ""));
    if step.trim().is_empty() {
        return Err("it is not said which frames");
    }
    Ok(Part::Select { step: number(step, 1)?, first: number(first, 1)? - 1 })
}

fn number(word: &str, unsaid: u64) -> Result<u64, &'static str> {
    let word = word.trim();
    if word.is_empty() {
        return Ok(unsaid);
    }
    let all_digits = word.bytes().all(|byte| byte.is_ascii_digit());
    word.parse().ok().filter(|number| all_digits && *number > 0).ok_or("frames are counted 1, 2, 3 and so on")
}

fn fps(words: &str) -> Result<Part, &'static str> {
    words.trim().parse().map(Part::Fps).map_err(|_| "that is no rate")
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Option<Ratio> = Some(Ratio { numerator: 30, denominator: 1 });

    fn selection(text: &str) -> Selection {
        let parts = text.split(',').map(|part| Selection::part(part).expect("one of them").expect("well written"));
        parts.fold(Selection::default(), |all, part| all.then(part).expect("few"))
    }

    fn of(text: &str, frames: u64) -> Vec<u64> {
        selection(text).select((0..frames).map(Ok::<_, ()>), RATE).map(|frame| frame.expect("no error")).collect()
    }

    #[test]
    fn frames_are_counted_from_1() {
        assert_eq!(of("trim=3:5", 10), [2, 3, 4]);
        assert_eq!((of("trim=9", 10), of("trim=:2", 10)), (vec![8, 9], vec![0, 1]));
        assert_eq!((of("select=4", 10), of("select=4:2", 10)), (vec![0, 4, 8], vec![1, 5, 9]));
        assert_eq!(of("trim=3:8,select=2", 10), [2, 4, 6]);
        assert_eq!(of("select=2,trim=:2", 10), [0, 2]);
    }

    /// What `ffmpeg -vf fps` gives for the same frames.
    #[test]
    fn another_rate_leaves_frames_out_or_repeats_them() {
        assert_eq!(of("fps=10", 9), [1, 4, 7]);
        assert_eq!(of("fps=60", 3), [0, 0, 1, 1, 2, 2]);
        assert_eq!(of("fps=30", 5), [0, 1, 2, 3, 4]);
        assert_eq!(of("fps=24", 10).len(), 8);
        assert_eq!(of("select=3,fps=10", 9), [0, 3, 6], "ten a second go in by then");
    }

    #[test]
    fn nothing_is_read_behind_the_last_frame_that_goes_on() {
        let mut read = 0;
        let frames = std::iter::from_fn(|| {
            read += 1;
            Some(Ok::<_, ()>(read))
        });
        assert_eq!(selection("trim=:3").select(frames, None).count(), 3);
        assert_eq!(read, 4);
    }

    #[test]
    fn an_error_goes_on_and_is_the_last() {
        let frames = [Ok(1), Err("torn"), Ok(2)].into_iter();
        assert_eq!(selection("select=1").select(frames, None).collect::<Vec<_>>(), [Ok(1), Err("torn")]);
    }

    #[test]
    fn rates_and_counts_are_those_of_what_goes_on() {
        let rate = |text, rate| selection(text).rate(rate);
        assert_eq!(rate("trim=:9,select=2", RATE), Ok(Some(Ratio { numerator: 30, denominator: 2 })));
        assert_eq!(rate("fps=24000/1001", RATE), Ok(Some(Ratio { numerator: 24000, denominator: 1001 })));
        assert_eq!(rate("fps=25", None), Err(SelectionError::RateUnknown));
        assert_eq!(selection("fps=15,trim=:20").count(30, RATE), 15);
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_how_to_write_it() {
        for text in ["trim", "trim=:", "trim=0", "trim=5:2", "trim=a", "select=0", "select", "fps=0", "fps=fast"] {
            let said = Selection::part(text).expect("one of them").expect_err(text).to_string();
            assert!(said.contains(text) && said.contains("; write "), "{said}");
        }
        assert_eq!(Selection::part("scale=50%"), None);
    }
}
