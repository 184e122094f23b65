//! The rules of OME-NGFF 0.5 for axes, as far as our kinds of axes can break them.

use std::collections::BTreeSet;

use super::SpecError;
use crate::spec::{Axis, AxisKind};

/// Dimensions of a multiscale image.
const RANKS: std::ops::RangeInclusive<usize> = 2..=5;

/// Axes for a shape: the given ones if they may be kept as OME metadata, those usual for the rank if none were given.
pub(super) fn checked(given: Option<&[Axis]>, rank: usize, grows: bool) -> Result<Vec<Axis>, SpecError> {
    let Some(usual) = Axis::usual(rank, grows).filter(|_| RANKS.contains(&rank)) else {
        return Err(SpecError::MultiscaleRank { rank });
    };
    let axes = given.map_or(usual, <[Axis]>::to_vec);
    match wrong(&axes, rank) {
        Some(why) => Err(SpecError::Axes { why }),
        None => Ok(axes),
    }
}

fn wrong(axes: &[Axis], rank: usize) -> Option<String> {
    let count = |kind| axes.iter().filter(|axis| axis.kind == kind).count();
    let names: BTreeSet<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
    if axes.len() != rank {
        return Some(format!("there are {} for {rank} dimensions; give one for each", axes.len()));
    }
    if names.len() != rank || names.contains("") {
        return Some("each needs a name of its own".to_owned());
    }
    if !(2..=3).contains(&count(AxisKind::Space)) {
        return Some(format!("2 or 3 must be of space, not {}", count(AxisKind::Space)));
    }
    if count(AxisKind::Time) > 1 || count(AxisKind::Channel) > 1 {
        return Some("one may be time and one channels, not more".to_owned());
    }
    if !axes.is_sorted_by_key(|axis| rank_of(axis.kind)) {
        return Some("time comes first, then channels, then space; put the dimensions in this order".to_owned());
    }
    let unscaled = axes.iter().find(|axis| !(axis.scale.is_finite() && axis.scale > 0.0))?;
    Some(format!("'{}' has the scale {}; give a number above 0", unscaled.name, unscaled.scale))
}

const fn rank_of(kind: AxisKind) -> u8 {
    match kind {
        AxisKind::Time => 0,
        AxisKind::Channel => 1,
        AxisKind::Space => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes(names: &[&str]) -> Result<Vec<Axis>, SpecError> {
        let axes: Vec<Axis> = names.iter().map(|name| name.parse().unwrap()).collect();
        checked(Some(&axes), names.len(), false)
    }

    #[test]
    fn usual_axes_are_right() {
        for (rank, grows) in [(2, false), (2, true), (3, false), (3, true), (4, true), (5, true)] {
            assert_eq!(checked(None, rank, grows).map(|axes| axes.len()), Ok(rank));
        }
        assert_eq!(checked(None, 1, true), Err(SpecError::MultiscaleRank { rank: 1 }));
        assert_eq!(checked(None, 6, true), Err(SpecError::MultiscaleRank { rank: 6 }));
    }

    #[test]
    fn the_rules_are_held() {
        assert!(axes(&["t", "c", "y", "x"]).is_ok());
        for wrong in [&["c", "t", "y", "x"][..], &["t", "c"], &["t", "x"], &["x", "x"], &["y", "x:micrometer:0"]] {
            assert!(matches!(axes(wrong), Err(SpecError::Axes { .. })), "{wrong:?}");
        }
    }
}
