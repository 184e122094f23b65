//! Filters: what is done to typed data before it is packed, so that it packs better, and undone after it is unpacked.
//! Each is a reversible rearrangement of one block; blocks know nothing of each other.
//!
//! | file | what it owns |
//! |---|---|
//! | `step.rs` | the three steps on bytes, forwards and back |
//! | `kernels.rs` | the same forwards as kernels, and their twins |
//! | `record.rs` | the skippable frame that tells `unpack` what to undo |
//! | `text.rs` | how filters are written |

pub(crate) mod kernels;
pub(crate) mod record;
mod step;
mod text;

pub use step::{Element, Step, StepKind};
pub use text::ParseFilterError;

/// Steps in one filter at the most.
pub const STEPS_MAX: usize = 4;

/// Steps that are done to a block one after the other.
///
/// ```
/// use plimsoll_blocks::filter::Filter;
///
/// let filter: Filter = "delta:u16,shuffle:u16".parse()?;
/// let filtered = filter.apply(&[1, 0, 2, 0, 4, 0]);
/// assert_eq!(filtered, [1, 1, 2, 0, 0, 0]);
/// assert_eq!(filter.undo(&filtered), [1, 0, 2, 0, 4, 0]);
/// # Ok::<(), plimsoll_blocks::filter::ParseFilterError>(())
/// ```
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    steps: [Option<Step>; STEPS_MAX],
}

impl Filter {
    /// A filter of these steps; none if there are none, or too many.
    pub fn new(steps: &[Step]) -> Option<Self> {
        let fits = !steps.is_empty() && steps.len() <= STEPS_MAX;
        fits.then(|| Self { steps: std::array::from_fn(|at| steps.get(at).copied()) })
    }

    /// Its steps in the order in which they are done.
    pub fn steps(&self) -> impl DoubleEndedIterator<Item = Step> + '_ {
        self.steps.iter().flatten().copied()
    }

    /// Does it to a block.
    pub fn apply(&self, block: &[u8]) -> Vec<u8> {
        let mut steps = self.steps();
        let first = steps.next().map(|step| step.apply(block));
        steps.fold(first.unwrap_or_default(), |bytes, step| step.apply(&bytes))
    }

    /// Undoes it.
    pub fn undo(&self, block: &[u8]) -> Vec<u8> {
        let mut steps = self.steps().rev();
        let first = steps.next().map(|step| step.undo(block));
        steps.fold(first.unwrap_or_default(), |bytes, step| step.undo(&bytes))
    }

    /// Blocks of whole elements pack best: bytes of a block are a multiple of this.
    pub fn granule(&self) -> usize {
        self.steps().map(|step| step.element.width() * 8).max().unwrap_or(1)
    }
}
