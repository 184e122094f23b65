//! The store on disk: what is there was right when it got its name, whatever happened meanwhile.

mod model;
#[expect(dead_code, reason = "only what makes a model is of use here")]
mod weights;

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use plimsoll_fragments::index::Fragment;
use plimsoll_fragments::store::{Claim, DiskStore, StoreLimits, Wanted};
use plimsoll_fragments::{Checksum, Digest, FragmentError};
use tempfile::TempDir;

fn store(limits: StoreLimits) -> (TempDir, DiskStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = DiskStore::open(folder.path(), limits).unwrap();
    (folder, store)
}

const NO_RESERVE: StoreLimits = StoreLimits { bytes: None, reserve: 0 };

fn wanted(bytes: &[u8]) -> Wanted {
    Wanted { digest: Digest::of(bytes), bytes: bytes.len() as u64 }
}

fn objects(store: &DiskStore) -> Vec<PathBuf> {
    let folders = fs::read_dir(store.root().join("objects")).unwrap().map(|folder| folder.unwrap().path());
    folders.flat_map(|folder| fs::read_dir(folder).unwrap().map(|file| file.unwrap().path())).collect()
}

#[test]
fn one_fetches_and_what_was_fetched_stays() {
    let (_folder, store) = store(NO_RESERVE);
    let wanted = wanted(b"0123456789");
    let Claim::Mine(mut part) = store.claim(wanted).unwrap() else { panic!("it is nobody's") };
    assert!(matches!(store.claim(wanted).unwrap(), Claim::Busy));
    part.append(b"01234").unwrap();
    // As a kill does: the lock goes, the bytes stay.
    drop(part);
    let Claim::Mine(mut part) = store.claim(wanted).unwrap() else { panic!("its owner has gone") };
    assert_eq!((part.have(), part.missing()), (5, 5));
    assert!(part.append(b"567890").is_err(), "more than there should be");
    part.append(b"56789").unwrap();
    part.commit().unwrap();
    assert!(matches!(store.claim(wanted).unwrap(), Claim::There));
    assert_eq!(fs::read_dir(store.root().join("partial")).unwrap().count(), 0);
}

#[test]
fn what_is_something_else_gets_no_name() {
    let (_folder, store) = store(NO_RESERVE);
    let wanted = wanted(b"0123456789");
    let Claim::Mine(mut part) = store.claim(wanted).unwrap() else { panic!("it is nobody's") };
    part.append(b"0123456788").unwrap();
    assert!(matches!(part.commit(), Err(FragmentError::Damaged { .. })));
    assert!(!store.has(wanted) && objects(&store).is_empty());
    let Claim::Mine(part) = store.claim(wanted).unwrap() else { panic!("it is nobody's") };
    assert_eq!(part.have(), 0, "nothing of it is left");
}

/// Many threads, one fragment: it is written by one at a time and never seen in parts.
#[test]
fn a_claim_is_one_persons() {
    let (_folder, store) = store(NO_RESERVE);
    let bytes: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
    let wanted = wanted(&bytes);
    let fetched: u64 = thread::scope(|scope| {
        let fetch = || loop {
            match store.claim(wanted).unwrap() {
                Claim::There => return 0,
                Claim::Busy => thread::sleep(Duration::from_millis(1)),
                Claim::Mine(mut part) => {
                    let begin = part.have() as usize;
                    for chunk in bytes[begin..].chunks(10_000) {
                        part.append(chunk).unwrap();
                    }
                    part.commit().unwrap();
                    return (bytes.len() - begin) as u64;
                }
            }
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(fetch)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(fetched, bytes.len() as u64, "each byte was fetched once");
    assert_eq!(fs::read(&objects(&store)[0]).unwrap(), bytes);
}

#[test]
fn a_damaged_object_is_taken_out() {
    let (_folder, store) = store(NO_RESERVE);
    let folder = tempfile::tempdir().unwrap();
    let file =
        plimsoll_fragments::file::FragmentFile::open(&model::packed(folder.path(), &model::small_model())).unwrap();
    let fragment = file.model().index.tensors[0].pieces[0][0];
    store.put(&file.read(&fragment).unwrap()).unwrap();
    assert_eq!(store.read(&fragment).unwrap().unwrap(), file.read(&fragment).unwrap());
    let path = &objects(&store)[0];
    let mut bytes = fs::read(path).unwrap();
    bytes[1_000] ^= 4;
    fs::write(path, &bytes).unwrap();
    assert!(matches!(store.read(&fragment), Err(FragmentError::Damaged { .. })));
    assert!(store.read(&fragment).unwrap().is_none(), "it can be fetched again");
    bytes.pop();
    fs::write(path, &bytes).unwrap();
    assert!(matches!(store.read(&fragment), Err(FragmentError::Damaged { .. })), "it is shorter");
}

/// Another model's index names the same fragment and lies about it: that is its own loss, and not the honest model's.
#[test]
fn an_index_that_lies_takes_nothing_from_others() {
    let (_folder, store) = store(NO_RESERVE);
    let bytes: Vec<u8> = (0..5_000_u32).flat_map(u32::to_le_bytes).collect();
    let digest = store.put(&bytes).unwrap();
    let honest = Fragment { offset: 0, bytes: bytes.len() as u64, digest, checksum: Checksum::of(&bytes) };
    for lie in [Fragment { checksum: Checksum(7), ..honest }, Fragment { bytes: 4_000, ..honest }] {
        let refused = store.read(&lie);
        assert!(matches!(refused, Err(FragmentError::Malformed { .. })), "{refused:?}");
        assert_eq!(store.read(&honest).unwrap().unwrap(), bytes);
    }
}

#[test]
fn what_was_of_use_longest_ago_goes_and_what_is_wanted_stays() {
    let (_folder, store) = store(StoreLimits { bytes: Some(3_500), reserve: 0 });
    let pieces: Vec<Vec<u8>> = (0..3_u8).map(|n| vec![n; 1_000]).collect();
    for (at, piece) in pieces.iter().enumerate() {
        let digest = store.put(piece).unwrap();
        let name = digest.to_string();
        let path = store.root().join("objects").join(&name[..2]).join(&name[2..]);
        let used = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + at as u64);
        fs::File::options().write(true).open(path).unwrap().set_modified(used).unwrap();
    }
    let keep: HashSet<Digest> = [wanted(&pieces[0]).digest].into();
    let collected = store.make_room(1_200, &keep).unwrap();
    assert_eq!((collected.fragments, collected.bytes, collected.held), (1, 1_000, 2_000));
    assert!(store.has(wanted(&pieces[0])) && !store.has(wanted(&pieces[1])) && store.has(wanted(&pieces[2])));
    let full = store.make_room(3_000, &keep);
    assert!(matches!(full, Err(FragmentError::Full { .. })), "one that is wanted would have to go: {full:?}");
    assert_eq!(store.held(), 2_000, "and nothing went for nothing");
}

#[test]
fn a_disk_that_is_to_stay_free_is_full() {
    let (_folder, store) = store(StoreLimits { bytes: None, reserve: u64::MAX });
    assert!(matches!(store.make_room(1, &HashSet::new()), Err(FragmentError::Full { .. })));
}

/// While some read and write, others make room: whoever reads gets the very bytes or nothing, and the limit holds at the end.
#[test]
fn room_is_made_while_others_read() {
    let (_folder, store) = store(StoreLimits { bytes: Some(40_000), reserve: 0 });
    let pieces: Vec<Vec<u8>> = (0..40_u8).map(|at| vec![at; 2_000 + usize::from(at)]).collect();
    let fragment = |bytes: &[u8]| Fragment {
        offset: 0,
        bytes: bytes.len() as u64,
        digest: Digest::of(bytes),
        checksum: Checksum::of(bytes),
    };
    std::thread::scope(|scope| {
        for from in [0, 20] {
            let (store, pieces) = (&store, &pieces);
            scope.spawn(move || {
                for round in 0..100 {
                    store.put(&pieces[(from + round) % 40]).unwrap();
                    store.make_room(2_040, &HashSet::new()).unwrap();
                }
            });
        }
        for round in 0..2_000 {
            let bytes = &pieces[round % 40];
            assert!(store.read(&fragment(bytes)).unwrap().is_none_or(|read| read == *bytes));
        }
    });
    store.make_room(0, &HashSet::new()).unwrap();
    assert!(store.held() <= 40_000);
}

/// Whoever fetches has said so: the limit holds for all of them together, each fragment counted once.
#[test]
fn a_limit_holds_for_all_who_fetch_at_the_same_time() {
    let (folder, first) = store(StoreLimits { bytes: Some(3_000), reserve: 0 });
    let second = DiskStore::open(folder.path(), StoreLimits { bytes: Some(3_000), reserve: 0 }).unwrap();
    let [a, b, c, d] = [1_u8, 2, 3, 4].map(|n| wanted(&[n; 1_000]));
    let room = first.reserve(&[a, b]).unwrap();
    let full = second.reserve(&[c, d]);
    assert!(matches!(full, Err(FragmentError::Full { wanted: 4_000, free: 3_000, .. })), "{full:?}");
    let same = second.reserve(&[a, c]).unwrap();
    assert!(matches!(first.put(&[4; 1_000]), Err(FragmentError::Full { .. })), "what is put in counts too");
    drop(same);
    first.put(&[4; 1_000]).unwrap();
    drop(room);
    assert!(second.reserve(&[a, b]).is_ok() && first.held() == 1_000);
    assert_eq!(fs::read_dir(folder.path().join("wants")).unwrap().count(), 0, "nothing stays promised");
}

/// What somebody is waiting for is there when the rest of it has come, whoever needs room meanwhile.
#[test]
fn nobody_makes_room_of_what_another_waits_for() {
    let (folder, first) = store(StoreLimits { bytes: Some(3_000), reserve: 0 });
    let second = DiskStore::open(folder.path(), StoreLimits { bytes: Some(3_000), reserve: 0 }).unwrap();
    first.put(&[1; 1_000]).unwrap();
    let room = first.reserve(&[wanted(&[1; 1_000]), wanted(&[2; 1_000])]).unwrap();
    assert!(matches!(second.put(&[3; 2_000]), Err(FragmentError::Full { .. })));
    assert!(first.has(wanted(&[1; 1_000])));
    drop(room);
    second.put(&[3; 2_001]).unwrap();
    assert!(!first.has(wanted(&[1; 1_000])), "now nobody waits for it");
}

/// A process that ended holds no lock, and wants nothing any more; what it fetched counts until somebody needs the room.
#[test]
fn who_was_killed_keeps_no_room() {
    let (folder, store) = store(StoreLimits { bytes: Some(3_000), reserve: 0 });
    let named = folder.path().join("wants").join("1-0");
    fs::write(&named, format!("{} 3000\n", Digest([7; 32]))).unwrap();
    let Claim::Mine(mut part) = store.claim(wanted(&[1; 2_000])).unwrap() else { panic!("it is nobody's") };
    part.append(&[1; 1_500]).unwrap();
    let fetching = part;
    store.put(&[2; 1_000]).unwrap();
    assert!(!named.exists(), "whoever wrote it has gone");
    assert!(store.reserve(&[wanted(&[3; 3_000])]).is_ok(), "what was put in goes");
    assert_eq!(store.fetched_so_far(wanted(&[1; 2_000])), 1_500, "what is being fetched stays");
    drop(fetching);
    store.put(&[4; 2_500]).unwrap();
    assert_eq!(store.fetched_so_far(wanted(&[1; 2_000])), 0, "what was left behind goes");
}
