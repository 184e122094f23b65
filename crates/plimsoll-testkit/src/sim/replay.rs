//! A known task graph on a known box.
