//! ComfyUI: first its models, then also what it keeps of earlier runs. Both come back by themselves with the next prompt.
//! Never takes its 200 for anything: `POST /free` sets a flag that the worker reads when it comes to it.
//!
//! Checked against: ComfyUI's server routes (its server module of 0.3 and later, "Server routes" of its documentation).
//! `GET /system_stats` gives "devices", each with "vram_total", "vram_free", "torch_vram_total" (what torch has
//! reserved) and "torch_vram_free"; `GET /queue` gives "queue_running" and "queue_pending"; `POST /free` takes
//! "unload_models" and "free_memory", and answers 200 without a body.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Adapter, Busy, EngineError, Http, Step, Survey};

#[derive(Debug)]
pub(super) struct Comfyui {
    http: Http,
}

#[derive(Deserialize)]
struct Stats {
    devices: Vec<Device>,
}

#[derive(Deserialize)]
struct Device {
    #[serde(default)]
    r#type: String,
    torch_vram_total: u64,
}

#[derive(Deserialize)]
struct Queue {
    queue_running: Vec<Value>,
    queue_pending: Vec<Value>,
}

const MODELS: &str = "models";
const EVERYTHING: &str = "models and cached results";

impl Comfyui {
    pub(super) fn new(http: Http) -> Self {
        Self { http }
    }
}

impl Adapter for Comfyui {
    fn survey(&self) -> Result<Survey, EngineError> {
        let stats: Stats = self.http.ask("/system_stats", "{\"devices\": [{\"torch_vram_total\"}]}")?;
        let held = stats.devices.iter().filter(|device| device.r#type != "cpu").map(|device| device.torch_vram_total);
        Ok(Survey { held: Some(held.sum()), ..Survey::default() })
    }

    fn busy(&self, _: &Survey) -> Result<Busy, EngineError> {
        let queue: Queue = self.http.ask("/queue", "{\"queue_running\": [], \"queue_pending\": []}")?;
        let items = queue.queue_running.len() + queue.queue_pending.len();
        Ok(if items == 0 { Busy::Idle } else { Busy::Items(items as u64) })
    }

    fn steps(&self, survey: &Survey) -> Vec<Step> {
        if survey.held == Some(0) {
            return Vec::new();
        }
        [MODELS, EVERYTHING].map(|name| Step { name: name.to_owned(), told: None }).to_vec()
    }

    fn take(&self, step: &Step, _: bool) -> Result<(), EngineError> {
        let body = json!({ "unload_models": true, "free_memory": step.name == EVERYTHING });
        self.http.post("/free", &body)?.success(&self.http, "").map(drop)
    }

    fn restore(&self) -> Result<(), EngineError> {
        Ok(())
    }
}
