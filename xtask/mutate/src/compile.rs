//! Builds the copy, and says what the compiler complained about or which test programs came out.
//! Never decides whose fault a complaint is.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::catalogue::Complaint;
use crate::options::Tests;
use crate::tree::Tree;

/// The crates whose tests a mutant must get past; the first is the one with the mutants.
const TESTED: &[&str] = &["plimsoll-core", "plimsoll-testkit", "plimsoll-runtime"];

/// A test program that was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) package: String,
    /// `lib`, or the name of the file or folder in `tests`.
    pub(crate) target: String,
    pub(crate) path: PathBuf,
    /// The folder that tests expect to be in.
    pub(crate) folder: PathBuf,
}

/// What a build gave.
pub(crate) struct Built {
    pub(crate) programs: Vec<Program>,
    /// With the spans to blame first.
    pub(crate) complaints: Vec<Complaint>,
    /// The compiler's own words.
    pub(crate) said: String,
}

/// Checks the core alone: quick, and finds nearly every mutant that does not compile.
pub(crate) fn check(tree: &Tree) -> Result<Built, String> {
    cargo(tree, &["check", "--package", "plimsoll-core", "--lib"])
}

/// Builds the test programs.
pub(crate) fn tests(tree: &Tree, tests: Tests) -> Result<Built, String> {
    let mut arguments = vec!["test", "--no-run", "--lib", "--tests"];
    let tested = if tests == Tests::Own { &TESTED[..1] } else { TESTED };
    tested.iter().for_each(|package| arguments.extend(["--package", package]));
    cargo(tree, &arguments)
}

fn cargo(tree: &Tree, arguments: &[&str]) -> Result<Built, String> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(arguments).arg("--message-format=json").current_dir(&tree.copy);
    cargo.env("CARGO_TARGET_DIR", &tree.target).stderr(Stdio::inherit());
    let output = cargo.output().map_err(|error| format!("cannot start cargo: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let messages: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let errors: Vec<&Value> = messages.iter().filter_map(error_in).collect();
    let said = errors.iter().filter_map(|error| error["rendered"].as_str()).collect();
    let complaints: Vec<Complaint> = errors.iter().filter_map(|error| complaint(error)).collect();
    if !output.status.success() && complaints.is_empty() {
        return Err(format!("cargo {} failed\n{said}", arguments.join(" ")));
    }
    Ok(Built { programs: messages.iter().filter_map(program).collect(), complaints, said })
}

fn error_in(message: &Value) -> Option<&Value> {
    let is_error = message["reason"] == "compiler-message" && message["message"]["level"] == "error";
    is_error.then_some(&message["message"])
}

/// Where an error is: what it marks first of all, then what it points to besides. "Aborting" names no place.
fn complaint(error: &Value) -> Option<Complaint> {
    let spans = error["spans"].as_array()?;
    let (primary, others): (Vec<&Value>, Vec<&Value>) = spans.iter().partition(|span| span["is_primary"] == true);
    let file = primary.first()?["file_name"].as_str()?.to_owned();
    let of_file = primary.into_iter().chain(others).filter(|span| span["file_name"] == file.as_str());
    let bytes = |span: &Value| Some(span["byte_start"].as_u64()? as usize..span["byte_end"].as_u64()? as usize);
    Some((file.clone(), of_file.filter_map(bytes).collect()))
}

fn program(message: &Value) -> Option<Program> {
    let path = message["executable"].as_str().filter(|_| message["profile"]["test"] == true)?;
    let manifest = PathBuf::from(message["manifest_path"].as_str()?);
    let folder = manifest.parent()?.to_owned();
    let package = folder.file_name()?.to_str()?.to_owned();
    let is_lib = message["target"]["kind"].as_array()?.iter().any(|kind| kind == "lib");
    let target = if is_lib { "lib" } else { message["target"]["name"].as_str()? };
    Some(Program { package, target: target.to_owned(), path: path.into(), folder })
}
