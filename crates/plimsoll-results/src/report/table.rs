//! The figures of every row, the best of each score marked among the files of one reference.
//! Sorting is the script's; every cell says what it sorts by. Invariant: a row that failed shows why.

use super::gallery::{Gallery, ROWS_WITH_PICTURES_MAX};
use super::groups::Groups;
use super::html::{Name, Text, put};
use super::{Report, ReportRow, numbers, plot};

/// The table with its heading and the bar of the heat maps.
pub(crate) fn section(report: &Report, groups: &Groups, gallery: &Gallery) -> String {
    let table = Table { report, groups, gallery, scores: columns(report, groups) };
    let mut out = String::new();
    put!(out, "<section aria-labelledby=\"table-title\"><div class=\"head\"><h2 id=\"table-title\">Files</h2>");
    if gallery.has_maps() {
        out.push_str(&gallery.scale.bar(&report.heat_map_of));
    }
    out.push_str("</div><div class=\"scroll\"><table>");
    table.head(&mut out);
    out.push_str("<tbody>");
    (0..report.rows.len()).for_each(|row| table.row(&mut out, row));
    out.push_str("</tbody></table></div>");
    table.notes(&mut out);
    out.push_str("</section>");
    out
}

/// What a score's column knows about all of its rows.
struct Column {
    decimals: usize,
    /// By reference.
    ranges: Vec<Range>,
}

/// What the scores of one reference's files span.
struct Range {
    /// The best, which may be without end; none where there is nothing to compare it with.
    best: Option<f64>,
    /// The best and the worst of those that have an end.
    ends: Option<(f64, f64)>,
}

impl Range {
    fn of(scores: &[f64], better_higher: bool) -> Self {
        let ends = |scores: &[f64]| {
            let high = scores.iter().copied().reduce(f64::max)?;
            let low = scores.iter().copied().reduce(f64::min)?;
            Some(if better_higher { (high, low) } else { (low, high) })
        };
        let finite: Vec<f64> = scores.iter().copied().filter(|score| score.is_finite()).collect();
        let best = ends(scores).filter(|_| scores.len() > 1).map(|(best, _)| best);
        Self { best, ends: ends(&finite) }
    }

    /// How near a score is to the best, in per cent: the length of the bar below it.
    fn goodness(&self, score: f64) -> f64 {
        match self.ends {
            _ if self.best == Some(score) => 100.0,
            Some((best, worst)) if best != worst => ((score - worst) / (best - worst) * 100.0).clamp(0.0, 100.0),
            _ => 0.0,
        }
    }
}

fn columns(report: &Report, groups: &Groups) -> Vec<Column> {
    let column = |(metric, about): (usize, &super::MetricColumn)| {
        let score = |row: usize| score(&report.rows[row], metric);
        let range = |reference| {
            let scores: Vec<f64> = groups.rows_of(reference).filter_map(score).collect();
            Range::of(&scores, about.better_higher)
        };
        Column {
            decimals: numbers::column_decimals((0..report.rows.len()).filter_map(score)),
            ranges: (0..groups.references.len()).map(range).collect(),
        }
    };
    report.metrics.iter().enumerate().map(column).collect()
}

/// A score that can be compared; it may be without end.
fn score(row: &ReportRow, metric: usize) -> Option<f64> {
    row.scores.get(metric).copied().flatten().filter(|score| !score.is_nan())
}

struct Table<'a> {
    report: &'a Report,
    groups: &'a Groups<'a>,
    gallery: &'a Gallery<'a>,
    scores: Vec<Column>,
}

impl Table<'_> {
    fn head(&self, out: &mut String) {
        out.push_str("<thead><tr>");
        if self.gallery.has_pictures() {
            out.push_str("<th scope=\"col\" class=\"look\">Look</th>");
        }
        let mut heading = |name: &str, class: &str, what: &str| {
            put!(out, "<th scope=\"col\" class=\"{class}\"><button type=\"button\" title=\"{}\">", Text(what));
            put!(out, "{}</button></th>", Text(name));
        };
        heading("File", "file", "Sort by name");
        heading("Pixels", "number", "Width and height; sorts by their product");
        heading("Size", "number", "Size of the file");
        heading("bpp", "number", "Bits per pixel");
        for metric in &self.report.metrics {
            let direction = if metric.better_higher { "↑" } else { "↓" };
            heading(&format!("{} {direction}", metric.name), "number score", &metric.what);
        }
        out.push_str("</tr></thead>");
    }

    fn row(&self, out: &mut String, number: usize) {
        let row = &self.report.rows[number];
        let member = self.groups.member(number);
        let failed = if row.error.is_some() { " class=\"failed\"" } else { "" };
        put!(out, "<tr{failed} id=\"row-{number}\" data-row=\"{number}\" data-reference=\"{}\" ", member.reference);
        put!(out, "data-series=\"{}\" data-shape=\"{} {}\">", member.series, row.width.max(1), row.height.max(1));
        if self.gallery.has_pictures() {
            self.look(out, number);
        }
        self.file(out, number);
        size(out, row);
        (0..self.report.metrics.len()).for_each(|metric| self.score(out, number, metric));
        out.push_str("</tr>");
    }

    /// The picture and the heat map, which open the viewer.
    fn look(&self, out: &mut String, number: usize) {
        let file = Text(&self.report.rows[number].file);
        let pictures =
            [("picture", "", self.gallery.picture(number)), ("map", "Heat map of ", self.gallery.heat_map(number))];
        out.push_str("<td class=\"look\">");
        if pictures.iter().any(|(_, _, uri)| uri.is_some()) {
            put!(out, "<button type=\"button\" class=\"open\" aria-label=\"Look at {file}\">");
            for (class, what, uri) in pictures {
                if let Some(uri) = uri {
                    put!(out, "<img class=\"{class}\" src=\"{uri}\" alt=\"{what}{file}\" decoding=\"async\">");
                }
            }
            out.push_str("</button>");
            self.detail(out, number);
        }
        out.push_str("</td>");
    }

    /// What the viewer shows pixel by pixel.
    fn detail(&self, out: &mut String, number: usize) {
        let Some(([reference, file], (width, height))) = self.gallery.detail(number) else { return };
        let (left, top) = self.report.rows[number].detail.as_ref().map_or((0, 0), |detail| (detail.left, detail.top));
        put!(out, "<span class=\"detail\" hidden data-shape=\"{width} {height}\" data-place=\"{left}, {top}\">");
        for (name, uri) in [("reference", reference), ("variant", file)] {
            put!(out, "<img data-of=\"{name}\" src=\"{uri}\" alt=\"\" loading=\"lazy\" decoding=\"async\">");
        }
        out.push_str("</span>");
    }

    fn file(&self, out: &mut String, number: usize) {
        let row = &self.report.rows[number];
        put!(out, "<td class=\"file\" data-by=\"{0}\"><b>{1}</b><small>", Text(&row.file), Name(&row.file));
        if self.groups.series.len() > 1 {
            let series = self.groups.member(number).series;
            put!(out, "<span>{}{}</span>", plot::swatch(series), Text(plot::or_unnamed(&row.series)));
        }
        if self.groups.references.len() > 1 {
            put!(out, "<span>of {}</span>", Name(&row.reference));
        }
        if let Some((mean, largest)) = self.gallery.distances(number) {
            let [mean, largest] = [mean, largest].map(numbers::plain);
            put!(out, "<span>distance {mean} mean, {largest} max</span>");
        }
        out.push_str("</small>");
        if let Some(error) = &row.error {
            put!(out, "<span class=\"error\" role=\"note\">⚠ {}</span>", Text(error));
        }
        out.push_str("</td>");
    }

    fn score(&self, out: &mut String, number: usize, metric: usize) {
        let (row, column) = (&self.report.rows[number], &self.scores[metric]);
        let name = Text(&self.report.metrics[metric].name);
        let Some(value) = score(row, metric) else {
            let what = if row.scores.get(metric).copied().flatten().is_some() { "not a number" } else { "no score" };
            put!(out, "<td class=\"number score none\" data-name=\"{name}\" title=\"{what}\">—</td>");
            return;
        };
        let range = &column.ranges[self.groups.member(number).reference];
        let is_best = range.best == Some(value);
        let class = if is_best { " best" } else { "" };
        let sign = if is_best { "<abbr title=\"the best for its reference\">★</abbr>" } else { "" };
        let share = range.goodness(value);
        put!(
            out,
            "<td class=\"number score{class}\" data-name=\"{name}\" data-by=\"{value}\" style=\"--share:{share:.0}%\">"
        );
        put!(out, "<span>{sign}{}</span></td>", numbers::score(value, column.decimals));
    }

    fn notes(&self, out: &mut String) {
        let left_out = self.gallery.left_out();
        if left_out > 0 {
            put!(out, "<p class=\"note\">The first {ROWS_WITH_PICTURES_MAX} files have pictures; ");
            put!(out, "those of {left_out} more are left out to keep this page small.</p>");
        }
        if self.report.rows.is_empty() {
            out.push_str("<p class=\"note\">No file was compared.</p>");
        }
    }
}

fn size(out: &mut String, row: &ReportRow) {
    let pixels = u64::from(row.width) * u64::from(row.height);
    match pixels {
        0 => out.push_str("<td class=\"number none\" data-name=\"Pixels\">—</td>"),
        _ => put!(
            out,
            "<td class=\"number\" data-name=\"Pixels\" data-by=\"{pixels}\">{} × {}</td>",
            row.width,
            row.height
        ),
    }
    let (bytes, exact) = (numbers::size(row.bytes), numbers::exact(row.bytes));
    put!(out, "<td class=\"number\" data-name=\"Size\" data-by=\"{}\" title=\"{exact} bytes\">{bytes}</td>", row.bytes);
    match numbers::bits_per_pixel(row.width, row.height, row.bytes) {
        Some(bits) => {
            put!(out, "<td class=\"number\" data-name=\"bpp\" data-by=\"{bits}\">{}</td>", numbers::rate(bits));
        }
        None => out.push_str("<td class=\"number none\" data-name=\"bpp\">—</td>"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::MetricColumn;
    use super::*;

    fn row(reference: &str, score: Option<f64>) -> ReportRow {
        let reference = reference.to_owned();
        ReportRow { reference, width: 10, height: 10, bytes: 50, scores: vec![score], ..ReportRow::default() }
    }

    /// The numbers of the rows that are marked as the best.
    fn best(better_higher: bool, rows: Vec<ReportRow>) -> Vec<usize> {
        let metric = MetricColumn { name: "M".to_owned(), better_higher, what: String::new() };
        let report = Report { metrics: vec![metric], rows, ..Report::default() };
        let html = section(&report, &Groups::of(&report), &Gallery::of(&report));
        let rows = html.split("<tr").skip(2).enumerate();
        rows.filter(|(_, row)| row.contains("score best")).map(|(number, _)| number).collect()
    }

    #[test]
    fn the_best_is_that_of_its_reference() {
        let rows = || vec![row("a", Some(1.0)), row("a", Some(2.0)), row("b", Some(9.0)), row("b", Some(8.0))];
        assert_eq!(best(true, rows()), [1, 2]);
        assert_eq!(best(false, rows()), [0, 3]);
    }

    #[test]
    fn equals_share_the_mark_and_one_alone_has_none() {
        assert_eq!(best(true, vec![row("a", Some(2.0)), row("a", Some(2.0)), row("b", Some(1.0))]), [0, 1]);
    }

    #[test]
    fn what_is_no_number_is_never_the_best() {
        let rows = vec![row("a", Some(f64::NAN)), row("a", None), row("a", Some(1.0)), row("a", Some(f64::INFINITY))];
        assert_eq!(best(true, rows), [3]);
    }

    #[test]
    fn goodness_has_no_surprises() {
        let goodness = |scores: &[f64], better_higher| {
            let range = Range::of(scores, better_higher);
            scores.iter().map(|score| range.goodness(*score)).collect::<Vec<f64>>()
        };
        assert_eq!(goodness(&[5.0, 5.0], true), [100.0, 100.0]);
        assert_eq!(goodness(&[0.0, 1.0, 4.0], false), [100.0, 75.0, 0.0]);
        assert_eq!(goodness(&[20.0, 30.0, 40.0, f64::INFINITY], true), [0.0, 50.0, 100.0, 100.0]);
        assert_eq!(goodness(&[3.0, f64::NEG_INFINITY], true), [100.0, 0.0]);
    }

    #[test]
    fn an_error_is_shown_and_is_text() {
        let failed = ReportRow { error: Some("bad <marker>".to_owned()), ..ReportRow::default() };
        let report = Report { rows: vec![failed], ..Report::default() };
        let html = section(&report, &Groups::of(&report), &Gallery::of(&report));
        assert!(html.contains("⚠ bad &lt;marker&gt;"), "{html}");
    }
}
