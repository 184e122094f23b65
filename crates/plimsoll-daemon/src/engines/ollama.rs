//! Ollama: one step for each loaded model. A model comes back by itself with the next request for it.
//! Never asks for a model by another name than the engine's list gave.
//!
//! Checked against: Ollama's API reference ("List running models", "Generate: unload a model", OpenAPI 0.1.0; behaviour
//! of 0.6 to 0.40). `GET /api/ps` gives "models", each with "model", "size", "size_vram" and "expires_at".
//! `POST /api/generate` with "keep_alive" 0 and no prompt answers "done" and the reason "unload", at once: the model
//! goes when requests that use it have ended. What is under way is not told.

use serde::Deserialize;
use serde_json::json;

use super::{Adapter, Busy, EngineError, Http, Loaded, Step, Survey};

#[derive(Debug)]
pub(super) struct Ollama {
    http: Http,
}

#[derive(Deserialize)]
struct Running {
    models: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    model: String,
    size_vram: u64,
    #[serde(default)]
    expires_at: String,
}

#[derive(Deserialize)]
struct Unloaded {
    done: bool,
}

const RUNNING: &str = "{\"models\": [{\"model\", \"size_vram\"}]}";

impl Ollama {
    pub(super) fn new(http: Http) -> Self {
        Self { http }
    }
}

impl Adapter for Ollama {
    fn survey(&self) -> Result<Survey, EngineError> {
        let mut running: Running = self.http.ask("/api/ps", RUNNING)?;
        // What would expire first was used longest ago.
        running.models.sort_by(|a, b| a.expires_at.cmp(&b.expires_at));
        let loaded: Vec<Loaded> = running
            .models
            .into_iter()
            .filter(|model| model.size_vram > 0)
            .map(|model| Loaded { name: model.model, bytes: Some(model.size_vram) })
            .collect();
        let held = Some(loaded.iter().filter_map(|one| one.bytes).sum());
        Ok(Survey { held, loaded, ..Survey::default() })
    }

    fn busy(&self, _: &Survey) -> Result<Busy, EngineError> {
        Ok(Busy::Unknown("its interface lists models, not requests".to_owned()))
    }

    fn steps(&self, survey: &Survey) -> Vec<Step> {
        survey.loaded.iter().map(|one| Step { name: one.name.clone(), told: one.bytes }).collect()
    }

    fn take(&self, step: &Step, _: bool) -> Result<(), EngineError> {
        let path = "/api/generate";
        let answer = self.http.post(path, &json!({ "model": step.name, "keep_alive": 0, "stream": false }))?;
        let expected = "{\"done\": true}";
        let unloaded: Unloaded = answer.success(&self.http, "")?.json(&self.http, expected)?;
        if unloaded.done { Ok(()) } else { Err(self.http.shape("POST /api/generate", expected, "done is false")) }
    }

    fn restore(&self) -> Result<(), EngineError> {
        Ok(())
    }

    fn waits_by_itself(&self) -> bool {
        true
    }
}
