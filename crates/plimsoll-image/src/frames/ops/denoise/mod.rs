//! `denoise`: within a frame (`bilateral`), or with the frames before and after it (`temporal`).

mod bilateral;
mod temporal;

use self::bilateral::Bilateral;
use self::temporal::Temporal;
use crate::frames::chain::Args;
use crate::frames::operation::{About, Operation, OperationError};

pub(super) const ABOUT: About = About {
    name: "denoise",
    usage: "denoise=bilateral[:SPACE[:TONE]]|temporal[:FRAMES[:STRENGTH]]",
    what: "less noise: by pixels around (SPACE 1.5 pixels, TONE 0.05 of 1) or FRAMES (1) before and after (STRENGTH 0.04)",
    parse,
};

fn parse(args: &mut Args<'_>) -> Result<Box<dyn Operation>, OperationError> {
    type Parse = fn(&mut Args<'_>) -> Result<Box<dyn Operation>, OperationError>;
    let kinds: [(&str, Parse); 2] = [("bilateral", Bilateral::parse), ("temporal", Temporal::parse)];
    let no_kind = || OperationError::because("bilateral or temporal is missing");
    let parse = args.one_of("kind", &kinds.map(|(name, parse)| (name, Some(parse))), None)?.ok_or_else(no_kind)?;
    parse(args)
}
