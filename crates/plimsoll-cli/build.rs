//! Has the linker write the places that the loader must set as ranges instead of one by one: they are 1 MB of the program
//! otherwise, which is read before its first line, and a file of 4 KiB is packed in less time than that.
//! Never asks for it where the program might not start: the loader of glibc knows such ranges since 2.36.

use std::process::Command;

/// The first glibc whose loader knows them.
const GLIBC_LEAST: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    println!("cargo::rustc-check-cfg=cfg(packed_relocations)");
    if is_for_here() && glibc().is_some_and(|version| version >= GLIBC_LEAST) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
        println!("cargo::rustc-cfg=packed_relocations");
    }
}

/// Whether the program is for this machine, and linked by the compiler that everybody has: others may be told otherwise.
fn is_for_here() -> bool {
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    std::env::var("HOST").is_ok_and(|host| is("TARGET", &host))
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && std::env::var_os("RUSTC_LINKER").is_none()
}

/// The C library's version here, if it is glibc.
fn glibc() -> Option<(u32, u32)> {
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let version = String::from_utf8(said.stdout).ok()?;
    let (major, minor) = version.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}
