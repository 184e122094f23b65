//! The kernel and its twin give the same numbers, at every level of every kind of weights.

use plimsoll::Bytes;
use plimsoll::fragments::{HoldRequest, Holder, Sums};

use crate::devices::{CPU, GPU, orchestrator};
use crate::model;

#[test]
fn every_level_is_the_same_on_the_cpu_and_on_a_gpu_and_as_good_as_it_says() {
    let orchestrator = orchestrator(Bytes::mib(256));
    let packed = model::packed(&orchestrator);
    let store = model::store(&orchestrator, &packed, Bytes::mib(64));
    let stored = store.open_file(&packed.path).unwrap();
    for level in 0..6 {
        // The quality that this level has and the one before it has not, of each tensor by itself.
        for (name, weights) in &packed.tensors[..3] {
            let quality = stored.model().index.tensor(name).unwrap().quality(level);
            let decoded = [CPU, GPU].map(|device| {
                let request = HoldRequest::new(device).tensors([*name]).quality(quality);
                let holder = Holder::hold(&orchestrator, &stored, request).unwrap().wait().unwrap();
                assert_eq!(holder.held(), holder.rung_bytes(0));
                holder.decode(name).unwrap()
            });
            let [cpu, gpu] = &decoded;
            assert_eq!((cpu.level, gpu.level), (level, level), "{name}");
            let same = cpu.weights.iter().zip(&gpu.weights).all(|(cpu, gpu)| cpu.to_bits() == gpu.to_bits());
            assert!(same && cpu.weights.len() == weights.len(), "{name} at level {level}");
            assert_eq!(
                Sums::of(weights, &gpu.weights).error(),
                gpu.error,
                "{name}: the stated error is the measured one"
            );
        }
    }
}

#[test]
fn decoded_weights_can_stay_on_the_device() {
    let orchestrator = orchestrator(Bytes::mib(256));
    let packed = model::packed(&orchestrator);
    let store = model::store(&orchestrator, &packed, Bytes::mib(64));
    let stored = store.open_file(&packed.path).unwrap();
    let holder = Holder::hold(&orchestrator, &stored, HoldRequest::new(GPU)).unwrap().wait().unwrap();
    let before = orchestrator.reports()[1].promised;
    let value = holder.decode_on_device("tails", 0).unwrap();
    assert_eq!(orchestrator.reports()[1].promised, before + Bytes(4 * 65_536));
    drop(value);
    assert_eq!(orchestrator.reports()[1].promised, before);
    assert!(holder.decode_on_device("tails", 1).is_err() && holder.decode("small").is_err());
    drop(holder);
    assert_eq!(orchestrator.reports()[1].promised, Bytes::ZERO);
}
