//! How well clusters agree with classes.

/// Counts of rows by class and cluster.
struct Contingency {
    cells: Vec<f64>,
    classes: Vec<f64>,
    clusters: Vec<f64>,
    rows: f64,
}

impl Contingency {
    fn new(classes: &[u32], clusters: &[u32]) -> Self {
        let size = |v: &[u32]| v.iter().max().map_or(0, |&m| m as usize + 1);
        let (rows, cols) = (size(classes), size(clusters));
        let mut table = Self {
            cells: vec![0.0; rows * cols],
            classes: vec![0.0; rows],
            clusters: vec![0.0; cols],
            rows: classes.len() as f64,
        };
        for (&class, &cluster) in classes.iter().zip(clusters) {
            table.cells[class as usize * cols + cluster as usize] += 1.0;
            table.classes[class as usize] += 1.0;
            table.clusters[cluster as usize] += 1.0;
        }
        table
    }

    fn entropy(&self, counts: &[f64]) -> f64 {
        let share = |&&c: &&f64| c > 0.0;
        let terms = counts.iter().filter(share);
        -terms.map(|c| c / self.rows * (c / self.rows).ln()).sum::<f64>()
    }

    fn mutual_information(&self) -> f64 {
        let cols = self.clusters.len();
        let term = |(cell, &count): (usize, &f64)| {
            let expected = self.classes[cell / cols] * self.clusters[cell % cols] / self.rows;
            if count > 0.0 { count / self.rows * (count / expected).ln() } else { 0.0 }
        };
        self.cells.iter().enumerate().map(term).sum::<f64>().max(0.0)
    }
}

/// Mutual information of classes and clusters, relative to the mean of their entropies
/// (scikit-learn's `normalized_mutual_info_score`), in [0, 1].
///
/// ```
/// assert_eq!(blnn::eval::normalized_mutual_information(&[0, 0, 1, 1], &[1, 1, 0, 0]), 1.0);
/// assert_eq!(blnn::eval::normalized_mutual_information(&[0, 0, 1, 1], &[0, 1, 0, 1]), 0.0);
/// ```
///
/// # Panics
/// If the lengths differ.
#[track_caller]
pub fn normalized_mutual_information(classes: &[u32], clusters: &[u32]) -> f64 {
    assert_eq!(classes.len(), clusters.len(), "one cluster a row");
    let table = Contingency::new(classes, clusters);
    let mean = f64::midpoint(table.entropy(&table.classes), table.entropy(&table.clusters));
    // One class and one cluster: they agree.
    if mean == 0.0 { 1.0 } else { (table.mutual_information() / mean).min(1.0) }
}

/// How far each cluster holds rows of one class only (scikit-learn's `homogeneity_score`): mutual
/// information relative to the entropy of the classes, in [0, 1].
///
/// ```
/// assert_eq!(blnn::eval::homogeneity(&[0, 0, 1, 1], &[0, 1, 2, 3]), 1.0);
/// ```
///
/// # Panics
/// If the lengths differ.
#[track_caller]
pub fn homogeneity(classes: &[u32], clusters: &[u32]) -> f64 {
    assert_eq!(classes.len(), clusters.len(), "one cluster a row");
    let table = Contingency::new(classes, clusters);
    let entropy = table.entropy(&table.classes);
    if entropy == 0.0 { 1.0 } else { (table.mutual_information() / entropy).min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_scikit_learn() {
        // normalized_mutual_info_score, homogeneity_score of scikit-learn 1.9.1.
        let (classes, clusters) = ([0, 0, 1, 1, 2, 2, 2], [0, 0, 0, 1, 1, 1, 1]);
        assert!((normalized_mutual_information(&classes, &clusters) - NMI).abs() < 1e-12);
        assert!((homogeneity(&classes, &clusters) - HOMOGENEITY).abs() < 1e-12);
    }

    const NMI: f64 = 0.550_389_882_617_647_2;
    const HOMOGENEITY: f64 = 0.449_369_374_099_248_5;

    #[test]
    fn one_class_and_unused_numbers_are_no_trouble() {
        assert!((normalized_mutual_information(&[3, 3], &[5, 5]) - 1.0).abs() < 1e-15);
        assert!((homogeneity(&[3, 3], &[0, 5]) - 1.0).abs() < 1e-15);
    }
}
