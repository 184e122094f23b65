//! Image quality metrics: how far an image is from its reference, by nine measures.
//!
//! ```
//! use plimsoll_image::metrics::Metric;
//! use plimsoll_image::{Image, Size};
//! use plimsoll_runtime::{Orchestrator, Task};
//!
//! let orchestrator = Orchestrator::builder().cpu(2).build();
//! let psnr = orchestrator.register(Metric::Psnr.workload());
//! let size = Size { width: 64, height: 48 };
//! let image = |value: u8| Image::rgb8(size, vec![value; 64 * 48 * 3]).expect("as many samples as it has");
//! let reference = orchestrator.pin_reference(&psnr, image(100));
//! let done = orchestrator.run(&psnr, Task::new(image(101)).reference(&reference))?;
//! assert!((done.output.value - 48.13).abs() < 0.01);
//! # Ok::<(), plimsoll_runtime::RunError>(())
//! ```

mod about;
mod butteraugli;
mod cvvdp;
mod device_metric;
mod dssim;
mod four_ways;
mod host_metric;
mod iwssim;
mod metric;
mod ms_ssim;
mod psnr;
mod ssim;
mod ssim2;
mod strips;
mod structure;
mod workload;
mod zensim;

pub use about::{About, Better};
pub use butteraugli::{HeatMap, HeatMapError, heat_map};
pub use cvvdp::{Display, ParseDisplayError};
pub use metric::{Metric, ParseMetricError};
pub use workload::{MetricWorkload, RUNGS, Score, SizesDifferError};
