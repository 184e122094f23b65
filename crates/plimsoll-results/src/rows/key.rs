//! What tells rows apart: 128 bits made from the values of their key columns.
//! Never keeps the values: millions of keys must fit in memory. Among ten million keys, two alike have odds of 10⁻²⁵.

use twox_hash::XxHash3_128;

use super::row::Cell;

/// Identifies a row within a file. Equal for equal values in the key columns, in every format and run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(u128);

impl Key {
    /// Every cell goes in with its kind and length, so that no two lists of cells give the same bytes.
    pub(super) fn of<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> Self {
        let mut hash = XxHash3_128::new();
        for cell in cells {
            match cell {
                Cell::Empty => hash.write(&[0]),
                Cell::Text(text) => {
                    hash.write(&[1]);
                    hash.write(&(text.len() as u64).to_le_bytes());
                    hash.write(text.as_bytes());
                }
                Cell::Integer(integer) => {
                    hash.write(&[2]);
                    hash.write(&integer.to_le_bytes());
                }
                Cell::Number(number) => {
                    hash.write(&[3]);
                    hash.write(&number.to_bits().to_le_bytes());
                }
            }
        }
        Self(hash.finish_128())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_do_not_run_into_each_other() {
        let text = |texts: &[&str]| Key::of(&texts.iter().map(|text| Cell::from(*text)).collect::<Vec<_>>());
        let keys = [
            text(&["ab", "c"]),
            text(&["a", "bc"]),
            text(&["abc"]),
            text(&["abc", ""]),
            text(&["", "abc"]),
            Key::of(&[Cell::Integer(0)]),
            Key::of(&[Cell::Number(0.0)]),
            Key::of(&[Cell::Empty]),
        ];
        for (at, key) in keys.iter().enumerate() {
            assert_eq!(keys.iter().position(|other| other == key), Some(at));
        }
    }
}
