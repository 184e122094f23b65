//! What was compared: the title, the facts of the run, and the references.

use super::gallery::Gallery;
use super::html::{Name, Text, put};
use super::{Report, numbers};

/// References shown with their picture; of more, the plots and the table tell.
const REFERENCES_SHOWN_MAX: usize = 24;

/// The top of the page.
pub(crate) fn header(report: &Report, gallery: &Gallery) -> String {
    let mut header = String::from("<div class=\"top\"><header>");
    put!(header, "<h1>{}</h1>", Text(&report.title));
    if !report.command.is_empty() {
        put!(header, "<p class=\"command\"><code>{}</code></p>", Text(&report.command));
    }
    facts(&mut header, report);
    header.push_str("</header>");
    references(&mut header, report, gallery);
    header.push_str("</div>");
    header
}

fn facts(header: &mut String, report: &Report) {
    let failed = report.rows.iter().filter(|row| row.error.is_some()).count();
    if report.summary.is_empty() && failed == 0 {
        return;
    }
    header.push_str("<dl class=\"facts\">");
    for (name, value) in &report.summary {
        put!(header, "<div><dt>{}</dt><dd>{}</dd></div>", Text(name), Text(value));
    }
    if failed > 0 {
        put!(header, "<div class=\"failed\"><dt>failed</dt><dd>{failed}</dd></div>");
    }
    header.push_str("</dl>");
}

fn references(header: &mut String, report: &Report, gallery: &Gallery) {
    if report.references.is_empty() {
        return;
    }
    header.push_str("<ul class=\"references\" aria-label=\"References\">");
    for (number, reference) in report.references.iter().enumerate().take(REFERENCES_SHOWN_MAX) {
        put!(header, "<li>");
        picture(header, gallery, number);
        put!(header, "<span><small>reference</small><b>{}</b>", Name(&reference.name));
        put!(header, "<small>{} × {}", reference.width, reference.height);
        if reference.bytes > 0 {
            put!(header, " · {}", numbers::size(reference.bytes));
        }
        header.push_str("</small></span></li>");
    }
    let rest = report.references.len().saturating_sub(REFERENCES_SHOWN_MAX);
    if rest > 0 {
        put!(header, "<li class=\"rest\">and {rest} more</li>");
        header.push_str("<li hidden>");
        (REFERENCES_SHOWN_MAX..report.references.len()).for_each(|number| picture(header, gallery, number));
        header.push_str("</li>");
    }
    header.push_str("</ul>");
}

/// The viewer finds the picture of a reference by its number, also where it is not shown here.
fn picture(header: &mut String, gallery: &Gallery, number: usize) {
    if let Some(uri) = gallery.reference(number) {
        put!(header, "<img class=\"reference\" data-reference=\"{number}\" src=\"{uri}\" alt=\"\" decoding=\"async\">");
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Picture, ReferenceImage, ReportRow};
    use super::*;

    fn shown(report: &Report) -> String {
        header(report, &Gallery::of(report))
    }

    #[test]
    fn empty_facts_are_left_out() {
        let header = shown(&Report { title: "T".to_owned(), ..Report::default() });
        assert_eq!(header, "<div class=\"top\"><header><h1>T</h1></header></div>");
    }

    #[test]
    fn failures_are_a_fact() {
        let failed = ReportRow { error: Some("no".to_owned()), ..ReportRow::default() };
        assert!(shown(&Report { rows: vec![failed], ..Report::default() }).contains("<dd>1</dd>"));
    }

    #[test]
    fn every_reference_has_its_picture_in_the_page() {
        let picture = Picture { width: 1, height: 1, rgb: vec![1, 2, 3] };
        let reference = ReferenceImage { picture: Some(picture), ..ReferenceImage::default() };
        let header = shown(&Report { references: vec![reference; REFERENCES_SHOWN_MAX + 5], ..Report::default() });
        assert_eq!(header.matches("<img").count(), REFERENCES_SHOWN_MAX + 5);
        assert!(header.contains("and 5 more"));
    }
}
