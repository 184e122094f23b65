//! Frames over several devices: order, shares, losses, back-pressure, and every way a stream ends.

mod devices;
mod film;
mod hostile;
mod in_time;
mod losses;
mod speeds;
mod strategies;
mod streams;
