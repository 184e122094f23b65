//! NVIDIA's cards, by NVML.
//! Never names that library: `plimsoll_wgpu` does.

use std::path::Path;

use plimsoll::machine::truth;
use plimsoll_core::DeviceKind;

use super::{DeviceTruth, ProcessUse, Truth, TruthError};

/// Reads NVIDIA's books.
#[derive(Debug)]
pub struct Nvidia {
    first: usize,
}

impl Nvidia {
    /// Nothing if there are no such cards. GPUs are counted on.
    pub fn find(gpus: &mut usize) -> Option<Self> {
        let cards = truth::nvidia_cards().ok().filter(|cards| !cards.is_empty())?;
        let first = *gpus;
        *gpus += cards.len();
        Some(Self { first })
    }
}

impl Truth for Nvidia {
    fn name(&self) -> &str {
        "NVML"
    }

    fn read(&mut self) -> Result<Vec<DeviceTruth>, TruthError> {
        let cards = truth::nvidia_cards();
        let cards = cards.map_err(|what| TruthError { source_name: self.name().to_owned(), what })?;
        let device = |(at, card): (usize, truth::CardMemory)| DeviceTruth {
            name: format!("gpu{}", self.first + at),
            card: card.name,
            kind: DeviceKind::Gpu,
            capacity: card.capacity,
            free: card.free,
            processes: card.processes.map(|processes| {
                processes.into_iter().map(|(pid, bytes)| ProcessUse::of(Path::new("/proc"), pid, bytes)).collect()
            }),
            source: "NVML".to_owned(),
            in_book: Some(card.bus),
            environment: vec![("CUDA_VISIBLE_DEVICES".to_owned(), card.uuid)],
        };
        Ok(cards.into_iter().enumerate().map(device).collect())
    }
}
