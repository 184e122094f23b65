//! Development commands.

fn main() {}
