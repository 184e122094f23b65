//! Sweeps over real files: what is scored, what is refused before it costs anything, and what hostile files do.

mod hostile;
mod made;
mod sweeps;
