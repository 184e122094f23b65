//! Kills at any moment: the books are right within two seconds.

use std::time::Duration;

use plimsoll_core::rng::Rng;
use plimsoll_daemon::wire::Phase;

use crate::rig::{MIB, Process, Rig, within};

const BOOKS_RIGHT: Duration = Duration::from_secs(2);

/// Holders and promised bytes are those of these processes, and nobody else.
fn books_are_right(rig: &Rig, holders: &[Process], mib: u64) {
    let mut pids: Vec<u32> = holders.iter().map(Process::pid).collect();
    pids.sort_unstable();
    within(BOOKS_RIGHT, "right books", &mut || {
        let state = rig.state();
        let mut known: Vec<u32> = state
            .holders
            .iter()
            .filter(|holder| holder.lease.is_some() && holder.phase == Phase::Held)
            .filter_map(|holder| holder.pid)
            .collect();
        known.sort_unstable();
        let promised = state.devices[0].promised;
        match known == pids && promised == pids.len() as u64 * mib * MIB {
            true => Ok(()),
            false => Err(format!("{known:?} hold {} MiB, {pids:?} should", promised / MIB)),
        }
    });
}

#[test]
fn clients_killed_a_hundred_times_leave_nothing_behind() {
    let rig = Rig::new();
    let mut rng = Rng::new(15);
    let mut holders: Vec<Process> = Vec::new();
    for _ in 0..5 {
        holders.push(Process::holder(rig.folder.path(), 100));
    }
    for _ in 0..100 {
        // Some are killed before they hold anything.
        let mut killed = holders.remove(rng.below(holders.len()));
        std::thread::sleep(Duration::from_millis(rng.within(0, 30)));
        killed.kill();
        holders.push(Process::holder(rig.folder.path(), 100));
    }
    std::thread::scope(|scope| {
        for holder in &mut holders {
            scope.spawn(|| holder.is_holding());
        }
    });
    books_are_right(&rig, &holders, 100);
    holders.drain(..2).for_each(drop);
    books_are_right(&rig, &holders, 100);
    holders.clear();
    books_are_right(&rig, &holders, 100);
}

#[test]
fn the_daemon_killed_twenty_times_loses_nothing_and_invents_nothing() {
    let mut rig = Rig::new();
    let mut rng = Rng::new(20);
    let mut holders: Vec<Process> = (0..4).map(|_| Process::holder(rig.folder.path(), 100)).collect();
    holders.iter_mut().for_each(Process::is_holding);
    let mut last = 0;
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(rng.within(0, 100)));
        rig.daemon.kill();
        if rng.chance(0.3) {
            // Its process ends while no daemon serves.
            holders.remove(0).kill();
        }
        rig.restart();
        books_are_right(&rig, &holders, 100);
        if holders.len() < 4 {
            holders.push(Process::holder(rig.folder.path(), 100));
            holders.last_mut().unwrap().is_holding();
        }
        let newest = rig.state().holders.iter().filter_map(|holder| holder.lease).map(|id| id.0).max().unwrap();
        assert!(newest >= last, "numbers go up");
        last = newest;
    }
    let mut client = rig.client();
    let events = client.events(0).unwrap();
    assert_eq!(events.iter().filter(|event| event.what == "restarted").count(), 21, "the log survives");
    assert!(events.windows(2).all(|pair| pair[0].id < pair[1].id));
    holders.clear();
    books_are_right(&rig, &holders, 100);
}
