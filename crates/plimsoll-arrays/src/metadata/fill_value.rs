//! The fill value in JSON: numbers as numbers, infinities and NaN as words, every other NaN by its bits.

use serde_json::Value;

use super::MetadataError;
use crate::data_type::DataType;
use crate::fill::{Fill, FillValue, canonical_nan};

const FIELD: &str = "fill_value";

pub(super) fn to_json(fill: &FillValue) -> Value {
    if let Some(integer) = fill.integer() {
        // Every integer type fits one of the two.
        return i64::try_from(integer).map_or_else(|_| Value::from(integer as u64), Value::from);
    }
    let float = fill.float().unwrap_or_default();
    match float {
        f64::INFINITY => Value::from("Infinity"),
        f64::NEG_INFINITY => Value::from("-Infinity"),
        _ if fill.bits() == canonical_nan(fill.data_type()) => Value::from("NaN"),
        _ if float.is_nan() => {
            Value::from(format!("{:#0width$x}", fill.bits(), width = 2 + 2 * fill.data_type().bytes()))
        }
        _ => Value::from(float),
    }
}

pub(super) fn from_json(value: &Value, data_type: DataType) -> Result<FillValue, MetadataError> {
    let wrong = |why: String| MetadataError::field(FIELD, why);
    let fill = match value {
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(integer), ..) => Fill::Integer(integer.into()),
            (_, Some(integer), _) => Fill::Integer(integer.into()),
            (.., Some(float)) => Fill::Float(float),
            _ => return Err(wrong("is no number that can be held".to_owned())),
        },
        Value::String(text) if data_type.is_float() => {
            text.parse().map_err(|error| wrong(format!("is wrong: {error}")))?
        }
        _ => return Err(wrong(format!("is no {data_type}"))),
    };
    FillValue::new(fill, data_type).map_err(|error| wrong(format!("is wrong: {error}")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_and_bits() {
        let json =
            |text: &str, data_type| to_json(&FillValue::new(text.parse().unwrap(), data_type).unwrap()).to_string();
        assert_eq!(json("NaN", DataType::F16), "\"NaN\"");
        assert_eq!(json("0x7e01", DataType::F16), "\"0x7e01\"");
        assert_eq!(json("0xffc00000", DataType::F32), "\"0xffc00000\"");
        assert_eq!(json("-inf", DataType::F64), "\"-Infinity\"");
        assert_eq!(json("18446744073709551615", DataType::U64), "18446744073709551615");
        assert_eq!(json("-9", DataType::I8), "-9");
        assert_eq!(json("0.5", DataType::F32), "0.5");
    }

    proptest! {
        #[test]
        fn every_element_comes_back(bits: u64, data_type in 0_usize..11) {
            let data_type = DataType::ALL[data_type];
            let bits = bits & (u64::MAX >> (64 - 8 * data_type.bytes()));
            let fill = match data_type.is_float() {
                true => Fill::Bits(bits),
                false => Fill::Integer((bits >> 1).into()),
            };
            let fill = FillValue::new(fill, data_type).unwrap();
            let text = to_json(&fill).to_string();
            prop_assert_eq!(from_json(&serde_json::from_str(&text).unwrap(), data_type).unwrap(), fill, "{}", text);
        }
    }
}
