//! The keepers and gates of a daemon: one thread for each engine, and one for all gates.
//! Never holds up the task that owns the broker: gates have a runtime of their own.
//! Invariant: they end with the daemon.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;

use super::super::config::{self, ConfigError, EngineConfig, GateConfig};
use super::super::discover::{default_ports, discover};
use super::super::listeners::Processes;
use super::super::{Engine, Limits};
use super::{Books, Handle, Keeper, NEWS_MAX, News, Terms};
use crate::broker::Broker;
use crate::gate::doorway::Doorway;
use crate::gate::{Gate, GateCounts, GateLimits, Target};
use crate::server::Ask;
use crate::size::Size;

/// How often engines are looked for that nobody configured.
const LOOK_OUT: Duration = Duration::from_secs(15);

/// Engines and gates that a daemon is to have.
#[derive(Clone, Debug, Default)]
pub struct EngineOptions {
    /// As their owner wrote them.
    pub engines: Vec<EngineConfig>,
    /// As their owner wrote them.
    pub gates: Vec<GateConfig>,
    /// Looks for engines that nobody configured, where they listen by default.
    pub discover: bool,
}

/// The keepers and gates of a daemon. They end once this is dropped and the daemon has ended.
#[derive(Debug, Default)]
pub struct Keepers {
    /// Where gates listen, before which engine, and what each has done.
    pub gates: Vec<(SocketAddr, String, Arc<GateCounts>)>,
    _gates_end: Option<oneshot::Sender<()>>,
}

/// Why engines and gates cannot be looked after.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// They are not as they should be written.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Somebody else listens there.
    #[error("the gate of {engine} cannot listen on port {port}: {source}; choose another port")]
    Listen {
        /// Whose gate.
        engine: String,
        /// Where.
        port: u16,
        /// Why not.
        source: io::Error,
    },
    /// There are no more threads.
    #[error("cannot start a thread for {what}: {source}")]
    Thread {
        /// What for.
        what: String,
        /// Why not.
        source: io::Error,
    },
}

/// A thread that runs.
type Started = Result<JoinHandle<()>, StartError>;
/// A gate and where it listens.
type ListeningGate = (std::net::TcpListener, Arc<Gate<Arc<Doorway>>>);

/// What every keeper is started with.
#[derive(Clone, Debug)]
struct Starter {
    broker: Handle,
    books: Books,
}

impl Starter {
    fn start(&self, engine: Engine, terms: Terms, doorway: Option<Arc<Doorway>>, news: Receiver<News>) -> Started {
        let what = format!("engine {}", engine.name);
        let keeper = Keeper {
            engine,
            terms,
            broker: self.broker.clone(),
            processes: Processes::default(),
            books: self.books.clone(),
            doorway,
            news,
            process: None,
            pending: None,
            granted_at: None,
            is_lowered: false,
            items: 0,
            late: None,
            warned: BTreeMap::new(),
        };
        thread(&what, move || keeper.run())
    }
}

/// Starts them. `file` is where measures are kept for the next daemon.
///
/// # Errors
/// Why they cannot be as they were written. Nothing has been started then that would not end with the daemon.
pub async fn start(broker: &Handle, options: EngineOptions, file: Option<PathBuf>) -> Result<Keepers, StartError> {
    config::check(&options.engines, &options.gates)?;
    let configured = options.engines.iter().map(|one| Ok((one.engine()?, terms(one, &options.gates))));
    let engines: Vec<(Engine, Terms)> = configured.collect::<Result<_, ConfigError>>()?;
    let (books, wrong) = Books::open(file);
    if let Some(wrong) = wrong {
        // The task that owns the broker need not run yet, so nobody waits for it.
        let warn = move |broker: &mut Broker, now| -> Box<dyn FnOnce() + Send> {
            broker.warn(now, "engines", Some(wrong));
            Box::new(|| ())
        };
        let _ = broker.send(Ask::With(Box::new(warn))).await;
    }
    let starter = Starter { broker: broker.clone(), books };
    let (mut gates, mut keepers) = (Vec::new(), Keepers::default());
    for (engine, terms) in engines {
        let (tell, news) = sync_channel(NEWS_MAX);
        let own: Vec<&GateConfig> = options.gates.iter().filter(|gate| gate.engine == engine.name).collect();
        let doorway = (!own.is_empty()).then(|| Doorway::new(tell.clone()));
        for gate in own {
            let (listener, gate) = listen(gate, &engine, doorway.as_ref())?;
            keepers.gates.push((address_of(&listener), engine.name.clone(), Arc::clone(gate.counts())));
            gates.push((listener, gate));
        }
        let joins = Ask::Engine { name: engine.name.clone(), news: tell };
        if broker.send(joins).await.is_err() {
            break;
        }
        starter.start(engine, terms, doorway, news)?;
    }
    if !gates.is_empty() {
        let (end, ended) = oneshot::channel();
        keepers._gates_end = Some(end);
        thread("gates", move || serve(gates, ended))?;
    }
    if options.discover {
        thread("discovery", move || look_out(&starter, &options.engines))?;
    }
    Ok(keepers)
}

/// Looks for engines that nobody configured, again and again: people start them when they need them.
fn look_out(starter: &Starter, configured: &[EngineConfig]) {
    let taken: Vec<u16> = configured.iter().filter_map(|one| one.port.or(one.kind.default_port())).collect();
    let mut found: Vec<(u16, String, JoinHandle<()>)> = Vec::new();
    loop {
        found.retain(|(_, _, keeper)| !keeper.is_finished());
        let is_free = |port: &u16| !taken.contains(port) && found.iter().all(|(known, ..)| known != port);
        let ports: Vec<_> = default_ports().into_iter().filter(|(_, port)| is_free(port)).collect();
        for engine in discover(&ports, &Processes::default(), Limits::default()) {
            let is_new = configured.iter().all(|one| one.name() != engine.name)
                && found.iter().all(|(_, name, _)| *name != engine.name);
            let Some(port) = engine.address.map(|address| address.port()).filter(|_| is_new) else { continue };
            let (name, (tell, news)) = (engine.name.clone(), sync_channel(NEWS_MAX));
            if starter.broker.send_blocking(Ask::Engine { name: name.clone(), news: tell }).is_err() {
                return;
            }
            let terms = Terms { is_discovered: true, ..Terms::default() };
            if let Ok(keeper) = starter.start(engine, terms, None, news) {
                found.push((port, name, keeper));
            }
        }
        // Whether the daemon is still there.
        if starter.broker.with_blocking(|_, _| ()).is_err() {
            return;
        }
        std::thread::sleep(LOOK_OUT);
    }
}

fn terms(engine: &EngineConfig, gates: &[GateConfig]) -> Terms {
    let gate = gates.iter().find(|gate| gate.engine == engine.name());
    let seconds = |seconds: f64| Duration::from_secs_f64(seconds.clamp(0.0, 86_400.0));
    Terms {
        device: engine.device.clone(),
        priority: engine.priority,
        bytes: engine.bytes.map(|Size(bytes)| bytes.0),
        is_discovered: false,
        hold: gate.map_or(Duration::from_secs(300), |gate| seconds(gate.hold_seconds_max)),
        idle: gate.map_or(Duration::from_secs(60), |gate| seconds(gate.idle_seconds)),
    }
}

fn listen(gate: &GateConfig, engine: &Engine, doorway: Option<&Arc<Doorway>>) -> Result<ListeningGate, StartError> {
    let (Some(doorway), Some(address)) = (doorway, engine.address) else {
        return Err(ConfigError::NoEngine { listen: gate.listen, engine: gate.engine.clone() }.into());
    };
    let cannot = |source| StartError::Listen { engine: engine.name.clone(), port: gate.listen, source };
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, gate.listen)).map_err(cannot)?;
    listener.set_nonblocking(true).map_err(cannot)?;
    let hold = Duration::from_secs_f64(gate.hold_seconds_max.clamp(0.0, 86_400.0));
    let limits = GateLimits { hold, ..GateLimits::default() };
    let target = Target { engine: engine.name.clone(), kind: engine.kind, address };
    Ok((listener, Gate::new(target, limits, Arc::clone(doorway))))
}

fn address_of(listener: &std::net::TcpListener) -> SocketAddr {
    listener.local_addr().unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
}

fn serve(gates: Vec<ListeningGate>, ended: oneshot::Receiver<()>) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    runtime.block_on(async move {
        for (listener, gate) in gates {
            if let Ok(listener) = tokio::net::TcpListener::from_std(listener) {
                tokio::spawn(gate.serve(listener));
            }
        }
        // Its other half is dropped when the daemon ends.
        let _ = ended.await;
    });
}

fn thread(what: &str, run: impl FnOnce() + Send + 'static) -> Started {
    let started = std::thread::Builder::new().name(what.chars().take(15).collect()).spawn(run);
    started.map_err(|source| StartError::Thread { what: what.to_owned(), source })
}
