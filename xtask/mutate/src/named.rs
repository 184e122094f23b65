//! Faults by name: one-line changes that tests once let through, each of which must be caught from now on.
//! Never part of the numbered mutants; they have a build of their own.
//! Invariant: the text to find is in its file exactly once. Where the code has moved on, the list is to be renewed.

use crate::site::MutantId;
use crate::tree::Tree;

/// Stands for "this fault is on" in the replacement.
const ON: &str = "MUTANT";

/// One fault.
pub(crate) struct Named {
    pub(crate) name: &'static str,
    file: &'static str,
    find: &'static str,
    replace: &'static str,
}

/// All of them. To renew one, copy the line as it reads now into `find`, and write it with `MUTANT` into `replace`.
pub(crate) const ALL: &[Named] = &[
    Named {
        name: "the least quality asked for is ignored",
        file: "crates/plimsoll-core/src/scheduler/choose.rs",
        find: "if rung.quality < spec.quality_min {",
        replace: "if !MUTANT && rung.quality < spec.quality_min {",
    },
    Named {
        name: "every task is queued with normal priority",
        file: "crates/plimsoll-core/src/scheduler/place.rs",
        find: "arbiter::turn(state.submitted_at, spec.priority,",
        replace: "arbiter::turn(state.submitted_at, if MUTANT { crate::Priority::Normal } else { spec.priority },",
    },
    Named {
        name: "a task may be passed over for ever",
        file: "crates/plimsoll-core/src/scheduler/take.rs",
        find: "state.bypassed >= BYPASS_MAX",
        replace: "!MUTANT && state.bypassed >= BYPASS_MAX",
    },
    Named {
        name: "references are never evicted",
        file: "crates/plimsoll-core/src/scheduler/evict.rs",
        find: ".victim(&keep.references);",
        replace: ".victim(&keep.references).filter(|_| !MUTANT);",
    },
    Named {
        name: "a free slot is not woken for a queued task",
        file: "crates/plimsoll-core/src/scheduler/take.rs",
        find: "if on.has_free_slot() && !on.queue.is_empty() {",
        replace: "if !MUTANT && on.has_free_slot() && !on.queue.is_empty() {",
    },
    Named {
        name: "the wait for memory is left out of the estimate",
        file: "crates/plimsoll-core/src/scheduler/choose.rs",
        find: "estimate.wait.max(memory.unwrap_or_default());",
        replace: "estimate.wait.max(memory.filter(|_| !MUTANT).unwrap_or_default());",
    },
    Named {
        name: "a shortage counts as final while work is running",
        file: "crates/plimsoll-core/src/scheduler/tick.rs",
        find: "self.device(device).running == 0 || self.is_held_by_others(",
        replace: "MUTANT || self.device(device).running == 0 || self.is_held_by_others(",
    },
    Named {
        name: "a reference is found in another epoch",
        file: "crates/plimsoll-core/src/residency.rs",
        find: "        self.epoch += 1;",
        replace: "        if !MUTANT { self.epoch += 1; }",
    },
    Named {
        name: "a stall is not the device's fault",
        file: "crates/plimsoll-core/src/scheduler/recover.rs",
        find: "Fault::Stalled { .. } => Some(Ailment::Stalled),",
        replace: "Fault::Stalled { .. } => (!MUTANT).then_some(Ailment::Stalled),",
    },
    Named {
        name: "old deadlines are never forgotten",
        file: "crates/plimsoll-core/src/scheduler/place.rs",
        find: "if self.deadlines.len() > 2 * self.tasks.len() + LEFTOVERS {",
        replace: "if !MUTANT && self.deadlines.len() > 2 * self.tasks.len() + LEFTOVERS {",
    },
    Named {
        name: "learnt failures are never written down",
        file: "crates/plimsoll-core/src/scheduler/learnt.rs",
        find: "failures.remember(failed);",
        replace: "if !MUTANT { failures.remember(failed); }",
    },
    Named {
        name: "a saved profile is never used",
        file: "crates/plimsoll-runtime/src/learnt.rs",
        find: ".is_none().then_some(profile)",
        replace: ".is_none().then_some(profile).filter(|_| !MUTANT)",
    },
    Named {
        name: "is_full is turned round",
        file: "crates/plimsoll-core/src/scheduler/mod.rs",
        find: "self.tasks.len() >= self.config.queue_limit",
        replace: "(self.tasks.len() >= self.config.queue_limit) != MUTANT",
    },
];

/// The files with every fault in them, numbered from 1 in the order of the list.
pub(crate) fn written(tree: &Tree) -> Result<Vec<(String, String)>, String> {
    let mut files: Vec<(String, String)> = Vec::new();
    for (named, id) in ALL.iter().zip(1..) {
        let at = files.iter().position(|(file, _)| file == named.file);
        let at = match at {
            Some(at) => at,
            None => {
                files.push((named.file.to_owned(), tree.text(named.file)?));
                files.len() - 1
            }
        };
        files[at].1 = named.applied(&files[at].1, id)?;
    }
    Ok(files)
}

impl Named {
    fn applied(&self, source: &str, id: MutantId) -> Result<String, String> {
        let found = source.matches(self.find).count();
        if found != 1 {
            return Err(format!(
                "named fault '{}': its text is in {} {found} times, not once; renew it in xtask/mutate/src/named.rs:\n    {}",
                self.name, self.file, self.find
            ));
        }
        let in_core = self.file.starts_with(crate::catalogue::CORE);
        let root = if in_core { "crate" } else { "plimsoll_core" };
        let on = format!("{root}::mutant_switch::is({id})");
        Ok(source.replace(self.find, &self.replace.replace(ON, &on)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAULT: Named =
        Named { name: "a", file: "crates/plimsoll-core/src/a.rs", find: "if full {", replace: "if full != MUTANT {" };

    #[test]
    fn a_fault_goes_in_behind_the_switch() {
        let written = FAULT.applied("fn f() { if full { g() } }", 7);
        assert_eq!(written, Ok("fn f() { if full != crate::mutant_switch::is(7) { g() } }".to_owned()));
    }

    #[test]
    fn a_text_that_is_gone_or_doubled_asks_for_a_new_list() {
        for source in ["if empty {}", "if full {} if full {}"] {
            assert!(FAULT.applied(source, 7).unwrap_err().contains("renew it"));
        }
    }

    #[test]
    fn every_fault_finds_its_text() {
        written(&Tree::new("named")).unwrap();
    }
}
