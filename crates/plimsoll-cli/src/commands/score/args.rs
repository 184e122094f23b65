//! What can be typed after `plimsoll score`, and the checked plan made from it.
//! Never opens a device or a file to score.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use plimsoll::image::decode::{Background, DecodeOptions, Profiles};
use plimsoll::image::metrics::{Display, Metric, RUNGS};
use plimsoll::machine::DeviceName;
use plimsoll_results::report;
use plimsoll_results::rows::Format;

use super::heat_maps::HeatMapFolder;
use super::labels::LabelPattern;
use super::threshold::Threshold;
use crate::stop::Stop;

/// Score images against their references
///
/// Quality metrics of image files, on every device of the machine. Give a reference and its variants, two folders whose
/// files are paired by name, or a list of pairs.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A reference and its variants (files or folders), or two folders whose files are paired by name
    #[arg(value_name = "FILE", num_args = 1.., required_unless_present_any = ["pairs", "list_metrics"])]
    pub(super) files: Vec<PathBuf>,
    /// Metrics, separated by commas; `all` for all of them
    #[arg(short, long, value_name = "NAME,...", value_delimiter = ',', default_value = "ssim2", value_parser = parse_metric)]
    pub(super) metric: Vec<Asked>,
    /// A CSV file of pairs: the reference, then the distorted image
    #[arg(long, value_name = "FILE", conflicts_with = "files")]
    pub(super) pairs: Option<PathBuf>,
    /// Show what each metric is, and end
    #[arg(long)]
    pub(super) list_metrics: bool,

    /// Write the rows to this file; its ending says the format
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(super) output: Option<PathBuf>,
    /// How rows are written
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "Output")]
    pub(super) format: Option<FormatArg>,
    /// The same as --format json
    #[arg(long, conflicts_with = "format", help_heading = "Output")]
    pub(super) json: bool,
    /// Go on with the output of an earlier run: rows that are there are not scored again
    #[arg(long, requires = "output", help_heading = "Output")]
    pub(super) resume: bool,
    /// Replace the output of an earlier run
    #[arg(long, requires = "output", conflicts_with = "resume", help_heading = "Output")]
    pub(super) overwrite: bool,
    /// Write a page with plots, heat maps and thumbnails
    #[arg(long, value_name = "FILE.html", help_heading = "Output")]
    pub(super) report: Option<PathBuf>,
    /// Write a heat map of each pair into this folder: a PNG in which every pixel is one of the image
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(super) heat_maps: Option<PathBuf>,
    /// Read the encoder and the quality of each variant from its path: a pattern such as {encoder}-q{quality}, or folder
    #[arg(long, value_name = "PATTERN", help_heading = "Output")]
    pub(super) labels: Option<LabelPattern>,
    /// End with exit code 3 if a score is worse, such as ssim2=80 (or, of a distance, higher: butteraugli=1.5)
    #[arg(long, value_name = "METRIC=SCORE,...", value_delimiter = ',', help_heading = "Output")]
    pub(super) fail_below: Vec<Threshold>,
    /// Say at the end what each device did, and how close that was to the best schedule; --stats=json for other programs
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "table",
        help_heading = "Output"
    )]
    pub(super) stats: Option<StatsFormat>,
    /// Say for every score where, how and how long
    #[arg(short, long, help_heading = "Output")]
    pub(super) verbose: bool,
    /// Say why each choice was made
    #[arg(long, help_heading = "Output")]
    pub(super) explain: bool,
    /// Write what happened when, for chrome://tracing or ui.perfetto.dev
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(super) trace: Option<PathBuf>,

    /// What shows through where an image is transparent: white, black, grey or #rrggbb
    #[arg(long, value_name = "COLOUR", default_value = "white", help_heading = "Images")]
    pub(super) background: Background,
    /// Take samples as sRGB, whatever colour profile a file carries
    #[arg(long, help_heading = "Images")]
    pub(super) ignore_profiles: bool,
    /// The display that cvvdp imagines
    #[arg(long, value_name = "NAME", default_value_t = Display::STANDARD, help_heading = "Images")]
    pub(super) display: Display,

    /// Where to score: auto, cpu, gpu (any of them), or gpu:0, gpu:1 and so on
    #[arg(long, value_name = "DEVICE", default_value = "auto", value_parser = parse_device, help_heading = "Devices")]
    pub(super) device: DeviceChoice,
    /// Score on this rung only
    #[arg(long, value_name = "RUNG", value_parser = parse_rung, help_heading = "Devices")]
    pub(super) rung: Option<&'static str>,
    /// No ladder: the best rung, or an error
    #[arg(long, help_heading = "Devices")]
    pub(super) strict: bool,
    /// Tasks on the CPU at once; as many as there are cores if not given
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), help_heading = "Devices")]
    pub(super) jobs: Option<u16>,
}

const EXAMPLES: &str = "\
A row ends in an error if its files cannot be scored; the others go on, and the exit code is 1. With --output, finished \
rows survive anything, a kill included; --resume goes on from there, and adds metrics that the rows do not have yet.

Examples:
  plimsoll score samples/harbour.png samples/variants/*
  plimsoll score --metric ssim2,butteraugli original/ compressed/
  plimsoll score --pairs pairs.csv --output scores.parquet
  plimsoll score --pairs pairs.csv --output scores.parquet --resume
  plimsoll score --pairs pairs.csv --metric butteraugli --output scores.parquet --resume
  plimsoll score photo.png variants/* --labels '{encoder}-q{quality}' --report report.html
  plimsoll score photo.png variants/* --heat-maps maps/
  plimsoll score --fail-below ssim2=80 original/ compressed/
  plimsoll score photo.png variants/* --memory-limit 64MiB --explain
  plimsoll score --list-metrics";

/// How figures are shown.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum StatsFormat {
    Table,
    Json,
}

/// What stands after --metric.
#[derive(Copy, Clone, Debug)]
pub(super) enum Asked {
    All,
    One(Metric),
}

/// How rows are shown or written.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum FormatArg {
    Table,
    Csv,
    Json,
    Jsonl,
    Parquet,
}

/// What stands after --device.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum DeviceChoice {
    Auto,
    AnyGpu,
    One(DeviceName),
}

impl Args {
    /// The metrics asked for, each once, in the order in which they were named.
    pub(super) fn metrics(&self) -> Vec<Metric> {
        let asked = self.metric.iter().flat_map(|asked| match asked {
            Asked::All => Metric::ALL.to_vec(),
            Asked::One(metric) => vec![*metric],
        });
        let mut metrics = Vec::new();
        for metric in asked.map(|metric| self.on_display(metric)) {
            if !metrics.contains(&metric) {
                metrics.push(metric);
            }
        }
        metrics
    }

    fn on_display(&self, metric: Metric) -> Metric {
        if let Metric::Cvvdp(_) = metric { Metric::Cvvdp(self.display) } else { metric }
    }

    pub(super) fn decode_options(&self) -> DecodeOptions {
        let profiles = if self.ignore_profiles { Profiles::Ignore } else { Profiles::Honour };
        DecodeOptions { background: self.background, profiles, ..DecodeOptions::default() }
    }

    /// Refuses what cannot be meant together.
    pub(super) fn check(&self) -> Result<(), Stop> {
        let format = self.row_format()?;
        if self.output.is_some() && format.is_none() {
            return Err(Stop::usage("a table is for people to see; write csv, json, jsonl or parquet to a file"));
        }
        let is_scored =
            |threshold: &&Threshold| self.metrics().iter().any(|metric| metric.name() == threshold.metric.name());
        if let Some(unscored) = self.fail_below.iter().find(|threshold| !is_scored(threshold)) {
            let name = unscored.metric.name();
            return Err(Stop::usage(format_args!(
                "--fail-below names {name}, which is not scored; add it to --metric"
            )));
        }
        if let Some(folder) = &self.heat_maps {
            HeatMapFolder::open(folder)?;
        }
        if let Some(path) = &self.report {
            let elsewhere = "plimsoll score … --report report.html";
            report::check(path).map_err(|error| Stop::failed_with_causes(&error).with_next(elsewhere))?;
        }
        if self.output.is_none() && format == Some(Format::Parquet) {
            return Err(Stop::usage("parquet is written to a file; name it with --output"));
        }
        Ok(())
    }

    /// The format of rows; `None` for a table.
    pub(super) fn row_format(&self) -> Result<Option<Format>, Stop> {
        Ok(match (self.format, self.json, &self.output) {
            (Some(FormatArg::Table), _, _) => None,
            (Some(FormatArg::Csv), _, _) => Some(Format::Csv),
            (Some(FormatArg::Json), _, _) | (None, true, _) => Some(Format::Json),
            (Some(FormatArg::Jsonl), _, _) => Some(Format::JsonLines),
            (Some(FormatArg::Parquet), _, _) => Some(Format::Parquet),
            (None, false, Some(path)) => Some(Format::of_path(path).map_err(Stop::usage)?),
            (None, false, None) => None,
        })
    }

    /// What changes scores beside the files, as one text.
    pub(super) fn settings(&self) -> String {
        let profiles = if self.ignore_profiles { "ignored" } else { "honoured" };
        let shown = format!("background={} profiles={profiles}", self.background);
        match self.metrics().iter().any(|metric| matches!(metric, Metric::Cvvdp(_))) {
            true => format!("{shown} display={}", self.display),
            false => shown,
        }
    }
}

fn parse_metric(name: &str) -> Result<Asked, String> {
    match name {
        "all" => Ok(Asked::All),
        _ => {
            name.parse().map(Asked::One).map_err(|error: plimsoll::image::metrics::ParseMetricError| error.to_string())
        }
    }
}

fn parse_device(text: &str) -> Result<DeviceChoice, String> {
    match text {
        "auto" => Ok(DeviceChoice::Auto),
        "gpu" => Ok(DeviceChoice::AnyGpu),
        _ => text
            .parse()
            .map(DeviceChoice::One)
            .map_err(|_| format!("'{text}' is not a device; write auto, cpu, gpu, gpu:0, gpu:1 and so on")),
    }
}

fn parse_rung(name: &str) -> Result<&'static str, String> {
    let known = RUNGS.into_iter().find(|rung| *rung == name);
    known.ok_or_else(|| format!("there is no rung '{name}'; there are {}", RUNGS.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_named_as_people_type_them() {
        assert_eq!(parse_device("auto"), Ok(DeviceChoice::Auto));
        assert_eq!(parse_device("gpu"), Ok(DeviceChoice::AnyGpu));
        assert_eq!(parse_device("cpu"), Ok(DeviceChoice::One(DeviceName::Cpu)));
        assert_eq!(parse_device("gpu:1"), Ok(DeviceChoice::One(DeviceName::Gpu(1))));
        assert_eq!(parse_device("gpu1"), Ok(DeviceChoice::One(DeviceName::Gpu(1))));
        assert!(parse_device("tpu").is_err() && parse_device("gpu::1").is_err());
    }
}
