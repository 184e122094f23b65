//! A sweep: many pairs through one pipeline, a bounded number of them and of their bytes under way.
//! Never decodes a file whose header already says that it cannot be scored.
//! Invariant: pixels that wait to be scored stay within a quarter of the CPU's line, or are one pair's.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::{Either, select};
use plimsoll_core::{Bytes, DeviceId, DeviceKind, Fault, Priority};
use plimsoll_image::Image;
use plimsoll_image::decode::{DecodeOptions, look};
use plimsoll_image::metrics::{Metric, MetricWorkload, SizesDifferError, heat_map};
use plimsoll_runtime::{
    FanOut, Flow, Gathered, ItemResult, Orchestrator, Pipeline, Reference, Registered, RunError, Task, workload,
};

use super::load::{File, LoadError, LoadPair, LoadReference, LoadedPair, LoadedReference, PairFiles};
use super::pair::{Drawn, FileFacts, MetricError, MetricScore, Pair, PairError, PairScores, Scored};
use super::references::{KnownReference, References};
use crate::stop::StopSign;

/// Bytes of decoded pixels that wait to be scored: an eighth of a small machine's memory.
const PIXELS_BUDGET: u64 = 512 << 20;
/// The share of the CPU's line that they may have; the metrics need the rest.
const LINE_SHARE: u64 = 4;

/// How pairs are scored.
#[derive(Clone, Debug)]
pub struct SweepOptions {
    /// The metrics, in the order in which scores are wanted.
    pub metrics: Vec<Metric>,
    /// How files are decoded.
    pub decode: DecodeOptions,
    /// The devices that may score; all of them if there is none.
    pub devices: Vec<DeviceId>,
    /// The only rung that will do.
    pub rung: Option<&'static str>,
    /// No ladder: the best rung or an error.
    pub strict: bool,
    /// Whether to keep why each choice was made.
    pub explain: bool,
    /// Small pictures and heat maps of pairs, for a report.
    pub pictures: Pictures,
}

/// Of which pairs there are pictures and heat maps, and how large.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Pictures {
    /// The first so many pairs have them.
    pub first: usize,
    /// No side is longer. Images are made small before they are compared: a map of a large image takes longer than its
    /// score, and nobody sees the difference on a page.
    pub side_max: u32,
}

/// Many pairs to score.
///
/// ```no_run
/// use std::ops::ControlFlow;
/// use plimsoll::image::metrics::Metric;
/// use plimsoll::score::{Pair, StopSign, Sweep, SweepOptions};
/// use plimsoll::{Machine, MachineOptions, Orchestrator};
///
/// let machine = Machine::open(&MachineOptions::from_env()?);
/// let orchestrator = Orchestrator::builder().devices(machine.devices).build();
/// let sweep = Sweep::new(&orchestrator, SweepOptions::of([Metric::Ssim2]));
/// let pair = Pair { reference: "a.png".into(), distorted: "a.jpg".into() };
/// sweep.run([(0, pair)], &StopSign::default(), |scored| {
///     println!("{:?}", scored.outcome);
///     ControlFlow::Continue(())
/// });
/// # Ok::<(), plimsoll::machine::SettingError>(())
/// ```
pub struct Sweep<'a> {
    orchestrator: &'a Orchestrator,
    load_reference: Registered<LoadReference>,
    load: Registered<LoadPair>,
    scoring: Arc<Scoring>,
}

/// What becomes of a pair once both images are there.
struct Scoring {
    options: SweepOptions,
    metrics: Vec<Registered<MetricWorkload>>,
    draw: Registered<DrawWork>,
}

/// What to draw: the pair, and how large at the most.
type ToDraw = (Arc<LoadedReference>, Image, u32);
type DrawWork = workload::Function<ToDraw, Drawn>;

/// What a task of a pair gives.
enum Piece {
    Score(MetricScore),
    Drawn(Drawn),
}

/// What is kept of a pair while it is scored; or why it is not.
type Kept = Result<LoadedPair, PairError>;
type PairFlow = Flow<LoadPair, Gathered<Kept, Piece>>;

impl SweepOptions {
    /// These metrics on any device, and nothing kept but scores.
    pub fn of(metrics: impl IntoIterator<Item = Metric>) -> Self {
        Self {
            metrics: metrics.into_iter().collect(),
            decode: DecodeOptions::default(),
            devices: Vec::new(),
            rung: None,
            strict: false,
            explain: false,
            pictures: Pictures::default(),
        }
    }
}

impl<'a> Sweep<'a> {
    /// A sweep on the devices of an orchestrator.
    pub fn new(orchestrator: &'a Orchestrator, options: SweepOptions) -> Self {
        let metrics: Vec<_> = options.metrics.iter().map(|metric| orchestrator.register(metric.workload())).collect();
        let (decode, pinner) = (options.decode.clone(), orchestrator.reference_pinner());
        let load_reference =
            orchestrator.register(LoadReference { options: decode.clone(), metrics: metrics.clone(), pinner });
        let load = orchestrator.register(LoadPair { options: decode });
        let draw = orchestrator.register(workload::function("draw", draw));
        Self { orchestrator, load_reference, load, scoring: Arc::new(Scoring { options, metrics, draw }) }
    }

    /// Scores pairs, each with its number, and hands over what came of each, in the order in which they end. Stops when
    /// `take` says so or the sign is raised: pairs under way are then given up.
    pub fn run(
        &self,
        pairs: impl IntoIterator<Item = (usize, Pair)>,
        stop: &StopSign,
        mut take: impl FnMut(Scored) -> ControlFlow<()>,
    ) {
        let mut under_way = UnderWay::new(self);
        let mut pairs = pairs.into_iter();
        let mut waiting = None;
        pollster::block_on(async {
            while !stop.is_raised() {
                while let Some((at, pair)) = waiting.take().or_else(|| pairs.next()) {
                    match under_way.begin(at, &pair) {
                        Ok(Begun::Yes) => under_way.note(at, pair),
                        Ok(Begun::Full) => {
                            waiting = Some((at, pair));
                            break;
                        }
                        Err(error) => {
                            if take(Scored { at, pair, outcome: Err(error) }).is_break() {
                                return;
                            }
                        }
                    }
                    if stop.is_raised() {
                        return;
                    }
                }
                let Either::Left((Some(done), _)) =
                    select(Box::pin(under_way.flow.next()), Box::pin(stop.raised())).await
                else {
                    return;
                };
                if take(under_way.scored(done)).is_break() {
                    return;
                }
            }
        });
    }

    /// Bytes of the CPU that may be promised now.
    fn line(&self) -> Bytes {
        let is_cpu = |device: DeviceId| {
            self.orchestrator.devices().any(|(id, facts)| id == device && facts.kind == DeviceKind::Cpu)
        };
        let status = self.orchestrator.reports();
        status.iter().filter(|status| is_cpu(status.device)).map(|status| status.line).max().unwrap_or(Bytes::MAX)
    }
}

/// Whether a pair is on its way.
enum Begun {
    Yes,
    /// Not before another has ended.
    Full,
}

/// The pairs of a sweep that are on their way.
struct UnderWay<'s> {
    sweep: &'s Sweep<'s>,
    flow: PairFlow,
    references: References<'s>,
    /// The pair of each item.
    pairs: HashMap<u64, (usize, Pair)>,
    next_item: u64,
}

impl<'s> UnderWay<'s> {
    fn new(sweep: &'s Sweep<'s>) -> Self {
        let slots: usize = sweep.orchestrator.devices().map(|(_, facts)| facts.slots).sum();
        let bytes_max = PIXELS_BUDGET.min(sweep.line().0 / LINE_SHARE);
        let scoring = Arc::clone(&sweep.scoring);
        let pipeline = Pipeline::of(&sweep.load)
            .fan_out(move |loaded| scoring.fan_out(loaded))
            .items_max(2 * slots + 2)
            .bytes_max(Bytes(bytes_max));
        let references = References::new(sweep.orchestrator, &sweep.load_reference, bytes_max / 2);
        Self { sweep, flow: sweep.orchestrator.flow(&pipeline), references, pairs: HashMap::new(), next_item: 0 }
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
        let (needed, line) = (bytes + Bytes(reference.image_bytes + decoding), self.sweep.line());
        if needed > line {
            return Err(PairError::DoesNotFit { needed, line });
        }
        let distorted = File { path: pair.distorted.clone(), outlook };
        let load = Task::new(PairFiles { at, distorted, reference: cell }).after([task]);
        let submitted = self.flow.submit_sized(load, bytes);
        self.next_item = submitted.map_err(|refused| PairError::NotLoaded(Arc::new(refused.into())))?;
        Ok(Begun::Yes)
    }

    fn note(&mut self, at: usize, pair: Pair) {
        self.pairs.insert(self.next_item, (at, pair));
    }

    fn scored(&mut self, done: ItemResult<Gathered<Kept, Piece>>) -> Scored {
        let (at, pair) = self.pairs.remove(&done.item).expect("an item is noted when it begins, and ends once");
        let outcome = match done.result {
            Ok(done) => self.sweep.scoring.gathered(done.output),
            Err(failure) => Err(PairError::NotLoaded(Arc::new(failure))),
        };
        Scored { at, pair, outcome }
    }
}

impl Scoring {
    /// One task for each metric, and one for the heat map.
    fn fan_out(&self, loaded: Kept) -> FanOut<Kept, Piece> {
        let pair = match loaded.and_then(of_one_size) {
            Ok(pair) => pair,
            Err(error) => return FanOut::new(Err(error)),
        };
        let (image, reference) = (pair.distorted.image.clone(), Arc::clone(&pair.reference));
        let has_picture = self.has_picture(&pair);
        let mut fan = FanOut::new(Ok(pair));
        for (workload, handle) in self.metrics.iter().zip(&reference.handles) {
            let metric = workload.workload().metric();
            let score = move |done: plimsoll_runtime::Done<_>| {
                Piece::Score(MetricScore { metric, score: done.output, report: done.report })
            };
            fan = fan.task(workload, self.task(handle, &image), score);
        }
        if has_picture {
            let task = Task::new((reference, image, self.options.pictures.side_max)).priority(Priority::Low);
            fan = fan.task(&self.draw, task, |done| Piece::Drawn(done.output));
        }
        fan
    }

    fn has_picture(&self, pair: &LoadedPair) -> bool {
        pair.at < self.options.pictures.first
    }

    fn task(&self, reference: &Reference<MetricWorkload>, distorted: &Image) -> Task<MetricWorkload> {
        let mut task = Task::new(distorted.clone()).reference(reference);
        if !self.options.devices.is_empty() {
            task = task.devices(self.options.devices.iter().copied());
        }
        if let Some(rung) = self.options.rung {
            task = task.rung(rung);
        }
        if self.options.explain {
            task = task.explained();
        }
        if self.options.strict { task.strict() } else { task }
    }

    /// The scores of a pair. A report can do without pictures, so nothing fails for lack of them.
    fn gathered(&self, gathered: Gathered<Kept, Piece>) -> Result<PairScores, PairError> {
        let pair = gathered.kept?;
        let mut results = gathered.results.into_iter();
        let of_metric = |(metric, result): (&Metric, Result<Piece, RunError>)| match result {
            Ok(Piece::Score(score)) => Some(Ok(score)),
            Ok(Piece::Drawn(_)) => None,
            Err(failure) => Some(Err(MetricError { metric: *metric, failure })),
        };
        let scores = self.options.metrics.iter().zip(results.by_ref()).filter_map(of_metric).collect();
        let drawn = results.flatten().find_map(|piece| match piece {
            Piece::Drawn(drawn) => Some(drawn),
            Piece::Score(_) => None,
        });
        let LoadedPair { distorted, reference, .. } = pair;
        let facts = FileFacts {
            bytes: distorted.bytes,
            hash: distorted.hash,
            decoder: distorted.decoder,
            format: distorted.format,
        };
        Ok(PairScores { reference: Arc::clone(&reference.file), distorted: facts, scores, drawn })
    }
}

fn of_one_size(pair: LoadedPair) -> Kept {
    let (distorted, reference) = (pair.distorted.image.size(), pair.reference.file.image.size());
    match distorted == reference {
        true => Ok(pair),
        false => Err(SizesDifferError { reference, distorted }.into()),
    }
}

fn draw((reference, distorted, side_max): &ToDraw) -> Result<Drawn, Fault> {
    let original = reference.small.get_or_init(|| reference.file.image.shrunk(*side_max));
    let picture = distorted.shrunk(*side_max);
    let heat_map = heat_map(original, &picture).map_err(Fault::work)?;
    Ok(Drawn { picture, reference: original.clone(), heat_map })
}
