//! What the gate answers itself, in the form in which the engine tells errors.
//! Never says anything about a request that the engine answered.
//! Invariant: every answer says what to do next.

use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use serde_json::json;

use super::Target;
use super::forward::{Answer, Failure};
use super::room::NoRoom;
use crate::engines::EngineKind;

pub(super) fn no_room(target: &Target, no_room: &NoRoom) -> Response<Answer> {
    let retry = no_room.retry_after();
    let todo = if retry.is_some() { "Try again later" } else { "Use something smaller" };
    let message = format!("plimsoll: {}: {no_room}. {todo}; `plimsoll who` shows who holds the memory", target.engine);
    let mut response = answer(target, StatusCode::SERVICE_UNAVAILABLE, "no_room", &message);
    if let Some(retry) = retry {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(retry.as_secs()));
    }
    response
}

pub(super) fn failed(target: &Target, failure: &Failure) -> Response<Answer> {
    let (engine, address) = (&target.engine, target.address);
    let (status, message) = match failure {
        Failure::NotThere(why) => (
            StatusCode::BAD_GATEWAY,
            format!("plimsoll: {engine} does not answer on {address} ({why}): start it, and send the request again"),
        ),
        Failure::Gone(why) => (
            StatusCode::BAD_GATEWAY,
            format!(
                "plimsoll: {engine} was gone before it answered ({why}): look whether it still runs, and send the request again"
            ),
        ),
        Failure::Silent(limit) => (
            StatusCode::GATEWAY_TIMEOUT,
            format!(
                "plimsoll: {engine} did not begin to answer within {} s: look whether it hangs",
                limit.as_secs_f32()
            ),
        ),
        Failure::NotAProxy => (
            StatusCode::METHOD_NOT_ALLOWED,
            format!("plimsoll: this port belongs to {engine}; it is no proxy to other places"),
        ),
    };
    answer(target, status, "engine_unavailable", &message)
}

fn answer(target: &Target, status: StatusCode, kind: &str, message: &str) -> Response<Answer> {
    let mut response = Response::new(Answer::text(body(target, status, kind, message)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Clients of Ollama look for a text, those of the others for an object.
fn body(target: &Target, status: StatusCode, kind: &str, message: &str) -> String {
    match target.kind {
        EngineKind::Ollama => json!({ "error": message }).to_string(),
        _ => json!({ "error": { "message": message, "type": kind, "code": status.as_u16() } }).to_string(),
    }
}

/// A whole answer as bytes, for a connection that nobody serves.
pub(super) fn too_many_connections(target: &Target, most: usize) -> String {
    let message =
        format!("plimsoll: {} has {most} connections through its gate already. Try again later", target.engine);
    let body = body(target, StatusCode::SERVICE_UNAVAILABLE, "no_room", &message);
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 5\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}
