//! Frames from streams and files, and back: what must come out exactly, what must be refused, what damage must never do,
//! and what ffmpeg makes of it.

mod ffmpeg;
mod headers;
mod images;
mod largest;
mod made;
mod mutations;
mod round_trips;
mod truncations;
