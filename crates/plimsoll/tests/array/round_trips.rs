use std::io::Cursor;
use std::sync::Arc;

use plimsoll::array::levels::{Block, reference};
use plimsoll::array::read::{Store, VerifyOptions};
use plimsoll::array::sink::Memory;
use plimsoll::array::{ArrayOptions, Layout, verify_store, write_array};

use crate::cases;

#[test]
fn what_was_appended_comes_back_and_levels_are_made_of_it() {
    for (name, spec, steps) in cases::all() {
        let bytes = cases::elements(&spec, steps);
        let store = cases::write(&spec, &bytes, 2, 1_000);
        let layout = Layout::new(&spec).unwrap();
        let (mut shape, mut finer) = cases::read(&store, 0);
        assert_eq!(shape[0], steps, "{name}");
        assert!(finer == bytes, "{name}: level 0");
        for (number, level) in layout.levels().iter().enumerate().skip(1) {
            let sizes: Vec<usize> = shape.iter().map(|size| *size as usize).collect();
            let block = Block { elements: &finer, shape: &sizes, halved: &level.halved };
            let mut expected = Vec::new();
            reference(spec.data_type, spec.reduction, block, &mut expected);
            (shape, finer) = cases::read(&store, number);
            assert!(finer == expected, "{name}: level {number}");
        }
        let store = Arc::new(Store::open(store).unwrap());
        let found = verify_store(&cases::orchestrator(2), &store, &VerifyOptions::default()).unwrap();
        assert_eq!(found.objects, store.objects().unwrap().len() as u64, "{name}");
        assert!(found.is_sound(), "{name}: {:?}", found.faults);
    }
}

#[test]
fn every_way_in_gives_the_same_bytes() {
    for (name, spec, steps) in cases::all() {
        let bytes = cases::elements(&spec, steps);
        let expected = cases::write(&spec, &bytes, 1, usize::MAX);
        for (slots, piece) in [(2, 1), (8, 977), (2, 100_000)] {
            let bytes = if piece == 1 { &bytes[..bytes.len().min(40_000)] } else { &bytes[..] };
            if piece == 1
                && bytes.len() % (spec.shape[1..].iter().product::<u64>() as usize * spec.data_type.bytes()) != 0
            {
                continue;
            }
            let store = cases::write(&spec, bytes, slots, piece);
            if bytes.len() as u64 == steps * Layout::new(&spec).unwrap().levels()[0].grid.step_bytes() {
                assert!(*store.objects() == *expected.objects(), "{name}: {slots} slots, pieces of {piece}");
            }
        }
        let read = Arc::new(Memory::default());
        let (layout, options) = (Layout::new(&spec).unwrap(), ArrayOptions::default());
        let orchestrator = cases::orchestrator(2);
        write_array(&orchestrator, layout, read.clone(), Cursor::new(bytes), &options).unwrap();
        assert!(*read.objects() == *expected.objects(), "{name}: from a reader");
    }
}

#[test]
fn chunks_of_nothing_but_the_fill_value_are_not_stored() {
    let spec = cases::frames();
    let step = 50 * 37 * 2;
    let store = cases::write(&spec, &vec![0; 8 * step], 2, step);
    let keys: Vec<String> = store.objects().keys().cloned().collect();
    assert!(keys.iter().all(|key| key.ends_with("zarr.json")), "{keys:?}");
    assert_eq!(cases::read(&store, 0), (vec![8, 50, 37], vec![0; 8 * step]));
}
