//! What each file gives for its bits: one plot a metric, drawn as SVG, so that it is there without a script.
//! Up is better on every plot (the axis of a distance is turned), left is smaller.
//! Invariant: a row has a point exactly where it has a rate and a finite score; the plot says how many have none.

use super::groups::{Groups, Member};
use super::html::{Text, put};
use super::numbers::{self, bits_per_pixel};
use super::scale::{Scale, Spread};
use super::{MetricColumn, Report};

/// The plot's own units, about a pixel each where three plots stand side by side.
const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 316.0;
const TOP: f64 = 12.0;
const RIGHT: f64 = 14.0;
const BOTTOM: f64 = 46.0;

/// Width of a digit on an axis.
const DIGIT: f64 = 7.0;

/// Series colours are told apart by all kinds of colour vision (Okabe and Ito); the stylesheet has them for light and
/// for dark.
const COLOURS: usize = 7;

/// Marks of the series, around 0. Six marks and seven colours give 42 series a look of their own.
const MARKS: [&str; 6] = [
    "M-4.2 0a4.2 4.2 0 1 0 8.4 0a4.2 4.2 0 1 0-8.4 0z",
    "M-3.8-3.8h7.6v7.6h-7.6z",
    "M0-5l4.8 8.4h-9.6z",
    "M0-5.2l5.2 5.2l-5.2 5.2l-5.2-5.2z",
    "M0 5l4.8-8.4h-9.6z",
    "M-1.7-5h3.4v3.3h3.3v3.4h-3.3v3.3h-3.4v-3.3h-3.3v-3.4h3.3z",
];

/// Dashes of the references' lines.
const DASHES: [&str; 4] = ["none", "6 4", "2 3", "9 3 2 3"];

/// A row's place on one plot.
struct Point {
    row: usize,
    member: Member,
    rate: f64,
    score: f64,
}

/// All plots with their legend; nothing where no row has a rate.
pub(crate) fn section(report: &Report, groups: &Groups) -> String {
    let mut section = String::new();
    let Some(rates) = Scale::for_rates(report.rows.iter().filter(has_score).filter_map(rate)) else {
        return section;
    };
    put!(
        section,
        "<section aria-labelledby=\"plots-title\"><div class=\"head\"><h2 id=\"plots-title\">Quality for size</h2>"
    );
    put!(section, "<p>Each mark is a file. Up is better, left is smaller.</p></div>");
    legend(&mut section, groups);
    put!(section, "<div class=\"plots n{}\">", report.metrics.len().min(4));
    for (number, metric) in report.metrics.iter().enumerate() {
        figure(&mut section, metric, &points(report, groups, number), &rates, report);
    }
    section.push_str("</div></section>");
    section
}

fn rate(row: &super::ReportRow) -> Option<f64> {
    bits_per_pixel(row.width, row.height, row.bytes)
}

/// Whether it is on any plot; the others would only make the axis longer.
fn has_score(row: &&super::ReportRow) -> bool {
    row.scores.iter().flatten().any(|score| score.is_finite())
}

/// The points of a metric, line after line, each line by rising rate.
fn points(report: &Report, groups: &Groups, metric: usize) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    for (row, given) in report.rows.iter().enumerate() {
        let score = given.scores.get(metric).copied().flatten().filter(|score| score.is_finite());
        if let (Some(rate), Some(score)) = (rate(given), score) {
            points.push(Point { row, member: groups.member(row), rate, score });
        }
    }
    points.sort_by(|a, b| a.member.cmp(&b.member).then(a.rate.total_cmp(&b.rate)).then(a.score.total_cmp(&b.score)));
    points
}

fn legend(section: &mut String, groups: &Groups) {
    put!(section, "<div class=\"legend\">");
    for (number, name) in groups.series.iter().enumerate().filter(|_| groups.series.len() > 1) {
        put!(section, "<button type=\"button\" class=\"series\" data-series=\"{number}\" aria-pressed=\"true\">");
        put!(section, "{}{}</button>", swatch(number), Text(or_unnamed(name)));
    }
    if groups.references.len() > 1 {
        put!(section, "<span class=\"dashes\">");
        for (number, name) in groups.references.iter().enumerate().take(DASHES.len()) {
            put!(
                section,
                "<span data-reference=\"{number}\"><svg class=\"dash\" viewBox=\"0 0 28 10\" aria-hidden=\"true\">"
            );
            put!(section, "<path d=\"M1 5h26\" stroke-dasharray=\"{}\"/></svg>{}</span>", dash(number), Text(name));
        }
        put!(section, "</span><label class=\"choose\" hidden>Reference <select><option value=\"\">all</option>");
        for (number, name) in groups.references.iter().enumerate() {
            put!(section, "<option value=\"{number}\">{}</option>", Text(name));
        }
        put!(section, "</select></label>");
    }
    section.push_str("</div>");
}

/// The mark of a series, to stand beside its name.
pub(crate) fn swatch(series: usize) -> String {
    let (colour, mark) = (series % COLOURS, MARKS[series % MARKS.len()]);
    format!("<svg class=\"swatch s{colour}\" viewBox=\"-6 -6 12 12\" aria-hidden=\"true\"><path d=\"{mark}\"/></svg>")
}

/// The name of a series, or a word for the one without.
pub(crate) fn or_unnamed(series: &str) -> &str {
    if series.is_empty() { "files" } else { series }
}

fn dash(reference: usize) -> &'static str {
    DASHES[reference % DASHES.len()]
}

fn figure(section: &mut String, metric: &MetricColumn, points: &[Point], rates: &Scale, report: &Report) {
    let direction = if metric.better_higher { "higher is better" } else { "lower is better" };
    put!(section, "<figure class=\"plot\"><figcaption><b>{}</b> {direction}", Text(&metric.name));
    if !metric.what.is_empty() {
        put!(section, " <small>{}</small>", Text(&metric.what));
    }
    section.push_str("</figcaption>");
    match Scale::for_scores(points.iter().map(|point| point.score), metric.better_higher) {
        Some(scores) => draw(section, &Frame::new(metric, rates, &scores), points, report),
        None => section.push_str("<p class=\"nothing\">No file has this score.</p>"),
    }
    let missing = report.rows.len() - points.len();
    if missing > 0 && !points.is_empty() {
        let files = if missing == 1 { "file" } else { "files" };
        put!(section, "<p class=\"missing\">{missing} {files} not shown: no finite score, or no size.</p>");
    }
    section.push_str("</figure>");
}

fn draw(section: &mut String, frame: &Frame, points: &[Point], report: &Report) {
    let name = Text(&frame.metric.name);
    put!(section, "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"group\" ");
    put!(section, "aria-label=\"{name} over bits per pixel, {} files\">", points.len());
    frame.axes(section);
    for line in points.chunk_by(|a, b| a.member == b.member).filter(|line| line.len() > 1) {
        frame.line(section, line);
    }
    for point in points {
        frame.point(section, point, &report.rows[point.row].file);
    }
    section.push_str("</svg>");
}

/// The area between the axes of one plot.
struct Frame<'a> {
    metric: &'a MetricColumn,
    rates: &'a Scale,
    scores: &'a Scale,
    left: f64,
}

impl<'a> Frame<'a> {
    fn new(metric: &'a MetricColumn, rates: &'a Scale, scores: &'a Scale) -> Self {
        let longest = scores.ticks().iter().map(|(_, text)| text.chars().count()).max().unwrap_or(0);
        Self { metric, rates, scores, left: 32.0 + DIGIT * longest as f64 }
    }

    fn x(&self, rate: f64) -> f64 {
        self.left + self.rates.place(rate) * (WIDTH - RIGHT - self.left)
    }

    /// Better is up.
    fn y(&self, score: f64) -> f64 {
        let place = self.scores.place(score);
        let down = if self.metric.better_higher { 1.0 - place } else { place };
        TOP + down * (HEIGHT - BOTTOM - TOP)
    }

    fn axes(&self, out: &mut String) {
        let (left, right, bottom) = (self.left, WIDTH - RIGHT, HEIGHT - BOTTOM);
        put!(out, "<g class=\"axes\">");
        for (rate, text) in self.rates.ticks() {
            let x = self.x(rate);
            put!(
                out,
                "<path d=\"M{x:.1} {TOP}V{bottom}\"/><text x=\"{x:.1}\" y=\"{:.1}\">{text}</text>",
                bottom + 17.0
            );
        }
        for (score, text) in self.scores.ticks() {
            let y = self.y(score);
            put!(out, "<path d=\"M{left:.1} {y:.1}H{right}\"/>");
            put!(out, "<text class=\"end\" x=\"{:.1}\" y=\"{y:.1}\" dy=\".35em\">{text}</text>", left - 7.0);
        }
        put!(out, "<path class=\"frame\" d=\"M{left:.1} {TOP}V{bottom}H{right}\"/>");
        let middle = f64::midpoint(left, right);
        let spread = if self.rates.spread == Spread::Logarithmic { ", logarithmic" } else { "" };
        put!(out, "<text class=\"what\" x=\"{middle:.1}\" y=\"{:.1}\">bits per pixel{spread}</text>", HEIGHT - 8.0);
        self.score_label(out);
        out.push_str("</g>");
    }

    fn score_label(&self, out: &mut String) {
        let middle = f64::midpoint(TOP, HEIGHT - BOTTOM);
        let spread = if self.scores.spread == Spread::Logarithmic { ", logarithmic" } else { "" };
        let turned = if self.metric.better_higher { "" } else { ", axis turned" };
        let name = Text(&self.metric.name);
        put!(
            out,
            "<text class=\"what\" transform=\"translate(13 {middle:.1})rotate(-90)\">{name}{spread}{turned} →</text>"
        );
    }

    fn line(&self, out: &mut String, line: &[Point]) {
        let Member { series, reference } = line[0].member;
        put!(
            out,
            "<path class=\"line s{}\" data-series=\"{series}\" data-reference=\"{reference}\" ",
            series % COLOURS
        );
        put!(out, "stroke-dasharray=\"{}\" d=\"", dash(reference));
        for (number, point) in line.iter().enumerate() {
            let step = if number == 0 { 'M' } else { 'L' };
            put!(out, "{step}{:.1} {:.1}", self.x(point.rate), self.y(point.score));
        }
        out.push_str("\"/>");
    }

    fn point(&self, out: &mut String, point: &Point, file: &str) {
        let Member { series, reference } = point.member;
        let (x, y) = (self.x(point.rate), self.y(point.score));
        let [score, rate] = [numbers::plain(point.score), numbers::rate(point.rate)];
        put!(out, "<g class=\"point s{}\" data-row=\"{}\" data-series=\"{series}\" ", series % COLOURS, point.row);
        put!(out, "data-reference=\"{reference}\" transform=\"translate({x:.1} {y:.1})\"><title>");
        put!(out, "{}: {} {score} at {rate} bits per pixel</title>", Text(file), Text(&self.metric.name));
        put!(out, "<path d=\"{}\"/></g>", MARKS[series % MARKS.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::ReportRow;
    use super::*;

    fn row(reference: &str, series: &str, bytes: u64, score: Option<f64>) -> ReportRow {
        ReportRow {
            reference: reference.to_owned(),
            series: series.to_owned(),
            file: format!("{series}-{bytes}"),
            width: 100,
            height: 100,
            bytes,
            scores: vec![score],
            ..ReportRow::default()
        }
    }

    fn report(better_higher: bool, rows: Vec<ReportRow>) -> Report {
        let metric = MetricColumn { name: "M".to_owned(), better_higher, what: String::new() };
        Report { metrics: vec![metric], rows, ..Report::default() }
    }

    fn drawn(report: &Report) -> String {
        section(report, &Groups::of(report))
    }

    /// The places of all points, in the order of the rows.
    fn places(svg: &str) -> Vec<(f64, f64)> {
        let mut found: Vec<(usize, (f64, f64))> = Vec::new();
        for point in svg.split("<g class=\"point").skip(1) {
            let between = |start: &str, end: &str| point.split(start).nth(1).unwrap().split(end).next().unwrap();
            let (x, y) = between("translate(", ")").split_once(' ').unwrap();
            found.push((between("data-row=\"", "\"").parse().unwrap(), (x.parse().unwrap(), y.parse().unwrap())));
        }
        found.sort_by_key(|(row, _)| *row);
        found.into_iter().map(|(_, place)| place).collect()
    }

    fn count(text: &str, part: &str) -> usize {
        text.matches(part).count()
    }

    #[test]
    fn up_is_better_whichever_way_the_score_runs() {
        let rows = vec![row("r", "a", 1000, Some(1.0)), row("r", "a", 2000, Some(2.0))];
        let higher = places(&drawn(&report(true, rows.clone())));
        assert!(higher[1].1 < higher[0].1 && higher[1].0 > higher[0].0, "{higher:?}");
        let lower = places(&drawn(&report(false, rows)));
        assert!(lower[1].1 > lower[0].1, "{lower:?}");
    }

    #[test]
    fn lines_link_files_of_one_series_and_one_reference() {
        let rows = vec![
            row("r", "a", 3000, Some(3.0)),
            row("r", "a", 1000, Some(1.0)),
            row("q", "a", 1000, Some(2.0)),
            row("q", "a", 4000, Some(4.0)),
            row("r", "b", 2000, Some(2.0)),
        ];
        let svg = drawn(&report(true, rows));
        assert_eq!((count(&svg, "class=\"line "), count(&svg, "class=\"point ")), (2, 5));
        let line = svg.split("class=\"line ").nth(1).unwrap().split("d=\"").nth(1).unwrap().split('"').next().unwrap();
        let xs: Vec<f64> =
            line[1..].split('L').map(|point| point.split(' ').next().unwrap().parse().unwrap()).collect();
        assert!(xs[0] < xs[1], "{line}");
    }

    #[test]
    fn a_single_point_and_equal_points_are_drawn_inside() {
        for rows in [vec![row("r", "a", 1000, Some(5.0))], vec![row("r", "a", 1000, Some(5.0)); 3]] {
            let wanted = rows.len();
            let places = places(&drawn(&report(true, rows)));
            assert_eq!(places.len(), wanted);
            assert!(places.iter().all(|(x, y)| (0.0..WIDTH).contains(x) && (0.0..HEIGHT).contains(y)), "{places:?}");
        }
    }

    #[test]
    fn equal_rates_make_an_upright_line() {
        let rows = vec![row("r", "a", 1000, Some(5.0)), row("r", "a", 1000, Some(7.0))];
        let places = places(&drawn(&report(true, rows)));
        assert!(places[0].0 == places[1].0 && places[0].1 > places[1].1, "{places:?}");
    }

    #[test]
    fn files_without_a_finite_score_or_size_are_counted() {
        let scores = [Some(1.0), None, Some(f64::NAN), Some(f64::INFINITY)];
        let mut rows: Vec<ReportRow> = scores.into_iter().map(|score| row("r", "a", 1000, score)).collect();
        rows.push(row("r", "a", 0, Some(1.0)));
        let svg = drawn(&report(true, rows));
        assert_eq!(places(&svg).len(), 1);
        assert!(svg.contains("4 files not shown"), "{svg}");
    }

    #[test]
    fn a_metric_without_scores_says_so_and_no_rows_draw_nothing() {
        let mut without = report(true, vec![row("r", "a", 1000, None), row("r", "a", 1000, None)]);
        assert_eq!(drawn(&without), "");
        without.metrics.push(MetricColumn::default());
        without.rows[0].scores.push(Some(1.0));
        assert!(drawn(&without).contains("No file has this score"));
        assert_eq!(drawn(&report(true, vec![])), "");
    }

    #[test]
    fn names_are_text() {
        let mut hostile = row("r", "<i>", 1000, Some(1.0));
        hostile.file = "\"><script>".to_owned();
        let svg = drawn(&report(true, vec![hostile, row("r", "b", 1, Some(2.0))]));
        assert!(!svg.contains("<script") && !svg.contains("<i>") && svg.contains("&lt;script&gt;"), "{svg}");
    }
}
