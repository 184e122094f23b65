//! One request on its way to the engine, and the answer on its way back: frame by frame, as they come.
//! Never sends a request twice.
//! Invariant: an answer that breaks off at the engine breaks off at the client; it never looks complete.

use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONNECTION, EXPECT, HeaderMap, HeaderName, TRANSFER_ENCODING, UPGRADE};
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, Response, StatusCode, Uri, Version};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::GateLimits;
use super::room::Pass;

/// What of a body is read and thrown away, so that a client that still sends hears why it was refused.
const DRAINED_MAX: usize = 256 << 10;
/// See [`DRAINED_MAX`].
const DRAIN_TIME: Duration = Duration::from_millis(500);
/// Headers that are about one connection and not about the message.
const HOP_BY_HOP: [HeaderName; 4] =
    [CONNECTION, HeaderName::from_static("keep-alive"), HeaderName::from_static("proxy-connection"), TRANSFER_ENCODING];

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Failure {
    NotThere(String),
    Gone(String),
    Silent(Duration),
    NotAProxy,
}

/// The way to the engine.
#[derive(Debug)]
pub(super) struct Upstream {
    address: SocketAddr,
    limits: GateLimits,
}

impl Upstream {
    pub(super) fn new(address: SocketAddr, limits: GateLimits) -> Self {
        Self { address, limits }
    }

    pub(super) async fn forward(
        &self,
        mut request: Request<Incoming>,
        pass: Option<Pass>,
    ) -> Result<Response<Answer>, Failure> {
        if request.method() == Method::CONNECT {
            return Err(Failure::NotAProxy);
        }
        let upgrade = wants_upgrade(request.headers());
        let client = upgrade.then(|| hyper::upgrade::on(&mut request));
        prepare(&mut request, upgrade);
        let sent = self.send(request);
        let mut response = match tokio::time::timeout(self.limits.answer, sent).await {
            Ok(answered) => answered?,
            Err(_) => return Err(Failure::Silent(self.limits.answer)),
        };
        let switched = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        if let Some(client) = client.filter(|_| switched) {
            let engine = hyper::upgrade::on(&mut response);
            tokio::spawn(join(client, engine, pass));
            return Ok(response.map(|_| Answer::text(String::new())));
        }
        strip(response.headers_mut());
        *response.version_mut() = Version::HTTP_11;
        Ok(response.map(|body| Answer { body: Either::Left(body), pass }))
    }

    /// By a connection of its own: one that is kept may be closed by the engine at the moment it is used again, and then
    /// nobody can tell whether the request was heard.
    async fn send(&self, request: Request<Incoming>) -> Result<Response<Incoming>, Failure> {
        let mut sender = self.connect().await?;
        sender.send_request(request).await.map_err(|error| Failure::Gone(error.to_string()))
    }

    async fn connect(&self) -> Result<SendRequest<Incoming>, Failure> {
        let stream = match tokio::time::timeout(self.limits.connect, TcpStream::connect(self.address)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(Failure::NotThere(error.to_string())),
            Err(_) => return Err(Failure::NotThere("it does not accept connections".to_owned())),
        };
        let _ = stream.set_nodelay(true);
        let mut builder = http1::Builder::new();
        builder.preserve_header_case(true).max_buf_size(self.limits.head_bytes.max(64 << 10));
        let (sender, connection) =
            builder.handshake(TokioIo::new(stream)).await.map_err(|error| Failure::Gone(error.to_string()))?;
        tokio::spawn(connection.with_upgrades());
        Ok(sender)
    }
}

/// Passes bytes both ways until both sides have ended.
async fn join(client: hyper::upgrade::OnUpgrade, engine: hyper::upgrade::OnUpgrade, pass: Option<Pass>) {
    if let (Ok(client), Ok(engine)) = tokio::join!(client, engine) {
        let (mut client, mut engine) = (TokioIo::new(client), TokioIo::new(engine));
        let _ = tokio::io::copy_bidirectional(&mut client, &mut engine).await;
    }
    drop(pass);
}

fn wants_upgrade(headers: &HeaderMap) -> bool {
    let named = |value: &str| value.split(',').any(|one| one.trim().eq_ignore_ascii_case("upgrade"));
    headers.contains_key(UPGRADE) && headers.get_all(CONNECTION).iter().any(|value| value.to_str().is_ok_and(named))
}

/// The request as it goes on: the client's connection headers are its own business.
fn prepare(request: &mut Request<Incoming>, upgrade: bool) {
    if !upgrade {
        strip(request.headers_mut());
        request.headers_mut().remove(UPGRADE);
    }
    // hyper has asked the client for its body by the time the engine could.
    request.headers_mut().remove(EXPECT);
    *request.version_mut() = Version::HTTP_11;
    let path = request.uri().path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    *request.uri_mut() = Uri::from(path);
}

fn strip(headers: &mut HeaderMap) {
    // What `Connection` names belongs to the connection too.
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .filter(|name| *name != CONNECTION && *name != UPGRADE && name != "te")
        .collect();
    for name in HOP_BY_HOP.iter().chain(&named) {
        headers.remove(name);
    }
}

/// Reads a little of what a refused client still sends.
pub(super) async fn drain(mut body: Incoming) {
    let read = async {
        let mut count = 0;
        while let Some(Ok(frame)) = body.frame().await {
            count += frame.data_ref().map_or(0, Bytes::len);
            if count > DRAINED_MAX {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(DRAIN_TIME, read).await;
}

/// The engine's body with the pass that ends with it, or the gate's own.
#[derive(Debug)]
pub(super) struct Answer {
    body: Either<Incoming, Full<Bytes>>,
    pass: Option<Pass>,
}

impl Answer {
    pub(super) fn text(text: String) -> Self {
        Self { body: Either::Right(Full::new(Bytes::from(text))), pass: None }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = match &mut self.body {
            Either::Left(body) => Pin::new(body).poll_frame(cx),
            Either::Right(body) => Pin::new(body).poll_frame(cx).map_err(|never| match never {}),
        };
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.pass = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        match &self.body {
            Either::Left(body) => body.is_end_stream(),
            Either::Right(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            Either::Left(body) => body.size_hint(),
            Either::Right(body) => body.size_hint(),
        }
    }
}
