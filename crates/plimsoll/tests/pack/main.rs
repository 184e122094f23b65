//! Files through the packer and back: every format, corrupted input, ranges, limits, and every way it ends.

mod data;
mod damage;
mod ends;
mod ranges;
mod round_trips;
mod stages;
mod streams;
