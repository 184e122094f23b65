//! The plain values that a function can return at once, by its return type.
//! Never knows a type beyond its name: whether one has a default value is for the compiler to say.

use syn::{Block, GenericArgument, PathArguments, ReturnType, Signature, Type};

/// What a mutant of this function returns. A function that gives nothing back and has one statement has no such mutant:
/// to leave that statement out is the same.
pub(crate) fn early_returns(signature: &Signature, body: &Block) -> Vec<String> {
    match &signature.output {
        ReturnType::Default if body.stmts.len() > 1 => vec![String::new()],
        ReturnType::Default => Vec::new(),
        // It would call itself.
        _ if signature.ident == "default" => Vec::new(),
        ReturnType::Type(_, returned) => plain_values(returned),
    }
}

fn plain_values(returned: &Type) -> Vec<String> {
    let list = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect();
    match returned {
        Type::Tuple(tuple) if tuple.elems.is_empty() => list(&["()"]),
        Type::Reference(reference) if type_name(&reference.elem).is_some_and(|name| name == "str") => list(&["\"\""]),
        _ => match type_name(returned).as_deref() {
            Some("bool") => list(&["true", "false"]),
            Some("u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i8" | "i16" | "i32" | "i64" | "isize") => {
                list(&["0", "1"])
            }
            Some("f32" | "f64") => list(&["0.0", "1.0"]),
            Some("Bytes") => list(&["crate::Bytes::ZERO"]),
            Some("Nanos") => list(&["crate::Nanos::ZERO"]),
            Some("Option") => list(&["None"]),
            Some("Result") => {
                let values = argument(returned).map(plain_values).unwrap_or_default();
                values.into_iter().map(|value| format!("Ok({value})")).collect()
            }
            Some(_) => list(&["Default::default()"]),
            None => Vec::new(),
        },
    }
}

/// The last part of a type's name.
pub(crate) fn type_name(named: &Type) -> Option<String> {
    match named {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    }
}

/// `T` of `Result<T, E>`.
fn argument(generic: &Type) -> Option<&Type> {
    let Type::Path(path) = generic else { return None };
    let PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(inner) => Some(inner),
        _ => None,
    })
}
