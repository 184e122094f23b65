//! Frames of video over every device, out in the order in which they came in.
//!
//! A [`Distributor`] takes frames and a chain of operations; each frame is a task of its orchestrator, so frames go where
//! they end first, step down when memory runs out, and move off a device that fails. What comes out is in input order and
//! carries where and how long.
//!
//! | file | what it owns |
//! |---|---|
//! | `distributor.rs` | the devices and their orchestrator; one frame, many, or a stream |
//! | `flow.rs` | frames under way: input order, the bounded window, the end |
//! | `source.rs` | where frames come from; a slow input has a thread of its own |
//! | `images.rs` | image files as frames, and back |
//! | `tasks.rs` | frames to tasks, also for chains that look at neighbours |
//! | `window.rs` | how many frames are under way |
//! | `meter.rs` | figures for each device |

mod distributor;
mod error;
mod flow;
mod images;
mod meter;
mod source;
mod tasks;
mod window;

pub use distributor::{Distributor, DistributorOptions};
pub use error::FrameError;
pub use flow::{FrameDone, FrameStream};
pub use images::{ImageFileError, ImageWriter};
pub use meter::{DeviceFrames, FrameMeter, FrameStats};
