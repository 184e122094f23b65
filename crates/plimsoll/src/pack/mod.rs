//! Files packed and unpacked in standard formats, block by block over every device.
//!
//! A [`Packer`] cuts input into blocks; each block is an item of a pipeline of its orchestrator, and leaves in input order.
//! Input is read on a thread of its own and output written by the caller's (or, into a [`Draft`], by those who unpack), so that
//! who reads or writes slowly slows everything down, and what is held in memory does not grow with the file.
//!
//! | file | what it owns |
//! |---|---|
//! | `packer.rs` | the orchestrator, and what is asked of it |
//! | `blocks.rs` | input as blocks |
//! | `stages.rs` | the stages of a recipe as a pipeline |
//! | `packing.rs` | blocks under way: the bounded window, input order, the end |
//! | `small.rs` | small files, on the caller's thread |
//! | `hands.rs` | files of a moment unpacked by a few threads without a scheduler |
//! | `unpacking.rs` | pieces under way, whole ones side by side and parts in order |
//! | `watch.rs` | how far it is, for another thread to show |

mod blocks;
mod error;
mod hands;
mod packer;
mod packing;
mod small;
mod stages;
mod unpacking;
mod watch;

pub use error::PackError;
pub use packer::{PackSummary, Packer, PackerOptions, UnpackOptions};
pub use plimsoll_blocks::draft::Draft;
pub use plimsoll_blocks::filter::{Filter, ParseFilterError};
pub use plimsoll_blocks::range::says_it_gives;
pub use plimsoll_blocks::{DamageError, Format, Method, OptionsError, PackOptions, Recipe, UnpackError};
pub use small::SmallPacker;
pub use stages::Stages;

pub use crate::stage_choice::StageChoice;
pub use watch::PackWatch;
