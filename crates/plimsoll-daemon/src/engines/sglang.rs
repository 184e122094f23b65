//! SGLang: first the cache of keys and values, then the weights. It serves nothing until both are back, weights first.
//! Never releases while it works or might: its scheduler asserts that it is idle, and ends if it is not. Never resumes what
//! it did not release, for the same reason.
//!
//! Checked against: SGLang's "SGLang for RL Systems" page and its HTTP server (0.4.6 to 0.5).
//! `POST /release_memory_occupation` and `POST /resume_memory_occupation` take "tags" ("kv_cache", "weights") and
//! answer null; memory is given back only with the memory saver enabled. `GET /v1/loads` gives "loads", each with
//! "num_running_reqs" and "num_waiting_reqs"; older ones have `GET /get_load`, a list with "num_reqs" and
//! "num_waiting_reqs". Whether memory is released is not told.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Deserialize;
use serde_json::json;

use super::{Adapter, Busy, EngineError, Http, Step, Survey};

#[derive(Debug)]
pub(super) struct Sglang {
    http: Http,
    /// How many of [`TAGS`] are released.
    released: AtomicUsize,
}

#[derive(Deserialize)]
struct Loads {
    loads: Vec<Load>,
}

#[derive(Deserialize)]
struct Load {
    /// Running ones; `/get_load` counts waiting ones among them.
    #[serde(alias = "num_running_reqs")]
    num_reqs: u64,
    num_waiting_reqs: u64,
}

/// In the order in which they go.
const TAGS: [&str; 2] = ["kv_cache", "weights"];
const LOADS: &str = "{\"loads\": [{\"num_running_reqs\", \"num_waiting_reqs\"}]}";

impl Sglang {
    pub(super) fn new(http: Http) -> Self {
        Self { http, released: AtomicUsize::new(0) }
    }

    fn loads(&self) -> Result<Vec<Load>, EngineError> {
        let answer = self.http.get("/v1/loads")?;
        if answer.status != 404 {
            return Ok(answer.success(&self.http, "")?.json::<Loads>(&self.http, LOADS)?.loads);
        }
        self.http.ask("/get_load", "[{\"num_reqs\", \"num_waiting_reqs\"}]")
    }
}

impl Adapter for Sglang {
    fn survey(&self) -> Result<Survey, EngineError> {
        self.loads()?;
        Ok(Survey { asleep: self.depth() > 0, ..Survey::default() })
    }

    fn busy(&self, _: &Survey) -> Result<Busy, EngineError> {
        let items: u64 = self.loads()?.iter().map(|load| load.num_reqs.saturating_add(load.num_waiting_reqs)).sum();
        Ok(if items == 0 { Busy::Idle } else { Busy::Items(items) })
    }

    fn steps(&self, _: &Survey) -> Vec<Step> {
        TAGS[self.depth()..].iter().map(|tag| Step { name: (*tag).to_owned(), told: None }).collect()
    }

    fn take(&self, step: &Step, _: bool) -> Result<(), EngineError> {
        let answer = self.http.post("/release_memory_occupation", &json!({ "tags": [step.name] }))?;
        answer.success(&self.http, self.if_not_freed())?;
        self.released.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn restore(&self) -> Result<(), EngineError> {
        while let Some(tag) = self.depth().checked_sub(1).map(|last| TAGS[last]) {
            let answer = self.http.post("/resume_memory_occupation", &json!({ "tags": [tag] }))?;
            answer.success(&self.http, "")?;
            self.released.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn may_be_forced(&self) -> bool {
        false
    }

    fn depth(&self) -> usize {
        self.released.load(Ordering::Relaxed).min(TAGS.len())
    }

    fn set_depth(&self, depth: usize) {
        self.released.store(depth.min(TAGS.len()), Ordering::Relaxed);
    }

    fn if_not_freed(&self) -> &'static str {
        "sglang.launch_server --enable-memory-saver can do that"
    }
}
