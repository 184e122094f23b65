//! Which crate may depend on which. Arrows point inward: cli to facade, facade to runtime and GPU, all to core.
//! The table here, the manifests and the sentence in ARCHITECTURE.md say the same.

use std::collections::BTreeSet;

use crate::manifest::{Dependency, Purpose, dependencies};
use crate::tree;

/// What one crate may depend on, of ours.
struct Arrow {
    from: &'static str,
    to: &'static [&'static str],
    /// For its tests only.
    tests: &'static [&'static str],
}

/// Every crate of the workspace. A new crate gets its line here before it gets its first dependency.
const ARROWS: &[Arrow] = &[
    Arrow { from: "plimsoll-core", to: &[], tests: &[] },
    Arrow { from: "plimsoll-runtime", to: &["plimsoll-core"], tests: &[] },
    Arrow { from: "plimsoll-wgpu", to: &["plimsoll-core", "plimsoll-runtime"], tests: &[] },
    Arrow {
        from: "plimsoll-blocks",
        to: &["plimsoll-core", "plimsoll-runtime"],
        tests: &["plimsoll-testkit", "plimsoll-wgpu"],
    },
    Arrow {
        from: "plimsoll-arrays",
        to: &["plimsoll-blocks", "plimsoll-core", "plimsoll-runtime"],
        tests: &["plimsoll-testkit", "plimsoll-wgpu"],
    },
    Arrow {
        from: "plimsoll-fragments",
        to: &["plimsoll-core", "plimsoll-runtime"],
        tests: &["plimsoll-testkit", "plimsoll-wgpu"],
    },
    Arrow {
        from: "plimsoll-image",
        to: &["plimsoll-core", "plimsoll-runtime"],
        tests: &["plimsoll-testkit", "plimsoll-wgpu"],
    },
    Arrow { from: "plimsoll-results", to: &[], tests: &[] },
    Arrow {
        from: "plimsoll-testkit",
        to: &["plimsoll-core", "plimsoll-runtime"],
        tests: &["plimsoll-wgpu", "plimsoll"],
    },
    Arrow {
        from: "plimsoll",
        to: &[
            "plimsoll-arrays",
            "plimsoll-blocks",
            "plimsoll-core",
            "plimsoll-fragments",
            "plimsoll-image",
            "plimsoll-runtime",
            "plimsoll-wgpu",
        ],
        tests: &["plimsoll-testkit"],
    },
    Arrow {
        from: "plimsoll-daemon",
        to: &["plimsoll", "plimsoll-core", "plimsoll-runtime"],
        tests: &["plimsoll-testkit"],
    },
    Arrow {
        from: "plimsoll-cli",
        to: &[
            "plimsoll",
            "plimsoll-core",
            "plimsoll-daemon",
            "plimsoll-results",
            "plimsoll-runtime",
            "plimsoll-testkit",
        ],
        tests: &["plimsoll-fragments"],
    },
    Arrow { from: "xtask", to: &[], tests: &[] },
    Arrow { from: "mutate", to: &[], tests: &[] },
];

/// Crates that reach a GPU. Only `plimsoll-wgpu` names one.
const GPU_APIS: &[&str] =
    &["ash", "cudarc", "metal", "naga", "nvml-wrapper", "vulkano", "wgpu", "wgpu-core", "wgpu-hal", "wgpu-types"];

/// What core may use of others: containers, derives, and nothing that reaches outside the process.
const CORE_USES: &[&str] = &["rustc-hash", "serde", "smallvec", "thiserror"];

/// What is wrong with one crate's dependencies.
fn wrongs(name: &str, manifest: &str) -> Vec<String> {
    let Some(arrow) = ARROWS.iter().find(|arrow| arrow.from == name) else {
        return vec![format!("{name} has no line in ARROWS; write down what it may depend on")];
    };
    dependencies(manifest)
        .iter()
        .filter_map(|to| Some(format!("{name} -> {}: {}", to.name, arrow.wrong(to)?)))
        .collect()
}

impl Arrow {
    fn wrong(&self, to: &Dependency) -> Option<&'static str> {
        let name = to.name.as_str();
        let is_ours = name.starts_with("plimsoll") || ["xtask", "mutate"].contains(&name);
        let is_allowed = self.to.contains(&name) || (to.purpose == Purpose::Tests && self.tests.contains(&name));
        if is_ours && !is_allowed {
            return Some("this arrow is not in the table; turn the dependency round, or argue for the table to change");
        }
        if GPU_APIS.contains(&name) && self.from != "plimsoll-wgpu" {
            return Some("only plimsoll-wgpu names a GPU API");
        }
        if self.from == "plimsoll-core" && to.purpose == Purpose::Product && !CORE_USES.contains(&name) {
            return Some(
                "core decides without help; add it to CORE_USES only if it has no thread, clock, file or dice",
            );
        }
        (self.from == "xtask").then_some("xtask depends on nothing, so that it builds in seconds")
    }
}

#[test]
fn arrows() {
    let wrong: Vec<String> = tree::crates()
        .iter()
        .flat_map(|folder| {
            let name = folder.file_name().expect("a crate's folder").to_string_lossy();
            wrongs(&name, &tree::text(&folder.join("Cargo.toml")))
        })
        .collect();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn every_line_of_the_table_is_a_crate() {
    let crates = tree::crates();
    for arrow in ARROWS {
        assert!(crates.iter().any(|folder| folder.ends_with(arrow.from)), "{} is gone; remove its line", arrow.from);
    }
}

/// Who reaches whom, over however many arrows.
type Reach = BTreeSet<(String, String)>;

fn reach(arrows: impl IntoIterator<Item = (String, String)>) -> Reach {
    let mut reach: Reach = arrows.into_iter().collect();
    loop {
        let further = reach.iter().flat_map(|(from, over)| {
            let onward = reach.iter().filter(move |(start, _)| start == over);
            onward.map(move |(_, to)| (from.clone(), to.clone()))
        });
        let all: Reach = reach.iter().cloned().chain(further.collect::<Vec<_>>()).collect();
        if all.len() == reach.len() {
            return all;
        }
        reach = all;
    }
}

/// The arrows of the sentence, by the crates' own names: `image, wgpu → runtime → core` are three.
fn sentence(page: &str) -> Reach {
    let (_, after) = page.split_once("Arrows point inward:").expect("ARCHITECTURE.md says where arrows point");
    let sentence = after.split('.').next().unwrap_or_default();
    let crates = |group: &str| -> Vec<String> { group.split(',').map(|name| full_name(name.trim())).collect() };
    let arrows = sentence.split(';').flat_map(|clause| {
        let groups: Vec<Vec<String>> = clause.split('→').map(crates).collect();
        let pairs = groups
            .windows(2)
            .flat_map(|pair| pair[0].iter().flat_map(|from| pair[1].iter().map(move |to| (from.clone(), to.clone()))));
        pairs.collect::<Vec<_>>()
    });
    reach(arrows)
}

fn full_name(word: &str) -> String {
    if word == "facade" { "plimsoll".to_owned() } else { format!("plimsoll-{word}") }
}

fn table() -> Reach {
    reach(ARROWS.iter().flat_map(|arrow| arrow.to.iter().map(|to| (arrow.from.to_owned(), (*to).to_owned()))))
}

/// What the product is really made of.
fn manifests() -> Reach {
    let arrows = tree::crates().into_iter().flat_map(|folder| {
        let from = folder.file_name().expect("a crate's folder").to_string_lossy().into_owned();
        let all = dependencies(&tree::text(&folder.join("Cargo.toml"))).into_iter();
        let ours = all.filter(|to| to.purpose == Purpose::Product && to.name.starts_with("plimsoll"));
        ours.map(move |to| (from.clone(), to.name)).collect::<Vec<_>>()
    });
    reach(arrows)
}

/// What one of the two says and the other does not.
fn differences(one: &Reach, other: &Reach) -> Vec<String> {
    one.symmetric_difference(other).map(|(from, to)| format!("{from} → {to}")).collect()
}

#[test]
fn the_sentence_the_table_and_the_manifests_agree() {
    let sentence = sentence(&tree::text(&tree::root().join("ARCHITECTURE.md")));
    assert_eq!(differences(&sentence, &table()), [""; 0], "ARCHITECTURE.md and ARROWS differ");
    assert_eq!(differences(&manifests(), &table()), [""; 0], "the manifests and ARROWS differ");
}

#[test]
fn a_planted_sentence_is_caught() {
    let right = "Arrows point inward: cli → daemon, facade, results,\ntestkit; daemon → facade; facade → arrays, blocks, fragments, image, wgpu, runtime; arrays → blocks; blocks, fragments, image, wgpu, testkit → runtime →\ncore. More.";
    assert_eq!(differences(&sentence(right), &table()), [""; 0]);
    let planted = differences(&sentence(&right.replace("facade, results,", "facade,")), &table());
    assert_eq!(planted, ["plimsoll-cli → plimsoll-results"]);
    let planted = differences(&sentence(&right.replace("testkit → runtime", "testkit, results → runtime")), &table());
    assert_eq!(planted, ["plimsoll-results → plimsoll-core", "plimsoll-results → plimsoll-runtime"]);
}

#[test]
fn planted_arrows_are_caught() {
    let planted = |name, manifest: &str| wrongs(name, manifest).len();
    assert_eq!(planted("plimsoll-core", "[dependencies]\nplimsoll-runtime.workspace = true"), 1);
    assert_eq!(planted("plimsoll-core", "[dev-dependencies]\nplimsoll-testkit.workspace = true"), 1);
    assert_eq!(planted("plimsoll-core", "[dependencies]\nrand = \"0.9\""), 1);
    assert_eq!(planted("plimsoll-core", "[dev-dependencies]\nproptest.workspace = true"), 0);
    assert_eq!(planted("plimsoll-runtime", "[dependencies]\nwgpu.workspace = true"), 1);
    assert_eq!(planted("plimsoll-runtime", "[dependencies]\ngpu = { package = \"wgpu\", version = \"30\" }"), 1);
    assert_eq!(planted("plimsoll-cli", "[dev-dependencies]\nash = \"0.38\""), 1);
    assert_eq!(planted("plimsoll-testkit", "[dependencies]\nplimsoll-wgpu.workspace = true"), 1);
    assert_eq!(planted("plimsoll-testkit", "[dev-dependencies]\nplimsoll-wgpu.workspace = true"), 0);
    assert_eq!(planted("plimsoll-wgpu", "[dependencies]\nwgpu.workspace = true\nash.workspace = true"), 0);
    assert_eq!(planted("xtask", "[dependencies]\nserde.workspace = true"), 1);
    assert_eq!(planted("plimsoll-brandnew", ""), 1);
}
