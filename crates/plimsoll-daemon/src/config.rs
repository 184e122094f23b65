//! The daemon's configuration as its owner writes it, in TOML.
//! Never starts anything: it says what was written, or what about it cannot be meant, and where.
//!
//! ```toml
//! policy = "adaptive"           # fixed, adaptive, llm-first, diffusion-first, balanced
//! reserve = "1GiB"              # of each GPU, for the desktop
//! margin = 0.95                 # the share of what strangers leave that is promised
//! http = "127.0.0.1:7878"
//! [devices.gpu1]
//! reserve = "0"
//! [card."0000:03:00.0"]        # i915 does not say what a card has: lspci shows where it is
//! capacity = "16GiB"
//! ```
//!
//! Engines and gates are in `docs/engines.md`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use plimsoll_core::SharePolicy;
use serde::Deserialize;

use crate::broker::Settings;
use crate::engines::config::{EngineConfig, GateConfig};
use crate::size::Size;

/// Bytes of a configuration.
const CONFIG_MAX: u64 = 1 << 20;

/// What may be written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where the socket is.
    pub socket: Option<PathBuf>,
    /// Where HTTP is served.
    pub http: Option<SocketAddr>,
    /// Who gives way.
    pub policy: Option<SharePolicy>,
    /// What of each GPU is left to the desktop.
    pub reserve: Option<Size>,
    /// The share of what strangers leave that is promised, from 0 to 1.
    pub margin: Option<Share>,
    /// A script that says what devices have, instead of their drivers.
    pub truth: Option<PathBuf>,
    /// What cards have whose drivers do not say it, by their place on the bus.
    #[serde(default, rename = "card")]
    pub cards: BTreeMap<String, CardConfig>,
    /// Devices that are not as the others.
    #[serde(default)]
    pub devices: BTreeMap<String, DeviceConfig>,
    /// Engines that give memory back.
    #[serde(default, rename = "engine")]
    pub engines: Vec<EngineConfig>,
    /// Gates before them.
    #[serde(default, rename = "gate")]
    pub gates: Vec<GateConfig>,
    /// Whether engines that are not written here are looked for where they listen by default.
    #[serde(default = "yes")]
    pub discover: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            socket: None,
            http: None,
            policy: None,
            reserve: None,
            margin: None,
            truth: None,
            cards: BTreeMap::new(),
            devices: BTreeMap::new(),
            engines: Vec::new(),
            gates: Vec::new(),
            discover: yes(),
        }
    }
}

fn yes() -> bool {
    true
}

/// One device.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceConfig {
    /// What of it is left to the desktop.
    pub reserve: Option<Size>,
}

/// One card.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardConfig {
    /// All its memory.
    pub capacity: Size,
}

/// A share from 0 to 1.
#[derive(Copy, Clone, Debug, Deserialize)]
#[serde(try_from = "f64")]
pub struct Share(pub f64);

impl TryFrom<f64> for Share {
    type Error = String;

    fn try_from(share: f64) -> Result<Self, String> {
        match share > 0.0 && share <= 1.0 {
            true => Ok(Self(share)),
            false => Err(format!("{share} is no share; write one above 0 and at most 1")),
        }
    }
}

/// What about a configuration cannot be meant.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what}", path.display())]
pub struct ConfigError {
    /// Which file.
    pub path: PathBuf,
    /// What, and where.
    pub what: String,
}

impl Config {
    /// What cards have by their owner's word.
    pub fn capacities(&self) -> BTreeMap<String, plimsoll_core::Bytes> {
        self.cards.iter().map(|(bus, card)| (bus.clone(), card.capacity.0)).collect()
    }

    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or something in it cannot be meant: the text shows the line.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let wrong = |what: String| ConfigError { path: path.to_owned(), what };
        let length = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?.len();
        if length > CONFIG_MAX {
            return Err(wrong(format!("it has {length} bytes, at most {CONFIG_MAX} are read")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        toml::from_str(&text).map_err(|error| wrong(error.to_string()))
    }

    /// Settings as written, others as they were.
    #[must_use]
    pub fn applied_to(&self, mut settings: Settings) -> Settings {
        settings.sharing.policy = self.policy.unwrap_or(settings.sharing.policy);
        settings.reserve = self.reserve.map_or(settings.reserve, |Size(bytes)| bytes);
        settings.margin = self.margin.map_or(settings.margin, |Share(share)| share);
        for (name, device) in &self.devices {
            if let Some(Size(bytes)) = device.reserve {
                settings.reserves.insert(name.clone(), bytes);
            }
        }
        settings
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::Bytes;

    use super::*;

    fn read(text: &str) -> Result<Config, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("serve.toml");
        std::fs::write(&path, text).unwrap();
        Config::read(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_written_holds() {
        let text =
            "policy = 'llm-first'\nreserve = '1GiB'\nmargin = 0.9\nhttp = '127.0.0.1:1'\n[devices.gpu1]\nreserve = 0\n";
        let settings = read(text).unwrap().applied_to(Settings::default());
        assert_eq!(settings.sharing.policy, SharePolicy::LlmFirst);
        assert_eq!((settings.reserve, settings.reserves["gpu1"]), (Bytes::gib(1), Bytes::ZERO));
        assert!((settings.margin - 0.9).abs() < 1e-9);
    }

    #[test]
    fn an_owner_says_what_a_card_has() {
        let config = read("[card.'0000:03:00.0']\ncapacity = '16GiB'\n").unwrap();
        assert_eq!(config.capacities(), BTreeMap::from([("0000:03:00.0".to_owned(), Bytes::gib(16))]));
    }

    #[test]
    fn what_cannot_be_meant_is_shown() {
        for (text, named) in [
            ("polcy = 'fixed'", "polcy"),
            ("policy = 'first'", "first"),
            ("\nreserve = 'much'", "'much' is not a size"),
            ("margin = 1.5", "1.5 is no share"),
            ("reserve = -1", "not negative"),
            ("[devices.gpu0]\nline = 1", "line"),
            ("http = 'here'", "http"),
            ("[card.a]\nsize = 1", "size"),
            ("=", "1"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(named) && error.contains("serve.toml") && error.contains("line"), "{error}");
        }
    }
}
