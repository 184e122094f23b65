//! `gamma`: brighter or darker between black and white, which stay.

use super::levels::{Levels, parse_gamma};
use crate::frames::chain::Args;
use crate::frames::operation::{About, Operation, OperationError};

pub(super) const ABOUT: About = About {
    name: "gamma",
    usage: "gamma=GAMMA",
    what: "values to the power of 1/GAMMA: brighter above 1, darker below; luma alone, if there is chroma",
    parse,
};

fn parse(args: &mut Args<'_>) -> Result<Box<dyn Operation>, OperationError> {
    let gamma = parse_gamma(args)?.ok_or_else(|| OperationError::because("gamma is missing"))?;
    Ok(Box::new(Levels { input: (0.0, 1.0), gamma, output: (0.0, 1.0) }))
}
