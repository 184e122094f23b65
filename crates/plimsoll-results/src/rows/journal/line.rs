//! One line of a journal: a checksum, a space, and the row's cells as a JSON array, which has no line ends inside.
//! Invariant: a line that was cut short or changed anywhere is no line of a row.

use serde_json::Value;
use twox_hash::XxHash3_64;

use super::super::formats::json_cell;
use super::super::row::Row;
use super::super::schema::Schema;

/// Hexadecimal digits of the checksum.
const SUM_DIGITS: usize = 16;

/// The payload with its checksum before it and a line end after it.
pub(super) fn seal(payload: &[u8]) -> Vec<u8> {
    let mut line = Vec::with_capacity(SUM_DIGITS + payload.len() + 2);
    line.extend_from_slice(format!("{:016x} ", XxHash3_64::oneshot(payload)).as_bytes());
    line.extend_from_slice(payload);
    line.push(b'\n');
    line
}

/// The payload of a line (without its end); none when it is not what was sealed.
pub(super) fn unseal(line: &[u8]) -> Option<&[u8]> {
    let (sum, rest) = line.split_at_checked(SUM_DIGITS)?;
    let payload = rest.strip_prefix(b" ")?;
    (sum == format!("{:016x}", XxHash3_64::oneshot(payload)).as_bytes()).then_some(payload)
}

/// The row's cells.
pub(super) fn payload_of(row: &Row) -> Vec<u8> {
    let mut payload = vec![b'['];
    for (at, cell) in row.cells().iter().enumerate() {
        if at > 0 {
            payload.push(b',');
        }
        json_cell::append(&mut payload, cell);
    }
    payload.push(b']');
    payload
}

/// The row of a payload; says what is wrong when it is none of this schema.
pub(in super::super) fn row_of(payload: &[u8], schema: &Schema) -> Result<Row, String> {
    let cells: Vec<Value> = serde_json::from_slice(payload).map_err(|error| error.to_string())?;
    if cells.len() != schema.columns().len() {
        return Err(format!("a row of {} cells", cells.len()));
    }
    let cells = cells.into_iter().zip(schema.columns()).map(|(value, column)| json_cell::read(value, column));
    Ok(Row::new(cells.collect::<Result<Vec<_>, _>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_change_breaks_the_seal() {
        let payload = br#"["a",1.5]"#;
        let line = seal(payload);
        let line = &line[..line.len() - 1];
        assert_eq!(unseal(line), Some(&payload[..]));
        for at in 0..line.len() {
            assert_eq!(unseal(&line[..at]), None, "cut at {at}");
            let mut changed = line.to_vec();
            changed[at] ^= 1;
            assert_eq!(unseal(&changed), None, "changed at {at}");
        }
    }
}
