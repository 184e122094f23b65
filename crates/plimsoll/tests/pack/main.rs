//! Files through the packer and back: every format, corrupted input, ranges, limits, and every way it ends.

mod damage;
mod data;
mod drafts;
mod ends;
mod pressure;
mod ranges;
mod round_trips;
mod small;
mod stages;
mod streams;
