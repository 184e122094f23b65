//! What strips have in common: a reference that stays in host memory and goes up band by band.

use std::ops::Range;

use plimsoll_core::Fault;

use crate::feed::{Feed, Source};
use crate::image::{Image, Shape};
use crate::planes::Planes;
use crate::run::Run;
use crate::transfer::Transfer;

/// A reference that comes to the device band by band, with the buffers of its way.
pub(super) struct StripReference {
    image: Option<Image>,
    shape: Shape,
    feed: Feed,
}

impl StripReference {
    /// Keeps a reference. `transfer` says what the planes are to hold.
    pub(super) fn open(run: &mut Run<'_>, reference: Source<'_>, transfer: Transfer) -> Result<Self, Fault> {
        let shape = reference.shape();
        let image = if let Source::Pixels(image) = reference { Some(image.clone()) } else { None };
        Ok(Self { image, shape, feed: Feed::open(run, shape, transfer)? })
    }

    /// Brings some of its rows to the device, the first of them at the start of each plane.
    pub(super) fn rows(&self, run: &mut Run<'_>, rows: Range<u32>, to: &Planes) -> Result<(), Fault> {
        let source = self.image.as_ref().map_or(Source::Blank(self.shape), Source::Pixels);
        self.feed.rows(run, source, rows, to.each())
    }
}
