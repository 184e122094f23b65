//! Results of many tasks, for people and programs: [`rows`] that survive a kill, what they say of each [label](labels), and
//! a [`report`] to look at.

pub mod labels;
pub mod report;
pub mod rows;
