//! Asks an engine something over HTTP, on the caller's thread: every call has a limit in time and in size.
//! Never follows a redirect, never uses a proxy of the environment, never keeps a connection for the next call.
//! Invariant: a call ends within its limit, with an answer or an [`EngineError`] that names the engine.

use std::net::SocketAddr;
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::EngineError;

/// The largest answer that is read. The longest that an engine's interface gives are lists of models and metrics.
pub const ANSWER_MAX: u64 = 4 << 20;
/// How much of a refusal is quoted.
const QUOTED_MAX: usize = 200;

/// How long an engine may take.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// To accept a connection. It is on this machine.
    pub connect: Duration,
    /// To say what it holds.
    pub ask: Duration,
    /// To carry out a step, which may move gigabytes.
    pub step: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connect: Duration::from_secs(1), ask: Duration::from_secs(3), step: Duration::from_secs(60) }
    }
}

/// A way to one engine.
#[derive(Clone, Debug)]
pub struct Http {
    engine: String,
    address: SocketAddr,
    limits: Limits,
    bearer: Option<String>,
    agent: ureq::Agent,
}

/// An answer with its status.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    call: String,
}

impl Http {
    /// A way to the engine of this name, which listens there.
    #[must_use]
    pub fn new(engine: &str, address: SocketAddr, limits: Limits, bearer: Option<String>) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .max_idle_connections(0)
            .timeout_connect(Some(limits.connect))
            .user_agent("plimsoll")
            .build();
        Self { engine: engine.to_owned(), address, limits, bearer, agent: config.new_agent() }
    }

    /// What the engine is called.
    #[must_use]
    pub fn engine(&self) -> &str {
        &self.engine
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Asks for what a path says, as `T`.
    pub(super) fn ask<T: DeserializeOwned>(&self, path: &str, expected: &'static str) -> Result<T, EngineError> {
        self.get(path)?.success(self, "")?.json(self, expected)
    }

    /// Asks for what a path says, whatever its status.
    pub(super) fn get(&self, path: &str) -> Result<Answer, EngineError> {
        let call = format!("GET {path}");
        let limit = self.limits.ask;
        let mut request = self.agent.get(self.url(path)).header("connection", "close");
        if let Some(bearer) = &self.bearer {
            request = request.header("authorization", format!("Bearer {bearer}"));
        }
        let sent = request.config().timeout_global(Some(limit)).build().call();
        self.answer(call, limit, sent)
    }

    /// Has a step carried out.
    pub(super) fn post(&self, path: &str, body: &serde_json::Value) -> Result<Answer, EngineError> {
        let call = format!("POST {path}");
        let limit = self.limits.step;
        let mut request =
            self.agent.post(self.url(path)).header("connection", "close").header("content-type", "application/json");
        if let Some(bearer) = &self.bearer {
            request = request.header("authorization", format!("Bearer {bearer}"));
        }
        let sent = request.config().timeout_global(Some(limit)).build().send(body.to_string());
        self.answer(call, limit, sent)
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn answer(
        &self,
        call: String,
        limit: Duration,
        sent: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<Answer, EngineError> {
        let mut response = sent.map_err(|error| self.failed(&call, limit, error))?;
        let status = response.status().as_u16();
        if response.status().is_redirection() {
            let to = response.headers().get("location").and_then(|to| to.to_str().ok()).unwrap_or("nowhere");
            return Err(EngineError::Redirected {
                engine: self.engine.clone(),
                call,
                to: to.chars().take(QUOTED_MAX).collect(),
            });
        }
        let body = response.body_mut().with_config().limit(ANSWER_MAX).read_to_vec();
        let body = body.map_err(|error| self.failed(&call, limit, error))?;
        Ok(Answer { status, body, call })
    }

    fn failed(&self, call: &str, limit: Duration, error: ureq::Error) -> EngineError {
        let engine = self.engine.clone();
        let call = call.to_owned();
        match error {
            ureq::Error::Timeout(ureq::Timeout::Connect) | ureq::Error::ConnectionFailed => {
                EngineError::NotThere { engine, address: self.address.to_string() }
            }
            ureq::Error::Timeout(_) => EngineError::TooSlow { engine, call, limit },
            ureq::Error::BodyExceedsLimit(limit) => EngineError::TooLarge { engine, call, limit },
            ureq::Error::Io(io) if io.kind() == std::io::ErrorKind::ConnectionRefused => {
                EngineError::NotThere { engine, address: self.address.to_string() }
            }
            ureq::Error::Io(io) if io.kind() == std::io::ErrorKind::TimedOut => {
                EngineError::TooSlow { engine, call, limit }
            }
            other => EngineError::Gone { engine, call, why: other.to_string() },
        }
    }

    /// The error for an answer that is not what was promised.
    pub(super) fn shape(&self, call: &str, expected: &'static str, got: impl Into<String>) -> EngineError {
        EngineError::Shape { engine: self.engine.clone(), call: call.to_owned(), expected, got: got.into() }
    }
}

impl Answer {
    /// This answer, if its status says that it is one.
    pub(super) fn success(self, http: &Http, todo: &'static str) -> Result<Self, EngineError> {
        if (200..300).contains(&self.status) {
            return Ok(self);
        }
        let said: String = String::from_utf8_lossy(&self.body).chars().take(QUOTED_MAX).collect();
        Err(EngineError::Refused {
            engine: http.engine.clone(),
            call: self.call,
            status: self.status,
            said: if said.is_empty() { "nothing more".to_owned() } else { said },
            todo,
        })
    }

    /// Its JSON.
    pub(super) fn json<T: DeserializeOwned>(&self, http: &Http, expected: &'static str) -> Result<T, EngineError> {
        serde_json::from_slice(&self.body).map_err(|error| http.shape(&self.call, expected, error.to_string()))
    }

    /// Its text.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A text as a part of a path or of a query: everything but letters, digits and `-._~` is escaped.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
