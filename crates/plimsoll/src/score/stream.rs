//! Pairs on their way: begun while there is space, handed over as they end.
//! Never decodes a file whose header already says that it cannot be scored.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::{Stream, StreamExt};
use plimsoll_core::Bytes;
use plimsoll_image::decode::look;
use plimsoll_image::metrics::SizesDifferError;
use plimsoll_runtime::Task;

use super::load::{File, LoadError, PairFiles};
use super::pair::{Pair, PairError, Scored};
use super::references::{KnownReference, References};
use super::sweep::{PairFlow, Parts};
use crate::stop::StopSign;

/// What came of pairs, in the order in which they end. See [`Sweep::stream`](super::Sweep::stream).
///
/// Dropping it gives up the pairs under way.
#[must_use = "pairs are scored as results are asked for"]
pub struct ScoreStream {
    pairs: Box<dyn Iterator<Item = Pair> + Send>,
    /// A pair that has no space yet.
    waiting: Option<(usize, Pair)>,
    next: usize,
    sign: StopSign,
    /// `None` once there is nothing more to come.
    under_way: Option<UnderWay>,
}

/// Whether a pair is on its way.
enum Begun {
    Yes,
    /// Not before another has ended.
    Full,
}

/// The pairs that are on their way.
struct UnderWay {
    parts: Arc<Parts>,
    flow: PairFlow,
    references: References,
    /// The pair of each item.
    pairs: HashMap<u64, (usize, Pair)>,
}

impl ScoreStream {
    pub(super) fn new(parts: &Arc<Parts>, pairs: Box<dyn Iterator<Item = Pair> + Send>) -> Self {
        let under_way = Some(UnderWay::new(parts));
        Self { pairs, waiting: None, next: 0, sign: StopSign::default(), under_way }
    }

    /// Ends when the sign is raised; pairs under way are then given up.
    pub fn stop_on(mut self, sign: &StopSign) -> Self {
        self.sign = sign.clone();
        self
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Scored>> {
        if self.sign.poll_raised(context).is_ready() {
            self.under_way = None;
        }
        let Some(under_way) = &mut self.under_way else { return Poll::Ready(None) };
        while let Some((at, pair)) = self.waiting.take().or_else(|| numbered(&mut self.pairs, &mut self.next)) {
            match under_way.begin(at, &pair) {
                Ok(Begun::Yes) => {}
                Ok(Begun::Full) => {
                    self.waiting = Some((at, pair));
                    break;
                }
                Err(error) => return Poll::Ready(Some(Scored { at, pair, outcome: Err(error) })),
            }
            if self.sign.is_raised() {
                self.under_way = None;
                return Poll::Ready(None);
            }
        }
        under_way.poll(context)
    }
}

fn numbered(pairs: &mut dyn Iterator<Item = Pair>, next: &mut usize) -> Option<(usize, Pair)> {
    let pair = pairs.next()?;
    *next += 1;
    Some((*next - 1, pair))
}

impl Iterator for ScoreStream {
    type Item = Scored;

    fn next(&mut self) -> Option<Scored> {
        pollster::block_on(poll_fn(|context| self.poll(context)))
    }
}

impl Stream for ScoreStream {
    type Item = Scored;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Scored>> {
        self.poll(context)
    }
}

impl std::fmt::Debug for ScoreStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScoreStream").field("begun", &self.next).finish_non_exhaustive()
    }
}

impl UnderWay {
    fn new(parts: &Arc<Parts>) -> Self {
        let bytes_max = parts.pixels_max();
        let references = References::new(Arc::clone(parts), bytes_max.0 / 2);
        Self { flow: parts.flow(bytes_max), references, pairs: HashMap::new(), parts: Arc::clone(parts) }
    }

    /// Begins with a pair if there is space for it; says why if it can never be scored.
    fn begin(&mut self, at: usize, pair: &Pair) -> Result<Begun, PairError> {
        if self.flow.is_full(Bytes::ZERO) {
            return Ok(Begun::Full);
        }
        let failed = |cause| PairError::Load(LoadError::of(&pair.distorted, cause));
        let outlook = look(&pair.distorted).map_err(failed)?;
        let bytes = Bytes(outlook.image_bytes);
        if self.flow.is_full(bytes) {
            return Ok(Begun::Full);
        }
        let KnownReference { outlook: reference, cell, task, is_new } = self.references.at(&pair.reference)?;
        if !outlook.may_match(&reference) {
            return Err(SizesDifferError { reference: reference.size, distorted: outlook.size }.into());
        }
        let decoding = outlook.decode_bytes.max(if is_new { reference.decode_bytes } else { 0 });
        let (needed, line) = (bytes + Bytes(reference.image_bytes + decoding), self.parts.line());
        if needed > line {
            return Err(PairError::DoesNotFit { needed, line });
        }
        let distorted = File { path: pair.distorted.clone(), outlook };
        let load = Task::new(PairFiles { at, distorted, reference: cell }).after([task]);
        let submitted = self.flow.submit_sized(load, bytes);
        let item = submitted.map_err(|refused| PairError::NotLoaded(Arc::new(refused.into())))?;
        self.pairs.insert(item, (at, pair.clone()));
        Ok(Begun::Yes)
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Scored>> {
        self.flow.poll_next_unpin(context).map(|done| {
            let done = done?;
            let (at, pair) = self.pairs.remove(&done.item).expect("an item is noted when it begins, and ends once");
            Some(Scored { at, pair, outcome: self.parts.outcome(done) })
        })
    }
}
