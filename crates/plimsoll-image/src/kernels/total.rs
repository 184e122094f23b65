//! Sums over planes: the device adds up short runs, the host adds up those sums in double precision.
//! Invariant: a sum that the device did not compute is an error, never a number.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use plimsoll_core::Fault;
use plimsoll_runtime::{Access, Buffer, Kernel, Twin, read_floats};

use crate::run::Run;

static TOTAL: Kernel = Kernel {
    name: "total",
    wgsl: include_str!("total.wgsl"),
    entry: "total",
    bindings: &[Access::Read, Access::Write],
    params: size_of::<Params>(),
    twin: total,
};

#[repr(C)]
#[derive(Copy, Clone, Pod, Zeroable)]
struct Params {
    first: u32,
    count: u32,
    first_out: u32,
    unused: u32,
}

/// Values that one workgroup adds up: with as many, the largest image needs half of the workgroups that a launch may have.
const RUN: u32 = 8192;
/// Lanes of a workgroup.
const LANES: usize = 256;

/// Several sums over planes, asked for one by one and read together.
pub(crate) struct Totals {
    partials: Buffer,
    capacity: u32,
    ends: Vec<u32>,
}

impl Totals {
    /// Room for sums over this many values in all. A sum takes a word for every 8192 values begun.
    pub(crate) fn open(run: &mut Run<'_>, sums: impl IntoIterator<Item = u64>) -> Result<Self, Fault> {
        let capacity = sums.into_iter().map(|count| count.div_ceil(u64::from(RUN)) as u32).sum();
        let partials = run.allocate(u64::from(capacity))?;
        Ok(Self { partials, capacity, ends: Vec::new() })
    }

    /// Forgets all sums, to begin anew.
    pub(crate) fn begin(&mut self, run: &mut Run<'_>) -> Result<(), Fault> {
        self.ends.clear();
        run.backend.poison(&self.partials)
    }

    /// Asks for the sum of a range of values of a plane.
    pub(crate) fn add(&mut self, run: &mut Run<'_>, plane: &Buffer, values: Range<u32>) -> Result<(), Fault> {
        let (first, count, first_out) = (values.start, values.len() as u32, self.ends.last().copied().unwrap_or(0));
        let groups = count.div_ceil(RUN);
        if first_out + groups > self.capacity {
            return Err(Fault::work(format!("sums of {} words where {} fit", first_out + groups, self.capacity)));
        }
        run.launch(&TOTAL, &[plane, &self.partials], &Params { first, count, first_out, unused: 0 }, [groups, 1, 1])?;
        self.ends.push(first_out + groups);
        Ok(())
    }

    /// The sums, in the order in which they were asked for.
    pub(crate) fn read(&mut self, run: &mut Run<'_>) -> Result<Vec<f64>, Fault> {
        let words = self.ends.last().copied().unwrap_or(0) as usize;
        let partials = read_floats(run.backend, &self.partials, words)?;
        let mut first = 0;
        let sum = |&end: &u32| {
            let sum = partials[first..end as usize].iter().map(|&partial| f64::from(partial)).sum();
            first = end as usize;
            sum
        };
        Ok(self.ends.iter().map(sum).collect())
    }
}

fn total(twin: &mut Twin<'_>) {
    let params: Params = twin.params();
    let (source, partials) = twin.floats_from_to(0, 1);
    let values = &source[params.first as usize..][..params.count as usize];
    for (out, values) in partials[params.first_out as usize..].iter_mut().zip(values.chunks(RUN as usize)) {
        let mut lanes = [0.0_f32; LANES];
        for row in values.chunks(LANES) {
            lanes.iter_mut().zip(row).for_each(|(lane, value)| *lane += value);
        }
        let mut reach = LANES / 2;
        while reach > 0 {
            let (low, high) = lanes.split_at_mut(reach);
            low.iter_mut().zip(high).for_each(|(low, high)| *low += *high);
            reach /= 2;
        }
        *out = lanes[0];
    }
}
