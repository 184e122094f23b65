//! A Vulkan device for tests on a machine without a GPU: Mesa's lavapipe, from the distribution's packages.
//! Never replaces a driver, and never installs anything where lavapipe already is.

use std::env;
use std::fs;

use crate::packages;

const PACKAGE: &str = "mesa-vulkan-drivers";

/// Where drivers announce themselves to the Vulkan loader.
const DRIVER_FOLDERS: [&str; 4] = [
    "/usr/share/vulkan/icd.d",
    "/usr/local/share/vulkan/icd.d",
    "/etc/vulkan/icd.d",
    "/run/opengl-driver/share/vulkan/icd.d",
];

/// Set by people who choose their drivers themselves.
const DRIVERS_CHOSEN: [&str; 2] = ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"];

/// Makes sure that there is a Vulkan device to test on.
pub(crate) fn ensure() -> Result<(), String> {
    let drivers = drivers();
    if !cfg!(target_os = "linux") || is_chosen() || drivers.iter().any(|name| name.starts_with("lvp_icd")) {
        return Ok(());
    }
    let outcome = install();
    match outcome {
        // A card's own driver will do as well.
        Err(reason) if !drivers.is_empty() => {
            println!("==> testing without lavapipe ({reason}), on {}", drivers.join(", "));
            Ok(())
        }
        outcome => outcome,
    }
}

fn is_chosen() -> bool {
    DRIVERS_CHOSEN.iter().any(|name| env::var_os(name).is_some())
}

/// The files of all drivers that are there.
fn drivers() -> Vec<String> {
    let files = DRIVER_FOLDERS.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    files.map(|file| file.file_name().to_string_lossy().into_owned()).filter(|name| name.ends_with(".json")).collect()
}

fn install() -> Result<(), String> {
    println!("==> no Vulkan device");
    let elsewhere = format!(
        "tests need a Vulkan device and there is no apt-get; install Mesa's software Vulkan driver (Debian and Ubuntu: \
         {PACKAGE}, Fedora: {PACKAGE}, Arch: vulkan-swrast), then run this again"
    );
    packages::install(PACKAGE, &elsewhere)
}
