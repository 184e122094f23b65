//! What a gate and the keeper of its engine share: who waits, how many are under way, and whether requests may pass.
//! Never decides anything: the keeper opens and closes it, as the broker's leases say.
//! Invariant: every request that was let through is counted until it has ended, and every one that waits is answered once.

use std::collections::BTreeMap;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::room::{NoRoom, Pass, Room};
use crate::engines::keeper::News;

/// See the module.
#[derive(Debug)]
pub struct Doorway {
    inside: Mutex<Inside>,
    keeper: SyncSender<News>,
}

#[derive(Debug)]
struct Inside {
    is_open: bool,
    waiting: BTreeMap<u64, oneshot::Sender<Result<(), NoRoom>>>,
    next: u64,
    under_way: u64,
    last_use: Instant,
    why: String,
}

impl Doorway {
    /// A closed doorway, whose keeper is told when somebody waits.
    #[must_use]
    pub fn new(keeper: SyncSender<News>) -> Arc<Self> {
        let inside = Inside {
            is_open: false,
            waiting: BTreeMap::new(),
            next: 0,
            under_way: 0,
            last_use: Instant::now(),
            why: "the engine has no lease yet".to_owned(),
        };
        Arc::new(Self { inside: Mutex::new(inside), keeper })
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests may pass from now on: all that wait do.
    pub fn open(&self) {
        let mut inside = self.lock();
        inside.is_open = true;
        for (_, waiting) in std::mem::take(&mut inside.waiting) {
            // Counted before it is told, so that nobody takes the memory away in between.
            inside.under_way += 1;
            if waiting.send(Ok(())).is_err() {
                inside.under_way -= 1;
            }
        }
        inside.last_use = Instant::now();
    }

    /// Requests are held from now on, for this reason.
    pub fn close(&self, why: &str) {
        let mut inside = self.lock();
        inside.is_open = false;
        inside.why = why.to_owned();
    }

    /// All that wait are told that there is no room.
    pub fn refuse(&self, no_room: &NoRoom) {
        for (_, waiting) in std::mem::take(&mut self.lock().waiting) {
            let _ = waiting.send(Err(no_room.clone()));
        }
    }

    /// Whether requests pass.
    pub fn is_open(&self) -> bool {
        self.lock().is_open
    }

    /// Requests that wait.
    pub fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Requests that were let through and have not ended.
    pub fn under_way(&self) -> u64 {
        self.lock().under_way
    }

    /// How long ago the last request ended; nothing if one is under way.
    pub fn idle_for(&self) -> Option<Duration> {
        let inside = self.lock();
        (inside.under_way == 0).then(|| inside.last_use.elapsed())
    }

    /// What requests wait for.
    pub fn set_why(&self, why: &str) {
        self.lock().why = why.to_owned();
    }

    fn pass(self: &Arc<Self>) -> Pass {
        let doorway = Arc::clone(self);
        Pass::new(move || {
            let mut inside = doorway.lock();
            inside.under_way -= 1;
            inside.last_use = Instant::now();
        })
    }

    /// Passes at once, or the number under which it waits.
    fn pass_or_wait(self: &Arc<Self>) -> Result<Pass, (u64, oneshot::Receiver<Result<(), NoRoom>>)> {
        let mut inside = self.lock();
        if inside.is_open {
            inside.under_way += 1;
            drop(inside);
            return Ok(self.pass());
        }
        let number = inside.next;
        inside.next += 1;
        let (tell, told) = oneshot::channel();
        inside.waiting.insert(number, tell);
        Err((number, told))
    }
}

/// Takes a request out of those that wait if its client has gone.
struct Place<'a> {
    doorway: &'a Doorway,
    number: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.doorway.lock().waiting.remove(&self.number);
    }
}

impl Room for Arc<Doorway> {
    async fn enter(&self, _: &str) -> Result<Pass, NoRoom> {
        let (number, told) = match self.pass_or_wait() {
            Ok(pass) => return Ok(pass),
            Err(waits) => waits,
        };
        // A keeper that has much to read looks by itself.
        let _ = self.keeper.try_send(News::Wanted);
        let place = Place { doorway: self, number };
        let mut answered = Answered { doorway: self, told: Some(told) };
        let answer = answered.wait().await;
        drop(place);
        answer?;
        Ok(self.pass())
    }

    fn why(&self, _: &str) -> String {
        self.lock().why.clone()
    }
}

/// The wait for an answer. If it is dropped after it was let through and before it knew, it is not under way.
struct Answered<'a> {
    doorway: &'a Arc<Doorway>,
    told: Option<oneshot::Receiver<Result<(), NoRoom>>>,
}

impl Answered<'_> {
    async fn wait(&mut self) -> Result<(), NoRoom> {
        let Some(told) = self.told.as_mut() else { return Err(NoRoom::Ending) };
        let answer = told.await.unwrap_or(Err(NoRoom::Ending));
        self.told = None;
        answer
    }
}

impl Drop for Answered<'_> {
    fn drop(&mut self) {
        if let Some(mut told) = self.told.take()
            && matches!(told.try_recv(), Ok(Ok(())))
        {
            drop(self.doorway.pass());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    fn polled(
        future: &mut std::pin::Pin<Box<dyn Future<Output = Result<Pass, NoRoom>> + '_>>,
    ) -> Option<Result<Pass, NoRoom>> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(done) => Some(done),
            std::task::Poll::Pending => None,
        }
    }

    #[test]
    fn who_waits_is_let_through_when_it_opens_and_counted_until_it_ends() {
        let (keeper, news) = sync_channel(4);
        let doorway = Doorway::new(keeper);
        let mut first: std::pin::Pin<Box<dyn Future<Output = _>>> = Box::pin(doorway.enter("x"));
        assert!(polled(&mut first).is_none());
        assert!(matches!(news.try_recv(), Ok(News::Wanted)));
        assert_eq!(doorway.waiting(), 1);
        doorway.open();
        assert_eq!((doorway.waiting(), doorway.under_way()), (0, 1), "counted before it knows");
        let pass = polled(&mut first).unwrap().unwrap();
        let mut second: std::pin::Pin<Box<dyn Future<Output = _>>> = Box::pin(doorway.enter("x"));
        let another = polled(&mut second).unwrap().unwrap();
        assert_eq!(doorway.under_way(), 2);
        drop((pass, another));
        assert_eq!(doorway.under_way(), 0);
        assert!(doorway.idle_for().is_some());
    }

    #[test]
    fn who_goes_away_leaves_nothing_behind_whenever_it_goes() {
        let (keeper, _news) = sync_channel(4);
        let doorway = Doorway::new(keeper);
        let mut waits: std::pin::Pin<Box<dyn Future<Output = _>>> = Box::pin(doorway.enter("x"));
        assert!(polled(&mut waits).is_none());
        drop(waits);
        assert_eq!((doorway.waiting(), doorway.under_way()), (0, 0));
        let mut waits: std::pin::Pin<Box<dyn Future<Output = _>>> = Box::pin(doorway.enter("x"));
        assert!(polled(&mut waits).is_none());
        doorway.open();
        drop(waits);
        assert_eq!(doorway.under_way(), 0, "let through, and gone before it knew");
        doorway.close("full");
        let mut waits: std::pin::Pin<Box<dyn Future<Output = _>>> = Box::pin(doorway.enter("x"));
        assert!(polled(&mut waits).is_none());
        doorway.refuse(&NoRoom::Ending);
        assert_eq!(polled(&mut waits).unwrap().unwrap_err(), NoRoom::Ending);
        assert_eq!(doorway.why("x"), "full");
    }
}
