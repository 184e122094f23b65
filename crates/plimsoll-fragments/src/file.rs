//! A file of fragments: 64 bytes that say where the index is, the fragments, the index. Coarse levels of all tensors come
//! before fine ones, so that a low quality is the beginning of the file.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use twox_hash::XxHash3_64;

use crate::digest::Digest;
use crate::error::FragmentError;
use crate::index::{Fragment, Index};
use crate::limits::INDEX_BYTES_MAX;
use crate::positioned::{read_at, read_new};

/// What the first bytes of a file say.
const MAGIC: [u8; 8] = *b"PLFRAGS\x01";

/// The first bytes of a file: where its index is, and which.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct FileHead {
    /// Where the index begins: fragments lie between the head and it.
    pub index_offset: u64,
    /// Its bytes.
    pub index_bytes: u64,
    /// Its SHA-256: what names the model.
    pub index_digest: Digest,
}

impl FileHead {
    /// Bytes of it.
    pub const BYTES: u64 = 64;

    /// The bytes as they stand in a file.
    pub fn to_bytes(self) -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&self.index_offset.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.index_bytes.to_le_bytes());
        bytes[24..56].copy_from_slice(&self.index_digest.0);
        let checksum = XxHash3_64::oneshot(&bytes[..56]);
        bytes[56..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads it.
    ///
    /// # Errors
    /// [`FragmentError::Malformed`] if it is none, or its index would be too long.
    pub fn parse(bytes: &[u8; 64], what: &str) -> Result<Self, FragmentError> {
        let wrong = |why: &str| FragmentError::malformed(what, "a file of fragments", why);
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        if bytes[..7] != MAGIC[..7] {
            return Err(wrong("it does not begin as one; `plimsoll fragments pack` makes one of a safetensors file"));
        }
        if bytes[7] != MAGIC[7] {
            return Err(wrong("it is of another format than this program reads"));
        }
        if number(56) != XxHash3_64::oneshot(&bytes[..56]) {
            return Err(wrong("its first 64 bytes are damaged"));
        }
        let digest = Digest(std::array::from_fn(|at| bytes[24 + at]));
        let head = Self { index_offset: number(8), index_bytes: number(16), index_digest: digest };
        if head.index_bytes > INDEX_BYTES_MAX {
            return Err(wrong(&format!("its index has {} bytes, more than {INDEX_BYTES_MAX}", head.index_bytes)));
        }
        if head.index_offset < Self::BYTES || head.index_offset.checked_add(head.index_bytes).is_none() {
            return Err(wrong("its index lies where none can be"));
        }
        Ok(head)
    }

    /// The index, from the bytes that lie where this says.
    ///
    /// # Errors
    /// [`FragmentError`] if they are others, or say what cannot be.
    pub fn index(&self, bytes: &[u8], what: &str) -> Result<Index, FragmentError> {
        if bytes.len() as u64 != self.index_bytes || Digest::of(bytes) != self.index_digest {
            return Err(FragmentError::damaged(
                format!("the index of {what}"),
                "it is not the one that the file's head names",
            ));
        }
        Index::parse(bytes, what, Self::BYTES..self.index_offset)
    }
}

/// A model: what is in it, and its name among all models.
#[derive(Clone, Debug)]
pub struct Model {
    /// What people call it: a path or an address.
    pub name: String,
    /// The SHA-256 of its index.
    pub id: Digest,
    /// What is in it.
    pub index: Index,
}

/// A file of fragments, open for reading.
#[derive(Debug)]
pub struct FragmentFile {
    path: PathBuf,
    file: File,
    model: Arc<Model>,
}

impl FragmentFile {
    /// Opens a file and reads its index.
    ///
    /// # Errors
    /// [`FragmentError`] if it cannot be read or is none.
    pub fn open(path: &Path) -> Result<Self, FragmentError> {
        let reading = |error| FragmentError::reading(path, error);
        let name = path.display().to_string();
        let file = File::open(path).map_err(reading)?;
        let length = file.metadata().map_err(reading)?.len();
        let mut head = [0; 64];
        if length < FileHead::BYTES {
            return Err(FragmentError::malformed(name, "a file of fragments", "it is too short to be one"));
        }
        read_at(&file, &mut head, 0).map_err(reading)?;
        let head = FileHead::parse(&head, &name)?;
        if head.index_offset.saturating_add(head.index_bytes) != length {
            return Err(FragmentError::malformed(name, "a file of fragments", "it ends before or behind its index"));
        }
        let mut index = vec![0; head.index_bytes as usize];
        read_at(&file, &mut index, head.index_offset).map_err(reading)?;
        let index = head.index(&index, &name)?;
        Ok(Self { path: path.to_owned(), file, model: Arc::new(Model { name, id: head.index_digest, index }) })
    }

    /// What is in it.
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// Reads a fragment, and checks it.
    ///
    /// # Errors
    /// [`FragmentError`] if it cannot be read or is damaged.
    pub fn read(&self, fragment: &Fragment) -> Result<Vec<u8>, FragmentError> {
        let (bytes, checksum) = read_new(&self.file, fragment.bytes as usize, fragment.offset)
            .map_err(|error| FragmentError::reading(&self.path, error))?;
        fragment.checksum.is(checksum, || format!("{} at byte {}", self.path.display(), fragment.offset))?;
        Ok(bytes)
    }
}
