//! Tensors on a device: decode them there, ask how good they are, drop them.
//! Never moves a level itself: its keeper does, and whoever decodes holds on to what he decodes.
//! Invariant: bytes on the device ≤ what its grant promises, whatever was recalled meanwhile.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use plimsoll_core::{Bytes, DeviceId, GrantId, Priority, TaskError};
use plimsoll_fragments::Checksum;
use plimsoll_fragments::work::{BringBackWork, DecodeInput, DecodeWork, Decoded, UploadWork};
use plimsoll_runtime::gauge::Gauge;
use plimsoll_runtime::{Buffer, Orchestrator, Registered, RunError, Task, Value};

use super::error::HoldError;
use super::holding::{Arrival, Holding};
use super::keeper;
use super::ladder::{HoldRequest, LevelLadder};
use super::store::StoredModel;

/// A level that lies on the device, and what its bytes there are checked by.
#[derive(Clone)]
pub(super) struct HeldLevel {
    pub(super) buffer: Arc<Buffer>,
    pub(super) checksum: Checksum,
}

/// The levels of one piece that lie on the device, coarsest first.
pub(super) type PieceLevels = Vec<HeldLevel>;

/// What a holder and its keeper share.
pub(super) struct Shared {
    pub(super) orchestrator: Arc<Orchestrator>,
    pub(super) model: StoredModel,
    pub(super) wanted: HoldRequest,
    pub(super) ladder: LevelLadder,
    pub(super) upload: Registered<UploadWork>,
    pub(super) bring_back: Registered<BringBackWork>,
    decode: Registered<DecodeWork>,
    pub(super) gauge: Arc<Gauge>,
    pub(super) state: Mutex<State>,
    /// Somebody has decoded what he wanted, or levels came or went.
    pub(super) changed: Condvar,
    pub(super) is_dropped: AtomicBool,
    pub(super) arrival: Arc<Arrival>,
}

/// Where everything is.
#[derive(Default)]
pub(super) struct State {
    /// For each tensor of the ladder, for each of its pieces.
    pub(super) levels: Vec<Vec<PieceLevels>>,
    pub(super) rung: usize,
    pub(super) grant: Option<GrantId>,
    pub(super) has_left: bool,
    /// The device lost what was there: everything has to be brought again.
    pub(super) is_lost: bool,
    /// What the keeper could not do when there was room.
    pub(super) trouble: Option<HoldError>,
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tensors of a model on a device. Dropping it gives their bytes back.
///
/// ```no_run
/// use std::sync::Arc;
/// use plimsoll::fragments::{HoldRequest, Holder, Store, StoreOptions};
/// use plimsoll::{DeviceId, Machine, MachineOptions, Orchestrator};
///
/// let machine = Machine::open(&MachineOptions::from_env()?);
/// let orchestrator = Arc::new(Orchestrator::builder().devices(machine.devices).build());
/// let store = Store::open(&orchestrator, &StoreOptions::default())?;
/// let model = store.open_url("http://127.0.0.1:8787/model.frags")?;
/// let holder = Holder::hold(&orchestrator, &model, HoldRequest::new(DeviceId(0)).quality(0.9))?.wait()?;
/// let tensor = holder.decode("layers.0.mlp.up.weight")?;
/// println!("{} weights, off by {:.2} %", tensor.weights.len(), 100.0 * tensor.error);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Holder {
    shared: Arc<Shared>,
    wake: Sender<()>,
    keeper: Option<JoinHandle<()>>,
}

impl fmt::Debug for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Holder").field("rung", &self.rung()).field("held", &self.held()).finish_non_exhaustive()
    }
}

/// The weights of a tensor, as good as they lay there.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DecodedTensor {
    /// The weights.
    pub weights: Vec<f32>,
    /// The level they were decoded from; the coarsest is 0.
    pub level: usize,
    /// The measured error of that level.
    pub error: f64,
}

impl Holder {
    /// Brings tensors to a device, as soon as there is room.
    ///
    /// # Errors
    /// If there are no such tensors. Everything else is told by what it returns.
    pub fn hold(
        orchestrator: &Arc<Orchestrator>,
        model: &StoredModel,
        wanted: HoldRequest,
    ) -> Result<Holding, HoldError> {
        let index = &model.model().index;
        let all = index.tensors.iter().enumerate().filter(|(_, tensor)| tensor.float().is_some());
        let tensors: Vec<usize> = match &wanted.tensors {
            None => all.map(|(at, _)| at).collect(),
            Some(names) => {
                let find = |name: &String| {
                    let mut all = all.clone();
                    all.find(|(_, tensor)| tensor.info.name == *name).map(|(at, _)| at).ok_or_else(|| no_such(name))
                };
                names.iter().map(find).collect::<Result<_, _>>()?
            }
        };
        let ladder = LevelLadder::new(index, tensors, wanted.quality, wanted.quality_min);
        let levels = ladder.tensors.iter().map(|at| vec![Vec::new(); index.tensors[*at].pieces.len()]).collect();
        let arrival = Arc::new(Arrival::default());
        let shared = Arc::new(Shared {
            upload: orchestrator.register(UploadWork),
            bring_back: orchestrator.register(BringBackWork),
            decode: orchestrator.register(DecodeWork),
            orchestrator: Arc::clone(orchestrator),
            model: model.clone(),
            wanted,
            ladder,
            gauge: Arc::default(),
            state: Mutex::new(State { levels, ..State::default() }),
            changed: Condvar::new(),
            is_dropped: AtomicBool::new(false),
            arrival: Arc::clone(&arrival),
        });
        let (wake, keeper) = keeper::start(&shared);
        Ok(Holding { holder: Some(Self { shared, wake, keeper: Some(keeper) }), arrival })
    }

    /// The rung it is on; 0 is the quality that was asked for.
    pub fn rung(&self) -> usize {
        self.shared.state().rung
    }

    /// Its grant, by which it can be asked to step down; none after it has left.
    pub fn grant(&self) -> Option<GrantId> {
        self.shared.state().grant
    }

    /// Bytes that lie on the device.
    pub fn held(&self) -> Bytes {
        self.shared.gauge.now()
    }

    /// Bytes of a rung.
    pub fn rung_bytes(&self, rung: usize) -> Bytes {
        self.shared.ladder.bytes(rung)
    }

    /// The device it is on.
    pub fn device(&self) -> DeviceId {
        self.shared.wanted.device
    }

    /// Why it did not rise when there was room, or why it left, if something was wrong.
    pub fn trouble(&self) -> Option<HoldError> {
        self.shared.state().trouble.clone()
    }

    /// The weights of a tensor, decoded where its levels lie. Tensors that are kept as they are lie on no device: they are
    /// small, and [`StoredModel::fragment`] has their bytes.
    ///
    /// # Errors
    /// If it holds no such tensor, has left, or the device fails twice.
    pub fn decode(&self, name: &str) -> Result<DecodedTensor, HoldError> {
        match self.decode_once(name) {
            Err(HoldError::Task(error)) if !matches!(error.error, TaskError::Cancelled | TaskError::ShutDown) => {
                self.bring_again()?;
                self.decode_once(name)
            }
            done => done,
        }
    }

    fn decode_once(&self, name: &str) -> Result<DecodedTensor, HoldError> {
        let (at, pieces) = self.levels_of(name)?;
        let tensor = &self.shared.model.model().index.tensors[at];
        let level = pieces.0.iter().map(Vec::len).min().unwrap_or(1).saturating_sub(1);
        let mut weights = Vec::new();
        for piece in 0..pieces.0.len() {
            match self.run(at, piece, &pieces, false)? {
                Decoded::Host(decoded) => weights.extend(decoded),
                Decoded::Kept(_) => unreachable!("it was not to be kept"),
            }
        }
        Ok(DecodedTensor { weights, level, error: tensor.error(level) })
    }

    /// The elements of a tensor in its own type, from the levels that lie on the device: the very bytes, if the exact level is
    /// among them.
    ///
    /// # Errors
    /// As [`Holder::decode`].
    pub fn restore(&self, name: &str) -> Result<Vec<u8>, HoldError> {
        let decoded = self.decode(name)?;
        let tensor = self.shared.model.model().index.tensor(name).ok_or_else(|| no_such(name))?;
        let float = tensor.float().ok_or_else(|| no_such(name))?;
        if tensor.is_exact(decoded.level) {
            return Ok(float.narrowed(&decoded.weights));
        }
        let mut bytes = vec![0; decoded.weights.len() * float.bytes()];
        float.from_f32(&decoded.weights, &mut bytes);
        Ok(bytes)
    }

    /// The weights of a piece of a tensor as a value that stays on the device, for a task to take: 32-bit floats.
    ///
    /// # Errors
    /// As [`Holder::decode`].
    pub fn decode_on_device(&self, name: &str, piece: usize) -> Result<Value, HoldError> {
        let (at, pieces) = self.levels_of(name)?;
        if piece >= pieces.0.len() {
            return Err(no_such(&format!("{name}, piece {piece}")));
        }
        match self.run(at, piece, &pieces, true)? {
            Decoded::Kept(value) => Ok(value),
            Decoded::Host(_) => unreachable!("it was to be kept"),
        }
    }

    fn run(&self, at: usize, piece: usize, pieces: &Using<'_>, keeps: bool) -> Result<Decoded, HoldError> {
        let index = &self.shared.model.model().index;
        let weights = index.tensors[at].piece_elements(piece);
        let input = DecodeInput {
            levels: pieces.0[piece].iter().map(|level| Arc::downgrade(&level.buffer)).collect(),
            bits: index.bits.clone(),
            float: index.tensors[at].float().ok_or_else(|| no_such(&index.tensors[at].info.name))?,
            weights,
            keeps,
        };
        // Before any grant that waits: one that recalls this holder waits for whoever uses its levels.
        let task = Task::new(input).devices([self.shared.wanted.device]).priority(Priority::Critical);
        self.shared.orchestrator.run(&self.shared.decode, task).map(|done| done.output).map_err(HoldError::Task)
    }

    /// The levels of a tensor, which stay while they are used.
    fn levels_of(&self, name: &str) -> Result<(usize, Using<'_>), HoldError> {
        let index = &self.shared.model.model().index;
        let ladder = &self.shared.ladder;
        let place =
            ladder.tensors.iter().position(|at| index.tensors[*at].info.name == name).ok_or_else(|| no_such(name))?;
        let state = self.shared.state();
        if state.has_left {
            return Err(HoldError::Left);
        }
        Ok((ladder.tensors[place], Using(state.levels[place].clone(), &self.shared)))
    }

    /// The device lost what was there: waits until it was brought again.
    fn bring_again(&self) -> Result<(), HoldError> {
        let mut state = self.shared.state();
        state.is_lost = true;
        // A keeper that is gone has said why.
        let _ = self.wake.send(());
        // Until it was noticed, and everything is there again.
        while (state.is_lost || !self.shared.is_whole(&state)) && !state.has_left {
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.has_left { Err(HoldError::Left) } else { Ok(()) }
    }

    /// Reads every level back from the device and checks it; brings everything again if something is damaged. Says how many
    /// levels were.
    ///
    /// # Errors
    /// If it has left, or the device fails.
    pub fn verify(&self) -> Result<usize, HoldError> {
        let levels = self.shared.state().levels.clone();
        let mut damaged = 0;
        for pieces in levels {
            let using = Using(pieces, &self.shared);
            for level in using.0.iter().flatten() {
                match self.shared.read_back(level) {
                    Ok(_) => {}
                    Err(RunError { error: TaskError::WorkFailed(_), .. }) => damaged += 1,
                    Err(error) => return Err(HoldError::Task(error)),
                }
            }
        }
        if damaged > 0 {
            self.bring_again()?;
        }
        Ok(damaged)
    }

    /// The buffers of a tensor's levels, for tests that damage them.
    #[doc(hidden)]
    pub fn buffers(&self, name: &str) -> Result<Vec<Vec<Arc<Buffer>>>, HoldError> {
        let buffers = |piece: &PieceLevels| piece.iter().map(|level| Arc::clone(&level.buffer)).collect();
        self.levels_of(name).map(|(_, using)| using.0.iter().map(buffers).collect())
    }
}

impl Shared {
    /// Whether every level of its rung is there.
    fn is_whole(&self, state: &State) -> bool {
        let tensors = state.levels.iter().zip(self.ladder.counts(state.rung));
        tensors.into_iter().all(|(pieces, count)| pieces.iter().all(|levels| levels.len() >= *count))
    }

    /// The bytes of a level, checked, from the device.
    fn read_back(&self, level: &HeldLevel) -> Result<Vec<u8>, RunError> {
        let task = Task::new((Arc::downgrade(&level.buffer), level.checksum)).devices([self.wanted.device]);
        let task = task.priority(Priority::Critical);
        self.orchestrator.run(&self.bring_back, task).map(|done| done.output)
    }
}

/// Levels that somebody uses: the keeper waits for him before it says that their bytes are free.
struct Using<'a>(Vec<PieceLevels>, &'a Shared);

impl Drop for Using<'_> {
    fn drop(&mut self) {
        self.0.clear();
        // Under the lock, so that a keeper that just looked does not miss it.
        drop(self.1.state());
        self.1.changed.notify_all();
    }
}

fn no_such(name: &str) -> HoldError {
    HoldError::NoSuchTensor { name: name.to_owned() }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.shared.is_dropped.store(true, Ordering::Release);
        let _ = self.wake.send(());
        if let Some(keeper) = self.keeper.take() {
            // What it had to say was said where somebody listens.
            let _ = keeper.join();
        }
    }
}
