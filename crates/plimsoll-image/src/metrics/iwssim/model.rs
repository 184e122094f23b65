//! The model of a reference at one scale: a Gaussian scale mixture, whose covariance is the mean product of every two
//! members of a neighbourhood.

use super::eigen::{Matrix, eigen};
use super::neighbours::pairs_of;

/// The 3 x 3 and the parent.
pub(super) const MEMBERS_MAX: usize = 10;

/// What the weights of a scale are made with.
#[derive(Clone, Debug)]
pub(super) struct Model {
    /// Nine, or ten with the parent.
    pub(super) members: usize,
    /// The eigenvalues of the covariance; zero where a direction holds nothing.
    pub(super) eigenvalues: [f32; MEMBERS_MAX],
    /// Row by row, what turns a neighbourhood into uncorrelated numbers of variance one. The square of their length is
    /// what the inverse covariance would give, but cannot become negative.
    pub(super) whitening: [f32; MEMBERS_MAX * MEMBERS_MAX],
}

impl Model {
    /// From the sums of products over `count` neighbourhoods. What is below `nothing` is rounding, not variance.
    pub(super) fn new(members: usize, sums: &[f64], count: f64, nothing: f64) -> Self {
        debug_assert_eq!(sums.len(), pairs_of(members));
        let (values, vectors) = eigen(covariance(members, sums, count));
        let positive = |value: f64| if value > nothing { value } else { 0.0 };
        let (all, kept): (f64, f64) = (values.iter().sum(), values.iter().map(|&value| positive(value)).sum());
        let scale = if kept > 0.0 { all / kept } else { 0.0 };
        let values = values.map(|value| positive(value) * scale);
        let mut whitening = [0.0; MEMBERS_MAX * MEMBERS_MAX];
        // Rows that hold nothing go last, so that the first `members` rows are all there is.
        let mut order: Vec<usize> = (0..MEMBERS_MAX).collect();
        order.sort_by(|&one, &other| values[other].total_cmp(&values[one]));
        for (row, &from) in whitening.chunks_exact_mut(MEMBERS_MAX).zip(&order) {
            let unit = if values[from] > 0.0 { values[from].sqrt().recip() } else { 0.0 };
            row.iter_mut().zip(vectors[from]).for_each(|(out, value)| *out = (value * unit) as f32);
        }
        let eigenvalues = std::array::from_fn(|at| values[order[at]] as f32);
        Self { members, eigenvalues, whitening }
    }
}

/// The covariance; zero where there is no member.
fn covariance(members: usize, sums: &[f64], count: f64) -> Matrix<MEMBERS_MAX> {
    let mut matrix = [[0.0; MEMBERS_MAX]; MEMBERS_MAX];
    let pairs = (0..members).flat_map(|one| (one..members).map(move |other| (one, other)));
    for ((one, other), sum) in pairs.zip(sums) {
        matrix[one][other] = sum / count;
        matrix[other][one] = sum / count;
    }
    matrix
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Members that have nothing to do with each other, of variance 1, 4, 9, …: each is divided by its deviation.
    #[test]
    fn independent_members_are_divided_by_their_deviation() {
        let sums: Vec<f64> = (0..9)
            .flat_map(|one| {
                (one..9).map(move |other| if one == other { f64::from((one + 1) * (one + 1)) * 2.0 } else { 0.0 })
            })
            .collect();
        let model = Model::new(9, &sums, 2.0, 1e-9);
        assert_eq!(model.eigenvalues, [81.0, 64.0, 49.0, 36.0, 25.0, 16.0, 9.0, 4.0, 1.0, 0.0]);
        assert!((model.whitening[8].abs() - 1.0 / 9.0).abs() < 1e-7);
        assert!((model.whitening[8 * MEMBERS_MAX].abs() - 1.0).abs() < 1e-7);
    }
}
