//! Scores of image files against their originals: `cargo run --example sweep`.

use std::path::Path;

use plimsoll::image::metrics::Metric;
use plimsoll::score::{Pair, Sweep, SweepOptions};
use plimsoll::{Machine, MachineOptions, Orchestrator};

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples");
    let variants = ["jpeg-q15.jpg", "jpeg-q50.jpg", "webp-q50.webp"].map(|name| samples.join("variants").join(name));
    let machine = Machine::open(&MachineOptions::from_env()?);
    let orchestrator = Orchestrator::builder().devices(machine.devices).build();
    let sweep = Sweep::new(orchestrator, SweepOptions::of([Metric::Psnr, Metric::Ssim]));
    let pairs = variants.into_iter().map(move |distorted| Pair { reference: samples.join("harbour.png"), distorted });
    for row in sweep.stream(pairs) {
        let scores = row.outcome?.scores;
        let scores: Vec<String> =
            scores.iter().flatten().map(|each| format!("{} {:.3}", each.metric, each.score.value)).collect();
        println!("{}: {}", row.pair.distorted.display(), scores.join(", "));
    }
    Ok(())
}
