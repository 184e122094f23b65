//! Why tensors are not held.

use plimsoll_core::GrantError;
use plimsoll_fragments::FragmentError;
use plimsoll_runtime::RunError;

/// Why tensors are not held, or not decoded.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HoldError {
    /// Fragments cannot be had. What is wrong with them is its source.
    #[error("fragments cannot be had")]
    Fragments(#[source] std::sync::Arc<FragmentError>),
    /// There is no room for them on the device.
    #[error("there is no room on the device: {0}")]
    Refused(GrantError),
    /// A task on the device failed.
    #[error("the device did not do it")]
    Task(#[source] RunError),
    /// The room was needed for something more urgent: hold them again when there is room.
    #[error("the room on the device was needed for something more urgent; hold them again later")]
    Left,
    /// It holds no such tensor.
    #[error("the holder has no tensor {name:?}")]
    NoSuchTensor {
        /// Which.
        name: String,
    },
}

impl From<FragmentError> for HoldError {
    fn from(error: FragmentError) -> Self {
        Self::Fragments(std::sync::Arc::new(error))
    }
}
