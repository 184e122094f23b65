//! llama-swap: one step for each model that runs. Each is a server process, which is stopped; it comes back by itself with
//! the next request for it.
//! Never asks what runs behind it in passing: that would reset the time after which llama-swap unloads by itself.
//!
//! Checked against: llama-swap's README and routes (builds 150 and later). `GET /running` gives "running", each with
//! "model" and "state"; `POST /api/models/unload/MODEL` answers OK once the process was told to stop, whatever it was
//! doing; `GET /upstream/MODEL/slots` is the model's own server, which has slots if it is llama.cpp's.

use serde::Deserialize;
use serde_json::json;

use super::http::escaped;
use super::llama_cpp::busy_slots;
use super::{Adapter, Busy, EngineError, Http, Loaded, Step, Survey};

#[derive(Debug)]
pub(super) struct LlamaSwap {
    http: Http,
}

#[derive(Deserialize)]
struct Running {
    running: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    model: String,
    state: String,
}

impl LlamaSwap {
    pub(super) fn new(http: Http) -> Self {
        Self { http }
    }
}

impl Adapter for LlamaSwap {
    fn survey(&self) -> Result<Survey, EngineError> {
        let running: Running = self.http.ask("/running", "{\"running\": [{\"model\", \"state\"}]}")?;
        let runs = |model: &Model| matches!(model.state.as_str(), "ready" | "starting");
        let loaded = running.running.into_iter().filter(runs).map(|one| Loaded { name: one.model, bytes: None });
        Ok(Survey { loaded: loaded.collect(), ..Survey::default() })
    }

    fn busy(&self, survey: &Survey) -> Result<Busy, EngineError> {
        busy_slots(&self.http, survey.loaded.iter().map(|one| format!("/upstream/{}/slots", escaped(&one.name))))
    }

    fn steps(&self, survey: &Survey) -> Vec<Step> {
        survey.loaded.iter().map(|one| Step { name: one.name.clone(), told: None }).collect()
    }

    fn take(&self, step: &Step, _: bool) -> Result<(), EngineError> {
        let path = format!("/api/models/unload/{}", escaped(&step.name));
        self.http.post(&path, &json!({}))?.success(&self.http, "").map(drop)
    }

    fn restore(&self) -> Result<(), EngineError> {
        Ok(())
    }
}
