//! `cargo xtask campaign`: hostile input by the hour. Each campaign is a test that CI runs briefly with fixed seeds; here the
//! same test, as it was built for that, runs with more of them.
//! Never finds anything that a seed does not bring back: a campaign prints the seed of what it found.

use crate::{steps, vulkan};

/// How many rounds a campaign's test makes, for whoever asks for another number than CI's.
const ROUNDS_VARIABLE: &str = "PLIMSOLL_CAMPAIGN_ROUNDS";
/// Rounds unless said otherwise: some minutes for each campaign.
const ROUNDS: u64 = 20_000;

/// A test that throws hostile input at something, as many rounds as the environment says.
pub(crate) struct Campaign {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// The test binary.
    binary: &'static str,
    /// The tests in it whose names contain this.
    tests: &'static str,
}

/// Every campaign. A new one is one more line here, and a test that reads the variable.
pub(crate) const ALL: &[Campaign] = &[
    Campaign {
        name: "decoders",
        what: "damaged image files through every decoder: an image or an error, within the limit",
        binary: "decode",
        tests: "mutations",
    },
    Campaign {
        name: "streams",
        what: "damaged Y4M streams: whole frames and then an error, and no memory on the word of a header",
        binary: "streams",
        tests: "mutations",
    },
    Campaign {
        name: "score",
        what: "hostile, truncated and lying image files through a sweep: one row each, the others unharmed",
        binary: "score",
        tests: "hostile",
    },
    Campaign {
        name: "frames",
        what: "damaged streams and images through chains: the frames before the damage, then an error, and nothing kept",
        binary: "frames",
        tests: "hostile",
    },
    Campaign {
        name: "long-streams",
        what: "as many frames as rounds that look at each other, on 1, 2 and 8 threads: each goes with the last that looks",
        binary: "frames",
        tests: "kept_frames",
    },
    Campaign {
        name: "pack",
        what: "mutated packed files, whole and by ranges: refused, or made of whole blocks",
        binary: "pack",
        tests: "mutated_files",
    },
    Campaign {
        name: "pack-stream",
        what: "as many MiB as rounds through pack, a pipe and unpack: the same bytes, in flat memory",
        binary: "pack",
        tests: "many_gigabytes",
    },
    Campaign {
        name: "memory-hog",
        what: "a sweep beside a program that holds most memory and takes and frees the rest, again and again: every image scored",
        binary: "hog",
        tests: "hog",
    },
    Campaign {
        name: "serve",
        what: "a language model, an image generator and sweeps on one card, 15 ms a round: never past the line, all leases end",
        binary: "daemon",
        tests: "sharing",
    },
];

/// Runs the named campaigns, or all.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let (rounds, named) = match words {
        ["--rounds", rounds, named @ ..] => (number(rounds)?, named),
        named => (ROUNDS, named),
    };
    let campaigns = choose(named)?;
    vulkan::ensure()?;
    for campaign in campaigns {
        println!("{}: {} ({rounds} rounds)", campaign.name, campaign.what);
        let mut command = steps::cargo_for_tests();
        command.args(["test", "--workspace", "--features", steps::OPTIONAL, "--test", campaign.binary, campaign.tests]);
        // What would disturb the machine is not among the usual tests.
        command.args(["--", "--include-ignored"]);
        let ended = command.env(ROUNDS_VARIABLE, rounds.to_string()).status();
        if !ended.map_err(|error| format!("cannot start cargo: {error}"))?.success() {
            return Err(format!("the campaign '{}' found something; its seed is above", campaign.name));
        }
    }
    Ok(())
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("--rounds takes a number, not '{text}'"))
}

fn choose(named: &[&str]) -> Result<Vec<&'static Campaign>, String> {
    if named.is_empty() {
        return Ok(ALL.iter().collect());
    }
    let find = |name: &&str| {
        let found = ALL.iter().find(|campaign| campaign.name == *name);
        found.ok_or_else(|| format!("there is no campaign '{name}'; `cargo xtask` lists them"))
    };
    named.iter().map(find).collect()
}
