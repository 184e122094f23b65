//! A sweep: many pairs through one orchestrator, a bounded number of them under way.
//! Never holds more decoded pixels than its budget, or one pair if that alone is more.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::{Either, join_all, select};
use futures_util::stream::FuturesUnordered;
use plimsoll_core::{DeviceId, Fault, Priority};
use plimsoll_image::Image;
use plimsoll_image::decode::DecodeOptions;
use plimsoll_image::metrics::{HeatMap, Metric, MetricWorkload, SizesDiffer, heat_map};
use plimsoll_runtime::{Orchestrator, Reference, Registered, Task, workload};

use super::load::{File, Load, Loaded};
use super::pair::{FileFacts, MetricScore, Pair, PairError, PairScores, Scored};
use super::references::{LoadedReference, Loading, References};
use crate::stop::StopSign;

/// Bytes of decoded pixels held at once, beside the references kept: an eighth of a small machine's memory.
const PIXELS_BUDGET: u64 = 512 << 20;
/// Pairs under way before the size of any is known.
const FIRST_FEW: usize = 2;

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
    /// Whether to keep pictures and heat maps, for a report, of the first so many pairs.
    pub pictures: usize,
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
    options: SweepOptions,
    load: Registered<Load>,
    metrics: Vec<Registered<MetricWorkload>>,
    heat_map: Registered<HeatMapWork>,
    window_max: usize,
    largest: Cell<u64>,
}

type HeatMapWork = workload::Function<(Image, Image), HeatMap>;

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
            pictures: 0,
        }
    }
}

impl<'a> Sweep<'a> {
    /// A sweep on the devices of an orchestrator.
    pub fn new(orchestrator: &'a Orchestrator, options: SweepOptions) -> Self {
        let load = orchestrator.register(Load::new(options.decode.clone()));
        let metrics = options.metrics.iter().map(|metric| orchestrator.register(metric.workload())).collect();
        let heat_map = orchestrator.register(workload::function("heat-map", draw_heat_map));
        let slots: usize = orchestrator.devices().map(|(_, facts)| facts.slots).sum();
        Self { orchestrator, options, load, metrics, heat_map, window_max: 2 * slots + 2, largest: Cell::new(0) }
    }

    /// Scores pairs, each with its number, and hands over what came of each, in the order in which they end. Stops when
    /// `take` says so or the sign is raised: pairs under way are then given up.
    pub fn run(
        &self,
        pairs: impl IntoIterator<Item = (usize, Pair)>,
        stop: &StopSign,
        mut take: impl FnMut(Scored) -> ControlFlow<()>,
    ) {
        let references = References::default();
        let mut pairs = pairs.into_iter();
        let mut under_way = FuturesUnordered::new();
        pollster::block_on(async {
            while !stop.is_raised() {
                let room = self.window().saturating_sub(under_way.len());
                under_way.extend(pairs.by_ref().take(room).map(|(at, pair)| self.score(&references, at, pair)));
                let Either::Left((Some(scored), _)) = select(under_way.next(), Box::pin(stop.raised())).await else {
                    return;
                };
                if take(scored).is_break() {
                    return;
                }
            }
        });
    }

    /// Pairs under way at most: as many as fit in the budget if all are as large as the largest so far.
    fn window(&self) -> usize {
        match self.largest.get() {
            0 => FIRST_FEW,
            bytes => usize::try_from(PIXELS_BUDGET / bytes).unwrap_or(usize::MAX).clamp(1, self.window_max),
        }
    }

    async fn score<'s>(&'s self, references: &References<'s>, at: usize, pair: Pair) -> Scored {
        let outcome = self.scores(references, at, &pair).await;
        Scored { at, pair, outcome }
    }

    async fn scores<'s>(
        &'s self,
        references: &References<'s>,
        at: usize,
        pair: &Pair,
    ) -> Result<PairScores, PairError> {
        let path = pair.reference.clone();
        let reference = references.at(&pair.reference, || self.load_reference(path));
        let distorted = self.load(&pair.distorted).await?;
        let reference = reference.await?;
        let (image, original) = (&distorted.image, &reference.file.image);
        if image.size() != original.size() {
            return Err(SizesDiffer { reference: original.size(), distorted: image.size() }.into());
        }
        self.largest.set(self.largest.get().max(image.size().pixels() * 6));
        let each = self.metrics.iter().zip(&reference.handles);
        let scores = join_all(each.map(|(metric, handle)| self.score_by(metric, handle, image))).await;
        let scores = scores.into_iter().collect::<Result<Vec<_>, _>>()?;
        let has_picture = at < self.options.pictures;
        let heat_map = if has_picture { self.heat_map(original, image).await } else { None };
        let Loaded { image, bytes, hash, decoder, format } = distorted;
        let distorted = FileFacts { bytes, hash, decoder, format };
        let picture = has_picture.then_some(image);
        Ok(PairScores { reference: Arc::clone(&reference.file), distorted, scores, picture, heat_map })
    }

    async fn load(&self, path: &Path) -> Result<Loaded, PairError> {
        // Nothing can be scored before it is loaded, so loading goes first.
        let task = Task::new(File::new(path)).priority(Priority::High);
        let ticket = self.orchestrator.submit(&self.load, task).map_err(|refused| not_loaded(refused.into()))?;
        let done = ticket.await.map_err(not_loaded)?;
        done.output.map_err(|error| PairError::Load(Arc::new(error)))
    }

    fn load_reference(&self, path: std::path::PathBuf) -> Loading<'_> {
        Box::pin(async move {
            let file = Arc::new(self.load(&path).await?);
            let handle = |metric| self.orchestrator.pin_reference(metric, file.image.clone());
            Ok(Rc::new(LoadedReference { handles: self.metrics.iter().map(handle).collect(), file }))
        })
    }

    async fn score_by(
        &self,
        metric: &Registered<MetricWorkload>,
        reference: &Reference<MetricWorkload>,
        distorted: &Image,
    ) -> Result<MetricScore, PairError> {
        let which = metric.workload().metric();
        let failed = |failure| PairError::Metric { metric: which, failure: Arc::new(failure) };
        let why = match self.options.explain {
            true => self.orchestrator.why(metric, self.task(reference, distorted)),
            false => Vec::new(),
        };
        let submitted = self.orchestrator.submit(metric, self.task(reference, distorted));
        let done = submitted.map_err(|refused| failed(refused.into()))?.await.map_err(failed)?;
        Ok(MetricScore { metric: which, score: done.output, report: done.report, why })
    }

    fn task(&self, reference: &Reference<MetricWorkload>, distorted: &Image) -> Task<MetricWorkload> {
        let mut task = Task::new(distorted.clone()).reference(reference);
        if !self.options.devices.is_empty() {
            task = task.devices(self.options.devices.iter().copied());
        }
        if let Some(rung) = self.options.rung {
            task = task.rung(rung);
        }
        if self.options.strict { task.strict() } else { task }
    }

    /// A report can do without a heat map, so nothing fails for lack of one.
    async fn heat_map(&self, reference: &Image, distorted: &Image) -> Option<HeatMap> {
        let task = Task::new((reference.clone(), distorted.clone())).priority(Priority::Low);
        let ticket = self.orchestrator.submit(&self.heat_map, task).ok()?;
        ticket.await.ok().map(|done| done.output)
    }
}

fn draw_heat_map((reference, distorted): &(Image, Image)) -> Result<HeatMap, Fault> {
    heat_map(reference, distorted).map_err(Fault::work)
}

fn not_loaded(failure: plimsoll_runtime::TaskFailure) -> PairError {
    PairError::NotLoaded(Arc::new(failure))
}
