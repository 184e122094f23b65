//! From what was typed to pairs of files.
//! Never opens an image: a file that is none is found when it is its turn.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use plimsoll::score::Pair;

use super::args::Args;
use super::names::shown;
use crate::stop::{Stop, warn};

/// Pairs in one run. A list of more is split by whoever makes it; here it would not fit in memory.
const PAIRS_MAX: usize = 10_000_000;
/// Folders inside folders. Deeper ones are left out, as a loop of links would be.
const DEPTH_MAX: usize = 32;
/// Unpaired files that are named one by one.
const NAMED_MAX: usize = 5;

/// What people call the two columns of a list.
const HEADINGS: [&[&str]; 2] =
    [&["reference", "ref", "original", "source"], &["distorted", "dist", "variant", "encoded", "compressed"]];

/// The pairs that the arguments name.
pub(super) fn resolve(args: &Args) -> Result<Vec<Pair>, Stop> {
    let pairs = match (&args.pairs, args.files.as_slice()) {
        (Some(list), _) => listed(list)?,
        (None, [references, distorted]) if references.is_dir() && distorted.is_dir() => by_name(references, distorted)?,
        (None, [reference, variants @ ..]) => of_one(reference, variants)?,
        (None, []) => Vec::new(),
    };
    if pairs.len() > PAIRS_MAX {
        return Err(Stop::usage(format_args!("{} pairs are more than the {PAIRS_MAX} of one run", pairs.len())));
    }
    Ok(pairs)
}

/// Every variant against one reference.
fn of_one(reference: &Path, variants: &[PathBuf]) -> Result<Vec<Pair>, Stop> {
    if reference.is_dir() {
        let what = format_args!("{} is a folder; give one folder of variants with it", reference.display());
        return Err(Stop::usage(what));
    }
    if variants.is_empty() {
        return Err(Stop::usage(format_args!("there is nothing to compare {} with", reference.display())));
    }
    let mut pairs = Vec::new();
    for variant in variants {
        let files = if variant.is_dir() { files_in(variant)? } else { vec![variant.clone()] };
        pairs.extend(files.into_iter().map(|distorted| Pair { reference: reference.to_owned(), distorted }));
    }
    if pairs.is_empty() {
        return Err(Stop::usage("the folders of variants are empty"));
    }
    Ok(pairs)
}

/// Files with the same name, or the same name but for its ending, in the same place of two folders.
fn by_name(references: &Path, distorted: &Path) -> Result<Vec<Pair>, Stop> {
    let inside = |folder: &Path, path: &Path| path.strip_prefix(folder).unwrap_or(path).to_owned();
    let reference_files: BTreeSet<PathBuf> =
        files_in(references)?.iter().map(|path| inside(references, path)).collect();
    let mut by_stem: BTreeMap<PathBuf, Vec<&PathBuf>> = BTreeMap::new();
    for name in &reference_files {
        by_stem.entry(name.with_extension("")).or_default().push(name);
    }
    let (mut pairs, mut unpaired) = (Vec::new(), Vec::new());
    for path in files_in(distorted)? {
        let name = inside(distorted, &path);
        let alike = by_stem.get(&name.with_extension("")).map_or(&[][..], Vec::as_slice);
        match (reference_files.get(&name), alike) {
            (Some(reference), _) | (None, &[reference]) => {
                pairs.push(Pair { reference: references.join(reference), distorted: path });
            }
            (None, []) => unpaired.push(path),
            (None, [_, ..]) => {
                let what = format_args!("{}: several references in {}", path.display(), references.display());
                return Err(Stop::usage(format_args!("{what} have its name; use --pairs")));
            }
        }
    }
    if pairs.is_empty() {
        let (one, other) = (references.display(), distorted.display());
        return Err(Stop::usage(format_args!("no file in {other} has the name of one in {one}; use --pairs")));
    }
    let used: BTreeSet<&PathBuf> = pairs.iter().map(|pair| &pair.reference).collect();
    let unused: Vec<PathBuf> =
        reference_files.iter().map(|name| references.join(name)).filter(|path| !used.contains(path)).collect();
    tell_unpaired(&unpaired, "has no reference", references);
    tell_unpaired(&unused, "has no variant", distorted);
    Ok(pairs)
}

fn tell_unpaired(unpaired: &[PathBuf], lacks: &str, folder: &Path) {
    for path in unpaired.iter().take(NAMED_MAX) {
        warn(format_args!("{} {lacks} in {} and is left out", shown(path), shown(folder)));
    }
    if unpaired.len() > NAMED_MAX {
        warn(format_args!("and {} more, each of which {lacks}", unpaired.len() - NAMED_MAX));
    }
}

/// The files in a folder and in those inside it, in the order of their names. Hidden ones are left out.
fn files_in(folder: &Path) -> Result<Vec<PathBuf>, Stop> {
    let mut files = Vec::new();
    collect(folder, 0, &mut files).map_err(|error| Stop::failed(format_args!("{}: {error}", folder.display())))?;
    files.sort();
    Ok(files)
}

fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        // Of a link it says that it is a link, so that folders never lead in a circle.
        let is_folder = entry.file_type()?.is_dir();
        if hidden || (is_folder && depth == DEPTH_MAX) {
            continue;
        }
        if is_folder {
            collect(&entry.path(), depth + 1, files)?;
        } else if entry.path().is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// The pairs of a CSV file. With a header that names them, the columns `reference` and `distorted` count; otherwise the
/// first two. Paths count from the current folder, as everywhere on a command line.
fn listed(list: &Path) -> Result<Vec<Pair>, Stop> {
    let wrong = |what: String| Stop::usage(format_args!("{}: {what}", list.display()));
    let source: Box<dyn io::Read> = match list.as_os_str() == "-" {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(list).map_err(|error| wrong(error.to_string()))?),
    };
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).trim(csv::Trim::All).from_reader(source);
    let (mut columns, mut pairs) = ([0, 1], Vec::new());
    for (at, record) in reader.records().enumerate() {
        let record = record.map_err(|error| wrong(error.to_string()))?;
        let place = |name: &str| record.iter().position(|field| field.eq_ignore_ascii_case(name));
        if at == 0
            && let [Some(reference), Some(distorted)] = HEADINGS.map(|names| names.iter().find_map(|name| place(name)))
        {
            columns = [reference, distorted];
            continue;
        }
        let field = |column: usize| record.get(column).filter(|field| !field.is_empty());
        let [Some(reference), Some(distorted)] = columns.map(field) else {
            return Err(wrong(format!("line {} does not name a reference and a distorted image", at + 1)));
        };
        pairs.push(Pair { reference: reference.into(), distorted: distorted.into() });
    }
    if pairs.is_empty() { Err(wrong("it lists no pairs".to_owned())) } else { Ok(pairs) }
}
