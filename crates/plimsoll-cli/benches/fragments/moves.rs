//! How fast fragments move from tier to tier, beside the machine's own limits.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use plimsoll::fragments::{FragmentFile, HoldRequest, Holder, Holding, Store, StoreOptions, StoredModel};
use plimsoll::{Bytes, DeviceId, DeviceKind, Orchestrator};
use plimsoll_runtime::large_pages;

use crate::{gb_a_second, in_turns};

fn share(name: &str, speed: [f64; 2], limit: &str, best: [f64; 2]) {
    println!(
        "{name}: {:.2} GB/s ({:.2}), {:.0} % ({:.0} %) of {limit}, {:.2} GB/s ({:.2})",
        speed[0],
        speed[1],
        100.0 * speed[0] / best[0],
        100.0 * speed[1] / best[1],
        best[0],
        best[1]
    );
}

pub(crate) fn rows(orchestrator: &Arc<Orchestrator>, path: &Path, file: &FragmentFile) {
    let wanted = file.model().index.fragments_for(1.0);
    let bytes: u64 = wanted.iter().map(|fragment| fragment.bytes).sum();
    let mut cat = || {
        let ended = Command::new("cat").arg(path).stdout(Stdio::null()).status();
        assert!(ended.expect("cat runs").success());
    };
    let mut read = || wanted.iter().for_each(|fragment| drop(file.read(fragment).expect("whole")));
    let [read, cat] = in_turns([&mut read, &mut cat]);
    let length = fs::metadata(path).expect("it is there").len();
    share("disk to memory, checked", gb_a_second(bytes, read), "cat to /dev/null", gb_a_second(length, cat));

    let folder = tempfile::tempdir().expect("a folder");
    let options = StoreOptions {
        folder: Some(folder.path().to_owned()),
        memory: Some(Bytes(2 * bytes)),
        ..StoreOptions::default()
    };
    let store = Store::open(orchestrator, &options).expect("a store");
    let model = store.open_file(path).expect("a model");
    for fragment in &wanted {
        model.fragment(fragment).expect("whole");
    }
    for (id, facts) in orchestrator.devices() {
        hold(orchestrator, &model, id, facts.kind);
    }
}

/// More than the C library keeps when it is freed: its next use is new memory, of which the system clears each page.
const NEW_FROM: usize = 40 << 20;

/// The same bytes into new memory. Buffers of less than 32 MiB are not new: the C library hands out what was freed before.
fn copy_anew(levels: &[Vec<u8>], in_large_pages: bool) {
    let mut target: Vec<u8> = Vec::with_capacity(levels.iter().map(Vec::len).sum::<usize>().max(NEW_FROM));
    if in_large_pages {
        large_pages::ask_for(&mut target);
    }
    levels.iter().for_each(|level| target.extend_from_slice(level));
    drop(std::hint::black_box(target));
}

/// All levels of bit planes, beside the same bytes copied within memory: into new memory, whose pages the system clears first,
/// small and large ones, and into memory that was written before.
fn hold(orchestrator: &Arc<Orchestrator>, model: &StoredModel, device: DeviceId, kind: DeviceKind) {
    let finest = model.model().index.bits.levels() - 1;
    let quality = model.model().index.tensors[0].quality(finest);
    let held = Holder::hold(orchestrator, model, HoldRequest::new(device).quality(quality)).and_then(Holding::wait);
    let held = held.expect("there is room").held();
    let levels: Vec<Vec<u8>> = level_bytes(model).into_iter().map(|bytes| vec![1; bytes]).collect();
    let mut targets = levels.clone();
    let mut copy_again = || {
        for (target, level) in targets.iter_mut().zip(&levels) {
            target.copy_from_slice(level);
        }
        std::hint::black_box(&targets);
    };
    let (mut small, mut large) = (|| copy_anew(&levels, false), || copy_anew(&levels, true));
    let mut hold = || {
        let request = HoldRequest::new(device).quality(quality);
        let holder = Holder::hold(orchestrator, model, request).and_then(Holding::wait);
        assert_eq!(holder.expect("there is room").held(), held);
    };
    let [hold, small, large, again] = in_turns([&mut hold, &mut small, &mut large, &mut copy_again]);
    let name = format!("memory to {device} ({kind:?}), checked, with its grant, {} MB", held.0 / 1_000_000);
    let row = |limit, best| share(&name, gb_a_second(held.0, hold), limit, gb_a_second(held.0, best));
    row("memcpy into new memory", small);
    row("memcpy into new memory in large pages", large);
    row("memcpy into memory that was written before", again);
}

/// Bytes of each level of bit planes of each piece.
fn level_bytes(model: &StoredModel) -> Vec<usize> {
    let index = &model.model().index;
    let planes = |piece: &Vec<plimsoll::fragments::Fragment>| {
        piece[..index.bits.levels()].iter().map(|level| level.bytes as usize).collect::<Vec<_>>()
    };
    index.tensors[0].pieces.iter().flat_map(planes).collect()
}
