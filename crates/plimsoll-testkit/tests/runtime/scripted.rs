//! A workload that does what each of its inputs says, and devices to do it on.

use std::sync::Arc;

use plimsoll_core::task::SessionShape;
use plimsoll_core::{Bytes, DeviceId, DeviceKind, Fault, Footprint, Ladder, Place, Rung};
use plimsoll_runtime::{Backend, Context, Device, Session, Workload, check};
use plimsoll_testkit::virtual_device::{VirtualDevice, VirtualDeviceBuilder};

use crate::bounded::Gate;

/// The device added first.
pub(crate) const FIRST: DeviceId = DeviceId(0);
/// The device added second.
pub(crate) const SECOND: DeviceId = DeviceId(1);

/// The weight of a device that gets whatever it can take; others get what it cannot.
pub(crate) const ALL: f64 = 1e9;

type OpenHook = Arc<dyn Fn(&'static str, &mut dyn Backend) -> Result<(), Fault> + Send + Sync>;
type RunHook = Arc<dyn Fn(&'static str, &mut Context<'_, Scripted>) -> Result<(), Fault> + Send + Sync>;
type PrepareHook = Arc<dyn Fn(&'static str, &mut dyn Backend) -> Result<(), Fault> + Send + Sync>;

/// Does something when it is dropped.
pub(crate) struct OnDrop(Option<Box<dyn FnOnce() + Send + Sync>>);

impl OnDrop {
    pub(crate) fn new(act: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(act)))
    }
}

impl Drop for OnDrop {
    fn drop(&mut self) {
        if let Some(act) = self.0.take() {
            act();
        }
    }
}

/// One input: what to give back, and what to do on the way.
pub(crate) struct Piece {
    pub(crate) value: u64,
    ladder: Ladder,
    units: u64,
    shape: SessionShape,
    on_ladder: Option<Arc<dyn Fn() + Send + Sync>>,
    on_open: Option<OpenHook>,
    on_run: Option<RunHook>,
    session_drop: Option<Arc<dyn Fn() + Send + Sync>>,
    output_drop: Option<Arc<dyn Fn() + Send + Sync>>,
    /// Goes with the input.
    pub(crate) baggage: Option<OnDrop>,
}

/// The GPU first, then the CPU.
pub(crate) fn gpu_then_cpu(bytes: Bytes) -> Ladder {
    Ladder::new([gpu(bytes), cpu()])
}

pub(crate) fn gpu(bytes: Bytes) -> Rung {
    Rung::new("gpu", Place::On(DeviceKind::Gpu), Footprint::task(bytes))
}

pub(crate) fn cpu() -> Rung {
    Rung::new("cpu", Place::On(DeviceKind::Cpu), Footprint::default())
}

pub(crate) fn anywhere(footprint: Footprint) -> Ladder {
    Ladder::new([Rung::new("any", Place::Anywhere, footprint)])
}

impl Piece {
    /// Gives its value back, anywhere.
    pub(crate) fn new(value: u64) -> Self {
        Self {
            value,
            ladder: anywhere(Footprint::default()),
            units: 1,
            shape: SessionShape::default(),
            on_ladder: None,
            on_open: None,
            on_run: None,
            session_drop: None,
            output_drop: None,
            baggage: None,
        }
    }

    pub(crate) fn ladder(mut self, ladder: Ladder) -> Self {
        self.ladder = ladder;
        self
    }

    pub(crate) fn units(mut self, units: u64) -> Self {
        self.units = units;
        self
    }

    pub(crate) fn params(mut self, params: u64) -> Self {
        self.shape.params = params;
        self
    }

    pub(crate) fn shape(mut self, shape: u64) -> Self {
        self.shape.shape = shape;
        self
    }

    pub(crate) fn on_ladder(mut self, act: impl Fn() + Send + Sync + 'static) -> Self {
        self.on_ladder = Some(Arc::new(act));
        self
    }

    pub(crate) fn on_open(
        mut self,
        act: impl Fn(&'static str, &mut dyn Backend) -> Result<(), Fault> + Send + Sync + 'static,
    ) -> Self {
        self.on_open = Some(Arc::new(act));
        self
    }

    pub(crate) fn on_run(
        mut self,
        act: impl Fn(&'static str, &mut Context<'_, Scripted>) -> Result<(), Fault> + Send + Sync + 'static,
    ) -> Self {
        self.on_run = Some(Arc::new(act));
        self
    }

    /// Says that it runs, then waits, deaf to cancellation.
    pub(crate) fn held(self, entered: &Gate, leave: &Gate) -> Self {
        let (entered, leave) = (entered.clone(), leave.clone());
        self.on_run(move |_, _| {
            entered.open();
            leave.pass();
            Ok(())
        })
    }

    /// Runs a real kernel and looks at its answer.
    pub(crate) fn checked(self) -> Self {
        self.on_run(|_, context| check::known_answer(context.backend))
    }

    pub(crate) fn session_drop(mut self, act: impl Fn() + Send + Sync + 'static) -> Self {
        self.session_drop = Some(Arc::new(act));
        self
    }

    pub(crate) fn output_drop(mut self, act: impl Fn() + Send + Sync + 'static) -> Self {
        self.output_drop = Some(Arc::new(act));
        self
    }

    pub(crate) fn baggage(mut self, baggage: OnDrop) -> Self {
        self.baggage = Some(baggage);
        self
    }
}

/// What a piece gives.
pub(crate) struct Answer {
    pub(crate) value: u64,
    /// The parameters of the session that gave it.
    pub(crate) params: u64,
    /// The sum of its references' bytes, and the parameters that they were prepared with.
    pub(crate) references: Vec<(u64, u64)>,
    _on_drop: Option<OnDrop>,
}

/// The workload.
#[derive(Clone, Default)]
pub(crate) struct Scripted {
    name: Option<&'static str>,
    factor: Option<u64>,
    on_prepare: Option<PrepareHook>,
}

impl Scripted {
    pub(crate) fn named(name: &'static str) -> Self {
        Self { name: Some(name), ..Self::default() }
    }

    /// Every value comes back as many times as large.
    pub(crate) fn factor(mut self, factor: u64) -> Self {
        self.factor = Some(factor);
        self
    }

    pub(crate) fn on_prepare(
        mut self,
        act: impl Fn(&'static str, &mut dyn Backend) -> Result<(), Fault> + Send + Sync + 'static,
    ) -> Self {
        self.on_prepare = Some(Arc::new(act));
        self
    }
}

struct Opened {
    rung: &'static str,
    params: u64,
    factor: u64,
    on_prepare: Option<PrepareHook>,
    _on_drop: Option<OnDrop>,
}

impl Workload for Scripted {
    type Input = Piece;
    type Reference = Vec<u8>;
    type Prepared = (u64, u64);
    type Output = Answer;

    fn name(&self) -> &str {
        self.name.unwrap_or("scripted")
    }

    fn units(&self, piece: &Piece) -> u64 {
        piece.units
    }

    fn ladder(&self, piece: &Piece) -> Ladder {
        if let Some(act) = &piece.on_ladder {
            act();
        }
        piece.ladder.clone()
    }

    fn shape(&self, piece: &Piece) -> SessionShape {
        piece.shape
    }

    fn open(&self, rung: &Rung, piece: &Piece, backend: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        if let Some(act) = &piece.on_open {
            act(rung.name, backend)?;
        }
        let _on_drop = piece.session_drop.clone().map(|act| OnDrop::new(move || act()));
        Ok(Box::new(Opened {
            rung: rung.name,
            params: piece.shape.params,
            factor: self.factor.unwrap_or(1),
            on_prepare: self.on_prepare.clone(),
            _on_drop,
        }))
    }
}

impl Session<Scripted> for Opened {
    fn prepare(&mut self, reference: &Vec<u8>, backend: &mut dyn Backend) -> Result<(u64, u64), Fault> {
        if let Some(act) = &self.on_prepare {
            act(self.rung, backend)?;
        }
        let sum: u64 = reference.iter().copied().map(u64::from).sum();
        Ok((sum, self.params))
    }

    fn run(&mut self, piece: &Piece, context: &mut Context<'_, Scripted>) -> Result<Answer, Fault> {
        if let Some(act) = &piece.on_run {
            act(self.rung, context)?;
        }
        Ok(Answer {
            value: piece.value * self.factor,
            params: self.params,
            references: context.references().copied().collect(),
            _on_drop: piece.output_drop.clone().map(|act| OnDrop::new(move || act())),
        })
    }
}

/// A pretended GPU to keep hold of and to hand over.
pub(crate) fn virtual_gpu(
    name: &str,
    how: impl FnOnce(VirtualDeviceBuilder) -> VirtualDeviceBuilder,
) -> Arc<VirtualDevice> {
    Arc::new(how(VirtualDevice::gpu(name)).build())
}

/// The device as an orchestrator takes it.
pub(crate) fn as_device(device: &Arc<VirtualDevice>) -> Arc<dyn Device> {
    Arc::clone(device) as Arc<dyn Device>
}
