//! Every example runs, and finds what it looks for.

use plimsoll::machine::{GpuUse, MachineOptions};

#[path = "../examples/async_tokio.rs"]
mod async_tokio;
#[path = "../examples/frames.rs"]
mod frames;
#[path = "../examples/function.rs"]
mod function;
#[path = "../examples/kernel.rs"]
mod kernel;
#[path = "../examples/layer_trace.rs"]
mod layer_trace;
#[path = "../examples/leases.rs"]
mod leases;
#[path = "../examples/pipeline.rs"]
mod pipeline;
#[path = "../examples/references.rs"]
mod references;
#[path = "../examples/sweep.rs"]
mod sweep;
#[path = "../examples/urgency.rs"]
mod urgency;

macro_rules! run {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                $name::main().unwrap_or_else(|error| panic!("{error}"));
            }
        )*

        /// One that is added here and not above does not compile; one that lies there and is not here fails this.
        #[test]
        fn none_is_left_out() {
            let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
            for entry in std::fs::read_dir(folder).expect("the folder of examples") {
                let path = entry.expect("an example").path();
                let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("a plain name");
                // It runs as long as it is told to, in `cargo xtask campaign`.
                let is_campaign = stem == "long_streams";
                assert!(is_campaign || [$(stringify!($name)),*].contains(&stem), "{stem} is run by no test");
            }
        }
    };
}

run!(async_tokio frames function kernel layer_trace leases pipeline references sweep urgency);

#[test]
fn every_rung_of_the_kernel_gives_the_same() {
    let options = MachineOptions { gpus: GpuUse::WithSoftware, ..MachineOptions::default() };
    for rung in ["gpu", "gpu-strip", "cpu"] {
        kernel::run(&options, Some(rung)).unwrap_or_else(|error| panic!("{rung}: {error}"));
    }
}
