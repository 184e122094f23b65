//! llama.cpp's server as a router of several models: one step for each model that is loaded. Each is a process of its own,
//! which ends; it comes back by itself with the next request for it, unless automatic loading is switched off.
//! Never asks a model that is not loaded anything: that could load it.
//!
//! Checked against: llama.cpp's server README ("Using multiple models", router mode, builds of December 2025 and
//! later). `GET /models` gives "data", each with "id" and in "status" a "value" (unloaded, loading, loaded, sleeping,
//! failed); `POST /models/unload` with "model" answers "success", or 400 if it does not run; the process ends
//! afterwards. `GET /slots` with model and autoload=false lists slots with "is_processing".

use serde::Deserialize;
use serde_json::json;

use super::http::escaped;
use super::{Adapter, Busy, EngineError, Http, Loaded, Step, Survey};

#[derive(Debug)]
pub(super) struct LlamaCpp {
    http: Http,
}

#[derive(Deserialize)]
struct Models {
    data: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    id: String,
    status: Status,
}

#[derive(Deserialize)]
struct Status {
    value: String,
}

#[derive(Deserialize)]
struct Done {
    success: bool,
}

/// One of a server's places for requests.
#[derive(Deserialize)]
pub(super) struct Slot {
    is_processing: bool,
}

const MODELS: &str = "{\"data\": [{\"id\", \"status\": {\"value\"}}]}, as it is in router mode";

impl LlamaCpp {
    pub(super) fn new(http: Http) -> Self {
        Self { http }
    }
}

impl Adapter for LlamaCpp {
    fn survey(&self) -> Result<Survey, EngineError> {
        let models: Models = self.http.ask("/models", MODELS)?;
        let runs = |model: &Model| matches!(model.status.value.as_str(), "loaded" | "loading" | "sleeping");
        let loaded = models.data.into_iter().filter(runs).map(|model| Loaded { name: model.id, bytes: None }).collect();
        Ok(Survey { loaded, ..Survey::default() })
    }

    fn busy(&self, survey: &Survey) -> Result<Busy, EngineError> {
        let paths = survey.loaded.iter().map(|one| format!("/slots?model={}&autoload=false", escaped(&one.name)));
        busy_slots(&self.http, paths)
    }

    fn steps(&self, survey: &Survey) -> Vec<Step> {
        survey.loaded.iter().map(|one| Step { name: one.name.clone(), told: None }).collect()
    }

    fn take(&self, step: &Step, _: bool) -> Result<(), EngineError> {
        let answer = self.http.post("/models/unload", &json!({ "model": step.name }))?.success(&self.http, "")?;
        let expected = "{\"success\": true}";
        let done: Done = answer.json(&self.http, expected)?;
        if done.success { Ok(()) } else { Err(self.http.shape("POST /models/unload", expected, "success is false")) }
    }

    fn restore(&self) -> Result<(), EngineError> {
        Ok(())
    }
}

/// How many slots work, over several servers.
pub(super) fn busy_slots(http: &Http, paths: impl Iterator<Item = String>) -> Result<Busy, EngineError> {
    let mut items = 0;
    for path in paths {
        let answer = http.get(&path)?;
        // Owners may switch this page off, and what is behind llama-swap need not be a llama.cpp.
        if !(200..300).contains(&answer.status) {
            return Ok(Busy::Unknown(format!("{path} answered with status {}", answer.status)));
        }
        let slots: Vec<Slot> = answer.json(http, "[{\"is_processing\"}]")?;
        items += slots.iter().filter(|slot| slot.is_processing).count() as u64;
    }
    Ok(if items == 0 { Busy::Idle } else { Busy::Items(items) })
}
