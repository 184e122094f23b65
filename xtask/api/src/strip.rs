//! What of a file is public: items, fields and methods that are `pub`, without bodies, documents and attributes.
//! Invariant: what is left parses as Rust.

use syn::{Attribute, Fields, File, ImplItem, Item, TraitItem, Visibility, parse_quote};

pub(crate) fn public(mut file: File) -> File {
    file.attrs.clear();
    file.shebang = None;
    file.items = file.items.into_iter().filter_map(item).collect();
    file
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Only those that change who can use an item, and how.
fn keep_telling(attributes: &mut Vec<Attribute>) {
    let tells = ["cfg", "must_use", "non_exhaustive", "derive", "repr"];
    attributes.retain(|attribute| tells.iter().any(|name| attribute.path().is_ident(name)));
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    let is_test = |attribute: &Attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        list.path.is_ident("cfg") && list.tokens.to_string().contains("test")
    };
    attributes.iter().any(is_test)
}

fn item(mut item: Item) -> Option<Item> {
    let (visibility, attributes) = match &mut item {
        Item::Const(each) => (Some(&each.vis), &mut each.attrs),
        Item::Enum(each) => (Some(&each.vis), &mut each.attrs),
        Item::Fn(each) => (Some(&each.vis), &mut each.attrs),
        Item::Impl(each) => (None, &mut each.attrs),
        Item::Mod(each) => (Some(&each.vis), &mut each.attrs),
        Item::Static(each) => (Some(&each.vis), &mut each.attrs),
        Item::Struct(each) => (Some(&each.vis), &mut each.attrs),
        Item::Trait(each) => (Some(&each.vis), &mut each.attrs),
        Item::Type(each) => (Some(&each.vis), &mut each.attrs),
        Item::Use(each) => (Some(&each.vis), &mut each.attrs),
        _ => return None,
    };
    if visibility.is_some_and(|visibility| !is_public(visibility)) || is_for_tests(attributes) {
        return None;
    }
    keep_telling(attributes);
    let has_content = shorten(&mut item);
    has_content.then_some(item)
}

/// Takes out what is not public; says whether anything is left to tell.
fn shorten(item: &mut Item) -> bool {
    match item {
        Item::Const(each) => each.expr = parse_quote!(_),
        Item::Static(each) => each.expr = parse_quote!(_),
        Item::Fn(each) => each.block = parse_quote!({}),
        Item::Struct(each) => fields(&mut each.fields),
        Item::Enum(each) => {
            for variant in &mut each.variants {
                variant.attrs.clear();
                variant.fields.iter_mut().for_each(|field| field.attrs.clear());
            }
        }
        Item::Trait(each) => each.items.iter_mut().for_each(trait_item),
        Item::Impl(each) => {
            let is_inherent = each.trait_.is_none();
            each.items.retain_mut(|item| is_inherent && impl_item(item));
            // Which traits a type has is part of what it is; what they do is theirs to say.
            return !is_inherent || !each.items.is_empty();
        }
        Item::Mod(each) => {
            if let Some((_, items)) = &mut each.content {
                *items = std::mem::take(items).into_iter().filter_map(self::item).collect();
            }
        }
        _ => {}
    }
    true
}

/// Private fields are left out; that there are some is not told.
fn fields(fields: &mut Fields) {
    match fields {
        Fields::Named(named) => {
            let public = std::mem::take(&mut named.named).into_iter().filter(|field| is_public(&field.vis));
            named.named = public.collect();
        }
        Fields::Unnamed(unnamed) => {
            let public = std::mem::take(&mut unnamed.unnamed).into_iter().filter(|field| is_public(&field.vis));
            unnamed.unnamed = public.collect();
        }
        Fields::Unit => {}
    }
    fields.iter_mut().for_each(|field| field.attrs.clear());
}

fn trait_item(item: &mut TraitItem) {
    match item {
        TraitItem::Fn(each) => {
            each.attrs.clear();
            // A method with a body need not be written: that is told by an empty one.
            each.default = each.default.take().map(|_| parse_quote!({}));
        }
        TraitItem::Type(each) => each.attrs.clear(),
        TraitItem::Const(each) => each.attrs.clear(),
        _ => {}
    }
}

fn impl_item(item: &mut ImplItem) -> bool {
    match item {
        ImplItem::Fn(each) if is_public(&each.vis) => {
            keep_telling(&mut each.attrs);
            each.block = parse_quote!({});
            true
        }
        ImplItem::Const(each) if is_public(&each.vis) => {
            each.attrs.clear();
            each.expr = parse_quote!(_);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_public_is_left() {
        let file = syn::parse_file(
            "//! Words.\npub struct A { pub a: u8, b: u8 }\nstruct B;\nimpl A { pub fn f(&self) -> u8 { self.b } fn g() {} }\n\
             impl Clone for A { fn clone(&self) -> Self { loop {} } }\n#[cfg(test)] pub mod tests {}\nimpl B { fn h() {} }",
        );
        let left = prettyplease::unparse(&public(file.expect("it is Rust")));
        assert_eq!(
            left,
            "pub struct A {\n    pub a: u8,\n}\nimpl A {\n    pub fn f(&self) -> u8 {}\n}\nimpl Clone for A {}\n"
        );
    }
}
