//! Input as slabs: bytes from a reader, or from whoever appends, cut where slabs end.
//! Invariant: every slab but the last is whole, and the last ends with a whole step.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Instant;

use crossbeam_channel::Receiver;
use plimsoll_arrays::Layout;
use plimsoll_arrays::work::{Form, NoPlace, Place, Places, Slab};
use plimsoll_blocks::pool::{Pool, PooledBytes};

use super::error::ArrayError;
use super::slabs;
use super::watch::ArrayWatch;

/// Where slabs begin and end.
#[derive(Clone, Debug)]
pub(super) struct Cutter {
    pool: Pool,
    places: Places,
    /// Bytes of a step, and steps of a slab.
    step_bytes: u64,
    steps: u64,
    /// The step with which the next slab begins.
    next: u64,
    /// Steps of the array, if it does not grow.
    length: Option<u64>,
}

impl Cutter {
    pub(super) fn new(layout: &Layout, pool: &Pool, places: &Places, first: u64) -> Self {
        let grid = &layout.levels()[0].grid;
        let length = (!layout.grows()).then_some(grid.shape[0]);
        let (step_bytes, steps) = (grid.step_bytes(), slabs::steps(layout));
        Self { pool: pool.clone(), places: places.clone(), step_bytes, steps, next: first, length }
    }

    /// Bytes of a step.
    pub(super) fn step_bytes(&self) -> u64 {
        self.step_bytes
    }

    /// Bytes of the next slab if it is whole.
    pub(super) fn slab_bytes(&self) -> usize {
        let left = self.length.map_or(self.steps, |length| (length - self.next).min(self.steps));
        (left * self.step_bytes) as usize
    }

    /// Memory for the next slab, as soon as there is a place for it.
    pub(super) fn filling(&self, until: Option<Instant>) -> Result<Filling, NoPlace> {
        let place = self.places.take(until)?;
        Ok(Filling { elements: self.pool.take(self.slab_bytes()), place })
    }

    /// The next slab, of these elements; an error if they do not end with a step.
    pub(super) fn slab(&mut self, filling: Filling) -> (Option<Slab>, Option<ArrayError>) {
        let Filling { mut elements, place } = filling;
        let steps = elements.len() as u64 / self.step_bytes;
        let rest = elements.len() as u64 % self.step_bytes;
        elements.vec_mut().truncate((steps * self.step_bytes) as usize);
        let slab = Slab { first: self.next, steps, elements, form: Form::Steps, place: Some(Arc::new(place)) };
        self.next += steps;
        let error = ArrayError::PartOfStep { rest, step: self.step_bytes };
        ((steps > 0).then_some(slab), (rest > 0).then_some(error))
    }

    /// Whether the array is as long as it may be.
    pub(super) fn is_full(&self) -> bool {
        self.length == Some(self.next)
    }

    pub(super) fn too_many(&self) -> ArrayError {
        ArrayError::TooMany { steps: self.length.unwrap_or(self.next) }
    }
}

/// A slab that is being filled.
#[derive(Debug)]
pub(super) struct Filling {
    pub(super) elements: PooledBytes,
    pub(super) place: Place,
}

/// Slabs from a reader.
pub(super) struct ReadSlabs<R> {
    reader: R,
    cutter: Cutter,
    watch: ArrayWatch,
    /// Bytes to leave out first: what an earlier run has written.
    skip: u64,
    /// What comes after the last slab.
    last: Option<ArrayError>,
    is_over: bool,
}

impl<R: Read> ReadSlabs<R> {
    pub(super) fn new(reader: R, cutter: Cutter, skip: u64, watch: &ArrayWatch) -> Self {
        Self { reader, cutter, watch: watch.clone(), skip, last: None, is_over: false }
    }

    fn read(&mut self) -> io::Result<Option<Slab>> {
        if self.skip > 0 {
            self.skip_to_first()?;
        }
        let wanted = self.cutter.slab_bytes();
        let Ok(mut filling) = self.cutter.filling(None) else {
            self.is_over = true;
            return Ok(None);
        };
        (&mut self.reader).take(wanted as u64).read_to_end(filling.elements.vec_mut())?;
        self.watch.take(filling.elements.len() as u64);
        self.is_over = filling.elements.len() < wanted;
        let (slab, error) = self.cutter.slab(filling);
        self.last = error;
        Ok(slab)
    }

    fn skip_to_first(&mut self) -> io::Result<()> {
        let skip = std::mem::take(&mut self.skip);
        let skipped = io::copy(&mut (&mut self.reader).take(skip), &mut io::sink())?;
        self.watch.take(skipped);
        match skipped == skip {
            true => Ok(()),
            false => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!("the input has {skipped} bytes, and {skip} of the array are there already"),
            )),
        }
    }

    /// An array that is full takes nothing more.
    fn see_end(&mut self) -> Option<ArrayError> {
        self.is_over = true;
        match self.reader.read(&mut [0]) {
            Ok(0) => None,
            Ok(_) => Some(self.cutter.too_many()),
            Err(error) => Some(ArrayError::Input(Arc::new(error))),
        }
    }
}

impl<R: Read> Iterator for ReadSlabs<R> {
    type Item = Result<Slab, ArrayError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.last.take() {
            self.is_over = true;
            return Some(Err(error));
        }
        if self.is_over {
            return None;
        }
        if self.cutter.is_full() {
            return self.see_end().map(Err);
        }
        match self.read() {
            Ok(Some(slab)) => Some(Ok(slab)),
            Ok(None) => self.last.take().map(Err),
            Err(error) => {
                self.is_over = true;
                Some(Err(ArrayError::Input(Arc::new(error))))
            }
        }
    }
}

/// What an appender sends: slabs, what is wrong with the end of the input, or nothing for its end.
pub(super) type Appended = Option<Result<Slab, ArrayError>>;

/// Slabs from whoever appends. One that goes away without having ended the array has given it up.
pub(super) struct AppendedSlabs {
    from: Receiver<Appended>,
    is_over: bool,
}

impl AppendedSlabs {
    pub(super) fn new(from: Receiver<Appended>) -> Self {
        Self { from, is_over: false }
    }
}

impl Iterator for AppendedSlabs {
    type Item = Result<Slab, ArrayError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let given = self.from.recv().unwrap_or(Some(Err(ArrayError::Stopped)));
        self.is_over = !matches!(given, Some(Ok(_)));
        given
    }
}
