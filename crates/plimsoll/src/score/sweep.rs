//! A sweep: what is done to every pair, as one pipeline that fans out into the metrics.
//! Invariant: pixels that wait to be scored stay within a quarter of the CPU's line, or are one pair's.

use std::sync::Arc;

use plimsoll_core::{Bytes, DeviceId, DeviceKind, Priority};
use plimsoll_image::Image;
use plimsoll_image::decode::DecodeOptions;
use plimsoll_image::metrics::{HeatMap, Metric, MetricWorkload, SizesDifferError};
use plimsoll_runtime::{
    FanOut, Flow, Gathered, ItemResult, Orchestrator, Pipeline, Reference, Registered, RunError, Task,
};

use super::draw::{DrawWork, Drawn, MapWork, Pictures, draw_work, map_work};
use super::load::{LoadPair, LoadReference, LoadedPair};
use super::pair::{FileFacts, MetricError, MetricScore, Pair, PairError, PairScores};
use super::stream::ScoreStream;

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
    /// Whether to make a heat map of every pixel of every pair.
    pub heat_maps: bool,
}

/// Scores of many pairs.
///
/// ```no_run
/// use plimsoll::image::metrics::Metric;
/// use plimsoll::score::{Pair, Sweep, SweepOptions};
/// use plimsoll::{Machine, MachineOptions, Orchestrator};
///
/// let machine = Machine::open(&MachineOptions::from_env()?);
/// let orchestrator = Orchestrator::builder().devices(machine.devices).build();
/// let sweep = Sweep::new(orchestrator, SweepOptions::of([Metric::Ssim2]));
/// let pair = Pair { reference: "a.png".into(), distorted: "a.jpg".into() };
/// for scored in sweep.stream([pair]) {
///     println!("{:?}", scored.outcome);
/// }
/// # Ok::<(), plimsoll::machine::SettingError>(())
/// ```
#[derive(Debug)]
pub struct Sweep(Arc<Parts>);

/// What every stream of a sweep shares.
pub(super) struct Parts {
    pub(super) orchestrator: Arc<Orchestrator>,
    pub(super) load_reference: Registered<LoadReference>,
    load: Registered<LoadPair>,
    scoring: Arc<Scoring>,
}

/// What becomes of a pair once both images are there.
struct Scoring {
    options: SweepOptions,
    metrics: Vec<Registered<MetricWorkload>>,
    draw: Registered<DrawWork>,
    map: Registered<MapWork>,
}

/// What a task of a pair gives.
pub(super) enum Piece {
    Score(MetricScore),
    Drawn(Drawn),
    HeatMap(HeatMap),
}

/// What is kept of a pair while it is scored; or why it is not.
pub(super) type Kept = Result<LoadedPair, PairError>;
pub(super) type PairFlow = Flow<LoadPair, Gathered<Kept, Piece>>;

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
            heat_maps: false,
        }
    }
}

impl Sweep {
    /// A sweep on the devices of an orchestrator, its own or one that is shared.
    pub fn new(orchestrator: impl Into<Arc<Orchestrator>>, options: SweepOptions) -> Self {
        let orchestrator = orchestrator.into();
        let metrics: Vec<_> = options.metrics.iter().map(|metric| orchestrator.register(metric.workload())).collect();
        let (decode, pinner) = (options.decode.clone(), orchestrator.reference_pinner());
        let load_reference =
            orchestrator.register(LoadReference { options: decode.clone(), metrics: metrics.clone(), pinner });
        let load = orchestrator.register(LoadPair { options: decode });
        let (draw, map) = (orchestrator.register(draw_work()), orchestrator.register(map_work()));
        let scoring = Arc::new(Scoring { options, metrics, draw, map });
        Self(Arc::new(Parts { orchestrator, load_reference, load, scoring }))
    }

    /// Scores pairs: an iterator of what came of each, in the order in which they end, with a bounded number under way.
    /// Dropping it gives up what is under way.
    pub fn stream(&self, pairs: impl IntoIterator<Item = Pair, IntoIter: Send + 'static>) -> ScoreStream {
        ScoreStream::new(&self.0, Box::new(pairs.into_iter()))
    }

    /// The orchestrator, for its reports, its profile, or other work on the same devices.
    pub fn orchestrator(&self) -> &Orchestrator {
        &self.0.orchestrator
    }
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sweep").field("options", &self.scoring.options).finish_non_exhaustive()
    }
}

impl Parts {
    /// Stages for pairs whose pixels stay within so many bytes.
    pub(super) fn flow(&self, bytes_max: Bytes) -> PairFlow {
        let slots: usize = self.orchestrator.devices().map(|(_, facts)| facts.slots).sum();
        let scoring = Arc::clone(&self.scoring);
        let pipeline = Pipeline::of(&self.load)
            .fan_out(move |loaded| scoring.fan_out(loaded))
            .items_max(2 * slots + 2)
            .bytes_max(bytes_max);
        self.orchestrator.flow(&pipeline)
    }

    /// Bytes of decoded pixels that may wait to be scored.
    pub(super) fn pixels_max(&self) -> Bytes {
        Bytes(PIXELS_BUDGET.min(self.line().0 / LINE_SHARE))
    }

    /// Bytes of the CPU that may be promised now.
    pub(super) fn line(&self) -> Bytes {
        let is_cpu = |device: DeviceId| {
            self.orchestrator.devices().any(|(id, facts)| id == device && facts.kind == DeviceKind::Cpu)
        };
        let status = self.orchestrator.reports();
        status.iter().filter(|status| is_cpu(status.device)).map(|status| status.line).max().unwrap_or(Bytes::MAX)
    }

    /// What came of a pair.
    pub(super) fn outcome(&self, done: ItemResult<Gathered<Kept, Piece>>) -> Result<PairScores, PairError> {
        match done.result {
            Ok(done) => self.scoring.gathered(done.output),
            Err(failure) => Err(PairError::NotLoaded(Arc::new(failure))),
        }
    }
}

impl Scoring {
    /// One task for each metric, then what is to be drawn.
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
        if self.options.heat_maps {
            let task = Task::new((Arc::clone(&reference), image.clone())).priority(Priority::Low);
            fan = fan.task(&self.map, task, |done| Piece::HeatMap(done.output));
        }
        if has_picture {
            let task = Task::new((reference, image, self.options.pictures)).priority(Priority::Low);
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
            Ok(Piece::Drawn(_) | Piece::HeatMap(_)) => None,
            Err(failure) => Some(Err(MetricError { metric: *metric, failure })),
        };
        let scores = self.options.metrics.iter().zip(results.by_ref()).filter_map(of_metric).collect();
        let heat_map = self.options.heat_maps.then(|| results.next()).flatten().and_then(|result| match result {
            Ok(Piece::HeatMap(map)) => Some(Ok(map)),
            Ok(_) => None,
            Err(failure) => Some(Err(failure)),
        });
        let drawn = results.flatten().find_map(|piece| match piece {
            Piece::Drawn(drawn) => Some(drawn),
            Piece::Score(_) | Piece::HeatMap(_) => None,
        });
        let LoadedPair { distorted, reference, .. } = pair;
        let facts = FileFacts {
            bytes: distorted.bytes,
            hash: distorted.hash,
            decoder: distorted.decoder,
            format: distorted.format,
        };
        Ok(PairScores { reference: Arc::clone(&reference.file), distorted: facts, scores, drawn, heat_map })
    }
}

fn of_one_size(pair: LoadedPair) -> Kept {
    let (distorted, reference) = (pair.distorted.image.size(), pair.reference.file.image.size());
    match distorted == reference {
        true => Ok(pair),
        false => Err(SizesDifferError { reference, distorted }.into()),
    }
}
