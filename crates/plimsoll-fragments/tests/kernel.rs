//! The kernel and its twin on real devices: the same numbers to the last bit, those of the plain decoder, at every level.

#[expect(dead_code, reason = "plain quantisers are compared with elsewhere")]
mod weights;

use std::sync::Arc;

use plimsoll_core::{Bytes, DeviceId};
use plimsoll_fragments::Checksum;
use plimsoll_fragments::data_type::Float;
use plimsoll_fragments::quant::{Bits, check_level, decode, decode_exact, differences, encode};
use plimsoll_fragments::work::{BringBackWork, DecodeInput, DecodeWork, Decoded, UploadInput, UploadWork};
use plimsoll_runtime::cpu::CpuDevice;
use plimsoll_runtime::gauge::Gauge;
use plimsoll_runtime::{Device, Orchestrator, Task};
use plimsoll_wgpu::{OpenOptions, discover};
use weights::{Kind, to_bytes};

const DEVICES: [DeviceId; 2] = [DeviceId(0), DeviceId(1)];

/// The CPU and the first Vulkan device.
fn orchestrator() -> Orchestrator {
    let found = discover();
    let found = found.first().expect("a Vulkan device; Debian has a software one in mesa-vulkan-drivers");
    let options = OpenOptions::default().with_memory_limit(Bytes::mib(256)).with_slots(1);
    let cpu: Arc<dyn Device> = Arc::new(CpuDevice::builder().slots(1).build());
    let gpu: Arc<dyn Device> = found.open(&options).expect("the device opens").remove(0);
    Orchestrator::builder().devices([cpu, gpu]).build()
}

#[test]
fn every_level_is_the_same_on_every_device() {
    let orchestrator = orchestrator();
    let (upload, work) = (orchestrator.register(UploadWork), orchestrator.register(DecodeWork));
    let back = orchestrator.register(BringBackWork);
    for (bits, count) in [("2,3,4,6,8", 66_001), ("1", 1), ("8", 65), ("3,7", 40_000), ("1,2,3,4,5", 129)] {
        let bits: Bits = bits.parse().unwrap();
        for kind in Kind::ALL {
            let encoded = encode(&to_bytes(&kind.weights(count, 6), Float::F32), Float::F32, &bits, false);
            let levels: Vec<(Arc<Vec<u8>>, Checksum)> =
                encoded.levels.iter().map(|level| (Arc::new(level.clone()), Checksum::of(level))).collect();
            for device in DEVICES {
                let gauge = Arc::new(Gauge::default());
                let input = UploadInput { levels: levels.clone(), gauge: Arc::clone(&gauge) };
                let buffers = orchestrator.run(&upload, Task::new(input).devices([device])).unwrap().output;
                let buffers: Vec<_> = buffers.into_iter().map(Arc::new).collect();
                assert_eq!(gauge.now(), Bytes(levels.iter().map(|(level, _)| level.len() as u64).sum()));
                for there in 1..=levels.len() {
                    let planes = buffers[..there].iter().map(Arc::downgrade).collect();
                    let input = DecodeInput {
                        levels: planes,
                        bits: bits.clone(),
                        float: Float::F32,
                        weights: count,
                        keeps: false,
                    };
                    let done = orchestrator.run(&work, Task::new(input).devices([device])).unwrap();
                    let Decoded::Host(decoded) = done.output else { panic!("it was not to be kept") };
                    let slices: Vec<&[u8]> = encoded.levels[..there].iter().map(Vec::as_slice).collect();
                    let mut expected = vec![0.0; count];
                    decode(&slices, &bits, &mut expected).unwrap();
                    let same = decoded.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits());
                    assert!(same && decoded.len() == count, "{kind:?}, {bits}, {there} levels on {device}");
                }
                let (level, checksum) = &levels[0];
                let task = Task::new((Arc::downgrade(&buffers[0]), *checksum)).devices([device]);
                assert_eq!(orchestrator.run(&back, task).unwrap().output, **level);
                let wrong = Task::new((Arc::downgrade(&buffers[0]), Checksum(1))).devices([device]);
                assert!(orchestrator.run(&back, wrong).is_err(), "what is not what it should be is found out");
                drop(buffers);
                assert_eq!(gauge.now(), Bytes::ZERO);
            }
        }
    }
}

#[test]
fn levels_that_do_not_fit_together_are_refused() {
    let orchestrator = orchestrator();
    let (upload, work) = (orchestrator.register(UploadWork), orchestrator.register(DecodeWork));
    let bytes = vec![1_u8; 64];
    let input = UploadInput { levels: vec![(Arc::new(bytes.clone()), Checksum::of(&bytes))], gauge: Arc::default() };
    let buffers = orchestrator.run(&upload, Task::new(input).devices([DEVICES[1]])).unwrap().output;
    let buffers: Vec<_> = buffers.into_iter().map(Arc::new).collect();
    let input = DecodeInput {
        levels: buffers.iter().map(Arc::downgrade).collect(),
        bits: Bits::default(),
        float: Float::F32,
        weights: 1_000,
        keeps: false,
    };
    assert!(orchestrator.run(&work, Task::new(input).devices([DEVICES[1]])).is_err());
    let damaged = UploadInput { levels: vec![(Arc::new(bytes), Checksum(7))], gauge: Arc::default() };
    assert!(orchestrator.run(&upload, Task::new(damaged).devices([DEVICES[1]])).is_err(), "never sent to a device");
}

/// Weights as they come, and everything that is no ordinary number; one looks like memory that nobody has written.
fn odd_weights(float: Float, count: usize) -> Vec<u8> {
    let mut bytes = to_bytes(&Kind::OutlierChannels.weights(count, 3), float);
    let odd: Vec<u8> = match float {
        Float::F32 => {
            [0x7fc0_dead_u32, 0x7f80_0000, 0xff80_0001, 1, 0x8000_0000, 0x007f_ffff, 0x7f7f_ffff, 0xffff_ffff]
                .iter()
                .flat_map(|bits| bits.to_le_bytes())
                .collect()
        }
        _ => (0..=u16::MAX).step_by(7).flat_map(u16::to_le_bytes).collect(),
    };
    bytes[1_000 * float.bytes()..][..odd.len()].copy_from_slice(&odd);
    bytes
}

/// On every rung: whole, in parts where a result has to be small, read back where there is no room for any.
#[test]
fn the_exact_level_gives_back_the_very_bytes_on_every_device_and_rung() {
    let orchestrator = orchestrator();
    let (upload, work) = (orchestrator.register(UploadWork), orchestrator.register(DecodeWork));
    let (bits, count) = (Bits::default(), 150_001);
    for float in [Float::F16, Float::BF16, Float::F32] {
        let bytes = odd_weights(float, count);
        let encoded = encode(&bytes, float, &bits, true);
        let exact = encoded.exact.unwrap();
        let planes: Vec<&[u8]> = encoded.levels.iter().map(Vec::as_slice).collect();
        assert!(decode_exact(&planes, &exact, &bits, float, count).unwrap() == bytes, "{float:?}");
        let mut unpacked = differences(&exact, float, count).unwrap();
        unpacked.resize(unpacked.len().next_multiple_of(4), 0);
        let all = encoded.levels.iter().chain([&unpacked]);
        let levels: Vec<(Arc<Vec<u8>>, Checksum)> =
            all.map(|level| (Arc::new(level.clone()), Checksum::of(level))).collect();
        for (device, rungs) in [(DEVICES[0], &["cpu"][..]), (DEVICES[1], &["gpu", "gpu-parts", "gpu-read-back"])] {
            let input = UploadInput { levels: levels.clone(), gauge: Arc::default() };
            let buffers = orchestrator.run(&upload, Task::new(input).devices([device])).unwrap().output;
            let buffers: Vec<_> = buffers.into_iter().map(Arc::new).collect();
            for rung in rungs {
                let levels = buffers.iter().map(Arc::downgrade).collect();
                let input = DecodeInput { levels, bits: bits.clone(), float, weights: count, keeps: false };
                let task = Task::new(input).devices([device]).rung(rung).strict();
                let Decoded::Host(decoded) = orchestrator.run(&work, task).unwrap().output else { panic!("not kept") };
                assert!(float.narrowed(&decoded) == bytes, "{float:?} on {device}, {rung}");
            }
        }
    }
}

/// A file could have a table by which weights look like memory that a device never wrote: it never gets there.
#[test]
fn a_table_that_no_weights_give_is_refused() {
    let (bits, count) = (Bits::default(), 20_000);
    let encoded = encode(&to_bytes(&Kind::Gaussian.weights(count, 1), Float::F32), Float::F32, &bits, false);
    for (level, right) in encoded.levels.iter().enumerate() {
        check_level(right, &bits, level, count).unwrap();
        for wrong in [0x7fc0_dead, f32::INFINITY.to_bits(), 3e30_f32.to_bits()] {
            let mut bytes = right.clone();
            bytes[..4].copy_from_slice(&u32::to_le_bytes(wrong));
            assert!(check_level(&bytes, &bits, level, count).is_err());
            let levels: Vec<&[u8]> = encoded.levels[..level].iter().chain([&bytes]).map(Vec::as_slice).collect();
            assert!(decode(&levels, &bits, &mut vec![0.0; count]).is_err());
        }
        assert!(check_level(&right[..right.len() - 4], &bits, level, count).is_err());
    }
}
