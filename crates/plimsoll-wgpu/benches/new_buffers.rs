//! How fast bytes come into a device's new buffers where its memory is the host's, without anything of ours: through wgpu, through
//! the driver without what wgpu clears, and beside them memcpy. Each frees what it made before the next begins.
//! `cargo bench -p plimsoll-wgpu --bench new_buffers [-- BYTES]`; BYTES are those of one buffer, 820000 otherwise.

#![expect(unsafe_code, reason = "the driver's own buffers have no safe interface")]

use std::time::{Duration, Instant};

use wgpu::hal::{Device as _, api::Vulkan};
use wgpu::{BufferUsages, BufferUses};

/// Of all buffers together, about.
const ALL: usize = 33 << 20;
/// More than the C library keeps when it is freed.
const NEW_FROM: usize = 40 << 20;
/// The median of these is told, and the best.
const ROUNDS: usize = 15;

fn open() -> (wgpu::Device, wgpu::Queue) {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let adapter = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default()));
    let adapter = adapter.expect("a Vulkan device; Debian has a software one in mesa-vulkan-drivers");
    println!("{}", adapter.get_info().name);
    let descriptor = wgpu::DeviceDescriptor {
        required_features: wgpu::Features::MAPPABLE_PRIMARY_BUFFERS,
        required_limits: adapter.limits(),
        memory_hints: wgpu::MemoryHints::MemoryUsage,
        ..wgpu::DeviceDescriptor::default()
    };
    pollster::block_on(adapter.request_device(&descriptor)).expect("it opens")
}

/// As this crate makes them.
fn through_wgpu(device: &wgpu::Device, levels: &[Vec<u8>]) {
    let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST | BufferUsages::MAP_WRITE;
    let make = |level: &Vec<u8>| {
        let size = level.len() as u64;
        let buffer =
            device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: true });
        buffer.get_mapped_range_mut(..).expect("mapped").copy_from_slice(level);
        buffer.unmap();
        buffer
    };
    drop(levels.iter().map(make).collect::<Vec<_>>());
    device.poll(wgpu::PollType::Poll).expect("it answers");
}

/// The driver's memory, first touched by what is written.
fn through_the_driver(device: &wgpu::Device, levels: &[Vec<u8>]) {
    let usage = BufferUses::STORAGE_READ_WRITE | BufferUses::COPY_SRC | BufferUses::COPY_DST | BufferUses::MAP_WRITE;
    // SAFETY: the guard only lends the handle, and goes before the device does.
    let hal = unsafe { device.as_hal::<Vulkan>() }.expect("Vulkan");
    let make = |level: &Vec<u8>| {
        let size = level.len() as u64;
        let memory_flags = wgpu::hal::MemoryFlags::empty();
        let descriptor = wgpu::hal::BufferDescriptor { label: None, size, usage, memory_flags };
        // SAFETY: a buffer of a size that the device has.
        let buffer = unsafe { hal.create_buffer(&descriptor) }.expect("memory");
        // SAFETY: it can be mapped, is not yet, and is as long as this.
        let mapping = unsafe { hal.map_buffer(&buffer, 0..size) }.expect("mapped");
        // SAFETY: both are as long as the level, and nobody else knows of the new one.
        unsafe { std::ptr::copy_nonoverlapping(level.as_ptr(), mapping.ptr.as_ptr(), level.len()) };
        // SAFETY: it is mapped.
        unsafe { hal.unmap_buffer(&buffer) };
        buffer
    };
    let made: Vec<_> = levels.iter().map(make).collect();
    for buffer in made {
        // SAFETY: made above, and never used by the device.
        unsafe { hal.destroy_buffer(buffer) };
    }
}

fn copied_anew(levels: &[Vec<u8>], in_large_pages: bool) {
    let mut target: Vec<u8> = Vec::with_capacity(levels.iter().map(Vec::len).sum::<usize>().max(NEW_FROM));
    if in_large_pages {
        plimsoll_runtime::large_pages::ask_for(&mut target);
    }
    levels.iter().for_each(|level| target.extend_from_slice(level));
    drop(std::hint::black_box(target));
}

fn main() {
    let bytes = std::env::args().skip(1).find_map(|word| word.parse::<usize>().ok()).unwrap_or(820_000) & !3;
    let levels: Vec<Vec<u8>> = vec![vec![7; bytes]; (ALL / bytes).max(1)];
    let mut targets = levels.clone();
    let (device, _queue) = open();
    let mut again = || {
        targets.iter_mut().zip(&levels).for_each(|(target, level)| target.copy_from_slice(level));
        std::hint::black_box(&targets);
    };
    let (mut small, mut large) = (|| copied_anew(&levels, false), || copied_anew(&levels, true));
    let (mut wgpu, mut driver) = (|| through_wgpu(&device, &levels), || through_the_driver(&device, &levels));
    let works: [(&str, &mut dyn FnMut()); 5] = [
        ("new buffers, through wgpu", &mut wgpu),
        ("new buffers, the driver alone", &mut driver),
        ("memcpy into new memory", &mut small),
        ("memcpy into new memory in large pages", &mut large),
        ("memcpy into memory that was written before", &mut again),
    ];
    for (name, work) in works {
        let mut took: [Duration; ROUNDS] = std::array::from_fn(|_| {
            let begun = Instant::now();
            work();
            begun.elapsed()
        });
        took.sort_unstable();
        let [best, median] =
            [took[0], took[ROUNDS / 2]].map(|time| (bytes * levels.len()) as f64 / time.as_secs_f64() / 1e9);
        println!("{name:<44} {best:>6.2} GB/s, median {median:>6.2}");
    }
}
