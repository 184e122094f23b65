//! Writes a file with all its mutants in it, each behind the switch, and remembers where each came to lie.
//! Never parses. Invariant: with no mutant switched on, what is written computes what the source computes.

use std::ops::Range;

use crate::site::{MutantId, Shape, Site};

/// The switch's module in the core, as the core itself names it.
pub(crate) const SWITCH: &str = "crate::mutant_switch::is";

/// A site with the mutants of it that are to be written.
pub(crate) struct Chosen<'a> {
    pub(crate) site: &'a Site,
    /// By the site's alternatives; `None` leaves one out.
    pub(crate) ids: Vec<Option<MutantId>>,
}

/// A written file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Rendered {
    pub(crate) text: String,
    /// Where each mutant's own text lies.
    pub(crate) alternatives: Vec<(MutantId, Range<usize>)>,
    /// Where each site lies, with its mutants.
    pub(crate) sites: Vec<(Vec<MutantId>, Range<usize>)>,
}

/// The source with all the chosen mutants. Sites lie within each other or apart; they never overlap.
pub(crate) fn render(source: &str, mut chosen: Vec<Chosen<'_>>) -> Rendered {
    chosen.retain(|chosen| chosen.ids.iter().any(Option::is_some));
    // The outer ones first; of those with the same span the one that was found first is the outer.
    chosen.sort_by_key(|chosen| (chosen.site.span.start, usize::MAX - chosen.site.span.end));
    let mut pen = Pen { source, rendered: Rendered::default() };
    pen.copy(0..source.len(), &chosen);
    pen.rendered
}

struct Pen<'a> {
    source: &'a str,
    rendered: Rendered,
}

impl Pen<'_> {
    /// A stretch of source with the sites in it.
    fn copy(&mut self, span: Range<usize>, mut chosen: &[Chosen<'_>]) {
        let mut at = span.start;
        while let [first, rest @ ..] = chosen {
            let within = rest.iter().take_while(|other| other.site.span.start < first.site.span.end).count();
            self.write(&self.source[at..first.site.span.start]);
            self.site(first, &rest[..within]);
            at = first.site.span.end;
            chosen = &rest[within..];
        }
        self.write(&self.source[at..span.end]);
    }

    fn site(&mut self, chosen: &Chosen<'_>, within: &[Chosen<'_>]) {
        let start = self.rendered.text.len();
        let (before, original, end, after) = match chosen.site.shape {
            Shape::Value => ("(", "{ (", ") }", ")"),
            Shape::Action => ("{ ", "{ ", "; }", " }"),
            Shape::Entry => ("", "", "", ""),
        };
        self.write(before);
        let ids = self.alternatives(chosen);
        self.write(original);
        self.copy(chosen.site.span.clone(), within);
        self.write(end);
        self.write(after);
        self.rendered.sites.push((ids, start..self.rendered.text.len()));
    }

    /// Only one mutant is ever switched on, so that an alternative holds the plain source of what lies within it.
    fn alternatives(&mut self, chosen: &Chosen<'_>) -> Vec<MutantId> {
        let mut ids = Vec::new();
        for (alternative, id) in chosen.site.alternatives.iter().zip(&chosen.ids) {
            let Some(id) = *id else { continue };
            let start = self.rendered.text.len();
            self.write(&format!("if {SWITCH}({id}) {{ {} }} ", alternative.text));
            self.rendered.alternatives.push((id, start..self.rendered.text.len()));
            if chosen.site.shape != Shape::Entry {
                self.write("else ");
            }
            ids.push(id);
        }
        ids
    }

    fn write(&mut self, text: &str) {
        self.rendered.text.push_str(text);
    }
}

impl Rendered {
    /// Whose fault an error at these bytes is: that of the mutants whose own text it points into, else of the innermost
    /// site that it lies in.
    pub(crate) fn blame(&self, spans: &[Range<usize>]) -> Vec<MutantId> {
        let holds = |outer: &Range<usize>, inner: &Range<usize>| outer.start <= inner.start && inner.end <= outer.end;
        let own = |span: &Range<usize>| {
            let own = self.alternatives.iter().filter(|(_, own)| holds(own, span));
            own.min_by_key(|(_, own)| own.len()).map(|(id, _)| vec![*id])
        };
        let around = |span: &Range<usize>| {
            let around = self.sites.iter().filter(|(ids, site)| !ids.is_empty() && holds(site, span));
            around.min_by_key(|(_, site)| site.len()).map(|(ids, _)| ids.clone())
        };
        spans.iter().find_map(own).or_else(|| spans.iter().find_map(around)).unwrap_or_default()
    }
}
