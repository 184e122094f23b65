//! A later run goes on where an earlier one stopped: nothing is lost, nothing is there twice.

use std::collections::HashMap;
use std::fs;
use std::thread;

use plimsoll_results::rows::{Existing, Format, RowsError};

use crate::table::*;

#[test]
fn a_run_that_stopped_is_continued() {
    for format in built() {
        let (_folder, path) = place(format);
        let mut file = open(&path, Existing::Resume).expect("nothing is there");
        (0..3).for_each(|at| file.push(&good(at)).expect("room"));
        let journal = file.pause().expect("written").expect("it has rows");
        assert_eq!(journal, journal_of(&path));
        assert!(!path.exists(), "no output before the end");

        let mut file = open(&path, Existing::Resume).expect("ours");
        assert_eq!((file.found().journal_rows, file.found().output_rows), (3, 0));
        assert!((0..3).all(|at| file.is_done(key(at))) && !file.is_done(key(3)));
        file.push(&good(3)).expect("room");
        assert_eq!(file.finish().expect("written"), 4);
        assert_eq!(seen(&path), (0..4).map(seen_good).collect::<Vec<_>>(), "{format}");
        assert!(!journal.exists() && !draft_of(&path).exists());
    }
}

#[test]
fn a_finished_output_is_added_to_and_put_in_order() {
    for format in built() {
        let (_folder, path) = place(format);
        finished(&path, [good(4), good(0), good(2)]);
        let mut file = open(&path, Existing::Resume).expect("ours");
        assert_eq!((file.found().output_rows, file.row_count()), (3, 3));
        [3, 1].into_iter().for_each(|at| file.push(&good(at)).expect("room"));
        let ranks: HashMap<_, _> = (0..4).map(|at| (key(at), at)).collect();
        file.finish_ranked(|key| ranks.get(&key).copied()).expect("written");
        assert_eq!(seen(&path), (0..5).map(seen_good).collect::<Vec<_>>(), "{format}: unranked rows come last");
    }
}

#[test]
fn failed_rows_are_tried_again_and_replaced() {
    for format in built() {
        let (_folder, path) = place(format);
        finished(&path, [good(0), failed(1), failed(2)]);
        assert_eq!(seen(&path), [seen_good(0), seen_failed(1), seen_failed(2)]);
        let mut file = open(&path, Existing::Resume).expect("ours");
        assert_eq!((file.row_count(), file.failed_count(), file.done().collect::<Vec<_>>()), (3, 2, vec![key(0)]));
        file.push(&good(1)).expect("room");
        file.push(&failed(0)).expect("room");
        assert_eq!((file.row_count(), file.failed_count()), (3, 2));
        file.finish_ranked(|of| (0..3).find(|at| of == key(*at))).expect("written");
        let expected = [seen_failed(0), seen_good(1), seen_failed(2)];
        assert_eq!(seen(&path), expected, "{format}: what fails now has no score any more");
    }
}

#[test]
fn a_failed_row_that_nobody_asks_for_is_left_out_of_ranked_rows() {
    let (_folder, path) = place(Format::Csv);
    finished(&path, [failed(0), good(1), failed(2)]);
    let file = open(&path, Existing::Resume).expect("ours");
    assert_eq!(file.finish_ranked(|of| (of == key(2)).then_some(0)).expect("written"), 2);
    assert_eq!(seen(&path), [seen_failed(2), seen_good(1)]);
}

#[test]
fn a_kill_before_the_journal_is_gone_doubles_nothing() {
    for format in built() {
        let (_folder, path) = place(format);
        let mut file = open(&path, Existing::Refuse).expect("nothing is there");
        [failed(1), good(0), good(1), good(2)].iter().for_each(|row| file.push(row).expect("room"));
        let journal = fs::read(journal_of(&path)).expect("there");
        file.finish().expect("written");
        let output = fs::read(&path).expect("there");

        fs::write(journal_of(&path), &journal).expect("as if it had not been removed");
        fs::write(draft_of(&path), "half an outp").expect("as if another try had been killed");
        let file = open(&path, Existing::Resume).expect("ours");
        assert_eq!((file.found().output_rows, file.found().journal_rows, file.row_count()), (3, 4, 3));
        file.finish().expect("written");
        assert_eq!(fs::read(&path).expect("there"), output, "{format}");
        assert!(!journal_of(&path).exists() && !draft_of(&path).exists());
    }
}

#[test]
fn a_replaced_output_stays_until_the_end_and_none_of_its_rows_come_back() {
    for format in built() {
        let (_folder, path) = place(format);
        finished(&path, [good(0), good(1)]);
        let mut file = open(&path, Existing::Replace).expect("nobody else is here");
        file.push(&good(2)).expect("room");
        drop(file);
        assert_eq!(seen(&path), [seen_good(0), seen_good(1)]);
        let file = open(&path, Existing::Resume).expect("ours");
        assert!(file.is_done(key(2)) && !file.is_done(key(0)), "{format}: the run goes on as it was begun");
        file.finish().expect("written");
        assert_eq!(seen(&path), [seen_good(2)]);
    }
}

#[test]
fn a_run_that_was_to_replace_but_came_to_no_row_takes_nothing_away() {
    let (_folder, path) = place(Format::Csv);
    finished(&path, [good(0)]);
    let file = open(&path, Existing::Replace).expect("nobody else is here");
    let journal = fs::read(journal_of(&path)).expect("there");
    assert_eq!(file.pause().expect("nothing to do"), None);
    fs::write(journal_of(&path), journal).expect("as a kill leaves it");
    let file = open(&path, Existing::Resume).expect("ours");
    assert!(file.is_done(key(0)));
    file.finish().expect("written");
    assert_eq!(seen(&path), [seen_good(0)]);
}

#[test]
fn looking_and_leaving_changes_nothing() {
    let (folder, path) = place(Format::JsonLines);
    drop(open(&path, Existing::Resume).expect("nothing is there"));
    assert_eq!(fs::read_dir(folder.path()).expect("there").count(), 0);
    finished(&path, [good(0)]);
    let output = fs::read(&path).expect("there");
    drop(open(&path, Existing::Resume).expect("ours"));
    assert_eq!(fs::read_dir(folder.path()).expect("there").count(), 1, "only the output");
    assert_eq!(fs::read(&path).expect("there"), output);
}

#[test]
fn no_rows_are_an_output_too() {
    for format in built() {
        let (_folder, path) = place(format);
        finished(&path, []);
        assert_eq!(seen(&path), []);
        let file = open(&path, Existing::Resume).expect("ours");
        assert_eq!(file.finish().expect("written"), 0, "{format}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link() {
    let (folder, path) = place(Format::Csv);
    finished(&path, [good(0)]);
    let link = folder.path().join("latest.csv");
    std::os::unix::fs::symlink(&path, &link).expect("linked");
    let mut file = open(&link, Existing::Resume).expect("ours");
    assert!(matches!(open(&path, Existing::Resume), Err(RowsError::Busy { .. })), "one lock for both names");
    file.push(&good(1)).expect("room");
    file.finish().expect("written");
    assert!(link.symlink_metadata().expect("there").is_symlink());
    assert_eq!(seen(&path), [seen_good(0), seen_good(1)]);
}

/// Each run removes the journal that the next may have opened already.
#[test]
fn runs_that_take_turns_lose_nothing() {
    const RUNS: u64 = 4;
    const ROWS: u64 = 25;
    let (_folder, path) = place(Format::Csv);
    let push_one = |at: u64| loop {
        match open(&path, Existing::Resume) {
            Ok(mut file) => {
                file.push(&good(at)).expect("room");
                file.finish().expect("written");
                break;
            }
            Err(RowsError::Busy { .. }) => thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    };
    thread::scope(|scope| {
        for run in 0..RUNS {
            let push_one = &push_one;
            scope.spawn(move || (0..ROWS).for_each(|at| push_one(run * ROWS + at)));
        }
    });
    let mut found = seen(&path);
    found.sort_by(|a, b| a.2.partial_cmp(&b.2).expect("finite"));
    assert_eq!(found, (0..RUNS * ROWS).map(seen_good).collect::<Vec<_>>());
}
