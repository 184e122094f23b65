//! Files of every kind, read: what must come out exactly, what must be refused, and what damage must never do.

mod colours;
mod files;
mod formats;
mod mutations;
mod orientation;
mod pictures;
mod refusals;
mod versions;
