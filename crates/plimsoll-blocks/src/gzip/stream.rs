//! Members whose end nobody knows beforehand, one after the other, by zlib: what other programs write.
//! Never gives more at once than it was asked for. Invariant: a member has ended only if its checksum and length match.

use libdeflater::Crc;
use zlib_rs::{Inflate, InflateFlush, Status};

use super::header::{self, TRAILER};
use crate::error::{DamageError, UnpackError};

/// Window of every deflate stream, as a power of two.
const WINDOW_BITS: u8 = 15;
/// Bytes that are asked of the library at once: room for them is cleared first, and that stays in the nearest caches.
const STEP: usize = 128 << 10;

/// A file of members on its way through. It is fed by [`MemberStream::feed`].
pub(crate) struct MemberStream {
    state: State,
    inflate: Inflate,
    crc: Crc,
    raw: u64,
    /// Where the member began.
    member_at: u64,
    /// Where the bytes are that come next.
    at: u64,
    /// What is there of a header or trailer that is not whole yet.
    partial: Vec<u8>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum State {
    Header {
        is_first: bool,
    },
    Body,
    Trailer,
    /// Zeros to the end, as tapes have.
    Padding,
}

impl MemberStream {
    /// A stream whose first byte lies here in the file.
    pub(crate) fn new(at: u64) -> Self {
        Self {
            state: State::Header { is_first: true },
            inflate: Inflate::new(false, WINDOW_BITS),
            crc: Crc::new(),
            raw: 0,
            member_at: at,
            at,
            partial: Vec::new(),
        }
    }

    /// Reads from `bytes` and appends until `into` has `room` bytes. Gives how many were read.
    pub(crate) fn feed(&mut self, bytes: &[u8], room: usize, into: &mut Vec<u8>) -> Result<usize, UnpackError> {
        let mut read = 0;
        while read < bytes.len() && into.len() < room {
            let rest = &bytes[read..];
            let took = match self.state {
                State::Header { is_first } => self.header(rest, is_first)?,
                State::Body => self.body(rest, room, into)?,
                State::Trailer => self.trailer(rest)?,
                State::Padding => self.padding(rest)?,
            };
            read += took;
            self.at += took as u64;
        }
        Ok(read)
    }

    /// There is no more to feed. Whether that is right here.
    pub(crate) fn end(&self) -> Result<(), UnpackError> {
        match self.state {
            State::Padding => Ok(()),
            State::Header { is_first: false } if self.partial.is_empty() => Ok(()),
            _ => Err(UnpackError::CutOff { at: self.at, inside: "a gzip member" }),
        }
    }

    fn header(&mut self, bytes: &[u8], is_first: bool) -> Result<usize, UnpackError> {
        if self.partial.is_empty() {
            self.member_at = self.at;
            if !is_first && bytes[0] == 0 {
                self.state = State::Padding;
                return Ok(0);
            }
        }
        let before = self.partial.len();
        self.partial.extend(&bytes[..bytes.len().min(header::HEADER_MAX)]);
        match header::read(&self.partial, self.member_at)? {
            header::Read::NeedsMore => Ok(self.partial.len() - before),
            header::Read::Whole(whole) => {
                self.partial.clear();
                self.inflate.reset(false);
                (self.crc, self.raw, self.state) = (Crc::new(), 0, State::Body);
                Ok(whole.length - before)
            }
        }
    }

    fn body(&mut self, bytes: &[u8], room: usize, into: &mut Vec<u8>) -> Result<usize, UnpackError> {
        let start = into.len();
        into.resize(room.min(start + STEP), 0);
        let (read, written) = (self.inflate.total_in(), self.inflate.total_out());
        let status = self.inflate.decompress(bytes, &mut into[start..], InflateFlush::NoFlush);
        let took = (self.inflate.total_in() - read) as usize;
        let gave = (self.inflate.total_out() - written) as usize;
        into.truncate(start + gave);
        self.crc.update(&into[start..]);
        self.raw += gave as u64;
        let wrong = |what: &str| UnpackError::damaged(self.at, DamageError::Content(what.to_owned()));
        match status.map_err(|error| wrong(error.as_str()))? {
            Status::StreamEnd => self.state = State::Trailer,
            Status::Ok | Status::BufError if took == 0 && gave == 0 => return Err(wrong("it leads nowhere")),
            Status::Ok | Status::BufError => {}
        }
        Ok(took)
    }

    fn trailer(&mut self, bytes: &[u8]) -> Result<usize, UnpackError> {
        let took = bytes.len().min(TRAILER - self.partial.len());
        self.partial.extend(&bytes[..took]);
        let Ok([c0, c1, c2, c3, l0, l1, l2, l3]) = <[u8; TRAILER]>::try_from(&self.partial[..]) else {
            return Ok(took);
        };
        self.partial.clear();
        let said = u32::from_le_bytes([l0, l1, l2, l3]);
        if said != self.raw as u32 {
            return Err(UnpackError::damaged(self.member_at, DamageError::Length { said: said.into(), got: self.raw }));
        }
        if u32::from_le_bytes([c0, c1, c2, c3]) != self.crc.sum() {
            return Err(UnpackError::damaged(self.member_at, DamageError::Checksum));
        }
        self.state = State::Header { is_first: false };
        Ok(took)
    }

    fn padding(&self, bytes: &[u8]) -> Result<usize, UnpackError> {
        match bytes.iter().position(|&byte| byte != 0) {
            None => Ok(bytes.len()),
            Some(at) => Err(UnpackError::damaged(self.at + at as u64, DamageError::NoBeginning("gzip member"))),
        }
    }
}
