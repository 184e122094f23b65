//! `mono`: luma only.

use super::yuv::RANGES;
use crate::frames::carry::Carried;
use crate::frames::chain::Args;
use crate::frames::convert::to_mono;
use crate::frames::format::{Colour, Format, Range};
use crate::frames::graph::Graph;
use crate::frames::operation::{About, Operation, OperationError};
use crate::frames::picture::Picture;

pub(super) const ABOUT: About = About {
    name: "mono",
    usage: "mono[=full|limited]",
    what: "luma only, all codes used unless said otherwise; from red, green and blue that of BT.709",
    parse,
};

#[derive(Debug)]
struct ToMono(Range);

/// All codes, unless others are asked for: many programs take luma alone for that whatever its stream says.
fn parse(args: &mut Args<'_>) -> Result<Box<dyn Operation>, OperationError> {
    Ok(Box::new(ToMono(args.one_of("range", &RANGES, Range::Full)?)))
}

impl Operation for ToMono {
    fn plan(&self, graph: &mut Graph, picture: Picture) -> Result<Picture, OperationError> {
        Ok(to_mono(graph, picture, self.0))
    }

    fn carry(&self, stream: &mut Carried, before: Format) -> Result<(), OperationError> {
        stream.relied_on.range |= stream.header.guessed.range && before.colour() != Colour::Mono(self.0);
        stream.header.guessed.range = false;
        Ok(())
    }
}
