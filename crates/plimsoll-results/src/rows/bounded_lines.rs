//! Reads lines of bytes, each up to a limit. Never holds more than the limit, however long a damaged line is.

use std::io::{self, BufRead};

/// What was found where a line should begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line with its end; it is in the buffer, without that end.
    Whole,
    /// A line over the limit. The buffer is of no use.
    TooLong,
    /// Bytes after the last line end. They are in the buffer, as far as the limit goes.
    Unended,
    /// Nothing more.
    End,
}

/// Reads one line into `line`; says what it was and how many bytes it took, its end included.
pub(super) fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>, limit: usize) -> io::Result<(Line, u64)> {
    line.clear();
    let mut taken = 0_u64;
    loop {
        let chunk = input.fill_buf()?;
        if chunk.is_empty() {
            let what = if taken == 0 { Line::End } else { Line::Unended };
            return Ok((what, taken));
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let text = &chunk[..end.unwrap_or(chunk.len())];
        let room = limit.saturating_sub(line.len());
        line.extend_from_slice(&text[..text.len().min(room)]);
        let used = text.len() + usize::from(end.is_some());
        input.consume(used);
        taken += used as u64;
        if end.is_some() {
            let whole = taken - 1 <= limit as u64;
            return Ok((if whole { Line::Whole } else { Line::TooLong }, taken));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    #[test]
    fn lines_come_whole_or_are_passed_over() {
        // Three bytes at a time, so that lines begin and end anywhere in what is buffered.
        let mut input = BufReader::with_capacity(3, &b"abcd\n\nabcdefgh\nxy\nabcde\ntail"[..]);
        let mut line = Vec::new();
        let mut next = || read_line(&mut input, &mut line, 5).map(|(what, taken)| (what, taken, line.clone()));
        assert_eq!(next().expect("read"), (Line::Whole, 5, b"abcd".to_vec()));
        assert_eq!(next().expect("read"), (Line::Whole, 1, b"".to_vec()));
        assert_eq!(next().expect("read"), (Line::TooLong, 9, b"abcde".to_vec()));
        assert_eq!(next().expect("read"), (Line::Whole, 3, b"xy".to_vec()));
        assert_eq!(next().expect("read"), (Line::Whole, 6, b"abcde".to_vec()));
        assert_eq!(next().expect("read"), (Line::Unended, 4, b"tail".to_vec()));
        assert_eq!(next().expect("read"), (Line::End, 0, b"".to_vec()));
    }
}
