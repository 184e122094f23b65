//! How fast fragments move from tier to tier, beside the machine's own limits.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use plimsoll::fragments::{FragmentFile, HoldRequest, Holder, Store, StoreOptions};
use plimsoll::{Bytes, DeviceId, DeviceKind, Orchestrator};

use crate::{best, gb_a_second};

pub(crate) fn rows(orchestrator: &Arc<Orchestrator>, path: &Path, file: &FragmentFile) {
    let wanted = file.model().index.fragments_for(1.0);
    let bytes: u64 = wanted.iter().map(|fragment| fragment.bytes).sum();

    let cat = best(|| {
        let ended = Command::new("cat").arg(path).stdout(Stdio::null()).status();
        assert!(ended.expect("cat runs").success());
    });
    let cat = gb_a_second(fs::metadata(path).expect("it is there").len(), cat);
    let read = best(|| wanted.iter().for_each(|fragment| drop(file.read(fragment).expect("whole"))));
    let read = gb_a_second(bytes, read);
    println!(
        "disk to memory, checked: {read:.2} GB/s, {:.0} % of cat to /dev/null ({cat:.2} GB/s)",
        100.0 * read / cat
    );

    let source = vec![1_u8; 64 << 20];
    let mut target = vec![0_u8; 64 << 20];
    let copy = best(|| {
        target.copy_from_slice(&source);
        std::hint::black_box(&target);
    });
    let copy = gb_a_second(64 << 20, copy);
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
        hold(orchestrator, &model, id, facts.kind, copy);
    }
}

fn hold(
    orchestrator: &Arc<Orchestrator>,
    model: &plimsoll::fragments::StoredModel,
    device: DeviceId,
    kind: DeviceKind,
    copy: f64,
) {
    let mut held = Bytes::ZERO;
    let took = best(|| {
        let holder =
            Holder::hold(orchestrator, model, HoldRequest::new(device)).and_then(plimsoll::fragments::Holding::wait);
        let holder = holder.expect("there is room");
        held = holder.held();
    });
    let speed = gb_a_second(held.0, took);
    println!(
        "memory to {device} ({kind:?}), checked, with its grant: {speed:.2} GB/s, {:.0} % of memcpy ({copy:.2} GB/s)",
        100.0 * speed / copy
    );
}
