//! Heat maps as files, one for each pair. Never decides what a colour means (`plimsoll_results::report`).

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll::score::Scored;
use plimsoll_results::report::{HeatMap, write_heat_map};

use super::names;
use super::page::HEAT_MAP_OF;
use crate::stop::{Ended, Stop, warn};

/// Bytes of a file's name that its map's name repeats at most: file systems have a longest name.
const NAME_MAX: usize = 120;

/// Where heat maps go.
pub(super) struct HeatMapFolder(PathBuf);

impl HeatMapFolder {
    /// The folder, made if it is not there.
    pub(super) fn open(folder: &Path) -> Result<Self, Stop> {
        match fs::create_dir_all(folder) {
            Ok(()) => Ok(Self(folder.to_owned())),
            Err(error) => Err(Stop::failed(format_args!(
                "{} cannot be a folder of heat maps ({error}); choose another place with --heat-maps",
                names::shown(folder)
            ))),
        }
    }

    /// Writes the map of a pair, if it has one. A map that could not be made is told, and costs the row nothing.
    pub(super) fn write(&self, scored: &Scored) -> Ended {
        match scored.outcome.as_ref().ok().and_then(|scores| scores.heat_map.as_ref()) {
            None => Ok(()),
            Some(Ok(map)) => {
                let map = HeatMap { width: map.width, height: map.height, values: map.distances.clone() };
                let path = self.0.join(file_name(scored.at, &scored.pair.distorted));
                write_heat_map(&map, HEAT_MAP_OF, &path).map_err(|error| Stop::failed_with_causes(&error))
            }
            Some(Err(failure)) => {
                warn(format_args!("{}: no heat map ({failure})", names::shown(&scored.pair.distorted)));
                Ok(())
            }
        }
    }
}

/// The number of the pair keeps files of one name apart, and the maps in the order of the rows.
fn file_name(at: usize, distorted: &Path) -> String {
    let name = distorted.file_name().map(|name| names::in_row(Path::new(name))).unwrap_or_default();
    let name = names::harmless(&name).replace(['\\', ':'], "_");
    let end = (0..=NAME_MAX.min(name.len())).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    format!("{:05}-{}.png", at + 1, &name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_harmless_and_apart() {
        assert_eq!(file_name(0, Path::new("a/q50.jpg")), "00001-q50.jpg.png");
        assert_ne!(file_name(1, Path::new("a/x.png")), file_name(2, Path::new("b/x.png")));
        assert!(file_name(1, Path::new(&"long".repeat(60))).len() < 140);
        assert!(file_name(1, Path::new(&"long é".repeat(60))).len() < 140, "cut between letters");
        assert!(!file_name(1, Path::new("a\n\u{1b}[31m:x.png")).contains(['\n', '\u{1b}', ':']));
    }
}
