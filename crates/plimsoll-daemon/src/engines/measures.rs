//! What each step of each engine gave and took when it was last taken: these figures become the rungs of its ladder.
//! Never guesses: a step that was not taken has no figure.
//! Invariant: at most [`STEPS_MAX`] steps are remembered, those taken longest ago go first; the file is whole or absent.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::process::Process;

/// Steps that are remembered, over all engines. People have dozens of models, not hundreds.
pub const STEPS_MAX: usize = 256;
/// The largest file that is read: 256 steps with names of a few hundred bytes.
const FILE_MAX: u64 = 1 << 20;

/// What a step was measured to give and take.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// By how much the driver's figure fell.
    pub bytes: u64,
    /// From the call until the figure had fallen.
    pub milliseconds: u64,
    /// Counts up with every measurement: the smallest was taken longest ago.
    order: u64,
}

/// How deep an engine was when the daemon last saw it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Depth {
    process: Process,
    steps: usize,
}

/// Everything that was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measures {
    /// By engine, then by step.
    steps: BTreeMap<String, BTreeMap<String, Measure>>,
    #[serde(default)]
    depths: BTreeMap<String, Depth>,
    #[serde(default)]
    last: u64,
}

impl Measures {
    /// What a step gave and took.
    #[must_use]
    pub fn of(&self, engine: &str, step: &str) -> Option<Measure> {
        self.steps.get(engine)?.get(step).copied()
    }

    /// What an engine was seen to give back, all steps together.
    #[must_use]
    pub fn of_all_steps(&self, engine: &str) -> Option<u64> {
        let steps = self.steps.get(engine)?;
        Some(steps.values().map(|measure| measure.bytes).sum())
    }

    /// What the largest of an engine's steps was seen to give back.
    #[must_use]
    pub fn of_the_largest_step(&self, engine: &str) -> Option<u64> {
        self.steps.get(engine)?.values().map(|measure| measure.bytes).max()
    }

    /// A step was taken.
    pub fn learn(&mut self, engine: &str, step: &str, bytes: u64, milliseconds: u64) {
        self.last += 1;
        let measure = Measure { bytes, milliseconds, order: self.last };
        self.steps.entry(engine.to_owned()).or_default().insert(step.to_owned(), measure);
        while self.len() > STEPS_MAX {
            self.forget_the_oldest();
        }
    }

    /// How many steps are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.steps.values().map(BTreeMap::len).sum()
    }

    /// Whether nothing was measured yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn forget_the_oldest(&mut self) {
        let all = self
            .steps
            .iter()
            .flat_map(|(engine, steps)| steps.iter().map(move |(step, one)| (one.order, engine, step)));
        let Some((_, engine, step)) = all.min() else { return };
        let (engine, step) = (engine.clone(), step.clone());
        if let Some(steps) = self.steps.get_mut(&engine) {
            steps.remove(&step);
            if steps.is_empty() {
                self.steps.remove(&engine);
            }
        }
    }

    /// How many steps the engine of this process had taken.
    #[must_use]
    pub fn depth(&self, engine: &str, process: Process) -> usize {
        let same = self.depths.get(engine).filter(|depth| depth.process == process);
        same.map_or(0, |depth| depth.steps)
    }

    /// Remembers how many steps the engine of this process has taken.
    pub fn set_depth(&mut self, engine: &str, process: Process, steps: usize) {
        if steps == 0 {
            self.depths.remove(engine);
        } else if self.depths.len() < STEPS_MAX || self.depths.contains_key(engine) {
            self.depths.insert(engine.to_owned(), Depth { process, steps });
        }
    }

    /// What an earlier daemon wrote; nothing if there is no file.
    ///
    /// # Errors
    /// If the file cannot be read or is not what [`Self::write`] wrote. Nothing is lost by going on without it.
    pub fn read(path: &Path) -> io::Result<Self> {
        let length = match std::fs::metadata(path) {
            Ok(found) => found.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error),
        };
        if length > FILE_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("it is larger than {FILE_MAX} bytes")));
        }
        serde_json::from_slice(&std::fs::read(path)?).map_err(io::Error::from)
    }

    /// Writes it for the next daemon.
    ///
    /// # Errors
    /// If the folder cannot be written to. The file is then as it was.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let beside = path.with_extension("new");
        std::fs::write(&beside, serde_json::to_vec(self)?)?;
        std::fs::rename(&beside, path).inspect_err(|_| drop(std::fs::remove_file(&beside)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_figures_count_and_the_oldest_steps_are_forgotten() {
        let mut measures = Measures::default();
        measures.learn("ollama", "a", 5, 10);
        measures.learn("ollama", "a", 7, 12);
        assert_eq!(measures.of("ollama", "a").map(|one| (one.bytes, one.milliseconds)), Some((7, 12)));
        for step in 0..STEPS_MAX {
            measures.learn("vllm", &step.to_string(), 1, 1);
        }
        assert_eq!(measures.len(), STEPS_MAX);
        assert_eq!(measures.of("ollama", "a"), None);
        assert_eq!(measures.of_all_steps("vllm"), Some(STEPS_MAX as u64));
    }

    #[test]
    fn what_is_written_is_read_back_and_another_process_starts_at_the_top() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("engines.json");
        assert_eq!(Measures::read(&path).unwrap(), Measures::default());
        let mut measures = Measures::default();
        measures.learn("sglang", "weights", 9, 3);
        let process = Process { pid: 12, started: 900 };
        measures.set_depth("sglang", process, 2);
        measures.write(&path).unwrap();
        let back = Measures::read(&path).unwrap();
        assert_eq!(back, measures);
        assert_eq!(back.depth("sglang", process), 2);
        assert_eq!(back.depth("sglang", Process { started: 901, ..process }), 0);
        std::fs::write(&path, "{\"steps\": 3").unwrap();
        assert!(Measures::read(&path).is_err());
    }
}
