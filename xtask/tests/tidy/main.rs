//! Tests that hold the architecture. Each says what to do when it fails; none needs anything but std.
//!
//! | test | holds |
//! |---|---|
//! | `arrows` | which crate may depend on which, and that only `plimsoll-wgpu` names a GPU API |
//! | `core_is_pure` | `plimsoll-core` has no thread, clock, file, GPU API or unseeded randomness |
//! | `files` | every file opens with a header, none is too long, none holds a path of somebody's machine |
//! | `flags` | no library names a command-line option |
//! | `light` | what the scheduler alone is built from |
//! | `names` | what documents and headers name is there: files, functions, types, tests, commands |

mod arrows;
mod core_is_pure;
mod files;
mod flags;
mod light;
mod manifest;
mod names;
mod source;
mod tree;
