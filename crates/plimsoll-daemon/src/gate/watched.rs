//! A connection that knows when something last moved on it.
//! Never reads or writes by itself.
//! Invariant: a connection on which nothing moves for its limit is found within a quarter of that limit more.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// When something last moved.
#[derive(Clone, Debug)]
pub(super) struct Activity {
    began: Instant,
    /// Milliseconds after `began`.
    last: Arc<AtomicU64>,
}

impl Activity {
    /// Something moved now.
    pub(super) fn moved(&self) {
        self.last.store(self.elapsed(), Ordering::Relaxed);
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Ends once nothing has moved for so long.
    pub(super) async fn idle_for(&self, limit: Duration) {
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        loop {
            tokio::time::sleep(limit / 4).await;
            if self.elapsed().saturating_sub(self.last.load(Ordering::Relaxed)) >= limit_ms {
                return;
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct Watched {
    stream: TcpStream,
    activity: Activity,
}

impl Watched {
    pub(super) fn new(stream: TcpStream) -> (Self, Activity) {
        let activity = Activity { began: Instant::now(), last: Arc::default() };
        (Self { stream, activity: activity.clone() }, activity)
    }
}

impl AsyncRead for Watched {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_read(cx, into))?;
        self.activity.moved();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let count = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        self.activity.moved();
        Poll::Ready(Ok(count))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let count = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, bytes))?;
        self.activity.moved();
        Poll::Ready(Ok(count))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
