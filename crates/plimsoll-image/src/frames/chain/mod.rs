//! A chain: operations one after the other, read from text.
//! Never sees a frame; `plan.rs` makes passes of it for frames of one format.

mod args;
mod ffmpeg;
mod text;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

pub(crate) use self::args::{Args, number, one_of};
use self::ffmpeg::{Meant, meant};
use self::text::split;
pub(crate) use self::text::unescaped;
use super::operation::{About, Operation, OperationError};
use super::ops;

/// Operations in one chain at most: far beyond any use, and far below what would fill a GPU's queue.
const OPERATIONS_MAX: usize = 64;

/// Operations one after the other, as `scale=1280x720:lanczos,denoise=bilateral`. Cheap to clone.
///
/// ```
/// use plimsoll_image::frames::Chain;
/// let chain: Chain = "crop=640x360,flip=h".parse()?;
/// assert_eq!(chain.to_string(), "crop=640x360,flip=h");
/// assert!("crop=wide".parse::<Chain>().is_err());
/// # Ok::<(), plimsoll_image::frames::ChainError>(())
/// ```
#[derive(Clone)]
pub struct Chain(Arc<[Link]>);

/// An operation of a chain and how it was written.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) text: String,
    pub(super) operation: Box<dyn Operation>,
}

/// Why some text is no chain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChainError {
    /// There is no operation of this name.
    #[error("there is no operation '{name}'; there are {all}", all = names().join(", "))]
    Unknown {
        /// What was written.
        name: String,
    },
    /// It is a name of ffmpeg's, and nothing here is the same.
    #[error("'{name}' is an operation of ffmpeg; here, write {instead}")]
    OfFfmpeg {
        /// What was written.
        name: String,
        /// What to write.
        instead: &'static str,
    },
    /// Its arguments cannot be meant.
    #[error("{text}: {why}; write {usage}")]
    Arguments {
        /// The operation as it was written.
        text: String,
        /// What is wrong.
        why: OperationError,
        /// How to write it.
        usage: &'static str,
    },
    /// There is nothing to do, or far too much.
    #[error("a chain has 1 to {OPERATIONS_MAX} operations, this one {0}")]
    Length(usize),
    /// Two operations look at other frames.
    #[error("{0} and {1} both look at other frames, and one chain does so once; pipe one chain into another")]
    TwiceInTime(String, String),
}

fn names() -> Vec<&'static str> {
    ops::ALL.iter().map(|about| about.name).collect()
}

impl Chain {
    /// Every operation there is.
    pub fn operations() -> &'static [About] {
        ops::ALL
    }

    /// How many frames before and after its own a frame's result depends on.
    pub fn frames_around(&self) -> usize {
        self.0.iter().map(|link| link.operation.frames_around()).max().unwrap_or(0)
    }

    /// The operations in some text, each as it is written, whether there are such or not.
    pub fn pieces(text: &str) -> Vec<String> {
        split(text, ',').iter().map(|piece| piece.trim().to_owned()).filter(|piece| !piece.is_empty()).collect()
    }

    /// This chain and then another.
    ///
    /// # Errors
    /// [`ChainError`] if both together are no chain.
    pub fn then(&self, next: &Self) -> Result<Self, ChainError> {
        format!("{self},{next}").parse()
    }

    pub(super) fn links(&self) -> &[Link] {
        &self.0
    }

    /// Two chains of one fingerprint do the same, down to the content of files that they read when they were made.
    pub fn fingerprint(&self) -> u64 {
        let all: String = self.0.iter().map(|link| format!("{:?}\n", link.operation)).collect();
        twox_hash::XxHash3_64::oneshot(all.as_bytes())
    }
}

impl FromStr for Chain {
    type Err = ChainError;

    fn from_str(text: &str) -> Result<Self, ChainError> {
        let pieces = split(text, ',');
        let written = pieces.iter().map(|piece| piece.trim()).filter(|piece| !piece.is_empty());
        let count = written.clone().count();
        if !(1..=OPERATIONS_MAX).contains(&count) {
            return Err(ChainError::Length(count));
        }
        let links: Arc<[Link]> = written.map(links).collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
        let mut in_time = links.iter().filter(|link| link.operation.frames_around() > 0);
        if let (Some(first), Some(second)) = (in_time.next(), in_time.next()) {
            return Err(ChainError::TwiceInTime(first.text.clone(), second.text.clone()));
        }
        Ok(Self(links))
    }
}

/// The operations that some text stands for: one, or as many as it takes to do what ffmpeg does in one.
fn links(text: &str) -> Result<Vec<Link>, ChainError> {
    let (name, rest) = text.split_once('=').unwrap_or((text, ""));
    let args = || Args::new(split(rest, ':').into_iter().filter(|piece| !piece.is_empty()));
    if let Some(about) = ops::ALL.iter().find(|about| about.name == name) {
        return link(text, about, args()).map(|link| vec![link]);
    }
    let mut args = args();
    let refused = |why| ChainError::Arguments {
        text: text.to_owned(),
        why,
        usage: "it as ffmpeg does, or as it is written here",
    };
    match meant(name, &mut args).transpose().map_err(refused)? {
        None => Err(ChainError::Unknown { name: name.to_owned() }),
        Some(Meant::Instead(instead)) => Err(ChainError::OfFfmpeg { name: name.to_owned(), instead }),
        Some(Meant::Ours(ours)) => {
            args.finish().map_err(refused)?;
            split(&ours, ',')
                .into_iter()
                .map(links)
                .collect::<Result<Vec<_>, _>>()
                .map(|all| all.into_iter().flatten().collect())
        }
    }
}

fn link(text: &str, about: &About, mut args: Args<'_>) -> Result<Link, ChainError> {
    let refused = |why| ChainError::Arguments { text: text.to_owned(), why, usage: about.usage };
    let operation = (about.parse)(&mut args).map_err(refused)?;
    args.finish().map_err(refused)?;
    Ok(Link { text: text.to_owned(), operation })
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<&str> = self.0.iter().map(|link| link.text.as_str()).collect();
        f.pad(&texts.join(","))
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chain({self})")
    }
}
