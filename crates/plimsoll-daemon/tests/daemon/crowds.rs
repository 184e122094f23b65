//! Many clients at once.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use plimsoll_daemon::client::Client;
use plimsoll_daemon::wire::{Request, Say};

use crate::rig::{MIB, Rig, until, wants};

#[test]
fn a_thousand_clients_hold_a_lease_each() {
    let rig = Rig::new();
    let more = rustix::process::Resource::Nofile;
    let mut limit = rustix::process::getrlimit(more);
    limit.current = limit.maximum;
    rustix::process::setrlimit(more, limit).unwrap();
    let mut clients: Vec<Client> = (0..1_000).map(|_| rig.client()).collect();
    let mut leases = Vec::new();
    for client in &mut clients {
        leases.push(client.hold(wants("one of many", 10)).expect("there is room for all").lease);
    }
    let state = rig.state();
    assert_eq!(state.devices[0].promised, 10_000 * MIB);
    assert_eq!(state.holders.iter().filter(|holder| holder.lease.is_some()).count(), 1_000);
    // No room is left: the next one waits, and is given what the first gives back.
    let mut late = rig.client();
    let Say::Queued(queued) = late.lease(wants("late", 10)).unwrap() else { panic!("there is no room") };
    clients[0].give_back(leases[0]).unwrap();
    until("the late one's turn", || match late.wait_for(queued.lease, Some(std::time::Duration::from_millis(50))) {
        Ok(Some(_)) => Ok(()),
        other => Err(format!("{other:?}")),
    });
    drop(clients);
    until("everybody's end", || {
        let promised = rig.state().devices[0].promised;
        if promised == 10 * MIB { Ok(()) } else { Err(format!("{} MiB are promised", promised / MIB)) }
    });
}

/// Answers that nobody reads are not made: those about many leases are long, and others wait behind them.
#[cfg(target_os = "linux")]
#[test]
fn a_client_that_does_not_read_is_not_served_on() {
    let rig = Rig::new();
    let mut holder = rig.client();
    for _ in 0..800 {
        holder.hold(wants("one of many", 10)).expect("there is room for all");
    }
    let resident = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", rig.daemon.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() / 1_024
    };
    let before = resident();
    let mut deaf = UnixStream::connect(rig.socket()).unwrap();
    deaf.set_nonblocking(true).unwrap();
    deaf.write_all(b"{\"do\":\"hello\",\"protocol\":1}\n").unwrap();
    let mut most = before;
    let end = std::time::Instant::now() + std::time::Duration::from_secs(3);
    while std::time::Instant::now() < end {
        let _ = deaf.write(&b"{\"do\":\"state\"}\n".repeat(100));
        holder.events(u64::MAX).expect("others are answered");
        most = most.max(resident());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(most < before + 24, "from {before} MiB to {most} MiB");
}

/// A client that asks and never reads is let go, and what it held is free.
#[test]
fn a_client_that_does_not_read_is_let_go() {
    let rig = Rig::new();
    let mut deaf = UnixStream::connect(rig.socket()).unwrap();
    deaf.write_all(b"{\"do\":\"hello\",\"protocol\":1}\n").unwrap();
    let mut lease = serde_json::to_vec(&Request::Lease(wants("deaf", 100))).unwrap();
    lease.push(b'\n');
    deaf.write_all(&lease).unwrap();
    until("its lease", || match rig.state().devices[0].promised {
        0 => Err("nothing is promised".to_owned()),
        _ => Ok(()),
    });
    deaf.set_nonblocking(true).unwrap();
    until("its end", || {
        // It fills its own way out as well, so that it may not get to ask more.
        let _ = deaf.write(b"{\"do\":\"state\"}\n{\"do\":\"events\"}\n");
        match rig.state().devices[0].promised {
            0 => Ok(()),
            promised => Err(format!("{promised} bytes are promised")),
        }
    });
    let mut rest = BufReader::new(deaf);
    rest.get_mut().set_nonblocking(false).unwrap();
    let mut line = String::new();
    while rest.read_line(&mut line).is_ok_and(|read| read > 0) {
        line.clear();
    }
}
