//! `rgb`: red, green and blue.

use crate::frames::carry::Carried;
use crate::frames::chain::Args;
use crate::frames::convert::to_rgb;
use crate::frames::format::Format;
use crate::frames::graph::Graph;
use crate::frames::operation::{About, Operation, OperationError};
use crate::frames::picture::Picture;

pub(super) const ABOUT: About = About { name: "rgb", usage: "rgb", what: "red, green and blue, all codes used", parse };

#[derive(Debug)]
struct ToRgb;

fn parse(_: &mut Args<'_>) -> Result<Box<dyn Operation>, OperationError> {
    Ok(Box::new(ToRgb))
}

impl Operation for ToRgb {
    fn plan(&self, graph: &mut Graph, picture: Picture) -> Result<Picture, OperationError> {
        Ok(to_rgb(graph, picture))
    }

    fn carry(&self, stream: &mut Carried, before: Format) -> Result<(), OperationError> {
        stream.uses_coding(before);
        Ok(())
    }
}
