//! Which shuffle is done to a block, and doing it: with the filters of `plimsoll-blocks`.
//! Invariant: c-blosc leaves a block as it is unless its elements come in eights for a bit shuffle, and so do we.

use plimsoll_blocks::filter::{Element, Step, StepKind};

use crate::data_type::DataType;

/// What is done to a block before it is packed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Shuffle {
    /// Nothing.
    None,
    /// All first bytes of the elements, then all second ones, and so on.
    Byte,
    /// All lowest bits of the elements, then all second ones, and so on.
    Bit,
}

impl Shuffle {
    /// Its name in metadata.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "noshuffle",
            Self::Byte => "shuffle",
            Self::Bit => "bitshuffle",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::None, Self::Byte, Self::Bit].into_iter().find(|shuffle| shuffle.name() == name)
    }

    /// Whether it moves anything where elements are these.
    pub(crate) const fn does_something(self, data_type: DataType) -> bool {
        match self {
            Self::None => false,
            Self::Byte => data_type.bytes() > 1,
            Self::Bit => true,
        }
    }

    /// The step to do to a block of so many bytes, if any.
    pub(crate) fn step(self, element: Element, block: usize) -> Option<Step> {
        let kind = match self {
            Self::None => return None,
            Self::Byte if element.width() == 1 => return None,
            Self::Byte => StepKind::Shuffle,
            Self::Bit if !(block / element.width()).is_multiple_of(8) => return None,
            Self::Bit => StepKind::Bitshuffle,
        };
        Some(Step { kind, element })
    }
}
