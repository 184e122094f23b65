//! Data that many tasks share is prepared once a device: `cargo run --example references`.

use plimsoll::{
    Backend, Bytes, Context, DeviceKind, Fault, Footprint, Ladder, Orchestrator, Place, Rung, Session, Task, Workload,
};

/// Whether numbers occur in a long list, which is sorted once.
struct Occurs;

struct OccursSession;

impl Workload for Occurs {
    type Input = u64;
    /// What tasks name: found by its content, whoever names it.
    type Reference = Vec<u64>;
    /// What a session makes of it, once.
    type Prepared = Vec<u64>;
    type Output = bool;

    fn name(&self) -> &str {
        "occurs"
    }

    fn ladder(&self, _: &u64) -> Ladder {
        let footprint = Footprint { reference: Bytes::mib(1), ..Footprint::default() };
        Ladder::new([Rung::new("cpu", Place::On(DeviceKind::Cpu), footprint)])
    }

    fn open(&self, _: &Rung, _: &u64, _: &mut dyn Backend) -> Result<Box<dyn Session<Self>>, Fault> {
        Ok(Box::new(OccursSession))
    }
}

impl Session<Occurs> for OccursSession {
    fn prepare(&mut self, list: &Vec<u64>, _: &mut dyn Backend) -> Result<Vec<u64>, Fault> {
        println!("sorting {} numbers", list.len());
        let mut sorted = list.clone();
        sorted.sort_unstable();
        Ok(sorted)
    }

    fn run(&mut self, number: &u64, context: &mut Context<'_, Occurs>) -> Result<bool, Fault> {
        Ok(context.reference(0)?.binary_search(number).is_ok())
    }
}

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let orchestrator = Orchestrator::builder().cpu(2).build();
    let occurs = orchestrator.register(Occurs);
    let squares = orchestrator.pin_reference(&occurs, (0..100_000).rev().map(|n| n * n).collect::<Vec<u64>>());
    let tasks = (0..1_000).map(|n| Task::new(n).reference(&squares));
    let found = orchestrator.run_all(&occurs, tasks).filter(|done| matches!(done, Ok(done) if done.output)).count();
    assert_eq!(found, 32);
    let counts = orchestrator.reports()[0].residency;
    println!("{found} squares below 1,000; prepared {} time(s), found {} times", counts.misses, counts.hits);
    Ok(())
}
