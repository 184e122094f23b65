//! Engines: programs that hold device memory and give it back through an interface of their own. Each adapter knows one
//! such interface as a ladder of steps; what a step gives back, and how long it takes, is measured, not assumed.
//! Never believes an answer: a step has succeeded once the driver's figure fell (`descend`).
//! Invariant: whatever an engine answers, or does not answer, the call ends in time with an error that says which.
//!
//! | file | owns |
//! |---|---|
//! | `ollama`, `comfyui`, `vllm`, `sglang`, `llama_cpp`, `llama_swap`, `automatic1111`, `command` | one interface each |
//! | `http` | one call, with limits |
//! | `descend` | going down the steps, each verified by the driver |
//! | `measures` | what each step gave and took |
//! | `listeners` | which process listens on a port |
//! | `keeper` | one thread for each engine: its lease, its recalls, its gate |
//! | `config` | engines and gates in the daemon's TOML |
//! | `discover` | engines that were not configured |

mod automatic1111;
mod comfyui;
mod command;
pub mod config;
mod descend;
pub mod discover;
mod error;
mod http;
pub mod keeper;
pub mod listeners;
mod llama_cpp;
mod llama_swap;
mod measures;
mod ollama;
mod sglang;
mod vllm;

use std::fmt;
use std::net::SocketAddr;

pub use self::command::{CommandStep, CommandSteps};
pub use self::descend::{Descending, Descent, StepTaken, Truth};
pub use self::error::EngineError;
pub use self::http::{ANSWER_MAX, Http, Limits};
pub use self::measures::{Measure, Measures, STEPS_MAX};
use crate::wire::{Kind, Rung};

/// Which interface an engine has.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineKind {
    /// Ollama.
    Ollama,
    /// ComfyUI.
    Comfyui,
    /// vLLM with sleep mode.
    Vllm,
    /// SGLang with its memory saver.
    Sglang,
    /// llama.cpp's server as a router of several models.
    LlamaCpp,
    /// llama-swap.
    LlamaSwap,
    /// Automatic1111's web UI with its API.
    Automatic1111,
    /// Commands of its owner.
    Command,
}

impl EngineKind {
    /// All that listen on a port.
    pub const LISTENING: [Self; 7] =
        [Self::Ollama, Self::Comfyui, Self::Vllm, Self::Sglang, Self::LlamaCpp, Self::LlamaSwap, Self::Automatic1111];

    /// As it is written in configuration and in lists.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ollama => "ollama",
            Self::Comfyui => "comfyui",
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::LlamaCpp => "llama-cpp",
            Self::LlamaSwap => "llama-swap",
            Self::Automatic1111 => "automatic1111",
            Self::Command => "command",
        }
    }

    /// The engine of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::LISTENING.into_iter().chain([Self::Command]).find(|kind| kind.name() == name)
    }

    /// Where it listens if nobody says otherwise.
    #[must_use]
    pub fn default_port(self) -> Option<u16> {
        Some(match self {
            Self::Ollama => 11434,
            Self::Comfyui => 8188,
            Self::Vllm => 8000,
            Self::Sglang => 30000,
            Self::LlamaCpp | Self::LlamaSwap => 8080,
            Self::Automatic1111 => 7860,
            Self::Command => return None,
        })
    }

    /// What its work is.
    #[must_use]
    pub fn work(self) -> Kind {
        match self {
            Self::Ollama | Self::Vllm | Self::Sglang | Self::LlamaCpp | Self::LlamaSwap => Kind::Llm,
            Self::Comfyui | Self::Automatic1111 => Kind::Image,
            Self::Command => Kind::Other,
        }
    }

    /// Whether a request can make the engine take memory. What only asks goes through a gate without any room.
    #[must_use]
    pub fn needs_memory(self, method: &str, path: &str) -> bool {
        if matches!(method, "GET" | "HEAD" | "OPTIONS") {
            return false;
        }
        let under = |prefixes: &[&str]| prefixes.iter().any(|prefix| path.starts_with(prefix));
        match self {
            Self::Ollama => under(&["/api/generate", "/api/chat", "/api/embed", "/v1/"]),
            Self::Comfyui => path == "/prompt" || path == "/api/prompt",
            Self::Automatic1111 => !under(&["/sdapi/v1/unload-checkpoint", "/sdapi/v1/interrupt", "/sdapi/v1/skip"]),
            Self::LlamaCpp => !under(&["/models/unload"]),
            Self::LlamaSwap => !under(&["/api/models/unload", "/unload"]),
            Self::Vllm => !under(&["/sleep", "/tokenize", "/detokenize"]),
            Self::Sglang => !under(&["/release_memory_occupation", "/flush_cache", "/abort_request"]),
            Self::Command => true,
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Something that an engine has loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The engine's name for it.
    pub name: String,
    /// Device memory that it takes, if the engine tells.
    pub bytes: Option<u64>,
}

/// What an engine says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Device memory that it says it holds.
    pub held: Option<u64>,
    /// What it has loaded, the first to go first.
    pub loaded: Vec<Loaded>,
    /// It has given its memory back, and must be called before it works again.
    pub asleep: bool,
    /// Its process, where nobody listens on a port by which it could be found.
    pub pid: Option<u32>,
}

/// Whether an engine works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Busy {
    /// Nothing under way, nothing queued.
    Idle,
    /// So many are.
    Items(u64),
    /// It does not tell, and why.
    Unknown(String),
}

/// One step down, as its adapter understands it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What people read, and under which its figures are kept.
    pub name: String,
    /// What it gives back, if the engine tells.
    pub told: Option<u64>,
}

/// One engine's interface. All calls block, each for a limited time.
pub trait Adapter: Send + Sync + fmt::Debug {
    /// What it holds and has loaded.
    fn survey(&self) -> Result<Survey, EngineError>;
    /// Whether it works. Asked before a step only: with some engines asking counts as use.
    fn busy(&self, survey: &Survey) -> Result<Busy, EngineError>;
    /// The steps that are left, in order.
    fn steps(&self, survey: &Survey) -> Vec<Step>;
    /// Has a step carried out. `forced`: what is under way may be cut off.
    fn take(&self, step: &Step, forced: bool) -> Result<(), EngineError>;
    /// Brings back what was there. Nothing is done where the engine does that by itself with the next request.
    fn restore(&self) -> Result<(), EngineError>;
    /// Its own word that a step waits for what is under way: then nobody need know whether it works.
    fn waits_by_itself(&self) -> bool {
        false
    }
    /// Whether a step may be taken while it works, if somebody two levels above wants the memory.
    fn may_be_forced(&self) -> bool {
        true
    }
    /// How many steps were taken and not undone, for engines that do not tell. Kept over restarts of the daemon.
    fn depth(&self) -> usize {
        0
    }
    /// Sets what [`Self::depth`] said before a restart.
    fn set_depth(&self, _depth: usize) {}
    /// What to do if a step frees nothing.
    fn if_not_freed(&self) -> &'static str {
        ""
    }
}

/// An engine of this machine.
#[derive(Debug)]
pub struct Engine {
    /// What people read; unique in the daemon.
    pub name: String,
    /// Its interface.
    pub kind: EngineKind,
    /// Where it listens, if it does.
    pub address: Option<SocketAddr>,
    /// How it is spoken to.
    pub adapter: Box<dyn Adapter>,
}

impl Engine {
    /// An engine that listens there. None for a kind that does not listen.
    #[must_use]
    pub fn listening(kind: EngineKind, http: Http) -> Option<Self> {
        let (name, address) = (http.engine().to_owned(), Some(http.address()));
        let adapter: Box<dyn Adapter> = match kind {
            EngineKind::Ollama => Box::new(ollama::Ollama::new(http)),
            EngineKind::Comfyui => Box::new(comfyui::Comfyui::new(http)),
            EngineKind::Vllm => Box::new(vllm::Vllm::new(http, vllm::Level::KeepWeights)),
            EngineKind::Sglang => Box::new(sglang::Sglang::new(http)),
            EngineKind::LlamaCpp => Box::new(llama_cpp::LlamaCpp::new(http)),
            EngineKind::LlamaSwap => Box::new(llama_swap::LlamaSwap::new(http)),
            EngineKind::Automatic1111 => Box::new(automatic1111::Automatic1111::new(http)),
            EngineKind::Command => return None,
        };
        Some(Self { name, kind, address, adapter })
    }

    /// vLLM that drops its weights when it sleeps, instead of keeping them in host memory.
    #[must_use]
    pub fn vllm_without_weights(http: Http) -> Self {
        let (name, address) = (http.engine().to_owned(), Some(http.address()));
        let adapter = Box::new(vllm::Vllm::new(http, vllm::Level::DropWeights));
        Self { name, kind: EngineKind::Vllm, address, adapter }
    }

    /// An engine that is driven by its owner's commands.
    #[must_use]
    pub fn of_commands(name: &str, commands: CommandSteps) -> Self {
        let adapter = Box::new(command::CommandEngine::new(name, commands));
        Self { name: name.to_owned(), kind: EngineKind::Command, address: None, adapter }
    }

    /// Its ladder: what it holds now, and what would be left after each step whose bytes are known. Quality is the share
    /// that stays loaded.
    #[must_use]
    pub fn ladder(&self, held: u64, survey: &Survey, measures: &Measures) -> Vec<Rung> {
        let mut rungs = vec![Rung { bytes: held, quality: 1.0, switch_ms: 0 }];
        let mut left = held;
        let mut switch_ms = 0;
        for step in self.adapter.steps(survey) {
            let measured = measures.of(&self.name, &step.name);
            let Some(bytes) = measured.map(|measure| measure.bytes).or(step.told) else { break };
            left = left.saturating_sub(bytes);
            switch_ms += measured.map_or(0, |measure| measure.milliseconds);
            let quality = if held == 0 { 0.0 } else { left as f64 / held as f64 };
            rungs.push(Rung { bytes: left, quality, switch_ms });
        }
        rungs.dedup_by(|lower, upper| lower.bytes == upper.bytes);
        rungs.truncate(plimsoll_core::GrantSpec::RUNGS_MAX);
        rungs
    }
}
