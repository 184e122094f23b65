//! Engines and gates as their owner writes them in the daemon's TOML, checked once.
//! Never reads a file but those of tokens, and never starts a command.
//! Invariant: names and listening ports are unique, and every gate names an engine.
//! `docs/engines.md` shows all of it.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;

use super::{CommandSteps, Engine, EngineKind, Http, Limits};
use crate::size::Size;
use crate::wire::Urgency;

/// Engines that one daemon looks after: each has a thread of its own.
pub const ENGINES_MAX: usize = 32;
/// The longest token that is read from a file.
const TOKEN_MAX: u64 = 4096;

/// An engine in the daemon's configuration.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineConfig {
    /// Its interface.
    pub kind: EngineKind,
    /// What people read; the kind's name if it is missing.
    #[serde(default)]
    pub name: Option<String>,
    /// Where it listens.
    #[serde(default)]
    pub port: Option<u16>,
    /// On which address of this machine.
    #[serde(default = "localhost")]
    pub address: IpAddr,
    /// The device whose memory it holds.
    #[serde(default)]
    pub device: Option<String>,
    /// How urgent its work is.
    #[serde(default)]
    pub priority: Urgency,
    /// What it takes when it works, if that was not measured yet.
    #[serde(default)]
    pub bytes: Option<Size>,
    /// How deep vLLM sleeps: 1 keeps its weights in host memory, 2 drops them.
    #[serde(default = "one")]
    pub sleep_level: u8,
    /// A file with the token that it wants to see.
    #[serde(default)]
    pub token_file: Option<PathBuf>,
    /// How long a step may take, in seconds.
    #[serde(default = "a_minute")]
    pub step_seconds_max: f64,
    /// Its owner's commands, for the kind `command`.
    #[serde(default)]
    pub commands: Option<CommandSteps>,
}

/// A gate in the daemon's configuration.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateConfig {
    /// The port of this machine on which it listens.
    pub listen: u16,
    /// The engine's name.
    pub engine: String,
    /// How long a request may be held, in seconds.
    #[serde(default = "five_minutes")]
    pub hold_seconds_max: f64,
    /// How long the engine keeps its memory after its last request while nobody else wants it, in seconds; then it is
    /// the first to go.
    #[serde(default = "a_minute")]
    pub idle_seconds: f64,
}

fn localhost() -> IpAddr {
    IpAddr::V4(Ipv4Addr::LOCALHOST)
}
fn one() -> u8 {
    1
}
fn a_minute() -> f64 {
    60.0
}
fn five_minutes() -> f64 {
    300.0
}

/// Why engines or gates cannot be as they were written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Two with one name.
    #[error("two engines are called '{0}': give one of them another name")]
    SameName(String),
    /// More than are looked after.
    #[error("{0} engines are configured, and at most {ENGINES_MAX} are looked after")]
    TooMany(usize),
    /// Not of this machine.
    #[error(
        "the engine '{name}' is at {address}: only engines of this machine hold its memory, so use a loopback address"
    )]
    NotHere {
        /// Which.
        name: String,
        /// Where.
        address: IpAddr,
    },
    /// Something that its kind needs is missing, or does not fit it.
    #[error("the engine '{name}' {what}")]
    Engine {
        /// Which.
        name: String,
        /// What about it.
        what: String,
    },
    /// No engine has the name.
    #[error("the gate on port {listen} is for '{engine}', and no engine is called so")]
    NoEngine {
        /// Where it would listen.
        listen: u16,
        /// What it names.
        engine: String,
    },
    /// A port that is already used.
    #[error("port {0} is to be listened on twice")]
    SamePort(u16),
    /// Not the short form.
    #[error("'{0}' is not a gate: write LISTEN=ENGINE or LISTEN=ENGINE:PORT, for example 11435=ollama:11434")]
    NotAGate(String),
}

impl EngineConfig {
    /// An engine of this kind where it is by default.
    #[must_use]
    pub fn new(kind: EngineKind) -> Self {
        Self {
            kind,
            name: None,
            port: None,
            address: localhost(),
            device: None,
            priority: Urgency::default(),
            bytes: None,
            sleep_level: one(),
            token_file: None,
            step_seconds_max: a_minute(),
            commands: None,
        }
    }

    /// What people read.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(self.kind.name())
    }

    /// The engine, ready to be asked.
    ///
    /// # Errors
    /// If something that its kind needs is missing, or does not fit it.
    pub fn engine(&self) -> Result<Engine, ConfigError> {
        let wrong = |what: String| ConfigError::Engine { name: self.name().to_owned(), what };
        if !self.address.is_loopback() {
            return Err(ConfigError::NotHere { name: self.name().to_owned(), address: self.address });
        }
        if !(self.step_seconds_max > 0.0 && self.step_seconds_max <= 3600.0) {
            return Err(wrong("may take more than 0 and at most 3600 seconds for a step".to_owned()));
        }
        if self.kind == EngineKind::Command {
            let commands = self.commands.clone().ok_or_else(|| wrong("has no commands".to_owned()))?;
            check_commands(&commands).map_err(wrong)?;
            return Ok(Engine::of_commands(self.name(), commands));
        }
        if self.commands.is_some() {
            return Err(wrong(format!("has commands, which {} does not use", self.kind)));
        }
        let port = self.port.or(self.kind.default_port()).ok_or_else(|| wrong("has no port".to_owned()))?;
        let step = Duration::from_secs_f64(self.step_seconds_max);
        let limits = Limits { step, ..Limits::default() };
        let http = Http::new(self.name(), SocketAddr::new(self.address, port), limits, self.token().map_err(wrong)?);
        match (self.kind, self.sleep_level) {
            (EngineKind::Vllm, 2) => Ok(Engine::vllm_without_weights(http)),
            (EngineKind::Vllm, 1) | (_, 1) => {
                Engine::listening(self.kind, http).ok_or_else(|| wrong("does not listen".to_owned()))
            }
            _ => Err(wrong("can sleep at level 1 or 2, and only vLLM at 2".to_owned())),
        }
    }

    fn token(&self) -> Result<Option<String>, String> {
        let Some(path) = &self.token_file else { return Ok(None) };
        let unreadable =
            |error: std::io::Error| format!("has its token in {}, which cannot be read: {error}", path.display());
        if std::fs::metadata(path).map_err(unreadable)?.len() > TOKEN_MAX {
            return Err(format!("has its token in {}, which is longer than {TOKEN_MAX} bytes", path.display()));
        }
        Ok(Some(std::fs::read_to_string(path).map_err(unreadable)?.trim().to_owned()))
    }
}

fn check_commands(commands: &CommandSteps) -> Result<(), String> {
    let mut names = BTreeSet::new();
    if commands.probe.is_empty() {
        return Err("has no probe".to_owned());
    }
    if !(commands.seconds_max > 0.0 && commands.seconds_max <= 3600.0) {
        return Err("may take more than 0 and at most 3600 seconds for a command".to_owned());
    }
    for step in &commands.steps {
        if step.down.is_empty() {
            return Err(format!("has a step '{}' without a command down", step.name));
        }
        if !names.insert(&step.name) {
            return Err(format!("has two steps called '{}'", step.name));
        }
    }
    if names.is_empty() { Err("has no steps".to_owned()) } else { Ok(()) }
}

/// A gate as it is written on one line: `11435=ollama:11434`, with the port of the engine only if it is not configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortGate {
    /// Where the gate listens.
    pub listen: u16,
    /// The engine's name.
    pub engine: String,
    /// Where the engine listens.
    pub port: Option<u16>,
}

impl FromStr for ShortGate {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let not_a_gate = || ConfigError::NotAGate(text.to_owned());
        let number = |digits: &str| digits.parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(not_a_gate);
        let (listen, rest) = text.split_once('=').ok_or_else(not_a_gate)?;
        let (engine, port) = match rest.split_once(':') {
            Some((engine, port)) => (engine, Some(number(port)?)),
            None => (rest, None),
        };
        if engine.is_empty() {
            return Err(not_a_gate());
        }
        Ok(Self { listen: number(listen)?, engine: engine.to_owned(), port })
    }
}

impl ShortGate {
    /// Puts the gate, and its engine if that is not there yet, among those that were configured.
    ///
    /// # Errors
    /// If no engine has the name, and it is no kind's name either.
    pub fn join(&self, engines: &mut Vec<EngineConfig>, gates: &mut Vec<GateConfig>) -> Result<(), ConfigError> {
        let found = engines.iter_mut().find(|engine| engine.name() == self.engine);
        match (found, EngineKind::named(&self.engine)) {
            (Some(engine), _) => engine.port = self.port.or(engine.port),
            (None, Some(kind)) if kind != EngineKind::Command => {
                engines.push(EngineConfig { port: self.port, ..EngineConfig::new(kind) });
            }
            _ => return Err(ConfigError::NoEngine { listen: self.listen, engine: self.engine.clone() }),
        }
        gates.push(GateConfig {
            listen: self.listen,
            engine: self.engine.clone(),
            hold_seconds_max: five_minutes(),
            idle_seconds: a_minute(),
        });
        Ok(())
    }
}

/// Checks engines and gates together.
///
/// # Errors
/// If names or ports are there twice, or a gate names nobody.
pub fn check(engines: &[EngineConfig], gates: &[GateConfig]) -> Result<(), ConfigError> {
    if engines.len() > ENGINES_MAX {
        return Err(ConfigError::TooMany(engines.len()));
    }
    let mut names = BTreeSet::new();
    if let Some(twice) = engines.iter().find(|engine| !names.insert(engine.name())) {
        return Err(ConfigError::SameName(twice.name().to_owned()));
    }
    let mut ports: BTreeSet<u16> =
        engines.iter().filter_map(|engine| engine.port.or(engine.kind.default_port())).collect();
    for gate in gates {
        if !names.contains(gate.engine.as_str()) {
            return Err(ConfigError::NoEngine { listen: gate.listen, engine: gate.engine.clone() });
        }
        if !ports.insert(gate.listen) {
            return Err(ConfigError::SamePort(gate.listen));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    /// What `docs/engines.md` shows, with a token that is there.
    fn example(token: &std::path::Path) -> String {
        let page = include_str!("../../../../docs/engines.md");
        let block = page.split_once("```toml\n").unwrap().1.split_once("```").unwrap().0;
        block.replace("/etc/vllm/token", token.to_str().unwrap())
    }

    #[test]
    fn the_example_of_the_page_is_a_configuration() {
        let token = tempfile::NamedTempFile::new().unwrap();
        let file: Config = toml::from_str(&example(token.path())).unwrap();
        check(&file.engines, &file.gates).unwrap();
        let engines: Vec<EngineKind> = file.engines.iter().map(|engine| engine.engine().unwrap().kind).collect();
        assert_eq!(engines, [EngineKind::Ollama, EngineKind::Vllm, EngineKind::Command]);
        assert_eq!(file.gates[0].listen, 11435);
    }

    #[test]
    fn what_nobody_knows_and_what_does_not_fit_is_refused() {
        for (wrong, says) in [
            ("[[engine]]\nkind = \"olama\"", "olama"),
            ("[[engine]]\nkind = \"ollama\"\nprot = 1", "prot"),
            ("[[gate]]\nlisten = 70000\nengine = \"a\"", "70000"),
        ] {
            let error = toml::from_str::<Config>(wrong).expect_err(wrong).to_string();
            assert!(error.contains(says), "{error}");
        }
        for (wrong, says) in [
            ("kind = \"ollama\"\naddress = \"10.0.0.1\"", "loopback"),
            ("kind = \"command\"", "no commands"),
            ("kind = \"ollama\"\nsleep_level = 2", "level"),
            ("kind = \"vllm\"\nsleep_level = 3", "level"),
            ("kind = \"ollama\"\nstep_seconds_max = 0.0", "3600"),
            ("kind = \"ollama\"\ncommands = { probe = [\"a\"], steps = [] }", "does not use"),
            ("kind = \"command\"\ncommands = { probe = [], steps = [] }", "probe"),
            ("kind = \"command\"\ncommands = { probe = [\"a\"], steps = [] }", "no steps"),
            ("kind = \"command\"\ncommands = { probe = [\"a\"], steps = [{ name = \"x\", down = [] }] }", "without"),
            ("kind = \"ollama\"\ntoken_file = \"/nonexistent/token\"", "token"),
        ] {
            let engine: EngineConfig = toml::from_str(wrong).unwrap();
            let error = engine.engine().expect_err(wrong).to_string();
            assert!(error.contains(says), "{wrong}: {error}");
        }
    }

    #[test]
    fn gates_on_one_line() {
        let short = |text: &str| text.parse::<ShortGate>();
        let gate = short("11435=ollama:11434").unwrap();
        assert_eq!((gate.listen, gate.engine.as_str(), gate.port), (11435, "ollama", Some(11434)));
        assert_eq!(short("8189=comfyui").unwrap().port, None);
        for wrong in ["", "11435", "x=ollama", "1=ollama:x", "0=ollama", "1=", "99999=ollama", "1=ollama:0"] {
            assert!(short(wrong).is_err(), "{wrong}");
        }
        let (mut engines, mut gates) = (Vec::new(), Vec::new());
        gate.join(&mut engines, &mut gates).unwrap();
        assert_eq!((engines[0].kind, engines[0].port), (EngineKind::Ollama, Some(11434)));
        check(&engines, &gates).unwrap();
        assert!(short("5=nobody").unwrap().join(&mut engines, &mut gates).is_err());
        gate.join(&mut engines, &mut gates).unwrap();
        assert_eq!(check(&engines, &gates), Err(ConfigError::SamePort(11435)));
        engines.push(EngineConfig::new(EngineKind::Ollama));
        assert_eq!(check(&engines, &[]), Err(ConfigError::SameName("ollama".to_owned())));
        let many = (0..=ENGINES_MAX).map(|_| EngineConfig::new(EngineKind::Vllm)).collect::<Vec<_>>();
        assert_eq!(check(&many, &[]), Err(ConfigError::TooMany(ENGINES_MAX + 1)));
    }
}
