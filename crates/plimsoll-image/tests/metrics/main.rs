//! The metrics on real devices: the CPU and a Vulkan device (lavapipe on a machine without a GPU). A machine without any
//! fails here: install Mesa's software one (`mesa-vulkan-drivers`).

mod bench;
mod footprints;
mod outside;
mod pairs;
mod rungs;
