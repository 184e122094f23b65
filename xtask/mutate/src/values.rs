//! The plain values that a function can return at once, by its return type.
//! Never knows a type beyond its name.

use std::collections::BTreeSet;

use syn::visit::{self, Visit};
use syn::{Attribute, Block, GenericArgument, PathArguments, ReturnType, Signature, Type};

/// What a mutant of this function returns. A function that gives nothing back and has one statement has no such mutant:
/// to leave that statement out is the same.
pub(crate) fn early_returns(signature: &Signature, body: &Block, with_default: &BTreeSet<String>) -> Vec<String> {
    match &signature.output {
        ReturnType::Default if body.stmts.len() > 1 => vec![String::new()],
        ReturnType::Default => Vec::new(),
        ReturnType::Type(_, returned) => plain_values(returned, with_default),
    }
}

fn plain_values(returned: &Type, with_default: &BTreeSet<String>) -> Vec<String> {
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
                let values = argument(returned).map(|inner| plain_values(inner, with_default)).unwrap_or_default();
                values.into_iter().map(|value| format!("Ok({value})")).collect()
            }
            Some("Vec" | "SmallVec" | "String" | "VecDeque" | "FxHashMap") => list(&["Default::default()"]),
            Some(name) if with_default.contains(name) => list(&["Default::default()"]),
            _ => Vec::new(),
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

/// The types of a source that have a default value, derived or written out.
pub(crate) fn with_default(source: &str) -> syn::Result<BTreeSet<String>> {
    let mut defaults = Defaults(BTreeSet::new());
    defaults.visit_file(&syn::parse_file(source)?);
    Ok(defaults.0)
}

struct Defaults(BTreeSet<String>);

impl<'ast> Visit<'ast> for Defaults {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.0.extend(derives_default(&item.attrs).then(|| item.ident.to_string()));
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.0.extend(derives_default(&item.attrs).then(|| item.ident.to_string()));
    }

    fn visit_item_impl(&mut self, block: &'ast syn::ItemImpl) {
        let of = block.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        if of.is_some_and(|of| of.ident == "Default") {
            self.0.extend(type_name(&block.self_ty));
        }
        visit::visit_item_impl(self, block);
    }
}

fn derives_default(attributes: &[Attribute]) -> bool {
    let derives = attributes.iter().filter(|attribute| attribute.path().is_ident("derive"));
    derives.filter_map(|derive| derive.meta.require_list().ok()).any(|list| {
        let tokens = list.tokens.to_string();
        tokens.split(|c: char| !c.is_alphanumeric()).any(|name| name == "Default")
    })
}
