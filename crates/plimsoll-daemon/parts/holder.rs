//! A client that holds a lease until it is killed, and goes on with the next daemon.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use plimsoll_daemon::client::Client;
use plimsoll_daemon::wire::{Granted, Request};

use crate::uses::Uses;

/// The longest that a daemon is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Takes a lease, uses what it was promised, and holds it until it is killed.
pub(crate) fn play(folder: &Path, mib: &str) {
    let socket = folder.join("run/serve.sock");
    let bytes = mib.parse::<u64>().expect("so many MiB") << 20;
    let asked = serde_json::json!({ "name": "holder", "ladder": [{ "bytes": bytes }] });
    let mut client = until(|| Client::connect(&socket).ok());
    let granted = client.hold(serde_json::from_value(asked).unwrap()).expect("there is room");
    Uses::of_this(folder).set(granted.bytes);
    println!("held {}", granted.lease.0);
    std::io::stdout().flush().unwrap();
    loop {
        match client.hear(Some(Duration::from_millis(200))) {
            Ok(_) => {}
            Err(_) => client = until(|| claim(&socket, &granted)),
        }
    }
}

fn claim(socket: &Path, granted: &Granted) -> Option<Client> {
    let mut client = Client::connect(socket).ok()?;
    let claim = Request::Claim { lease: granted.lease, secret: granted.secret.clone() };
    client.ask(&claim).ok()?;
    Some(client)
}

fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        match look() {
            Some(found) => return found,
            None => assert!(Instant::now() < end, "no daemon came within {PATIENCE:?}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
