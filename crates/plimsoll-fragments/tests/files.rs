//! Files of fragments: what was packed comes back, and whatever is changed in one is noticed.

mod model;
#[expect(dead_code, reason = "plain quantisers are compared with elsewhere")]
mod weights;

use std::fs;
use std::path::Path;

use plimsoll_fragments::FragmentError;
use plimsoll_fragments::file::FragmentFile;
use plimsoll_fragments::restore::{piece, pieces};
use weights::Dice;

/// The data of the whole model at a quality.
fn restored(file: &FragmentFile, quality: f64) -> Result<Vec<u8>, FragmentError> {
    let index = &file.model().index;
    let mut bytes = (index.header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(index.header.as_bytes());
    for at in pieces(index) {
        bytes.extend(piece(file, index, at, index.tensors[at.tensor].level_for(quality))?);
    }
    Ok(bytes)
}

fn open(path: &Path) -> Result<FragmentFile, FragmentError> {
    FragmentFile::open(path)
}

#[test]
fn the_very_file_comes_back_and_a_low_quality_is_its_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = model::small_model();
    let file = open(&model::packed(folder.path(), &bytes)).unwrap();
    assert!(restored(&file, 1.0).unwrap() == bytes);
    let index = &file.model().index;
    for quality in [0.0, 0.7, 0.9, 0.97, 0.99, 1.0] {
        let needed = index.fragments_for(quality);
        assert!(needed.is_sorted_by_key(|fragment| fragment.offset));
        for tensor in &index.tensors {
            let level = tensor.level_for(quality);
            assert!(tensor.quality(level) >= quality, "{} at {quality}", tensor.info.name);
            assert!(level == 0 || tensor.quality(level - 1) < quality, "no more than is needed");
        }
        assert_eq!(restored(&file, quality).unwrap().len(), bytes.len());
    }
    let lowest = index.fragments_for(0.0);
    let end = lowest.iter().map(|fragment| fragment.end()).max().unwrap();
    assert_eq!(end - 64, lowest.iter().map(|fragment| fragment.bytes).sum::<u64>(), "nothing lies between");
}

/// Flips bits all over a file: an error, or the very model. Never another one, and never a panic.
#[test]
fn no_flipped_bit_goes_unnoticed() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = model::small_model();
    let path = model::packed(folder.path(), &bytes);
    let whole = fs::read(&path).unwrap();
    let mut dice = Dice::new(5);
    let index_begins = u64::from_le_bytes(whole[8..16].try_into().unwrap());
    for round in 0..400 {
        let mut changed = whole.clone();
        let within = match round % 4 {
            0 => 0..64,
            1 => index_begins as usize..whole.len(),
            _ => 64..index_begins as usize,
        };
        let at = within.start + dice.next() as usize % within.len();
        changed[at] ^= 1 << (dice.next() % 8);
        fs::write(&path, &changed).unwrap();
        let outcome = open(&path).and_then(|file| restored(&file, 1.0));
        assert!(outcome.is_err(), "round {round}: byte {at} of {} was changed", whole.len());
    }
    for cut in [0, 1, 63, 64, 65, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..cut]).unwrap();
        assert!(open(&path).is_err(), "cut at {cut}");
    }
    fs::write(&path, [&whole[..], b"x"].concat()).unwrap();
    assert!(open(&path).is_err());
}

/// An index that is consistent with its checksums and lies all the same.
#[test]
fn an_index_that_lies_is_refused() {
    use plimsoll_fragments::index::Index;
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(model::packed(folder.path(), &model::small_model())).unwrap();
    let begins = u64::from_le_bytes(whole[8..16].try_into().unwrap());
    let honest: serde_json::Value = serde_json::from_slice(&whole[begins as usize..]).unwrap();
    let parse = |index: &serde_json::Value| Index::parse(&serde_json::to_vec(index).unwrap(), "it", 64..begins);
    assert!(parse(&honest).is_ok());
    let lie = |pointer: &str, value: serde_json::Value| {
        let mut index = honest.clone();
        *index.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
        assert!(parse(&index).is_err(), "{pointer}");
    };
    let header = honest["header"].as_str().unwrap();
    lie("/format", 2.into());
    lie("/bits", serde_json::json!([2, 3, 4, 6]));
    lie("/bits", serde_json::json!([8, 9]));
    lie("/exact", false.into());
    lie("/header", header.replace("[256, 300]", "[256, 301]").into());
    lie("/header", header.replace("[256, 300]", "[99999999999, 99999999999]").into());
    lie("/tensors/0/errors/0", (-1.0).into());
    lie("/tensors/0/errors", serde_json::json!([0.1]));
    lie("/tensors/0/pieces/0/0/0", 0.into());
    lie("/tensors/0/pieces/0/0/0", u64::MAX.into());
    lie("/tensors/0/pieces/0/0/1", 5.into());
    lie("/tensors/0/pieces/0/5/1", u64::MAX.into());
    lie("/tensors/0/pieces/0/1/0", honest.pointer("/tensors/0/pieces/0/0/0").unwrap().clone());
    lie("/tensors/0/pieces/0/0/2", "0".into());
    lie("/tensors/0/pieces", serde_json::json!([]));
    lie("/tensors/0/pieces/0", serde_json::json!([]));
    lie("/tensors", serde_json::json!([]));
}
