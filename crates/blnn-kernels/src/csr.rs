//! Compressed sparse rows: [`Pattern`] (where the entries are) and [`Csr`] (with values).
//!
//! ```text
//!  [ . a . b ]     offsets = [0, 2, 2, 3]     (row i is entries offsets[i]..offsets[i+1])
//!  [ . . . . ]     indices = [1, 3, 0]        (columns, strictly increasing in a row)
//!  [ c . . . ]     values  = [a, b, c]
//! ```

use std::fmt;
use std::ops::Range;

/// The positions of the entries of a sparse matrix.
///
/// Invariants, checked by [`Pattern::new`]: `offsets` has `rows + 1` non-decreasing values from 0
/// to `indices.len()`; in each row the columns increase strictly and are below `cols`.
#[derive(Clone, PartialEq, Eq)]
pub struct Pattern {
    cols: usize,
    offsets: Vec<usize>,
    indices: Vec<u32>,
}

/// No rows and no columns.
impl Default for Pattern {
    fn default() -> Self {
        Self { cols: 0, offsets: vec![0], indices: Vec::new() }
    }
}

/// Why arrays are not a valid sparse matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsrError(String);

impl fmt::Display for CsrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CsrError {}

impl Pattern {
    /// A pattern from its arrays.
    ///
    /// # Errors
    /// If the arrays break an invariant; the message names the row.
    pub fn new(cols: usize, offsets: Vec<usize>, indices: Vec<u32>) -> Result<Self, CsrError> {
        if offsets.first() != Some(&0) || offsets.last() != Some(&indices.len()) {
            let n = indices.len();
            return Err(CsrError(format!("row offsets must run from 0 to the {n} entries")));
        }
        // Entries and rows are numbered in 32 bits.
        if u32::try_from(indices.len().max(offsets.len())).is_err() {
            return Err(CsrError("more than 2³² − 1 entries or rows".into()));
        }
        for (row, bounds) in offsets.windows(2).enumerate() {
            let entries = indices.get(bounds[0]..bounds[1]);
            let entries =
                entries.ok_or_else(|| CsrError(format!("row {row}: offsets are not ordered")))?;
            if let Some(bad) = entries.iter().find(|&&c| c as usize >= cols) {
                return Err(CsrError(format!("row {row}: column {bad} of a matrix with {cols}")));
            }
            if entries.windows(2).any(|pair| pair[0] >= pair[1]) {
                return Err(CsrError(format!("row {row}: columns do not increase strictly")));
            }
        }
        Ok(Self { cols, offsets, indices })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of entries.
    pub fn entries(&self) -> usize {
        self.indices.len()
    }

    /// `offsets()[i]..offsets()[i + 1]` are the entries of row `i`.
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// The column of every entry.
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// The entries of row `i`, as a range into [`Pattern::indices`].
    pub fn range(&self, i: usize) -> Range<usize> {
        self.offsets[i]..self.offsets[i + 1]
    }

    /// The columns of row `i`.
    pub fn row(&self, i: usize) -> &[u32] {
        &self.indices[self.range(i)]
    }

    /// The transposed pattern, and for each of its entries the entry of `self` it came from.
    pub fn transpose(&self) -> (Self, Vec<u32>) {
        let mut offsets = vec![0; self.cols + 1];
        for &c in &self.indices {
            offsets[c as usize + 1] += 1;
        }
        for c in 0..self.cols {
            offsets[c + 1] += offsets[c];
        }
        let mut next = offsets.clone();
        let mut indices = vec![0; self.entries()];
        let mut origin = vec![0; self.entries()];
        for row in 0..self.rows() {
            for entry in self.range(row) {
                let slot = &mut next[self.indices[entry] as usize];
                indices[*slot] = row as u32;
                origin[*slot] = entry as u32;
                *slot += 1;
            }
        }
        (Self { cols: self.rows(), offsets, indices }, origin)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({}×{}, {} entries)", self.rows(), self.cols, self.entries())
    }
}

/// A sparse matrix: a [`Pattern`] with one value an entry.
#[derive(Clone, PartialEq, Default)]
pub struct Csr {
    pattern: Pattern,
    values: Vec<f32>,
}

impl Csr {
    /// A sparse matrix from a pattern and the value of each entry.
    ///
    /// # Errors
    /// If there is not one value for each entry.
    pub fn new(pattern: Pattern, values: Vec<f32>) -> Result<Self, CsrError> {
        if values.len() != pattern.entries() {
            let (v, e) = (values.len(), pattern.entries());
            return Err(CsrError(format!("{v} values for {e} entries")));
        }
        Ok(Self { pattern, values })
    }

    /// Where the entries are.
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// The value of every entry.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The value of every entry, for writing.
    pub fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }

    /// Columns and values of row `i`.
    pub fn row(&self, i: usize) -> (&[u32], &[f32]) {
        let range = self.pattern.range(i);
        (&self.pattern.indices[range.clone()], &self.values[range])
    }

    /// The value that all entries of a row share, one for each row (1 for an empty one); `None`
    /// if the values of any row differ.
    pub fn row_factors(&self) -> Option<Vec<f32>> {
        let factor = |i: usize| {
            let values = self.row(i).1;
            let first = values.first().copied().unwrap_or(1.0);
            values.iter().all(|&v| v == first).then_some(first)
        };
        (0..self.pattern.rows()).map(factor).collect()
    }

    /// The transposed matrix.
    #[must_use]
    pub fn transpose(&self) -> Self {
        let (pattern, origin) = self.pattern.transpose();
        let values = origin.iter().map(|&e| self.values[e as usize]).collect();
        Self { pattern, values }
    }
}

impl fmt::Debug for Csr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Csr({:?})", self.pattern)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_equal_values_have_a_factor() {
        let matrix = |values: [f32; 3]| {
            let pattern = Pattern::new(3, vec![0, 2, 2, 3], vec![0, 2, 1]).unwrap();
            Csr::new(pattern, values.into()).unwrap()
        };
        assert_eq!(matrix([0.5, 0.5, 2.0]).row_factors(), Some(vec![0.5, 1.0, 2.0]));
        assert_eq!(matrix([0.5, 0.25, 2.0]).row_factors(), None);
    }

    #[test]
    fn transpose_twice_is_identity() {
        let p = Pattern::new(4, vec![0, 2, 2, 5], vec![1, 3, 0, 1, 3]).unwrap();
        let m = Csr::new(p, vec![1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        let t = m.transpose();
        assert_eq!(t.row(1), (&[0, 2][..], &[1.0, 4.0][..]));
        assert_eq!(t.transpose(), m);
    }

    #[test]
    fn broken_arrays_are_refused() {
        assert!(Pattern::new(2, vec![], vec![]).is_err());
        assert!(Pattern::new(2, vec![0, 3], vec![0, 1]).is_err());
        assert!(Pattern::new(2, vec![0, 2, 1, 2], vec![0, 1]).is_err());
        assert!(Pattern::new(2, vec![0, 1], vec![2]).is_err());
        assert!(Pattern::new(2, vec![0, 2], vec![1, 1]).is_err());
        assert!(Csr::new(Pattern::new(2, vec![0, 1], vec![1]).unwrap(), vec![]).is_err());
    }
}
