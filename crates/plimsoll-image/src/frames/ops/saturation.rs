//! `saturation`: more or less colour. Luma stays.

use super::hue::{Hue, parse_saturation};
use crate::frames::chain::Args;
use crate::frames::operation::{About, Operation, OperationError};

pub(super) const ABOUT: About = About {
    name: "saturation",
    usage: "saturation=SATURATION",
    what: "colours times SATURATION: 0 is grey, 1 as it was, 2 twice as much",
    parse,
};

fn parse(args: &mut Args<'_>) -> Result<Box<dyn Operation>, OperationError> {
    let saturation = parse_saturation(args.require("saturation")?)?;
    Ok(Box::new(Hue { degrees: 0.0, saturation }))
}
