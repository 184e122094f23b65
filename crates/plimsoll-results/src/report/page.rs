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
    use super::super::{Detail, HeatMap, MetricColumn, Picture, ReferenceImage, ReportRow};
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

    fn photograph() -> Picture {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/harbour.png");
        let image = image::open(path).unwrap().to_rgb8();
        Picture { width: image.width(), height: image.height(), rgb: image.into_raw() }
    }

    #[test]
    fn a_page_of_three_hundred_files_is_small_enough_to_send() {
        const ROWS: usize = 300;
        const BYTES_MAX: usize = 10_000_000;
        let (side, detail) = (super::super::picture_side(ROWS), super::super::detail_side(ROWS));
        let picture = photograph().shrunk(side);
        let (codes, _) = picture.rgb.as_chunks::<3>();
        let values = codes.iter().zip(&codes[1..]).map(|(a, b)| f32::from(a[0].abs_diff(b[0])) / 16.0).chain([0.0]);
        let heat_map = HeatMap { width: picture.width, height: picture.height, values: values.collect() };
        let part =
            Picture { width: detail, height: detail, rgb: photograph().rgb[..(3 * detail * detail) as usize].to_vec() };
        let row = ReportRow {
            picture: Some(picture),
            heat_map: Some(heat_map),
            detail: Some(Detail { left: 5, top: 7, picture: part.clone(), reference: part }),
            ..ReportRow::default()
        };
        let page = render(&Report { rows: vec![row; ROWS], ..Report::default() });
        assert_eq!(page.matches("<img").count(), 4 * ROWS + 3, "and the viewer's three");
        assert!(page.len() < BYTES_MAX, "{} bytes", page.len());
    }

    #[test]
    fn an_empty_report_is_a_page() {
        let page = render(&Report::default());
        assert!(page.starts_with("<!doctype html>") && page.contains("No file was compared"));
    }
}
