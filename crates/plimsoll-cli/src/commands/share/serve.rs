//! `plimsoll serve`: the daemon.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use plimsoll::MachineOptions;
use plimsoll::book::Book;
use plimsoll_daemon::broker::Settings;
use plimsoll_daemon::config::Config;
use plimsoll_daemon::engines::config::ConfigError;
use plimsoll_daemon::engines::keeper::EngineOptions;
use plimsoll_daemon::server::{Ready, ServeOptions, serve};
use plimsoll_daemon::truth::scripted::Scripted;
use plimsoll_daemon::truth::{Truth, sources};

use super::args::{Http, ServeArgs};
use crate::output;
use crate::stop::{Ended, Stop};

/// Where the dashboard is unless said otherwise.
const HTTP: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 7878);
/// How often drivers are asked while nobody waits.
const PERIOD: Duration = Duration::from_secs(1);

/// `plimsoll serve`.
pub(crate) fn run(args: &ServeArgs) -> Ended {
    let config = match &args.config {
        Some(path) => Config::read(path).map_err(Stop::failed)?,
        None => Config::default(),
    };
    let http = match (args.http, config.http) {
        (Some(Http::Off), _) => None,
        (Some(Http::At(address)), _) => Some(address),
        (None, Some(address)) => Some(address),
        (None, None) => Some(SocketAddr::from(HTTP)),
    };
    let alone = MachineOptions::from_env().map_err(Stop::failed)?.alone;
    let sources: Vec<Box<dyn Truth>> = match args.truth.as_ref().or(config.truth.as_ref()) {
        Some(script) => vec![Box::new(Scripted::new(script))],
        None => sources(&config.capacities()),
    };
    let options = ServeOptions {
        socket: args.socket.socket.clone().or(config.socket.clone()).unwrap_or_else(|| args.socket.path()),
        http,
        settings: settings(args, &config),
        sources,
        period: PERIOD,
        engines: engines(args, config).map_err(Stop::failed)?,
        book: (!alone).then(Book::of_user),
    };
    serve(options, show).map_err(Stop::failed)
}

fn engines(args: &ServeArgs, config: Config) -> Result<EngineOptions, ConfigError> {
    let Config { mut engines, mut gates, discover, .. } = config;
    args.gate.iter().try_for_each(|gate| gate.join(&mut engines, &mut gates))?;
    Ok(EngineOptions { engines, gates, discover })
}

fn settings(args: &ServeArgs, config: &Config) -> Settings {
    let mut settings = config.applied_to(Settings::default());
    settings.sharing.policy = args.policy.unwrap_or(settings.sharing.policy);
    for reserve in &args.reserve {
        match &reserve.device {
            Some(device) => drop(settings.reserves.insert(device.clone(), reserve.bytes)),
            None => settings.reserve = reserve.bytes,
        }
    }
    settings
}

fn show(ready: &Ready) {
    let devices = if ready.devices == 1 { "device" } else { "devices" };
    output::aside(format_args!("sharing {} {devices} at {}", ready.devices, ready.socket.display()));
    if let Some(address) = ready.http {
        output::aside(format_args!("  dashboard  http://{address}"));
        output::aside(format_args!("  token      {}", ready.token.display()));
    }
    for (address, engine) in &ready.gates {
        output::aside(format_args!("  gate       http://{address} before {engine}"));
    }
    if ready.adopted > 0 {
        output::aside(format_args!("  {} leases of an earlier daemon go on", ready.adopted));
    }
}
