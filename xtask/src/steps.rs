//! The steps of `cargo xtask test`: what each runs, with which environment, and how long it took.
//! Never installs anything. Invariant: the first step that fails is the last that runs, and its exit is an error.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// One check.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// The cargo component that it needs beyond a bare toolchain.
    pub(crate) component: Option<&'static str>,
    /// Whether it runs kernels on a Vulkan device.
    pub(crate) needs_gpu: bool,
    /// Whether it looks at pages in a browser.
    pub(crate) needs_browser: bool,
    /// Whether it sends frames through ffmpeg.
    pub(crate) needs_video: bool,
    /// Whether it holds packed files against the stock tools.
    pub(crate) needs_archivers: bool,
    /// Whether it has arrays read by Python packages.
    pub(crate) needs_python: bool,
    arguments: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
    /// A target folder of its own, below the usual one: other compiler flags would rebuild everything there and back.
    own_target: Option<&'static str>,
}

/// Not built by default, because it takes a while, and checked like the rest.
pub(crate) const OPTIONAL: &str = "plimsoll-cli/https,plimsoll-cli/s3";

/// Every check, the quick ones first.
pub(crate) const ALL: &[Step] = &[
    Step {
        name: "fmt",
        what: "the code is formatted",
        component: Some("rustfmt"),
        arguments: &["fmt", "--all", "--check"],
        ..PLAIN
    },
    Step {
        name: "clippy",
        what: "no lint, anywhere",
        component: Some("clippy"),
        arguments: &["clippy", "--workspace", "--features", OPTIONAL, "--all-targets", "--", "-D", "warnings"],
        ..PLAIN
    },
    Step {
        name: "test",
        what: "unit, integration, architecture and doc tests",
        needs_gpu: true,
        needs_browser: true,
        needs_video: true,
        needs_archivers: true,
        needs_python: true,
        arguments: &["test", "--workspace", "--features", OPTIONAL, "--no-fail-fast"],
        ..PLAIN
    },
    Step {
        name: "outside",
        what: "a program outside the workspace that uses the crate without its workloads",
        arguments: &["run", "--manifest-path", "outside/Cargo.toml"],
        own_target: Some("outside"),
        ..PLAIN
    },
    Step {
        name: "doc",
        what: "the documentation builds without a warning",
        arguments: &["doc", "--no-deps", "--workspace", "--features", OPTIONAL],
        environment: &[("RUSTDOCFLAGS", "-D warnings")],
        ..PLAIN
    },
    Step {
        name: "loom",
        what: "every interleaving of what is concurrent",
        // Optimised: loom plays thousands of interleavings.
        arguments: &["test", "-p", "plimsoll-runtime", "--lib", "--release", "loom"],
        environment: &[("RUSTFLAGS", "--cfg loom")],
        own_target: Some("loom"),
        ..PLAIN
    },
];

const PLAIN: Step = Step {
    name: "",
    what: "",
    component: None,
    needs_gpu: false,
    needs_browser: false,
    needs_video: false,
    needs_archivers: false,
    needs_python: false,
    arguments: &[],
    environment: &[],
    own_target: None,
};

/// One thread per connection makes each of lavapipe's logical GPUs behave like a card of its own. Mesa's layer that asks
/// the display server which card comes first complains where there is none; nothing here needs it.
const FOR_EVERY_STEP: &[(&str, &str)] = &[("LP_NUM_THREADS", "1"), ("NODEVICE_SELECT", "1")];

/// Settings of the developer's own that would change what the tests see.
const NOT_FOR_TESTS: &[&str] = &[
    "PLIMSOLL_ALONE",
    "PLIMSOLL_BOOK",
    "PLIMSOLL_MEMORY_LIMIT",
    "PLIMSOLL_NO_GPU",
    "PLIMSOLL_PROFILE",
    "PLIMSOLL_SOFTWARE_GPU",
];

/// The named steps in their own order, or all of them.
pub(crate) fn choose(named: &[&str]) -> Result<Vec<&'static Step>, String> {
    if let Some(unknown) = named.iter().find(|name| ALL.iter().all(|step| step.name != **name)) {
        let known: Vec<&str> = ALL.iter().map(|step| step.name).collect();
        return Err(format!("there is no step '{unknown}'; the steps are {}", known.join(", ")));
    }
    Ok(ALL.iter().filter(|step| named.is_empty() || named.contains(&step.name)).collect())
}

/// Runs the steps one after the other, with the variables that lead them to their tools.
pub(crate) fn run(steps: &[&Step], tools: &[(&str, OsString)]) -> Result<(), String> {
    let start = Instant::now();
    let mut times: Vec<(&str, Duration)> = Vec::new();
    for step in steps {
        println!("\n==> {}: cargo {}", step.name, step.arguments.join(" "));
        let begun = Instant::now();
        step.run(tools)?;
        times.push((step.name, begun.elapsed()));
    }
    println!("\n==> all passed");
    for (name, took) in times.into_iter().chain([("total", start.elapsed())]) {
        println!("    {name:8} {:>7.1} s", took.as_secs_f64());
    }
    Ok(())
}

impl Step {
    fn run(&self, tools: &[(&str, OsString)]) -> Result<(), String> {
        let mut command = cargo_for_tests();
        command.args(self.arguments);
        command.envs(self.environment.iter().copied());
        command.envs(tools.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = self.own_target {
            command.env("CARGO_TARGET_DIR", target().join(folder));
        }
        let ended = command.status().map_err(|error| format!("cannot start cargo: {error}"))?;
        if ended.success() {
            Ok(())
        } else {
            Err(format!("{} failed; run it again alone with `cargo xtask test {}`", self.name, self.name))
        }
    }
}

/// Cargo, in the workspace's root, whichever folder the developer is in.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Cargo, with the environment that tests count on.
pub(crate) fn cargo_for_tests() -> Command {
    let mut command = cargo();
    command.envs(FOR_EVERY_STEP.iter().copied());
    NOT_FOR_TESTS.iter().for_each(|name| {
        command.env_remove(name);
    });
    command
}

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Where everything is built, also what tests need besides.
pub(crate) fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(named: &[&str]) -> Vec<&'static str> {
        choose(named).unwrap().iter().map(|step| step.name).collect()
    }

    #[test]
    fn steps_run_in_their_own_order() {
        assert_eq!(names(&["clippy", "fmt"]), ["fmt", "clippy"]);
        assert_eq!(names(&[]).len(), ALL.len());
    }

    #[test]
    fn tests_need_every_tool_and_other_steps_none() {
        let needs = |step: &Step| {
            [step.needs_gpu, step.needs_browser, step.needs_video, step.needs_archivers, step.needs_python]
        };
        for step in ALL {
            assert_eq!(needs(step), [step.name == "test"; 5], "{}", step.name);
        }
    }

    #[test]
    fn an_unknown_step_is_refused_with_the_known_ones() {
        let refused = choose(&["fmt", "tests"]).map(|_| ()).unwrap_err();
        assert_eq!(refused, "there is no step 'tests'; the steps are fmt, clippy, test, outside, doc, loom");
    }
}
