//! A page to look at: one HTML file with everything in it.
