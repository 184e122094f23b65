//! The GPUs of this machine; there are none where the crate was built without the feature `gpu`.
//! Never opens one unasked.

use std::path::Path;
use std::sync::Arc;

#[cfg(feature = "gpu")]
use plimsoll_core::Bytes;
use plimsoll_core::Fault;
use plimsoll_runtime::Device;

#[cfg(feature = "gpu")]
pub(crate) use plimsoll_wgpu::{FoundGpu, discover};

/// A part of a card that was opened, or could not be yet.
pub(crate) type OpenedPart = (Arc<dyn Device>, Result<(), Fault>);

/// Parts that a card is divided into at most.
#[cfg(feature = "gpu")]
pub(crate) const PARTS_MAX: usize = plimsoll_wgpu::OpenOptions::LOGICAL_LIMIT;
#[cfg(not(feature = "gpu"))]
pub(crate) const PARTS_MAX: usize = 16;

/// Where Linux shows cards to programs, whoever made them. Where it shows none, there is none for a driver to find.
const CARDS: [&str; 9] = [
    "/dev/dri",
    "/dev/dxg",
    "/dev/kfd",
    "/dev/kgsl-3d0",
    "/dev/mali0",
    "/dev/nvgpu",
    "/dev/nvhost-gpu",
    "/dev/nvidiactl",
    "/dev/pvr_sync",
];

/// Whether a driver could find a card. Loading the drivers of software GPUs to be told of none took 45 of the 60 ms that a
/// command on the CPU needed to start.
pub(crate) fn may_be_there() -> bool {
    cfg!(not(target_os = "linux")) || shows(&CARDS)
}

fn shows(places: &[&str]) -> bool {
    places.iter().any(|place| Path::new(place).exists())
}

/// Opens a card in so many parts under one limit, labelled from this number on.
#[cfg(feature = "gpu")]
pub(crate) fn open(found: &FoundGpu, first: usize, parts: usize, limit: Option<Bytes>) -> Vec<OpenedPart> {
    let how = plimsoll_wgpu::OpenOptions::default().with_first_number(first).with_logical(parts);
    let how = how.with_memory_limit(limit);
    let devices = found.devices(&how).into_iter();
    devices.map(|device| (Arc::clone(&device) as Arc<dyn Device>, device.opened())).collect()
}

#[cfg(not(feature = "gpu"))]
pub(crate) use none::{FoundGpu, discover, open};

#[cfg(not(feature = "gpu"))]
mod none {
    use plimsoll_core::Bytes;
    use plimsoll_runtime::Nature;

    /// A card: there is none.
    pub(crate) enum FoundGpu {}

    impl FoundGpu {
        pub(crate) fn nature(&self) -> Nature {
            match *self {}
        }

        pub(crate) fn name(&self) -> &str {
            match *self {}
        }

        pub(crate) fn driver(&self) -> &str {
            match *self {}
        }
    }

    pub(crate) fn discover() -> Vec<FoundGpu> {
        Vec::new()
    }

    pub(crate) fn open(found: &FoundGpu, _: usize, _: usize, _: Option<Bytes>) -> Vec<super::OpenedPart> {
        match *found {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_place_that_shows_a_card_is_enough() {
        assert!(!shows(&["/there/is/nothing"]));
        assert!(shows(&["/there/is/nothing", "/"]));
    }
}
