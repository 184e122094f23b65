//! From BT.2020's primaries to BT.709's, worked out from where both lie (ITU-R BT.2087 gives four places of the same).

type Matrix3 = [[f64; 3]; 3];

/// x and y of red, green and blue.
const BT2020: [[f64; 2]; 3] = [[0.708, 0.292], [0.170, 0.797], [0.131, 0.046]];
const BT709: [[f64; 2]; 3] = [[0.640, 0.330], [0.300, 0.600], [0.150, 0.060]];
const D65: [f64; 2] = [0.3127, 0.3290];

pub(super) const NO_CHANGE: Matrix3 = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

/// Light of red, green and blue of BT.2020 to those of BT.709.
pub(super) fn bt709_of_bt2020() -> Matrix3 {
    times(&inverse(&xyz_of(BT709)), &xyz_of(BT2020))
}

/// Light of red, green and blue to X, Y and Z.
fn xyz_of(primaries: [[f64; 2]; 3]) -> Matrix3 {
    let [red, green, blue] = primaries.map(xyz);
    let columns: Matrix3 = std::array::from_fn(|row| [red[row], green[row], blue[row]]);
    let shares = apply(&inverse(&columns), xyz(D65));
    columns.map(|row| std::array::from_fn(|column| row[column] * shares[column]))
}

/// X, Y and Z of a colour whose Y is 1.
fn xyz([x, y]: [f64; 2]) -> [f64; 3] {
    [x / y, 1.0, (1.0 - x - y) / y]
}

fn apply(matrix: &Matrix3, vector: [f64; 3]) -> [f64; 3] {
    matrix.map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum())
}

fn times(left: &Matrix3, right: &Matrix3) -> Matrix3 {
    let column = |at: usize| right.map(|row| row[at]);
    let columns: Matrix3 = std::array::from_fn(|at| apply(left, column(at)));
    std::array::from_fn(|row| columns.map(|column| column[row]))
}

/// By cofactors.
fn inverse(m: &Matrix3) -> Matrix3 {
    let cofactor = |row: usize, column: usize| {
        let [a, b] = [(row + 1) % 3, (row + 2) % 3];
        let [c, d] = [(column + 1) % 3, (column + 2) % 3];
        m[a][c] * m[b][d] - m[a][d] * m[b][c]
    };
    let determinant: f64 = (0..3).map(|column| m[0][column] * cofactor(0, column)).sum();
    std::array::from_fn(|row| std::array::from_fn(|column| cofactor(column, row) / determinant))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_matrix_of_bt_2087() {
        let published = [[1.6605, -0.5876, -0.0728], [-0.1246, 1.1329, -0.0083], [-0.0182, -0.1006, 1.1187]];
        for (got, wanted) in bt709_of_bt2020().iter().flatten().zip(published.iter().flatten()) {
            assert!((got - wanted).abs() < 6e-5, "{got}, not {wanted}");
        }
    }

    #[test]
    fn grey_stays_grey() {
        for row in bt709_of_bt2020() {
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{row:?}");
        }
    }
}
