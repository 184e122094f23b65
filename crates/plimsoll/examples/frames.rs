//! Frames over every device, out in the order in which they came: `cargo run --example frames`.

use plimsoll::frames::{Distributor, DistributorOptions};
use plimsoll::image::Size;
use plimsoll::image::frames::{Chain, Colour, Format, Frame};
use plimsoll::{Machine, MachineOptions, Orchestrator};

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let machine = Machine::open(&MachineOptions::from_env()?);
    let orchestrator = Orchestrator::builder().devices(machine.devices).build();
    let distributor = Distributor::new(orchestrator, DistributorOptions::default());
    let chain: Chain = "scale=50%:area,blur=1.5".parse()?;
    let format = Format::new(Size { width: 64, height: 36 }, 8, Colour::Rgb)?;
    let frames = (0..100_u8).map(move |shade| Frame::new(format, vec![shade; format.frame_bytes()]));
    let mut stream = distributor.stream(frames, &chain);
    for (number, done) in (0..).zip(&mut stream) {
        let done = done?;
        assert_eq!((done.number, done.frame.bytes()[0]), (number, number as u8));
    }
    println!("{} frames", stream.stats().frames);
    Ok(())
}
