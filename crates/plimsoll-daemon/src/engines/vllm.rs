//! vLLM: it sleeps, at the level its owner chose. Level 1 keeps the weights in host memory and wakes quickly; level 2 drops
//! them and loads them again. On the device both leave the same, and a sleeper cannot go from one to the other without
//! waking up first, so the ladder has one step.
//! Never puts it to sleep over running requests unless forced: that aborts them.
//!
//! Checked against: vLLM's "Sleep Mode" page and its sleep routes (0.10 to 0.16). `POST /sleep?level=1` or 2 (newer
//! ones also take a mode: abort, wait, keep), `POST /wake_up` with tags, `GET /is_sleeping` gives "is_sleeping"; they
//! exist with sleep mode enabled and VLLM_SERVER_DEV_MODE set. After level 2 the weights are reloaded with
//! `POST /collective_rpc`, method "reload_weights", between waking "weights" and "kv_cache". `GET /metrics` has
//! "vllm:num_requests_running" and "vllm:num_requests_waiting".

use serde::Deserialize;
use serde_json::json;

use super::{Adapter, Busy, EngineError, Http, Step, Survey};

/// How deep it sleeps.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// 1: weights wait in host memory.
    KeepWeights,
    /// 2: weights are dropped.
    DropWeights,
}

#[derive(Debug)]
pub(super) struct Vllm {
    http: Http,
    level: Level,
}

#[derive(Deserialize)]
struct Sleeping {
    is_sleeping: bool,
}

const DEV_MODE: &str = "vllm serve --enable-sleep-mode, with VLLM_SERVER_DEV_MODE=1 in its environment, can do that";

impl Vllm {
    pub(super) fn new(http: Http, level: Level) -> Self {
        Self { http, level }
    }

    fn call(&self, path: &str, body: &serde_json::Value) -> Result<(), EngineError> {
        self.http.post(path, body)?.success(&self.http, DEV_MODE).map(drop)
    }
}

impl Adapter for Vllm {
    fn survey(&self) -> Result<Survey, EngineError> {
        let answer = self.http.get("/is_sleeping")?.success(&self.http, DEV_MODE)?;
        let state: Sleeping = answer.json(&self.http, "{\"is_sleeping\": true or false}")?;
        Ok(Survey { asleep: state.is_sleeping, ..Survey::default() })
    }

    fn busy(&self, _: &Survey) -> Result<Busy, EngineError> {
        let text = self.http.get("/metrics")?.success(&self.http, "")?.text();
        let gauges = ["vllm:num_requests_running", "vllm:num_requests_waiting"].map(|name| sum_of(&text, name));
        Ok(match gauges {
            [Some(running), Some(waiting)] if running + waiting == 0 => Busy::Idle,
            [Some(running), Some(waiting)] => Busy::Items(running + waiting),
            // A gauge appears with the first request.
            _ if text.contains("vllm:") || text.contains("python_info") => Busy::Idle,
            _ => Busy::Unknown("its metrics are switched off".to_owned()),
        })
    }

    fn steps(&self, survey: &Survey) -> Vec<Step> {
        let name = match self.level {
            Level::KeepWeights => "sleep 1",
            Level::DropWeights => "sleep 2",
        };
        if survey.asleep { Vec::new() } else { vec![Step { name: name.to_owned(), told: None }] }
    }

    fn take(&self, _: &Step, forced: bool) -> Result<(), EngineError> {
        let level = if self.level == Level::KeepWeights { 1 } else { 2 };
        let mode = if forced { "abort" } else { "wait" };
        self.call(&format!("/sleep?level={level}&mode={mode}"), &json!({}))
    }

    fn restore(&self) -> Result<(), EngineError> {
        if !self.survey()?.asleep {
            return Ok(());
        }
        match self.level {
            Level::KeepWeights => self.call("/wake_up", &json!({})),
            Level::DropWeights => {
                self.call("/wake_up?tags=weights", &json!({}))?;
                self.call("/collective_rpc", &json!({ "method": "reload_weights" }))?;
                self.call("/wake_up?tags=kv_cache", &json!({}))
            }
        }
    }

    fn if_not_freed(&self) -> &'static str {
        DEV_MODE
    }
}

/// The sum of a gauge over its labels, in Prometheus' text format.
fn sum_of(text: &str, name: &str) -> Option<u64> {
    let mut sum = None;
    for line in text.lines() {
        let Some(rest) = line.strip_prefix(name) else { continue };
        let value = match rest.strip_prefix('{') {
            Some(labelled) => labelled.rsplit_once('}').map(|(_, value)| value),
            None => rest.starts_with(' ').then_some(rest),
        };
        let value: Option<f64> = value.and_then(|value| value.split_whitespace().next()?.parse().ok());
        if let Some(value) = value.filter(|value| value.is_finite() && *value >= 0.0) {
            sum = Some(sum.unwrap_or(0) + value.ceil() as u64);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::sum_of;

    #[test]
    fn gauges_are_summed_over_labels_and_comments_are_not_numbers() {
        let text = "# HELP vllm:num_requests_running Number of requests\n# TYPE vllm:num_requests_running gauge\n\
                    vllm:num_requests_running{model_name=\"a {b} 9\",engine=\"0\"} 2.0\n\
                    vllm:num_requests_running{engine=\"1\"} 1.0 1700000000\nvllm:num_requests_running_total 7\n";
        assert_eq!(sum_of(text, "vllm:num_requests_running"), Some(3));
        assert_eq!(sum_of(text, "vllm:num_requests_waiting"), None);
        assert_eq!(sum_of("vllm:num_requests_waiting 4", "vllm:num_requests_waiting"), Some(4));
        assert_eq!(sum_of("vllm:num_requests_waiting NaN", "vllm:num_requests_waiting"), None);
    }
}
