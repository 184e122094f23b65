//! Results of many tasks, for people and programs: [`rows`] that survive a kill, and a [`report`] to look at.

pub mod report;
pub mod rows;
