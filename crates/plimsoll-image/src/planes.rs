//! Red, green and blue of an image, or of a band of it, on a device.

use plimsoll_core::Fault;
use plimsoll_runtime::Buffer;

use crate::run::Run;

/// Three planes of the same size.
pub(crate) struct Planes([Buffer; 3]);

impl Planes {
    /// Three planes of this many pixels.
    pub(crate) fn open(run: &mut Run<'_>, pixels: u64) -> Result<Self, Fault> {
        Ok(Self([run.allocate(pixels)?, run.allocate(pixels)?, run.allocate(pixels)?]))
    }

    /// Red, green and blue.
    pub(crate) fn each(&self) -> [&Buffer; 3] {
        self.0.each_ref()
    }
}
