//! Where the frames of a stream come from.

use std::convert::Infallible;
use std::task::{Context, Poll};

use plimsoll_image::frames::Frame;

use crate::intake::{self, Intake};

/// What a source gives.
pub(super) type Given<E> = intake::Given<Frame, E>;

/// A source of frames, asked only when there is room for one more.
pub(super) trait Source {
    type Error;

    /// The next frame, if it is there; otherwise the context is woken once it is.
    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Given<Self::Error>>;
}

impl<S: Source + ?Sized> Source for Box<S> {
    type Error = S::Error;

    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Given<S::Error>> {
        (**self).poll_frame(context)
    }
}

impl<E> Source for Intake<Frame, E> {
    type Error = E;

    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Given<E>> {
        self.poll_item(context)
    }
}

/// Frames that an iterator gives without delay.
pub(super) struct AtHand<I>(pub(super) I);

impl<I: Iterator<Item = Frame>> Source for AtHand<I> {
    type Error = Infallible;

    fn poll_frame(&mut self, _: &mut Context<'_>) -> Poll<Given<Infallible>> {
        Poll::Ready(self.0.next().map(Ok))
    }
}
