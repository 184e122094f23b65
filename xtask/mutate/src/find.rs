//! Finds the sites of a file: where a mutant could be, and what it would say there.
//! Never knows types: what does not compile is dropped later, by asking the compiler.
//!
//! | operator | mutants |
//! |---|---|
//! | comparison | its boundary moved, and its opposite |
//! | `&&`, `\|\|` | the other one |
//! | `+ - * /`, `+= -= *= /=` | the opposite |
//! | `if`, `while` | the condition negated |
//! | `!x` | `x` |
//! | guard of a match arm | `true`, `false` |
//! | `min`, `max`, also by key | the other one |
//! | statement without a value | left out |
//! | function | returns at once, with a plain value of its type (`values`) |

use std::ops::Range;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Attribute, BinOp, Block, Expr, ExprBinary, ExprMatch, ImplItemFn, ItemFn, ItemImpl, ReturnType, Signature, Stmt,
    UnOp,
};

use crate::site::{Alternative, Shape, Site};
use crate::values;

/// Functions that are themselves a check, or break something on purpose.
const LEFT_ALONE: &[&str] = &["check_invariants", "break_on_purpose", "break_ledger_on_purpose"];
/// Traits whose text only people read.
const SHOWING: &[&str] = &["Debug", "Display"];

/// The sites of a source, in no particular order but that of two with the same span the outer comes first.
///
/// # Errors
/// What the parser says.
pub(crate) fn sites(source: &str) -> syn::Result<Vec<Site>> {
    let file = syn::parse_file(source)?;
    let mut finder = Finder { source, within: Vec::new(), gives_value: false, sites: Vec::new() };
    finder.visit_file(&file);
    Ok(finder.sites)
}

struct Finder<'a> {
    source: &'a str,
    /// The type and functions that are being looked at.
    within: Vec<String>,
    /// Whether the function that is being looked at gives a value back: its last expression may be more than an action.
    gives_value: bool,
    sites: Vec<Site>,
}

impl Finder<'_> {
    fn text(&self, node: &impl Spanned) -> &str {
        &self.source[node.span().byte_range()]
    }

    fn add(&mut self, span: Range<usize>, shape: Shape, alternatives: impl IntoIterator<Item = (String, String)>) {
        let alternatives = alternatives.into_iter().map(|(what, text)| Alternative { what, text }).collect();
        self.sites.push(Site { span, shape, function: self.within.join("::"), alternatives });
    }

    fn binary(&mut self, binary: &ExprBinary) {
        let written = self.text(&binary.op).to_owned();
        let (left, right) = (self.text(&binary.left).to_owned(), self.text(&binary.right).to_owned());
        let others = others(&binary.op);
        let is_logical = matches!(binary.op, BinOp::And(_) | BinOp::Or(_));
        if others.is_empty() || (is_logical && (has_let(&binary.left) || has_let(&binary.right))) {
            return;
        }
        let swapped = others.iter().map(|other| {
            let text = if is_assignment(&binary.op) {
                format!("{left} {other} {right};")
            } else {
                format!("({left}) {other} ({right})")
            };
            (format!("{written} to {other}"), text)
        });
        if is_assignment(&binary.op) {
            let gone = [("left out".to_owned(), String::new())];
            self.add(binary.span().byte_range(), Shape::Action, gone.into_iter().chain(swapped));
        } else {
            self.add(binary.span().byte_range(), Shape::Value, swapped);
        }
    }

    /// A condition that is a comparison or a negation has its opposite among its own mutants.
    fn condition(&mut self, condition: &Expr) {
        let has_opposite = match bare(condition) {
            Expr::Binary(binary) => is_comparison(&binary.op),
            Expr::Unary(unary) => matches!(unary.op, UnOp::Not(_)),
            _ => false,
        };
        if !has_opposite && !has_let(condition) {
            let negated = format!("!({})", self.text(condition));
            self.add(condition.span().byte_range(), Shape::Value, [("condition negated".to_owned(), negated)]);
        }
    }

    fn guards(&mut self, matching: &ExprMatch) {
        for (_, guard) in matching.arms.iter().filter_map(|arm| arm.guard.as_ref()) {
            if !has_let(guard) {
                let forced = ["true", "false"].map(|value| (format!("guard {value}"), value.to_owned()));
                self.add(guard.span().byte_range(), Shape::Value, forced);
            }
        }
    }

    fn leave_out(&mut self, action: &Expr) {
        self.add(action.span().byte_range(), Shape::Action, [("left out".to_owned(), String::new())]);
    }

    fn least_or_most(&mut self, call: &syn::ExprMethodCall) {
        let written = call.method.to_string();
        let other = match written.as_str() {
            "min" => "max",
            "max" => "min",
            "min_by_key" => "max_by_key",
            "max_by_key" => "min_by_key",
            _ => return,
        };
        let (whole, method) = (call.span().byte_range(), call.method.span().byte_range());
        let text = format!("{}{other}{}", &self.source[whole.start..method.start], &self.source[method.end..whole.end]);
        self.add(whole, Shape::Value, [(format!("{written} to {other}"), text)]);
    }

    fn function(
        &mut self,
        signature: &Signature,
        attributes: &[Attribute],
        body: &Block,
        visit: impl FnOnce(&mut Self),
    ) {
        let name = signature.ident.to_string();
        let is_left_alone = LEFT_ALONE.contains(&name.as_str()) || signature.constness.is_some();
        if is_left_alone || is_for_tests(attributes) {
            return;
        }
        self.within.push(name);
        let start = body.brace_token.span.open().byte_range().end;
        let early = values::early_returns(signature, body);
        let early = early.into_iter().map(|value| (format!("returns {value}"), format!("return {value};")));
        let early: Vec<(String, String)> = early.collect();
        if !early.is_empty() {
            self.add(start..start, Shape::Entry, early);
        }
        let outer = std::mem::replace(&mut self.gives_value, matches!(signature.output, ReturnType::Type(..)));
        visit(self);
        self.gives_value = outer;
        self.within.pop();
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_impl(&mut self, block: &'ast ItemImpl) {
        let of = block.trait_.as_ref().and_then(|(_, path, _)| path.segments.last()).map(|last| last.ident.to_string());
        if is_for_tests(&block.attrs) || of.is_some_and(|of| SHOWING.contains(&of.as_str())) {
            return;
        }
        self.within.push(values::type_name(&block.self_ty).unwrap_or_else(|| "impl".to_owned()));
        visit::visit_item_impl(self, block);
        self.within.pop();
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        let body = &function.block;
        self.function(&function.sig, &function.attrs, body, |finder| finder.visit_block(body));
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        let body = &function.block;
        self.function(&function.sig, &function.attrs, body, |finder| finder.visit_block(body));
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(body) = &function.default {
            self.function(&function.sig, &function.attrs, body, |finder| finder.visit_block(body));
        }
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        match statement {
            Stmt::Expr(action, Some(_)) if is_call(action) => self.leave_out(action),
            Stmt::Expr(Expr::Match(matching), end) if end.is_some() || !self.gives_value => {
                let arms = matching.arms.iter().map(|arm| &*arm.body);
                arms.filter(|body| is_call(body)).for_each(|body| self.leave_out(body));
            }
            _ => {}
        }
        visit::visit_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        match expression {
            Expr::Binary(binary) => self.binary(binary),
            Expr::Assign(assign) if !matches!(*assign.left, Expr::Infer(_)) => self.leave_out(expression),
            Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_)) => {
                let plain = self.text(&unary.expr).to_owned();
                self.add(unary.span().byte_range(), Shape::Value, [("! left out".to_owned(), plain)]);
            }
            Expr::If(branch) => self.condition(&branch.cond),
            Expr::While(repeat) => self.condition(&repeat.cond),
            Expr::Match(matching) => self.guards(matching),
            Expr::MethodCall(call) => self.least_or_most(call),
            _ => {}
        }
        visit::visit_expr(self, expression);
    }

    // Computed while compiling, where there is no switch to ask.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

/// What an operator is replaced with.
fn others(operator: &BinOp) -> &'static [&'static str] {
    match operator {
        BinOp::Lt(_) => &["<=", ">="],
        BinOp::Le(_) => &["<", ">"],
        BinOp::Gt(_) => &[">=", "<="],
        BinOp::Ge(_) => &[">", "<"],
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::And(_) => &["||"],
        BinOp::Or(_) => &["&&"],
        BinOp::Add(_) => &["-"],
        BinOp::Sub(_) => &["+"],
        BinOp::Mul(_) => &["/"],
        BinOp::Div(_) => &["*"],
        BinOp::AddAssign(_) => &["-="],
        BinOp::SubAssign(_) => &["+="],
        BinOp::MulAssign(_) => &["/="],
        BinOp::DivAssign(_) => &["*="],
        _ => &[],
    }
}

fn is_comparison(operator: &BinOp) -> bool {
    matches!(operator, BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_) | BinOp::Eq(_) | BinOp::Ne(_))
}

fn is_assignment(operator: &BinOp) -> bool {
    matches!(operator, BinOp::AddAssign(_) | BinOp::SubAssign(_) | BinOp::MulAssign(_) | BinOp::DivAssign(_))
}

/// `call()`, `x.call()`, and either with a `?`.
fn is_call(expression: &Expr) -> bool {
    match expression {
        Expr::Try(tried) => is_call(&tried.expr),
        Expr::Call(_) | Expr::MethodCall(_) => true,
        _ => false,
    }
}

/// Whether a condition binds something, which only `&&` may join.
fn has_let(condition: &Expr) -> bool {
    match condition {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        Expr::Paren(paren) => has_let(&paren.expr),
        _ => false,
    }
}

fn bare(expression: &Expr) -> &Expr {
    match expression {
        Expr::Paren(paren) => bare(&paren.expr),
        other => other,
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        let names_test = || attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string().contains("test"));
        path.is_ident("test") || (path.is_ident("cfg") && names_test())
    })
}
