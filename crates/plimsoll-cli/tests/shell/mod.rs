//! Lines for the shell in a folder of their own, as people and programs type them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// Settings of the developer's own that would change what is seen here.
const OWN_SETTINGS: [&str; 4] = ["PLIMSOLL_MEMORY_LIMIT", "PLIMSOLL_NO_GPU", "PLIMSOLL_SOFTWARE_GPU", "CLICOLOR_FORCE"];

/// A folder of a test's own.
pub(crate) struct Folder(pub(crate) TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        fs::create_dir_all(self.at(name).parent().expect("below the folder")).expect("made");
        fs::write(self.at(name), bytes).expect("written");
        self.at(name)
    }

    #[allow(dead_code, reason = "not every test program reads files back")]
    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.at(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    #[allow(dead_code, reason = "not every test program lists files")]
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("a folder");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// A line for the shell; `plimsoll` and the folder's names work in it. It has two minutes.
    pub(crate) fn shell(&self, line: &str) -> Output {
        let binary = Path::new(env!("CARGO_BIN_EXE_plimsoll")).parent().expect("in a folder");
        let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("timeout");
        command.args(["120", "bash", "-o", "pipefail", "-c", line]).current_dir(self.0.path()).env("PATH", path);
        OWN_SETTINGS.iter().for_each(|name| {
            command.env_remove(name);
        });
        // Other tests run beside this one.
        command.env("PLIMSOLL_ALONE", "1");
        command.env("PLIMSOLL_PROFILE", self.at(".profile.toml")).output().expect("bash and timeout are installed")
    }

    /// The same, and it must work.
    pub(crate) fn works(&self, line: &str) -> Output {
        let output = self.shell(line);
        assert!(output.status.success(), "{line}: {}", stderr(&output));
        output
    }
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
