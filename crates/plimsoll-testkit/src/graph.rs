//! Task graphs to replay, and the machines to replay them on.
//! Never opens a file and never schedules: text in, tasks out.
//! Invariant: a [`Graph`] that was parsed has no cycle, and every predecessor is one of its tasks.

use std::collections::HashMap;
use std::str::FromStr;

use plimsoll_core::lookahead::{KnownDevice, KnownTask, TASK_LIMIT};
use plimsoll_core::{DeviceSet, Nanos};

/// One task of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphTask {
    /// Its name in the file.
    pub id: u64,
    /// Its kind: tasks of one kind do the same work.
    pub kind: u64,
    /// How long it takes a CPU worker.
    pub cpu: Nanos,
    /// How long it takes a GPU.
    pub gpu: Nanos,
    /// The file's priority (its bottom level, mean costs).
    pub priority: u64,
    /// The tasks before it, by their place in the graph.
    pub after: Vec<usize>,
}

/// A task graph, in the order of its file.
///
/// ```
/// use plimsoll_testkit::graph::{Graph, Platform};
/// let graph = Graph::parse("7\t0\t2000\t500\t0\t-\n8\t0\t900\t950\t0\t7\n")?;
/// assert_eq!(graph.tasks[1].after, [0]);
/// let (tasks, devices) = graph.known(Platform { cpus: 2, gpus: 1 });
/// assert_eq!((tasks.len(), devices.len()), (2, 2));
/// # Ok::<(), plimsoll_testkit::graph::GraphError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// Its tasks.
    pub tasks: Vec<GraphTask>,
}

/// Why a text is not a task graph. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// A line without six fields.
    #[error("line {line}: {fields} fields; write id, kind, cpu µs, gpu µs, priority, predecessors, between tabs")]
    Fields {
        /// Where.
        line: usize,
        /// How many there are.
        fields: usize,
    },
    /// A field that is not a whole number.
    #[error("line {line}: {field} '{text}' is not a whole number")]
    Number {
        /// Where.
        line: usize,
        /// Which field.
        field: &'static str,
        /// What it holds.
        text: String,
    },
    /// A task named twice.
    #[error("line {line}: task {id} is already on line {first}")]
    Duplicate {
        /// Where it is named again.
        line: usize,
        /// The task.
        id: u64,
        /// Where it was named first.
        first: usize,
    },
    /// A predecessor that no line names.
    #[error("line {line}: task {after}, which is to run before, is not in the graph")]
    UnknownPredecessor {
        /// Where.
        line: usize,
        /// The name.
        after: u64,
    },
    /// Tasks that wait for each other.
    #[error("line {line}: this task can never start: the tasks before it wait for each other")]
    Cycle {
        /// Where one of them is, or one that waits for them.
        line: usize,
    },
    /// More tasks than one plan holds.
    #[error("line {line}: more than {TASK_LIMIT} tasks")]
    TooLarge {
        /// The first line too many.
        line: usize,
    },
    /// More predecessors in all than [`EDGE_LIMIT`].
    #[error("line {line}: more than {EDGE_LIMIT} predecessors in all")]
    TooManyEdges {
        /// The line that has the first one too many.
        line: usize,
    },
}

/// Predecessors a graph may name in all: eight for each of the most tasks it may have, so that a file cannot make the
/// reader hold more than about 100 MB.
pub const EDGE_LIMIT: usize = 8 * TASK_LIMIT;

/// A task as its line has it: predecessors still by name.
struct Line<'t> {
    number: usize,
    task: GraphTask,
    after: &'t str,
}

/// The graphs of the benchmark and their names: those in `graphs/`, whose README says what they are.
const BENCHMARK: [(&str, &str); 4] = [
    ("cholesky10", include_str!("../graphs/cholesky10.tsv")),
    ("indep_mix", include_str!("../graphs/indep_mix.tsv")),
    ("layered", include_str!("../graphs/layered.tsv")),
    ("pipeline5", include_str!("../graphs/pipeline5.tsv")),
];

impl Graph {
    /// The graphs of the benchmark, by name.
    pub fn benchmark() -> impl Iterator<Item = (&'static str, Self)> {
        let parsed = |text| Self::parse(text).expect("a graph that comes with this crate");
        BENCHMARK.into_iter().map(move |(name, text)| (name, parsed(text)))
    }

    /// Every graph of the benchmark on every one of its machines: its 16 cells.
    pub fn cells() -> impl Iterator<Item = (&'static str, Self, Platform)> {
        let on_each =
            |(name, graph): (_, Self)| Platform::BENCHMARK.map(|platform| (name, graph.clone(), platform)).into_iter();
        Self::benchmark().flat_map(on_each)
    }

    /// Reads a graph: one task a line, tab-separated: id, kind, microseconds on a CPU worker, microseconds on a GPU,
    /// priority, predecessors (comma list, or `-`). Empty lines do not count.
    pub fn parse(text: &str) -> Result<Self, GraphError> {
        let mut lines = Vec::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            if lines.len() == TASK_LIMIT {
                return Err(GraphError::TooLarge { line: index + 1 });
            }
            lines.push(parse_line(index + 1, line)?);
        }
        let places = places(&lines)?;
        let numbers: Vec<usize> = lines.iter().map(|line| line.number).collect();
        let tasks = link(lines, &places)?;
        match find_cycle(&tasks) {
            Some(task) => Err(GraphError::Cycle { line: numbers[task] }),
            None => Ok(Self { tasks }),
        }
    }

    /// The graph and a platform as a plan sees them: the CPU workers are one device, the first; each GPU is its own.
    pub fn known(&self, platform: Platform) -> (Vec<KnownTask>, Vec<KnownDevice>) {
        let known = |task: &GraphTask| KnownTask {
            costs: platform.each(Some(task.cpu), Some(task.gpu)).collect(),
            after: task.after.iter().map(|&before| before as u32).collect(),
            ..KnownTask::default()
        };
        let slots = platform.each(platform.cpus, 1);
        let devices = slots.map(|slots| KnownDevice { slots, ..KnownDevice::default() }).collect();
        (self.tasks.iter().map(known).collect(), devices)
    }
}

/// A machine: how many CPU workers and GPUs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    /// CPU workers.
    pub cpus: usize,
    /// GPUs.
    pub gpus: usize,
}

impl Platform {
    /// The machines of the benchmark.
    pub const BENCHMARK: [Self; 4] =
        [Self { cpus: 1, gpus: 1 }, Self { cpus: 2, gpus: 1 }, Self { cpus: 2, gpus: 3 }, Self { cpus: 9, gpus: 3 }];

    /// One value for each device: the CPU workers together, then each GPU. A platform with more GPUs than a plan holds
    /// gives one device too many, which the plan refuses; it does not fill the memory first.
    fn each<T: Copy>(self, cpu: T, gpu: T) -> impl Iterator<Item = T> {
        std::iter::once(cpu).chain(std::iter::repeat_n(gpu, self.gpus.min(DeviceSet::LIMIT)))
    }
}

impl std::fmt::Display for Platform {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{}C+{}G", self.cpus, self.gpus))
    }
}

fn parse_line(number: usize, line: &str) -> Result<Line<'_>, GraphError> {
    let fields: Vec<&str> = line.split('\t').map(str::trim).collect();
    let &[id, kind, cpu, gpu, priority, after] = fields.as_slice() else {
        return Err(GraphError::Fields { line: number, fields: fields.len() });
    };
    let task = GraphTask {
        id: whole(number, "id", id)?,
        kind: whole(number, "kind", kind)?,
        cpu: Nanos::micros(whole(number, "cpu µs", cpu)?),
        gpu: Nanos::micros(whole(number, "gpu µs", gpu)?),
        priority: whole(number, "priority", priority)?,
        after: Vec::new(),
    };
    Ok(Line { number, task, after })
}

fn whole(line: usize, field: &'static str, text: &str) -> Result<u64, GraphError> {
    u64::from_str(text).map_err(|_| GraphError::Number { line, field, text: text.to_owned() })
}

/// The place of each task by its name.
fn places(lines: &[Line<'_>]) -> Result<HashMap<u64, usize>, GraphError> {
    let mut places = HashMap::with_capacity(lines.len());
    for (place, line) in lines.iter().enumerate() {
        if let Some(first) = places.insert(line.task.id, place) {
            return Err(GraphError::Duplicate { line: line.number, id: line.task.id, first: lines[first].number });
        }
    }
    Ok(places)
}

/// Turns the names of predecessors into places.
fn link(lines: Vec<Line<'_>>, places: &HashMap<u64, usize>) -> Result<Vec<GraphTask>, GraphError> {
    let mut edges = 0;
    let mut tasks = Vec::with_capacity(lines.len());
    for Line { number, mut task, after } in lines {
        for name in after.split(',').filter(|_| after != "-") {
            let name = whole(number, "predecessor", name.trim())?;
            let unknown = GraphError::UnknownPredecessor { line: number, after: name };
            task.after.push(*places.get(&name).ok_or(unknown)?);
            edges += 1;
            if edges > EDGE_LIMIT {
                return Err(GraphError::TooManyEdges { line: number });
            }
        }
        tasks.push(task);
    }
    Ok(tasks)
}

/// A task that can never start, if there is one.
fn find_cycle(tasks: &[GraphTask]) -> Option<usize> {
    let mut waits: Vec<usize> = tasks.iter().map(|task| task.after.len()).collect();
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); tasks.len()];
    for (place, task) in tasks.iter().enumerate() {
        task.after.iter().for_each(|&before| next[before].push(place));
    }
    let mut ready: Vec<usize> = (0..tasks.len()).filter(|&task| waits[task] == 0).collect();
    while let Some(task) = ready.pop() {
        for &after in &next[task] {
            waits[after] -= 1;
            if waits[after] == 0 {
                ready.push(after);
            }
        }
    }
    waits.iter().position(|&left| left > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::lookahead::{Budget, PlanError, plan};

    fn refusal(text: &str) -> String {
        Graph::parse(text).expect_err("not a graph").to_string()
    }

    #[test]
    fn a_wrong_line_is_named_by_its_number() {
        assert_eq!(
            refusal("\n0\t0\t1\t1\t0"),
            "line 2: 5 fields; write id, kind, cpu µs, gpu µs, priority, predecessors, between tabs"
        );
        assert_eq!(refusal("0\t0\t1.5\t1\t0\t-"), "line 1: cpu µs '1.5' is not a whole number");
        assert_eq!(refusal("0\t0\t1\t1\t0\t"), "line 1: predecessor '' is not a whole number");
        assert_eq!(refusal("4\t0\t1\t1\t0\t-\n\n4\t0\t1\t1\t0\t-"), "line 3: task 4 is already on line 1");
        assert_eq!(refusal("0\t0\t1\t1\t0\t9"), "line 1: task 9, which is to run before, is not in the graph");
        assert_eq!(
            refusal("0\t0\t1\t1\t0\t-\n1\t0\t1\t1\t0\t2\n2\t0\t1\t1\t0\t0,1"),
            "line 2: this task can never start: the tasks before it wait for each other"
        );
    }

    #[test]
    fn predecessors_may_come_later_in_the_file() {
        let graph = Graph::parse("5\t1\t2\t3\t4\t6\n6\t1\t2\t3\t4\t-\n").expect("a graph");
        assert_eq!(graph.tasks[0].after, [1]);
        assert_eq!((graph.tasks[0].cpu, graph.tasks[0].gpu), (Nanos::micros(2), Nanos::micros(3)));
    }

    #[test]
    fn the_cpu_is_one_device_and_each_gpu_its_own() {
        let graph = Graph::parse("0\t0\t10\t1\t0\t-").expect("a graph");
        let (tasks, devices) = graph.known(Platform { cpus: 9, gpus: 2 });
        assert_eq!(devices.iter().map(|device| device.slots).collect::<Vec<_>>(), [9, 1, 1]);
        assert_eq!(tasks[0].costs.as_slice(), [10, 1, 1].map(|us| Some(Nanos::micros(us))));
    }

    #[test]
    fn a_platform_of_absurd_size_is_refused_by_the_plan() {
        let graph = Graph::parse("0\t0\t10\t1\t0\t-").expect("a graph");
        let (tasks, devices) = graph.known(Platform { cpus: usize::MAX, gpus: usize::MAX });
        let refusal = plan(&tasks, &devices, Budget::default());
        assert_eq!(refusal, Err(PlanError::TooManyDevices { devices: DeviceSet::LIMIT + 1 }));
    }

    #[test]
    fn more_tasks_than_a_plan_holds_are_refused() {
        let text: String = (0..=TASK_LIMIT).map(|id| format!("{id}\t0\t1\t1\t0\t-\n")).collect();
        assert_eq!(Graph::parse(&text), Err(GraphError::TooLarge { line: TASK_LIMIT + 1 }));
    }
}
