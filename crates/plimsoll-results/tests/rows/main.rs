//! Rows as several runs see them: real files, real processes, real kills.

mod full_disk;
mod kills;
mod refusals;
mod resume;
mod stream;
mod table;
mod writer;
