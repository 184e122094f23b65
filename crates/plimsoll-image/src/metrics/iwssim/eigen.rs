//! Eigenvalues and eigenvectors of a small symmetric matrix, by Jacobi's rotations, in double precision.

/// A square matrix, row by row.
pub(super) type Matrix<const N: usize> = [[f64; N]; N];

/// Sweeps at most. Each squares what is left off the diagonal, so a dozen would do.
const SWEEPS_MAX: usize = 50;

/// The eigenvalues of a symmetric matrix, and their eigenvectors as rows, in no order.
pub(super) fn eigen<const N: usize>(mut matrix: Matrix<N>) -> ([f64; N], Matrix<N>) {
    let mut vectors = [[0.0; N]; N];
    (0..N).for_each(|at| vectors[at][at] = 1.0);
    let size: f64 = matrix.iter().flatten().map(|value| value * value).sum();
    for _ in 0..SWEEPS_MAX {
        let off: f64 = pairs::<N>().map(|(p, q)| matrix[p][q] * matrix[p][q]).sum();
        if off <= size * 1e-30 {
            break;
        }
        pairs::<N>().for_each(|(p, q)| rotate(&mut matrix, &mut vectors, p, q));
    }
    (std::array::from_fn(|at| matrix[at][at]), vectors)
}

fn pairs<const N: usize>() -> impl Iterator<Item = (usize, usize)> {
    (0..N).flat_map(|p| (p + 1..N).map(move |q| (p, q)))
}

/// Turns rows and columns p and q so that their product vanishes.
fn rotate<const N: usize>(matrix: &mut Matrix<N>, vectors: &mut Matrix<N>, p: usize, q: usize) {
    if matrix[p][q] == 0.0 {
        return;
    }
    let theta = (matrix[q][q] - matrix[p][p]) / (2.0 * matrix[p][q]);
    let tangent = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
    let cosine = 1.0 / (tangent * tangent + 1.0).sqrt();
    let sine = tangent * cosine;
    let turned = |one: f64, other: f64| (cosine * one - sine * other, sine * one + cosine * other);
    for row in matrix.iter_mut() {
        (row[p], row[q]) = turned(row[p], row[q]);
    }
    for at in 0..N {
        (matrix[p][at], matrix[q][at]) = turned(matrix[p][at], matrix[q][at]);
        (vectors[p][at], vectors[q][at]) = turned(vectors[p][at], vectors[q][at]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_and_values_make_the_matrix_again() {
        let matrix: Matrix<5> = std::array::from_fn(|p| std::array::from_fn(|q| 1.0 / (p + q + 1) as f64));
        let (values, vectors) = eigen(matrix);
        for (p, q) in (0..5).flat_map(|p| (0..5).map(move |q| (p, q))) {
            let again: f64 = (0..5).map(|k| values[k] * vectors[k][p] * vectors[k][q]).sum();
            assert!((again - matrix[p][q]).abs() < 1e-14, "{p} {q}");
            let product: f64 = (0..5).map(|k| vectors[p][k] * vectors[q][k]).sum();
            assert!((product - f64::from(u8::from(p == q))).abs() < 1e-14, "{p} {q}");
        }
    }
}
