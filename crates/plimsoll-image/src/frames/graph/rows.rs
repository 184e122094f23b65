//! Rows of a plane as a pass sees them: the whole plane, or a ring that holds the last few rows of it.
//! Invariant: a row is only asked for while the ring still holds it; the plan of the rings sees to that (`host.rs`).

/// Rows to read.
#[derive(Copy, Clone)]
pub(crate) struct Rows<'a> {
    samples: &'a [f32],
    width: usize,
    held: usize,
}

/// Rows to write.
pub(crate) struct RowsMut<'a> {
    samples: &'a mut [f32],
    width: usize,
    held: usize,
}

impl<'a> Rows<'a> {
    /// A ring of as many rows as fit; a plane that fits whole is the same as a plane.
    pub(crate) fn new(samples: &'a [f32], width: u32) -> Self {
        let width = width as usize;
        Self { samples, width, held: samples.len() / width }
    }

    /// All rows that are held, in no order that is told.
    pub(crate) fn held(&self) -> &'a [f32] {
        self.samples
    }

    /// Where row `y` of the plane begins among them.
    pub(crate) fn start_of(&self, y: u32) -> usize {
        y as usize % self.held * self.width
    }

    /// Row `y` of the plane.
    #[inline]
    pub(crate) fn row(&self, y: u32) -> &'a [f32] {
        &self.samples[y as usize % self.held * self.width..][..self.width]
    }
}

impl<'a> RowsMut<'a> {
    /// As [`Rows::new`].
    pub(crate) fn new(samples: &'a mut [f32], width: u32) -> Self {
        let width = width as usize;
        Self { held: samples.len() / width, samples, width }
    }

    /// Row `y` of the plane.
    #[inline]
    pub(crate) fn row(&mut self, y: u32) -> &mut [f32] {
        &mut self.samples[y as usize % self.held * self.width..][..self.width]
    }
}
