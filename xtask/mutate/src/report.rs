//! What a run prints: a line for each mutant, and at the end what was missed.

use crate::catalogue::Catalogue;
use crate::misses::KnownMisses;
use crate::site::MutantId;
use crate::suites::Verdict;

/// The least share of mutants that tests must catch, in percent.
const SCORE_MIN: f64 = 90.0;

/// One mutant is done.
pub(crate) fn progress(done: usize, of: usize, name: &str, verdict: &Verdict) {
    match verdict {
        Verdict::Caught(by) => eprintln!("[{done}/{of}] caught  {name}  by {by}"),
        Verdict::Missed => eprintln!("[{done}/{of}] MISSED  {name}"),
    }
}

/// Whether every named fault was caught.
pub(crate) fn named(verdicts: &[(MutantId, Verdict)], name: impl Fn(MutantId) -> &'static str) -> bool {
    let missed = missed(verdicts);
    println!("{} named faults: {} caught, {} missed", verdicts.len(), verdicts.len() - missed.len(), missed.len());
    missed.iter().for_each(|id| println!("missed: {}", name(*id)));
    missed.is_empty()
}

/// Whether enough was caught, and everything missed is known.
pub(crate) fn numbered(catalogue: &Catalogue, known: &KnownMisses, verdicts: &[(MutantId, Verdict)]) -> bool {
    let missed = missed(verdicts);
    let caught = verdicts.len() - missed.len();
    let score = if verdicts.is_empty() { 100.0 } else { 100.0 * caught as f64 / verdicts.len() as f64 };
    let dropped = catalogue.dropped.len();
    println!("{caught} caught, {} missed, {dropped} dropped because they do not compile: {score:.1} %", missed.len());
    let mut all_known = true;
    for mutant in missed.iter().map(|id| catalogue.mutant(*id)) {
        match known.reason(&mutant.description()) {
            Some(why) => println!("missed, as known: {}  # {why}", mutant.shown()),
            None => {
                println!("missed: {}\n    {}", mutant.shown(), mutant.description());
                all_known = false;
            }
        }
    }
    outdated(catalogue, known, verdicts).iter().for_each(|line| println!("no longer in need of its line: {line}"));
    if score < SCORE_MIN {
        println!("fewer than {SCORE_MIN} % were caught");
    }
    all_known && score >= SCORE_MIN
}

/// Lines of the list whose mutant is gone or is caught by now.
fn outdated<'a>(catalogue: &Catalogue, known: &'a KnownMisses, verdicts: &[(MutantId, Verdict)]) -> Vec<&'a str> {
    let is_missed = |description: &str| {
        let mut of_it = verdicts.iter().filter(|(id, _)| catalogue.mutant(*id).description() == description).peekable();
        // One that was not tried may well still be missed.
        of_it.peek().is_none() || of_it.any(|(_, verdict)| *verdict == Verdict::Missed)
    };
    let is_there = |description: &str| catalogue.mutants.iter().any(|mutant| mutant.description() == description);
    known.descriptions().filter(|description| !is_there(description) || !is_missed(description)).collect()
}

fn missed(verdicts: &[(MutantId, Verdict)]) -> Vec<MutantId> {
    verdicts.iter().filter(|(_, verdict)| *verdict == Verdict::Missed).map(|(id, _)| *id).collect()
}
