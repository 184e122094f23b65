//! Automatic1111's web UI: its checkpoint is unloaded, and loaded again.
//! Never unloads while it makes an image: its API does not wait for the queue.
//!
//! Checked against: the API module of stable-diffusion-webui 1.5 to 1.10, started with its API enabled.
//! `GET /sdapi/v1/memory` gives in "cuda" the "reserved" bytes, or an "error"; `GET /sdapi/v1/progress` gives
//! "progress" and in "state" a "job_count"; `POST /sdapi/v1/unload-checkpoint` and `POST /sdapi/v1/reload-checkpoint`
//! answer an empty object.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Deserialize;
use serde_json::json;

use super::{Adapter, Busy, EngineError, Http, Step, Survey};

#[derive(Debug)]
pub(super) struct Automatic1111 {
    http: Http,
    /// 1 after the checkpoint was unloaded.
    unloaded: AtomicUsize,
}

#[derive(Deserialize)]
struct Memory {
    cuda: Cuda,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Cuda {
    Known { reserved: Reserved },
    Error { error: String },
}

#[derive(Deserialize)]
struct Reserved {
    current: u64,
}

#[derive(Deserialize)]
struct Progress {
    progress: f64,
    state: State,
}

#[derive(Deserialize)]
struct State {
    job_count: i64,
}

impl Automatic1111 {
    pub(super) fn new(http: Http) -> Self {
        Self { http, unloaded: AtomicUsize::new(0) }
    }
}

impl Adapter for Automatic1111 {
    fn survey(&self) -> Result<Survey, EngineError> {
        let path = "/sdapi/v1/memory";
        let expected = "{\"cuda\": {\"reserved\": {\"current\"}}}";
        let memory: Memory = self.http.ask(path, expected)?;
        let held = match memory.cuda {
            Cuda::Known { reserved } => Some(reserved.current),
            Cuda::Error { error } if error == "unavailable" => None,
            Cuda::Error { error } => return Err(self.http.shape("GET /sdapi/v1/memory", expected, error)),
        };
        Ok(Survey { held, asleep: self.depth() > 0, ..Survey::default() })
    }

    fn busy(&self, _: &Survey) -> Result<Busy, EngineError> {
        let path = "/sdapi/v1/progress?skip_current_image=true";
        let now: Progress = self.http.ask(path, "{\"progress\", \"state\": {\"job_count\"}}")?;
        let jobs = u64::try_from(now.state.job_count).unwrap_or(0);
        // Between the start of a job and its first sample only the count is there; at its end only the progress.
        let items = jobs.max(u64::from(now.progress > 0.0));
        Ok(if items == 0 { Busy::Idle } else { Busy::Items(items) })
    }

    fn steps(&self, _: &Survey) -> Vec<Step> {
        if self.depth() > 0 { Vec::new() } else { vec![Step { name: "checkpoint".to_owned(), told: None }] }
    }

    fn take(&self, _: &Step, _: bool) -> Result<(), EngineError> {
        self.http.post("/sdapi/v1/unload-checkpoint", &json!({}))?.success(&self.http, "webui.sh --api can do that")?;
        self.unloaded.store(1, Ordering::Relaxed);
        Ok(())
    }

    fn restore(&self) -> Result<(), EngineError> {
        if self.depth() == 0 {
            return Ok(());
        }
        self.http.post("/sdapi/v1/reload-checkpoint", &json!({}))?.success(&self.http, "")?;
        self.unloaded.store(0, Ordering::Relaxed);
        Ok(())
    }

    fn depth(&self) -> usize {
        self.unloaded.load(Ordering::Relaxed)
    }

    fn set_depth(&self, depth: usize) {
        self.unloaded.store(depth.min(1), Ordering::Relaxed);
    }
}
