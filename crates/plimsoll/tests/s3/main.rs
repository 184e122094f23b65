//! Arrays in a bucket: a server of others on this machine (moto, which `cargo xtask test` installs) behind a proxy that
//! fails as it is told. Every test has a server of its own.

#![cfg(feature = "s3")]

mod bucket;
mod faults;
mod left_over;
mod locks;
mod writes;
