//! A program that makes and reads video, for the tests that send frames through it: ffmpeg, from the distribution's
//! packages. Never builds or downloads one of its own, and never installs anything where ffmpeg already is.

use crate::packages;

const FFMPEG: &str = "ffmpeg";

/// Makes sure that there is an ffmpeg.
pub(crate) fn ensure() -> Result<(), String> {
    // One hyphen: ffmpeg takes two for an option that it does not know.
    ensure_through(|| packages::answers(FFMPEG, "-version"), install)
}

fn ensure_through(is_there: impl Fn() -> bool, install: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    if is_there() {
        return Ok(());
    }
    install()?;
    match is_there() {
        true => Ok(()),
        false => Err(format!("{FFMPEG} was installed and does not start; try `{FFMPEG} -version`")),
    }
}

fn install() -> Result<(), String> {
    println!("==> no {FFMPEG}");
    let elsewhere = format!("tests need {FFMPEG} and there is no apt-get; install {FFMPEG}, then run this again");
    packages::install(FFMPEG, &elsewhere)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn what_is_there_is_left_alone() {
        assert_eq!(ensure_through(|| true, || panic!("installed what was there")), Ok(()));
    }

    #[test]
    fn what_is_missing_is_installed_and_asked_again() {
        let there = Cell::new(false);
        let install = || {
            there.set(true);
            Ok(())
        };
        assert_eq!(ensure_through(|| there.get(), install), Ok(()));
        assert!(there.get());
    }

    #[test]
    fn what_still_does_not_start_is_an_error_as_is_a_failed_install() {
        let silent = ensure_through(|| false, || Ok(()));
        assert_eq!(silent, Err("ffmpeg was installed and does not start; try `ffmpeg -version`".to_owned()));
        assert_eq!(ensure_through(|| false, || Err("no room".to_owned())), Err("no room".to_owned()));
    }
}
