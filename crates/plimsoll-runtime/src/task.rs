//! A task as its caller describes it, and a reference that many tasks share.
//! Never touches a device.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_core::task::{Priority, ReferenceUse};
use plimsoll_core::{ContentKey, DeviceId, DeviceSet, Quality, SequenceId, TaskId};
use smallvec::SmallVec;

use crate::value::Value;
use crate::workload::{AnyPrepared, Content, Workload};

/// One piece of a workload to do.
///
/// ```
/// use std::time::Duration;
/// use plimsoll_core::Priority;
/// use plimsoll_runtime::{Task, workload};
/// # fn of<W: plimsoll_runtime::Workload>(_: &W, task: Task<W>) {}
/// # let length = workload::function("length", |text: &String| Ok::<_, std::io::Error>(text.len()));
/// let task = Task::new("hello".to_owned()).priority(Priority::High).deadline(Duration::from_secs(5));
/// # of(&length, task);
/// ```
pub struct Task<W: Workload> {
    pub(crate) input: W::Input,
    pub(crate) references: SmallVec<[Reference<W>; 1]>,
    pub(crate) values: SmallVec<[Value; 1]>,
    pub(crate) options: TaskOptions,
}

/// A task of a set that is known as a whole.
pub struct SetMember<W: Workload> {
    /// The task.
    pub task: Task<W>,
    /// The members of the set that must have succeeded before it, by their place in it: only earlier ones count.
    pub after: Vec<usize>,
}

/// What a caller asks of a task beside its input.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskOptions {
    pub(crate) priority: Priority,
    pub(crate) deadline: Option<Instant>,
    pub(crate) quality_min: Quality,
    pub(crate) strict: bool,
    pub(crate) rung: Option<&'static str>,
    pub(crate) devices: DeviceSet,
    pub(crate) after: SmallVec<[TaskId; 2]>,
    pub(crate) sequence: Option<SequenceId>,
    pub(crate) holds: bool,
    pub(crate) drains: bool,
}

impl<W: Workload> Task<W> {
    /// A task of normal priority and full quality that may run anywhere.
    pub fn new(input: W::Input) -> Self {
        Self { input, references: SmallVec::new(), values: SmallVec::new(), options: TaskOptions::default() }
    }

    /// Reads this value, after those named before: on the device where it lies, or from a copy of it where the task runs.
    #[must_use]
    pub fn takes(mut self, value: Value) -> Self {
        self.values.push(value);
        self
    }

    /// Needs this reference prepared on its device, after those named before. The same content is prepared once a device,
    /// whoever names it and however often.
    #[must_use]
    pub fn reference(mut self, reference: &Reference<W>) -> Self {
        self.references.push(reference.clone());
        self
    }

    /// How urgent it is.
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.options.priority = priority;
        self
    }

    /// From now on, how long the result is of use. After that the task ends with an error.
    #[must_use]
    pub fn deadline(mut self, span: Duration) -> Self {
        self.options.deadline = Instant::now().checked_add(span);
        self
    }

    /// Rungs below this quality are refused. Without it, only full quality will do.
    #[must_use]
    pub fn quality_min(mut self, quality: Quality) -> Self {
        self.options.quality_min = quality;
        self
    }

    /// No ladder: the best rung (or the one named), or an error.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.options.strict = true;
        self
    }

    /// Only this rung.
    #[must_use]
    pub fn rung(mut self, name: &'static str) -> Self {
        self.options.rung = Some(name);
        self
    }

    /// Only these devices.
    #[must_use]
    pub fn devices(mut self, devices: impl IntoIterator<Item = DeviceId>) -> Self {
        self.options.devices = devices.into_iter().collect();
        self
    }

    /// Only after these tasks have succeeded. If one fails, this one ends with its error.
    #[must_use]
    pub fn after(mut self, tasks: impl IntoIterator<Item = TaskId>) -> Self {
        self.options.after.extend(tasks);
        self
    }

    /// Nothing that tasks of its held sequence did before is left in the session once this one is done: see
    /// [`crate::Held`].
    #[must_use]
    pub fn drains(mut self) -> Self {
        self.options.drains = true;
        self
    }

    /// Stays with the other tasks of this sequence: it runs on the device that the one before it was given to, as long
    /// as that device is well and can take it. In which order they run is not said by this; see [`Task::after`].
    #[must_use]
    pub fn sequence(mut self, sequence: SequenceId) -> Self {
        self.options.sequence = Some(sequence);
        self
    }
}

/// Data that many tasks share. Hashed once; cheap to clone.
///
/// A reference made with [`Reference::new`] is found by its content and kept while it is among the last few used. One
/// made with `Orchestrator::pin_reference` is kept, as long as a clone of it lives, before all others.
pub struct Reference<W: Workload> {
    pub(crate) data: Arc<W::Reference>,
    pub(crate) key: ContentKey,
    pub(crate) pin: Option<Arc<Pin>>,
}

impl<W: Workload> Reference<W> {
    /// A reference that is found by its content.
    pub fn new(data: impl Into<Arc<W::Reference>>) -> Self {
        let data = data.into();
        Self { key: data.key(), data, pin: None }
    }

    /// The hash it is found by.
    pub fn key(&self) -> ContentKey {
        self.key
    }
}

impl<W: Workload> Clone for Reference<W> {
    fn clone(&self) -> Self {
        Self { data: Arc::clone(&self.data), key: self.key, pin: self.pin.clone() }
    }
}

/// The references of a task in the order in which it names them, several of which may be of equal content. The scheduler
/// sees each content once, because it is prepared once; the task finds it at every place where it named it.
pub(crate) struct NamedReferences<W: Workload> {
    named: SmallVec<[Reference<W>; 1]>,
    /// Which of those that differ is at each place; `None` if all differ.
    places: Option<Box<[usize]>>,
}

impl<W: Workload> NamedReferences<W> {
    pub(crate) fn new(named: SmallVec<[Reference<W>; 1]>) -> Self {
        let mut keys: SmallVec<[ContentKey; 8]> = SmallVec::new();
        let places = named.iter().map(|reference| {
            let known = keys.iter().position(|key| *key == reference.key);
            known.unwrap_or_else(|| {
                keys.push(reference.key);
                keys.len() - 1
            })
        });
        let places: SmallVec<[usize; 8]> = places.collect();
        let places = (keys.len() < named.len()).then(|| places.into_boxed_slice());
        Self { named, places }
    }

    /// Each content once, in the order in which it is first named. A handle at any of its places holds it.
    pub(crate) fn distinct(&self) -> impl Iterator<Item = ReferenceUse> + '_ {
        self.first_places().map(|first| {
            let content = self.named[first].key;
            let mut same = self.named.iter().filter(|reference| reference.key == content);
            ReferenceUse { content, pinned: same.any(|reference| reference.pin.is_some()) }
        })
    }

    /// A reference of the `at`-th content.
    pub(crate) fn nth_distinct(&self, at: usize) -> &Reference<W> {
        let first = self.first_places().nth(at).expect("the scheduler asks for what `distinct` told it of");
        &self.named[first]
    }

    /// Where each content is first named.
    fn first_places(&self) -> impl Iterator<Item = usize> + '_ {
        let mut found = 0;
        (0..self.named.len()).filter(move |at| {
            let is_first = self.places.as_ref().is_none_or(|places| places[*at] == found);
            found += usize::from(is_first);
            is_first
        })
    }

    /// What was made of each content, at every place where the task named it.
    pub(crate) fn at_their_places<'a>(&self, distinct: &'a [AnyPrepared]) -> Cow<'a, [AnyPrepared]> {
        match &self.places {
            None => Cow::Borrowed(distinct),
            Some(places) => places.iter().map(|&at| Arc::clone(&distinct[at])).collect(),
        }
    }

    /// As the task named them.
    pub(crate) fn into_named(self) -> SmallVec<[Reference<W>; 1]> {
        self.named
    }
}

/// Keeps a reference before others; lets go when the last clone is dropped.
pub(crate) struct Pin {
    pub(crate) key: ContentKey,
    pub(crate) let_go: Box<dyn Fn(ContentKey) + Send + Sync>,
}

impl Drop for Pin {
    fn drop(&mut self) {
        (self.let_go)(self.key);
    }
}
