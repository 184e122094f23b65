//! Where terms are compared on a device: the planes that blurs go through, and the sums that come of it, read together.
//! Invariant: a sum that the device did not compute is an error, never a number.

use plimsoll_core::Fault;
use plimsoll_runtime::{Buffer, read_floats};

use super::kernels::{Area, Blurs, Learnt, compare, learn, sums_of};
use super::score::{Level, Sums};
use crate::run::Run;

/// The buffers of comparisons, whatever is compared.
pub(super) struct Comparer {
    blurs: [Buffer; 3],
    /// Bound where a kernel has a place for a plane that is not wanted.
    nothing: Buffer,
    sums: Buffer,
    /// What was asked for: level, channel and the words of the answer.
    asked: Vec<(usize, usize, u32)>,
}

impl Comparer {
    /// For planes of this many pixels at most, and sums of this many words.
    pub(super) fn open(run: &mut Run<'_>, pixels: u64, words: u64) -> Result<Self, Fault> {
        let blurs = [run.allocate(pixels)?, run.allocate(pixels)?, run.allocate(pixels)?];
        Ok(Self { blurs, nothing: run.allocate(1)?, sums: run.allocate(words)?, asked: Vec::new() })
    }

    /// Words for the sums of a level's channels, of which an area counts.
    pub(super) fn words(level: &Level, area: Area) -> u64 {
        let channels = level.wanted.iter().filter(|wanted| wanted.any).count() as u64;
        channels * u64::from(area.words())
    }

    /// Works out what comparisons need of one channel of a reference.
    pub(super) fn learn(&self, run: &mut Run<'_>, sides: [u32; 2], learnt: Learnt<'_>) -> Result<(), Fault> {
        learn(run, sides, self.blurs(), learnt)
    }

    /// Forgets all sums, to begin anew.
    pub(super) fn begin(&mut self, run: &mut Run<'_>) -> Result<(), Fault> {
        self.asked.clear();
        run.backend.poison(&self.sums)
    }

    /// Asks for the sums of a channel of a level over an area.
    pub(super) fn add(
        &mut self,
        run: &mut Run<'_>,
        (level, channel): (usize, usize),
        area: Area,
        reference: Learnt<'_>,
        distorted: &Buffer,
    ) -> Result<(), Fault> {
        let first_out = self.asked.iter().map(|(_, _, words)| words).sum();
        compare(run, area, self.blurs(), (reference, &self.nothing), distorted, (&self.sums, first_out))?;
        self.asked.push((level, channel, area.words()));
        Ok(())
    }

    /// Adds all that was asked for to the sums of each level's channels.
    pub(super) fn read(&self, run: &mut Run<'_>, sums: &mut [[Sums; 3]]) -> Result<(), Fault> {
        let words = self.asked.iter().map(|(_, _, words)| *words as usize).sum();
        let read = read_floats(run.backend, &self.sums, words)?;
        let mut rest = &read[..];
        for &(level, channel, words) in &self.asked {
            let (these, after) = rest.split_at(words as usize);
            for (sum, more) in sums[level][channel].iter_mut().zip(sums_of(these)) {
                *sum += more;
            }
            rest = after;
        }
        Ok(())
    }

    fn blurs(&self) -> Blurs<'_> {
        self.blurs.each_ref()
    }
}
