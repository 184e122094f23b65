//! A browser for the test that looks at the HTML report: Chromium, driven from Node through playwright-core.
//! Never downloads a browser of its own, and never installs anything that is already there.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::packages::{install, is_program};

/// Where to find them, for the test.
pub(crate) const VARIABLES: [&str; 2] = ["PLIMSOLL_BROWSER", "NODE_PATH"];

/// Names of Chromium and of browsers made from it, in the order in which they are tried.
const BROWSERS: [&str; 5] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/// The newest that runs on Node 18, which Debian 12 has.
const DRIVER: &str = "playwright-core";
const DRIVER_VERSION: &str = "1.60.0";

/// Makes sure that there are a browser and its driver; gives the variables that lead the test to them.
pub(crate) fn ensure(target: &Path) -> Result<Vec<(&'static str, OsString)>, String> {
    let browser = match env::var_os(VARIABLES[0]) {
        Some(chosen) => chosen,
        None => browser()?.into(),
    };
    ensure_node()?;
    let modules = driver(&target.join("browser"))?;
    Ok(VARIABLES.into_iter().zip([browser, modules.into_os_string()]).collect())
}

fn browser() -> Result<&'static str, String> {
    let known = || BROWSERS.into_iter().find(|name| is_program(name));
    if let Some(name) = known() {
        return Ok(name);
    }
    let elsewhere = "tests need a browser and there is no apt-get; install Chromium or Chrome, or name one in \
                     PLIMSOLL_BROWSER, then run this again";
    install("chromium", elsewhere)?;
    known().ok_or_else(|| "chromium was installed and does not start; try `chromium --version`".to_owned())
}

fn ensure_node() -> Result<(), String> {
    for program in ["node", "npm"].into_iter().filter(|program| !is_program(program)) {
        let package = if program == "node" { "nodejs" } else { program };
        install(
            package,
            "tests need Node and npm and there is no apt-get; install Node 18 or newer, then run this again",
        )?;
    }
    Ok(())
}

/// The folder of modules that has the driver in it.
fn driver(folder: &Path) -> Result<PathBuf, String> {
    let modules = folder.join("node_modules");
    if version(&modules).as_deref() == Some(DRIVER_VERSION) {
        return Ok(modules);
    }
    println!("==> installing {DRIVER} {DRIVER_VERSION} in {}", folder.display());
    fs::create_dir_all(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let package = format!("{DRIVER}@{DRIVER_VERSION}");
    let mut npm = Command::new("npm");
    // Without a prefix npm looks for a package in the folders above and installs there.
    npm.arg("--prefix").arg(folder).args(["install", "--no-save", "--no-audit", "--no-fund", &package]);
    npm.current_dir(folder);
    let ended = npm.status().map_err(|error| format!("cannot start npm: {error}"))?;
    if ended.success() && version(&modules).as_deref() == Some(DRIVER_VERSION) {
        return Ok(modules);
    }
    Err(format!("{package} could not be installed with npm into {}", folder.display()))
}

/// The version of the driver that is there.
fn version(modules: &Path) -> Option<String> {
    let manifest = fs::read_to_string(modules.join(DRIVER).join("package.json")).ok()?;
    version_in(&manifest).map(str::to_owned)
}

fn version_in(manifest: &str) -> Option<&str> {
    manifest.split("\"version\"").nth(1)?.split('"').nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_tells_its_version() {
        assert_eq!(version_in("{\n  \"name\": \"x\",\n  \"version\": \"1.2.3\",\n}"), Some("1.2.3"));
        assert_eq!(version_in("{}"), None);
    }

    #[test]
    fn a_folder_without_the_driver_has_no_version() {
        assert_eq!(version(Path::new("no/such/folder")), None);
    }
}
