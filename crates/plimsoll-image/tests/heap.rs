//! What the CPU rung says it needs is what it takes from the heap. Alone in its process, one test at a time, because its
//! allocator counts everything that happens there.
#![expect(unsafe_code, reason = "an allocator cannot be written without")]

#[path = "metrics/pairs.rs"]
#[expect(dead_code, reason = "this binary needs one kind of pair only")]
mod pairs;

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use image::{DynamicImage, RgbImage};
use plimsoll_image::Size;
use plimsoll_image::decode::{DecodeOptions, decode, look, read};
use plimsoll_image::frames::{Chain, ChainWorkload, Colour, Format, Frame};
use plimsoll_image::metrics::Metric;
use plimsoll_runtime::{Orchestrator, Task, Workload};

use pairs::{of_every_kind, size};

/// How much of what a rung asks for it uses at least. Asking for more than is used keeps other work waiting.
const USED_LEAST: f64 = 0.6;
/// What a task takes that has nothing to do with its image.
const SMALL_CHANGE: u64 = 300_000;

/// What a decoder takes that has nothing to do with its image: tables, which are 3.2 MB for a lossy JPEG XL file however
/// small it is, and buffers of a few rows.
const DECODER_CHANGE: u64 = 3_500_000;

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;
static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn add(bytes: usize) {
    let now = NOW.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(now, Relaxed);
}

// SAFETY: passes every call on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: as our caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: as our caller promised.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as our caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Held by the test whose bytes are counted.
static ALONE: Mutex<()> = Mutex::new(());

/// The most bytes on the heap beyond what was there before, while `work` ran.
fn peak_of(work: impl FnOnce()) -> u64 {
    let before = NOW.load(Relaxed);
    PEAK.store(before, Relaxed);
    work();
    (PEAK.load(Relaxed) - before) as u64
}

#[test]
fn the_cpu_rung_holds_what_it_says() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let asked = std::env::var("METRIC").ok();
    for metric in Metric::ALL.into_iter().filter(|metric| asked.as_ref().is_none_or(|name| name == metric.name())) {
        for (width, height) in [(640, 480), (1024, 768)] {
            let pair = of_every_kind(size(width, height)).remove(0);
            let ladder = metric.workload().ladder(&pair.distorted);
            let cpu = ladder.rungs().iter().find(|rung| rung.name == "cpu").expect("every metric has it");
            let said = cpu.footprint.total(1).0;
            let orchestrator = Orchestrator::builder().cpu(1).build();
            let registered = orchestrator.register(metric.workload());
            let reference = orchestrator.pin_reference(&registered, pair.reference);
            let task = Task::new(pair.distorted).reference(&reference).rung("cpu");
            let peak = peak_of(|| assert!(orchestrator.run(&registered, task).is_ok()));
            assert!(peak <= said + SMALL_CHANGE, "{metric} {width}x{height}: {peak} bytes on the heap, {said} said");
            let used = peak as f64 / said as f64;
            assert!(
                said < SMALL_CHANGE || used > USED_LEAST,
                "{metric} {width}x{height}: {said} said, only {used:.2} of it used"
            );
        }
    }
}

/// Planning a chain counts too: its tables stay, whatever it needs besides must be little.
#[test]
fn chains_hold_what_they_say() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let chains = [
        "scale=50%:lanczos,blur=3",
        "rotate=90",
        "warp=30:20:600:10:640:470:-20:480:black",
        "yuv=709:420,sobel",
        "blur=1,denoise=temporal:1",
        "crop=1000x600,flip=h,pad=1100x700+10+20",
    ];
    for text in chains {
        let size = Size { width: 1280, height: 720 };
        let format = Format::new(size, 8, Colour::Rgb).unwrap();
        let stream: Vec<Frame> = (0..3).map(|_| Frame::new(format, vec![100; format.frame_bytes()]).unwrap()).collect();
        let orchestrator = Orchestrator::builder().cpu(1).build();
        let chain = orchestrator.register(ChainWorkload::new(text.parse::<Chain>().unwrap()));
        let (mut said, own) = (0, &stream[1]);
        let on_cpu = |ladder: plimsoll_core::Ladder| {
            let cpu = ladder.rungs().iter().find(|rung| rung.name == "cpu").expect("every chain has it");
            (cpu.footprint.session + cpu.footprint.task, cpu.value)
        };
        let peak = peak_of(|| {
            let workload = chain.workload();
            let Some(first) = workload.first_part() else {
                said = on_cpu(workload.ladder(&ChainWorkload::input(own.clone()))).0.0;
                let task = ChainWorkload::task(own.clone()).rung("cpu");
                return assert!(orchestrator.run(&chain, task).is_ok());
            };
            let (before, kept) = on_cpu(first.ladder(own));
            said = (before + on_cpu(workload.ladder(&workload.input_among(3, 1, format))).0).0 + 3 * kept.0;
            let first = orchestrator.register(first);
            let claims = stream.iter().map(|frame| orchestrator.submit_for_value(&first, Task::new(frame.clone())));
            let values = claims.map(|claim| claim.expect("taken in").1).collect();
            assert!(orchestrator.run(&chain, workload.task_among(values, 1, format).rung("cpu")).is_ok());
        });
        assert!(peak <= said + SMALL_CHANGE, "{text}: {peak} bytes on the heap, {said} said");
        assert!(peak as f64 > USED_LEAST * said as f64, "{text}: {said} said, only {peak} used");
    }
}

/// A picture in every format that can be written here, and samples of those that cannot.
fn files(folder: &Path) -> Vec<PathBuf> {
    let scene = of_every_kind(size(1200, 900)).remove(0).distorted.to_rgb8();
    let picture = DynamicImage::ImageRgb8(RgbImage::from_raw(1200, 900, scene).unwrap());
    let formats = ["png", "jpg", "gif", "bmp", "qoi", "webp", "ppm", "tiff"].map(|ending| (ending, picture.clone()));
    let wide = ["png", "ppm", "tiff"].map(|ending| (ending, DynamicImage::ImageRgb16(picture.to_rgb16())));
    let clear = ["png", "webp", "tiff"].map(|ending| (ending, DynamicImage::ImageRgba8(picture.to_rgba8())));
    let written = formats.into_iter().chain(wide).chain(clear).enumerate().map(|(number, (ending, picture))| {
        let path = folder.join(format!("{number}.{ending}"));
        picture.save(&path).unwrap();
        path
    });
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let samples = ["jpeg-q15.jpg", "jpeg-q95.jpg", "jxl-d0.5.jxl", "jxl-d4.jxl", "webp-q10.webp", "webp-q95.webp"];
    let made = ["progressive.jpg", "rgb16.jxl", "rgba8.jxl", "lossy.jxl", "lossy.webp", "p3.jxl"];
    let samples = samples.map(|name| root.join("../../samples/variants").join(name));
    let made = made.map(|name| root.join("tests/decode/made").join(name));
    written.chain(samples).chain(made).collect()
}

/// What is promised for a file before it is read is what reading it takes.
#[test]
fn decoding_holds_what_the_header_promised() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    for path in files(folder.path()) {
        let outlook = look(&path).unwrap();
        let said = outlook.decode_bytes + outlook.image_bytes;
        let peak = peak_of(|| drop(decode(&read(&path).unwrap(), &DecodeOptions::default()).unwrap()));
        assert!(peak <= said + DECODER_CHANGE, "{} {}: {peak} held, {said} said", path.display(), outlook.size);
    }
}
