//! Finds engines that nobody configured, on the ports where they listen by default.
//! Never connects to a port that no process of this user listens on.
//! Invariant: a port is taken by the first kind whose interface answers there, and no port twice.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::listeners::Processes;
use super::{Engine, EngineKind, Http, Limits};

/// Looks for engines on these ports.
#[must_use]
pub fn discover(ports: &[(EngineKind, u16)], processes: &Processes, limits: Limits) -> Vec<Engine> {
    let mut found: Vec<Engine> = Vec::new();
    for (kind, port) in ports {
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), *port);
        let is_taken = found.iter().any(|engine| engine.address == Some(address));
        if is_taken || processes.listener(*port).is_none() {
            continue;
        }
        let http = Http::new(kind.name(), address, limits, None);
        let Some(engine) = Engine::listening(*kind, http) else { continue };
        if engine.adapter.survey().is_ok() {
            found.push(engine);
        }
    }
    found
}

/// Every kind with the port where it listens by default.
#[must_use]
pub fn default_ports() -> Vec<(EngineKind, u16)> {
    EngineKind::LISTENING.iter().filter_map(|kind| Some((*kind, kind.default_port()?))).collect()
}
