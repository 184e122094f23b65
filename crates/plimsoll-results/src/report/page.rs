//! The page from top to bottom. Everything it needs is inside: styles, script and pictures.
//! Invariant: the page's own policy forbids it to load anything from anywhere.

use super::gallery::Gallery;
use super::groups::Groups;
use super::html::{Text, put};
use super::{Report, colour_map, header, plot, table};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Even a text that found its way past the escaping could not call home.
const POLICY: &str = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      base-uri 'none'; form-action 'none'";

/// The viewer: the script fills it with the pictures of a row.
const VIEWER: &str = include_str!("viewer.html");
const BAR_HERE: &str = "{bar}";

pub(crate) fn render(report: &Report) -> String {
    let groups = Groups::of(report);
    let gallery = Gallery::of(report);
    let mut page = String::from("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    put!(page, "<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">");
    put!(page, "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">");
    put!(page, "<meta name=\"color-scheme\" content=\"light dark\"><title>{}</title>", Text(&report.title));
    put!(page, "<style>:root{{--ramp:{}}}{STYLE}</style></head><body><main>", colour_map::css_gradient());
    page.push_str(&header::header(report, &gallery));
    page.push_str(&plot::section(report, &groups));
    if !report.figures.is_empty() {
        put!(page, "<section class=\"figures\"><h2>By series</h2><pre>{}</pre></section>", Text(&report.figures));
    }
    page.push_str(&table::section(report, &groups, &gallery));
    put!(page, "<footer>Made by Plimsoll.</footer></main>");
    if gallery.has_pictures() {
        viewer(&mut page, report, &gallery);
    }
    put!(page, "<div id=\"tip\" role=\"status\" hidden></div><script>{SCRIPT}</script></body></html>\n");
    page
}

fn viewer(page: &mut String, report: &Report, gallery: &Gallery) {
    let (before, after) = VIEWER.split_once(BAR_HERE).expect("the viewer has a place for the bar");
    page.push_str(before);
    if gallery.has_maps() {
        page.push_str(&gallery.scale.bar(&report.heat_map_of));
    }
    page.push_str(after);
}

#[cfg(test)]
mod tests {
    use super::super::{MetricColumn, ReferenceImage, ReportRow};
    use super::*;

    const HOSTILE: &str = "</script></style><script>alert(1)</script>\"'<img src=x onerror=alert(2)>";

    #[test]
    fn nothing_from_outside_becomes_markup() {
        let text = || HOSTILE.to_owned();
        let row = ReportRow {
            reference: text(),
            file: text(),
            series: text(),
            width: 4,
            height: 4,
            bytes: 9,
            scores: vec![Some(1.0)],
            error: Some(text()),
            ..ReportRow::default()
        };
        let report = Report {
            title: text(),
            command: text(),
            summary: vec![(text(), text())],
            metrics: vec![MetricColumn { name: text(), better_higher: false, what: text() }],
            references: vec![ReferenceImage { name: text(), ..ReferenceImage::default() }],
            rows: vec![row.clone(), ReportRow { series: "other".to_owned(), reference: "other".to_owned(), ..row }],
            heat_map_of: text(),
            figures: text(),
        };
        let page = render(&report);
        assert_eq!((page.matches("<script").count(), page.matches("<img").count()), (1, 0));
        assert_eq!((page.matches("</style").count(), page.matches("</script").count()), (1, 1));
    }

    #[test]
    fn styles_and_script_cannot_end_early_or_load_anything() {
        for part in [STYLE, SCRIPT, VIEWER] {
            assert!(
                !part.contains("</script")
                    && !part.contains("</style")
                    && !part.contains("http")
                    && !part.contains("url("),
                "{part}"
            );
        }
    }

    #[test]
    fn an_empty_report_is_a_page() {
        let page = render(&Report::default());
        assert!(page.starts_with("<!doctype html>") && page.contains("No file was compared"));
    }
}
