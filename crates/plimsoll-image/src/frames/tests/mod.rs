//! The two executors beside a third that cannot go wrong: whole planes, pass by pass, none of them given up.
//! Programs are made up from a seed, and passes that look back, ahead, upside down, anywhere or nowhere.

mod codes;
mod device;
mod host;
mod layouts;
mod programs;
mod reference;
