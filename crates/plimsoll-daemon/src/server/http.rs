//! Loopback HTTP: the JSON API, server-sent events, figures for Prometheus, and the dashboard.
//! Never serves another machine, a page of another site, or a body beyond a limit; never waits for a client without an end.
//! Invariant: every route is in [`ROUTES`], and so in the description that clients read (`openapi.rs`).

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, Request as HttpRequest, State as Shared};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, post};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Frame;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde::{Deserialize, Serialize};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use super::actor::{Ask, Busy, Handle};
use super::guard::Guard;
use super::patience::Patient;
use super::stream::MESSAGES_MAX;
use super::{metrics, openapi, socket};
use crate::broker::Asker;
use crate::dashboard;
use crate::folder::random_hex;
use crate::wire::{LeaseId, LeaseRequest, Request, Say, Urgency};

/// Bytes of a request's body.
const BODY_MAX: usize = 64 << 10;
/// Connections at once.
const CONNECTIONS_MAX: usize = 512;
/// How long a client may take to send its headers, and its body.
const SEND_WITHIN: Duration = Duration::from_secs(10);
/// How long an answer may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// What routes share.
#[derive(Clone, Debug)]
pub(super) struct Site {
    handle: Handle,
    guard: Arc<Guard>,
}

impl Site {
    pub(super) fn new(handle: Handle, token: String, address: SocketAddr) -> Self {
        Self { handle, guard: Arc::new(Guard::new(token, address)) }
    }
}

/// Serves connections for ever.
pub(super) async fn accept(listener: TcpListener, site: Site) {
    let app = app(site);
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let app = app.clone();
                tokio::spawn(async move {
                    serve(stream, app).await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn serve(stream: TcpStream, app: Router) {
    let _ = stream.set_nodelay(true);
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(SEND_WITHIN)
        .max_buf_size(32 << 10)
        // Whoever has said all that it has to say may still be answered: that is seldom later than at once.
        .half_close(true)
        .serve_connection(TokioIo::new(Patient::new(stream)), TowerToHyperService::new(app));
    let _ = connection.await;
}

/// One route: how it is asked, and what for.
pub(super) struct Route {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) what: &'static str,
    serves: fn() -> MethodRouter<Site>,
}

/// Every route of the API, beside the dashboard's files.
pub(super) const ROUTES: &[Route] = &[
    Route { method: "get", path: "/api/state", what: "Everything as it stands.", serves: || get(state) },
    Route {
        method: "get",
        path: "/api/events",
        what: "What happened after the event `since`.",
        serves: || get(events),
    },
    Route {
        method: "get",
        path: "/api/history",
        what: "Each device's line, promises and use over the last minutes.",
        serves: || get(history),
    },
    Route {
        method: "get",
        path: "/api/stream",
        what: "Server-sent events: `event` for what happens, `state` for how everything stands.",
        serves: || get(stream),
    },
    Route { method: "get", path: "/api/openapi.json", what: "This description.", serves: || get(description) },
    Route {
        method: "post",
        path: "/api/leases",
        what: "Asks for a lease: granted (201), queued (202) or refused (409).",
        serves: || post(lease),
    },
    Route {
        method: "get",
        path: "/api/leases/{id}",
        what: "How a lease stands: granted, recalled or queued.",
        serves: || get(status),
    },
    Route { method: "delete", path: "/api/leases/{id}", what: "Gives a lease back.", serves: || delete(give_back) },
    Route {
        method: "get",
        path: "/api/leases/{id}/why",
        what: "Why a lease waits, or has what it has.",
        serves: || get(why),
    },
    Route {
        method: "post",
        path: "/api/leases/{id}/heartbeat",
        what: "Its owner is alive; answers how the lease stands.",
        serves: || post(heartbeat),
    },
    Route {
        method: "post",
        path: "/api/leases/{id}/step",
        what: "Its owner is on this `rung` now, and has given back what it had more.",
        serves: || post(step),
    },
    Route {
        method: "post",
        path: "/api/leases/{id}/rise",
        what: "Reserves what a better `rung` needs more.",
        serves: || post(rise),
    },
    Route {
        method: "post",
        path: "/api/leases/{id}/pin",
        what: "Whether nobody may ask for it: `pinned`.",
        serves: || post(pin),
    },
    Route {
        method: "post",
        path: "/api/leases/{id}/priority",
        what: "How urgent it is from now on: `priority`.",
        serves: || post(priority),
    },
    Route {
        method: "post",
        path: "/api/leases/{id}/batch",
        what: "How many `items` of its batch are still to come.",
        serves: || post(batch),
    },
    Route { method: "get", path: "/metrics", what: "Figures for Prometheus.", serves: || get(prometheus) },
];

fn app(site: Site) -> Router {
    let mut paths: Vec<(&str, MethodRouter<Site>)> = Vec::new();
    for route in ROUTES {
        match paths.iter_mut().find(|(path, _)| *path == route.path) {
            Some((_, methods)) => *methods = std::mem::take(methods).merge((route.serves)()),
            None => paths.push((route.path, (route.serves)())),
        }
    }
    let routed = paths.into_iter().fold(Router::new(), |app, (path, methods)| app.route(path, methods));
    let app = routed.fallback(get(file)).layer(middleware::from_fn_with_state(site.clone(), admit));
    app.with_state(site)
}

/// Every request passes here first.
async fn admit(Shared(site): Shared<Site>, request: HttpRequest, next: Next) -> Response {
    if let Err((status, why)) = site.guard.admit(request.method(), request.headers()) {
        return refused(status, why);
    }
    let (parts, body) = request.into_parts();
    let body = match timeout(SEND_WITHIN, Limited::new(body, BODY_MAX).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            return refused(StatusCode::PAYLOAD_TOO_LARGE, format!("a body has at most {BODY_MAX} bytes"));
        }
        Ok(Err(_)) => return refused(StatusCode::BAD_REQUEST, "the body did not arrive whole"),
        Err(_) => return refused(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time"),
    };
    let request = HttpRequest::from_parts(parts, Body::from(body));
    let mut response = match timeout(ANSWER_WITHIN, next.run(request)).await {
        Ok(response) => response,
        Err(_) => refused(StatusCode::SERVICE_UNAVAILABLE, "the daemon is too busy to answer in time"),
    };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

#[derive(Serialize)]
struct Refusal {
    error: String,
}

fn refused(status: StatusCode, why: impl Into<String>) -> Response {
    json(status, &Refusal { error: why.into() })
}

fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(text) => (status, [(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn ending(_: Busy) -> Response {
    refused(StatusCode::SERVICE_UNAVAILABLE, Busy.to_string())
}

/// An answer of the broker, with the status that says the same.
fn said(say: Result<Say, Busy>) -> Response {
    let say = match say {
        Ok(say) => say,
        Err(busy) => return ending(busy),
    };
    let status = match &say {
        Say::Refused { .. } => StatusCode::CONFLICT,
        Say::Error { message } if message.starts_with("there is no lease") => StatusCode::NOT_FOUND,
        Say::Error { .. } => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    };
    json(status, &say)
}

impl Site {
    async fn ask(&self, request: Request) -> Response {
        said(self.handle.with(move |broker, now| broker.ask(now, &Asker::Http, None, request)).await)
    }
}

async fn state(Shared(site): Shared<Site>) -> Response {
    match site.handle.with(|broker, now| broker.state(now)).await {
        Ok(state) => json(StatusCode::OK, &state),
        Err(busy) => ending(busy),
    }
}

#[derive(Deserialize)]
struct Since {
    #[serde(default)]
    since: u64,
}

async fn events(Shared(site): Shared<Site>, Query(Since { since }): Query<Since>) -> Response {
    match site.handle.with(move |broker, _| broker.events_since(since).cloned().collect::<Vec<_>>()).await {
        Ok(events) => json(StatusCode::OK, &events),
        Err(busy) => ending(busy),
    }
}

async fn history(Shared(site): Shared<Site>) -> Response {
    let samples = |broker: &mut crate::broker::Broker, _| {
        let samples = broker.history().map(|(name, samples)| (name.to_owned(), samples));
        samples.collect::<std::collections::BTreeMap<_, _>>()
    };
    match site.handle.with(samples).await {
        Ok(history) => json(StatusCode::OK, &history),
        Err(busy) => ending(busy),
    }
}

async fn prometheus(Shared(site): Shared<Site>) -> Response {
    match site.handle.with(|broker, now| metrics::text(&broker.state(now), broker.last_event())).await {
        Ok(text) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response(),
        Err(busy) => ending(busy),
    }
}

async fn description() -> Response {
    json(StatusCode::OK, &openapi::description())
}

/// Messages as they come.
struct Messages(mpsc::Receiver<Arc<str>>);

impl hyper::body::Body for Messages {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let message = self.0.poll_recv(context);
        message.map(|message| message.map(|text| Ok(Frame::data(Bytes::copy_from_slice(text.as_bytes())))))
    }
}

async fn stream(Shared(site): Shared<Site>) -> Response {
    let (reader, messages) = mpsc::channel(MESSAGES_MAX);
    match site.handle.send(Ask::Stream(reader)).await {
        Ok(()) => ([(header::CONTENT_TYPE, "text/event-stream; charset=utf-8")], Body::new(Messages(messages)))
            .into_response(),
        Err(busy) => ending(busy),
    }
}

fn parsed<T: for<'a> Deserialize<'a>>(body: &Bytes) -> Result<T, Box<Response>> {
    serde_json::from_slice(body)
        .map_err(|error| Box::new(refused(StatusCode::BAD_REQUEST, format!("that is no request: {error}"))))
}

async fn lease(Shared(site): Shared<Site>, body: Bytes) -> Response {
    let request: LeaseRequest = match parsed(&body) {
        Ok(request) => request,
        Err(refusal) => return *refusal,
    };
    let request = Request::Lease(request);
    let (process, secret) = match (socket::process_of(&request, None), random_hex(16)) {
        (Ok(process), Ok(secret)) => (process, secret),
        (Err(message), _) => return refused(StatusCode::BAD_REQUEST, message),
        (_, Err(error)) => return refused(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
    };
    let Request::Lease(request) = request else { return refused(StatusCode::BAD_REQUEST, "that is no lease") };
    let asked = site.handle.with(move |broker, now| broker.lease(now, &Asker::Http, process, request, secret)).await;
    match asked {
        Ok(say @ Say::Granted(_)) => json(StatusCode::CREATED, &say),
        Ok(say @ Say::Queued(_)) => json(StatusCode::ACCEPTED, &say),
        other => said(other),
    }
}

async fn status(Shared(site): Shared<Site>, Path(id): Path<u64>) -> Response {
    match site.handle.with(move |broker, now| broker.status(now, LeaseId(id))).await {
        Ok(Some(say)) => json(StatusCode::OK, &without_secret(say)),
        Ok(None) => refused(
            StatusCode::NOT_FOUND,
            format!("there is no lease {id}: it was given back, has ended, or never was"),
        ),
        Err(busy) => ending(busy),
    }
}

/// Whoever only looks is not told what a lease is claimed with.
fn without_secret(mut say: Say) -> Say {
    if let Say::Granted(granted) = &mut say {
        granted.secret.clear();
    }
    say
}

async fn give_back(Shared(site): Shared<Site>, Path(id): Path<u64>) -> Response {
    site.ask(Request::Return { lease: LeaseId(id) }).await
}

async fn why(Shared(site): Shared<Site>, Path(id): Path<u64>) -> Response {
    site.ask(Request::Why { lease: LeaseId(id) }).await
}

async fn heartbeat(Shared(site): Shared<Site>, Path(id): Path<u64>) -> Response {
    site.ask(Request::Heartbeat { lease: LeaseId(id) }).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToRung {
    rung: usize,
}

async fn step(Shared(site): Shared<Site>, Path(id): Path<u64>, body: Bytes) -> Response {
    match parsed(&body) {
        Ok(ToRung { rung }) => site.ask(Request::Stepped { lease: LeaseId(id), rung }).await,
        Err(refusal) => *refusal,
    }
}

async fn rise(Shared(site): Shared<Site>, Path(id): Path<u64>, body: Bytes) -> Response {
    match parsed(&body) {
        Ok(ToRung { rung }) => site.ask(Request::Rise { lease: LeaseId(id), rung }).await,
        Err(refusal) => *refusal,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pinned {
    pinned: bool,
}

async fn pin(Shared(site): Shared<Site>, Path(id): Path<u64>, body: Bytes) -> Response {
    match parsed(&body) {
        Ok(Pinned { pinned }) => site.ask(Request::SetPinned { lease: LeaseId(id), pinned }).await,
        Err(refusal) => *refusal,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Prioritised {
    priority: Urgency,
}

async fn priority(Shared(site): Shared<Site>, Path(id): Path<u64>, body: Bytes) -> Response {
    match parsed(&body) {
        Ok(Prioritised { priority }) => site.ask(Request::SetPriority { lease: LeaseId(id), priority }).await,
        Err(refusal) => *refusal,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Items {
    items: u32,
}

async fn batch(Shared(site): Shared<Site>, Path(id): Path<u64>, body: Bytes) -> Response {
    match parsed(&body) {
        Ok(Items { items }) => site.ask(Request::SetBatch { lease: LeaseId(id), items }).await,
        Err(refusal) => *refusal,
    }
}

/// A file of the dashboard.
async fn file(request: HttpRequest) -> Response {
    let path = request.uri().path();
    match dashboard::FILES.iter().find(|file| file.path == path) {
        Some(file) => {
            let policy = (header::CONTENT_SECURITY_POLICY, dashboard::CONTENT_SECURITY_POLICY);
            ([(header::CONTENT_TYPE, file.content_type), policy], file.text).into_response()
        }
        None => refused(StatusCode::NOT_FOUND, "there is no such page; the API is described at /api/openapi.json"),
    }
}
