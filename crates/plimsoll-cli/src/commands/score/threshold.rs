//! `--fail-below`: the worst score that will do, for whoever checks images before they ship.

use std::str::FromStr;

use plimsoll::image::metrics::{Better, Metric};
use plimsoll::score::Scored;

/// A metric and the worst score that will do.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Threshold {
    pub(super) metric: Metric,
    limit: f64,
}

impl Threshold {
    /// Whether a score is worse: below, or above for a metric whose lower scores are better.
    pub(super) fn is_missed(&self, score: f64) -> bool {
        match self.metric.about().better {
            Better::Higher => score < self.limit,
            Better::Lower => score > self.limit,
        }
    }

    /// Whether a pair has a score of this metric that is worse.
    pub(super) fn is_missed_by(&self, scored: &Scored) -> bool {
        let of_it = |name: &str| name == self.metric.name();
        let scores = scored.outcome.iter().flat_map(|scores| scores.good());
        scores.filter(|score| of_it(score.metric.name())).any(|score| self.is_missed(score.score.value))
    }
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is no threshold; write a metric and a score, such as ssim2=80");
        let (name, limit) = text.split_once('=').ok_or_else(wrong)?;
        let metric: Metric =
            name.parse().map_err(|error: plimsoll::image::metrics::ParseMetricError| error.to_string())?;
        let limit = limit.parse().ok().filter(|limit: &f64| limit.is_finite()).ok_or_else(wrong)?;
        Ok(Self { metric, limit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worse_is_below_or_above() {
        let [higher, lower] = ["ssim2=80", "butteraugli=1.5"].map(|text| text.parse::<Threshold>().expect("one"));
        assert!(higher.is_missed(79.9) && !higher.is_missed(80.0));
        assert!(lower.is_missed(1.6) && !lower.is_missed(1.5));
        assert!("ssim2".parse::<Threshold>().is_err() && "ssim2=x".parse::<Threshold>().is_err());
        assert!("vmaf=80".parse::<Threshold>().unwrap_err().contains("there is no metric 'vmaf'"));
    }
}
