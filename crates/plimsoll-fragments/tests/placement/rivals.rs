//! What placement is compared with. All may leave out what they were just given, and are given sizes.

use std::collections::HashMap;

use crate::traces::{Step, Trace};

/// Goes through a trace; what has the least `worth` goes.
fn run(trace: &Trace, mut worth: impl FnMut(usize, usize) -> f64, mut seen: impl FnMut(usize, usize)) -> u64 {
    let mut here: HashMap<usize, ()> = HashMap::new();
    let (mut held, mut moved) = (0, 0);
    let uses = trace.steps.iter().filter_map(|step| if let Step::Use(key) = step { Some(*key) } else { None });
    for (at, key) in uses.enumerate() {
        seen(at, key);
        if here.insert(key, ()).is_none() {
            moved += trace.sizes[key];
            held += trace.sizes[key];
        }
        while held > trace.capacity {
            let least = here.keys().map(|key| (worth(at, *key), *key)).min_by(|a, b| a.partial_cmp(b).unwrap());
            let (_, key) = least.unwrap();
            here.remove(&key);
            held -= trace.sizes[key];
        }
    }
    moved
}

pub(crate) fn lru(trace: &Trace) -> u64 {
    let last = std::cell::RefCell::new(vec![0; trace.sizes.len()]);
    run(trace, |_, key| last.borrow()[key] as f64, |at, key| last.borrow_mut()[key] = at + 1)
}

/// By all uses so far, the older first among equals.
pub(crate) fn lfu(trace: &Trace) -> u64 {
    let uses = std::cell::RefCell::new(vec![(0_u64, 0); trace.sizes.len()]);
    let worth = |_, key: usize| {
        let (count, last) = uses.borrow()[key];
        count as f64 + last as f64 * 1e-9
    };
    run(trace, worth, |at, key| {
        let each = &mut uses.borrow_mut()[key];
        *each = (each.0 + 1, at);
    })
}

/// Knows the future: what is used last of all goes.
pub(crate) fn belady(trace: &Trace) -> u64 {
    let mut times = vec![Vec::new(); trace.sizes.len()];
    let uses = trace.steps.iter().filter_map(|step| if let Step::Use(key) = step { Some(*key) } else { None });
    uses.enumerate().for_each(|(at, key)| times[key].push(at));
    let next = |at: usize, key: usize| {
        let place = times[key].partition_point(|time| *time <= at);
        times[key].get(place).map_or(f64::INFINITY, |time| *time as f64)
    };
    run(trace, |at, key| -next(at, key), |_, _| {})
}
