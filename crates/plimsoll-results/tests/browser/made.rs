//! Reports with made data: a landscape and a portrait, files that are coarser the smaller they are, hostile names.
//! Scores are made too: they rise with the rate and tell nothing about any format.

use std::sync::LazyLock;

use plimsoll_results::report::{HeatMap, MetricColumn, Picture, ReferenceImage, Report, ReportRow};

/// The made report, made once for all tests.
pub(crate) static REPORT: LazyLock<Report> = LazyLock::new(report);

const HOSTILE: &str = "<script>document.title='owned'</script>\"'&amp; 画像 🎨.jpg";

/// Two references, fourteen files: thirteen with scores, one that failed.
fn report() -> Report {
    let [harbour, portrait] = [("harbour.png", 1200, 800), ("<b>portrait</b>.png", 600, 900)].map(reference);
    let mut rows = Vec::new();
    let rates =
        [("JPEG", 0.42, [0.36, 0.9, 2.2]), ("AVIF", 0.72, [0.12, 0.4, 1.3]), ("JPEG XL", 0.8, [0.21, 0.75, 2.9])];
    for (series, skill, rates) in rates {
        rows.extend(rates.map(|rate| file(&harbour, series, skill, rate)));
    }
    for (series, skill, rates) in [("JPEG", 0.42, [0.5, 1.6]), ("AVIF", 0.72, [0.2, 0.8])] {
        rows.extend(rates.map(|rate| file(&portrait, series, skill, rate)));
    }
    rows[2].file = HOSTILE.to_owned();
    rows[3].scores[2] = Some(f64::NAN);
    rows[8].scores[3] = Some(f64::INFINITY);
    let mut failed = file(&harbour, "AVIF", 0.7, 0.05);
    failed.file = "\u{202e}fiva.<img src=x onerror=alert(1)>".to_owned();
    failed.error = Some("the file ends after 512 of 6000 bytes <here>".to_owned());
    failed.scores = vec![None; 4];
    (failed.picture, failed.heat_map) = (None, None);
    rows.push(failed);
    Report {
        title: "14 files against 2 references".to_owned(),
        command: "plimsoll score harbour.png portrait.png variants/* --report report.html".to_owned(),
        summary: facts(&[("images", "14"), ("metrics", "4"), ("images per second", "212"), ("devices", "GPU 0 + CPU")]),
        metrics: metrics(),
        references: vec![harbour, portrait],
        rows,
        heat_map_of: "Butteraugli distance".to_owned(),
        figures: String::new(),
    }
}

/// Reports at the edges of what can be asked for.
pub(crate) fn odd() -> Vec<(&'static str, Report)> {
    let whole = &*REPORT;
    let with = |rows: Vec<ReportRow>| Report { rows, ..whole.clone() };
    let mut bare = with(whole.rows[..6].to_vec());
    bare.rows.iter_mut().for_each(|row| (row.picture, row.heat_map) = (None, None));
    bare.metrics.truncate(1);
    bare.references.clear();
    let mut equal = with(vec![whole.rows[1].clone(); 4]);
    equal.metrics.truncate(2);
    vec![
        ("empty", Report::default()),
        ("one-file", with(whole.rows[..1].to_vec())),
        ("equal-files", equal),
        ("only-a-failure", with(whole.rows[13..].to_vec())),
        ("no-pictures", bare),
    ]
}

fn facts(facts: &[(&str, &str)]) -> Vec<(String, String)> {
    facts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn metrics() -> Vec<MetricColumn> {
    let metric = |name: &str, better_higher, what: &str| MetricColumn {
        name: name.to_owned(),
        better_higher,
        what: what.to_owned(),
    };
    vec![
        metric("SSIMULACRA2", true, "100 is the same, 90 looks the same"),
        metric("Butteraugli", false, "1 is a difference that some see"),
        metric("DSSIM", false, "structure, 0 is the same"),
        metric("PSNR", true, "dB"),
    ]
}

fn reference((name, width, height): (&str, u32, u32)) -> ReferenceImage {
    let picture = Some(scene(width, height, 1, 0.0));
    ReferenceImage { name: name.to_owned(), width, height, bytes: u64::from(width * height * 2), picture }
}

fn file(reference: &ReferenceImage, series: &str, skill: f64, rate: f64) -> ReportRow {
    let (width, height) = (reference.width, reference.height);
    let quality = 1.0 - (-(rate * 3.0 * skill).powf(0.7)).exp();
    let block = (16.0 * (1.0 - quality)).max(2.0) as u32;
    let picture = scene(width, height, block, (1.0 - quality) as f32 * 40.0);
    ReportRow {
        reference: reference.name.clone(),
        file: format!("variants/{}-{rate}.{}", reference.name.trim_end_matches(".png"), series.to_lowercase()),
        series: series.to_owned(),
        width,
        height,
        bytes: (f64::from(width * height) * rate / 8.0) as u64,
        scores: vec![
            Some(100.0 * quality - 4.0),
            Some(0.4 + 9.0 * (1.0 - quality).powi(2)),
            Some(0.12 * (1.0 - quality).powf(3.2)),
            Some(24.0 + 26.0 * quality),
        ],
        error: None,
        heat_map: reference.picture.as_ref().map(|whole| distance(whole, &picture)),
        picture: Some(picture),
        detail: None,
    }
}

/// A shore at dusk, seen through blocks of pixels, its colours rounded by `coarse`.
fn scene(width: u32, height: u32, block: u32, coarse: f32) -> Picture {
    let mut rgb = Vec::with_capacity((width * height * 3) as usize);
    for y in 0..height {
        for x in 0..width {
            // Only what is fine gets lost: a block keeps half of each pixel.
            let [near, far] =
                [(x, y), (x / block * block, y / block * block)].map(|(x, y)| colour(x, y, width, height));
            let mixed = [0, 1, 2].map(|at| if block == 1 { near[at] } else { 0.35 * near[at] + 0.65 * far[at] });
            rgb.extend(mixed.map(|value| if coarse < 1.0 { value } else { (value / coarse).round() * coarse } as u8));
        }
    }
    Picture { width, height, rgb }
}

fn colour(x: u32, y: u32, width: u32, height: u32) -> [f32; 3] {
    let side = width.min(height) as f32;
    let (u, v) = (x as f32 / side, y as f32 / height as f32);
    let grain = (x.wrapping_mul(374_761_393) ^ y.wrapping_mul(668_265_263)).wrapping_mul(1_274_126_177) >> 24;
    let grain = grain as f32 / 255.0;
    let hill = |base: f32, steep: f32, phase: f32| {
        base + steep * ((u * 5.0 + phase).sin() * 0.5 + (u * 13.0 + phase * 3.0).sin() * 0.2 + (u * 37.0).sin() * 0.06)
    };
    let sun = ((u - 0.8).powi(2) + (v - 0.34).powi(2)).sqrt();
    if v > hill(0.78, 0.08, 2.0) {
        let stripe = (u * 90.0 + v * 160.0).sin() * 0.5 + 0.5;
        return [18.0 + 34.0 * grain + 20.0 * stripe, 34.0 + 40.0 * grain + 22.0 * stripe, 40.0 + 24.0 * grain];
    }
    if v > hill(0.6, 0.1, 0.0) {
        return [52.0 + 16.0 * grain, 62.0 + 14.0 * grain, 92.0 + 12.0 * grain];
    }
    if sun < 0.09 {
        return [255.0, 236.0, 190.0];
    }
    let glow = (1.0 - sun * 1.3).max(0.0).powi(2);
    [70.0 + 120.0 * v + 110.0 * glow, 96.0 + 70.0 * v + 60.0 * glow, 160.0 - 30.0 * v].map(|value| value.min(250.0))
}

/// How far the pixels are apart, over neighbourhoods of 5 by 5.
fn distance(reference: &Picture, picture: &Picture) -> HeatMap {
    let (width, height) = (picture.width as usize, picture.height as usize);
    let apart: Vec<f32> = reference
        .rgb
        .chunks(3)
        .zip(picture.rgb.chunks(3))
        .map(|(a, b)| f32::from(a[1].abs_diff(b[1])) / 12.0)
        .collect();
    let around = |x: usize, y: usize| {
        let rows = y.saturating_sub(2)..(y + 3).min(height);
        let sum: f32 = rows.flat_map(|y| &apart[y * width + x.saturating_sub(2)..y * width + (x + 3).min(width)]).sum();
        sum / 25.0
    };
    let values = (0..width * height).map(|at| around(at % width, at / width)).collect();
    HeatMap { width: picture.width, height: picture.height, values }
}
