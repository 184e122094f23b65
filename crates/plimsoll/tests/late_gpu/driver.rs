//! Makes a Vulkan driver that opens no device as long as it is told so, with the C compiler, around Mesa's software one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Names the file that keeps the driver from opening devices.
pub(crate) const REFUSE: &str = "PLIMSOLL_TEST_REFUSE";

/// Where Vulkan drivers are listed on Linux.
const LISTINGS: [&str; 4] =
    ["/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/local/etc/vulkan/icd.d"];

/// The driver, until dropped.
pub(crate) struct RefusingDriver {
    folder: TempDir,
}

impl RefusingDriver {
    pub(crate) fn make() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let driver = Self { folder };
        compile(&mesa_software_driver(), &driver.path("libvulkan_refusing.so"));
        let listing = serde_json::json!({
            "file_format_version": "1.0.0",
            "ICD": { "library_path": driver.path("libvulkan_refusing.so"), "api_version": "1.1.0" },
        });
        fs::write(driver.path("refusing_icd.json"), listing.to_string()).expect("written");
        fs::write(driver.path("refuse"), "").expect("written");
        driver
    }

    /// A process that knows no other Vulkan driver, which refuses until its [`REFUSE`] file goes.
    pub(crate) fn alone_in(&self, command: &mut Command) {
        let listing = self.path("refusing_icd.json");
        command.env("VK_DRIVER_FILES", &listing).env("VK_ICD_FILENAMES", &listing).env(REFUSE, self.path("refuse"));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn compile(mesa: &str, library: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/late_gpu/refusing_driver.c");
    let made = Command::new("cc")
        // Loaded once and for all: the driver inside keeps threads of its own.
        .args(["-shared", "-fPIC", "-Wl,-z,nodelete"])
        .arg(format!("-DDRIVER=\"{mesa}\""))
        .arg("-o")
        .args([library, &source])
        .arg("-ldl")
        .output()
        .expect("a C compiler called `cc`; Debian has one in gcc, and Rust links with it");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// The library of Mesa's software driver, as its listing names it.
fn mesa_software_driver() -> String {
    let listings = LISTINGS.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let listing = listings
        .map(|listing| listing.path())
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("lvp_icd")))
        .expect("Mesa's software Vulkan driver; Debian has it in mesa-vulkan-drivers");
    let text = fs::read_to_string(&listing).expect("readable");
    let parsed: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let library = parsed["ICD"]["library_path"].as_str().expect("every listing names a library");
    match library.contains('/') {
        // Relative to the listing; an absolute one stays as it is.
        true => listing.with_file_name(library).to_string_lossy().into_owned(),
        false => library.to_owned(),
    }
}
