//! Means with confidence intervals, and the paired comparison of two embeddings.

use serde::Serialize;

/// Mean and spread of repeated scores.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Mean.
    pub mean: f64,
    /// Population standard deviation, as the reference reports it.
    pub std: f64,
    /// 95 % confidence interval of the mean (Student's t), or the mean twice for a single score.
    pub confidence_95: [f64; 2],
}

impl Summary {
    /// Summary of some scores.
    ///
    /// ```
    /// let s = blnn::eval::Summary::of(&[92.0, 93.0, 94.0]);
    /// assert_eq!(s.mean, 93.0);
    /// assert!((s.confidence_95[1] - 95.484).abs() < 1e-3);
    /// ```
    pub fn of(scores: &[f64]) -> Self {
        let n = scores.len() as f64;
        let mean = scores.iter().sum::<f64>() / n;
        let variance = scores.iter().map(|s| (s - mean) * (s - mean)).sum::<f64>() / n;
        let half = if scores.len() > 1 {
            student_quantile(0.975, n - 1.0) * (variance / (n - 1.0)).sqrt()
        } else {
            0.0
        };
        Self { mean, std: variance.sqrt(), confidence_95: [mean - half, mean + half] }
    }
}

/// Two embeddings scored on the same splits; differences are first minus second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Difference of the scores on each split.
    pub differences: Vec<f64>,
    /// Summary of the differences.
    #[serde(flatten)]
    pub summary: Summary,
    /// Splits on which the first embedding is better.
    pub wins: usize,
    /// Splits on which both are equal.
    pub ties: usize,
    /// Splits on which the second embedding is better.
    pub losses: usize,
    /// Two-sided p-value of the paired t-test over splits.
    pub p_value: f64,
    /// The same with the variance corrected for splits that share nodes (Nadeau and Bengio):
    /// what to trust when asking whether one embedding is better on nodes not yet seen.
    pub p_value_corrected: f64,
}

impl Comparison {
    /// Compares scores split by split; `test_to_train` is the number of test nodes for each
    /// training node, which the correction needs.
    ///
    /// # Panics
    /// If there is not one score a split on both sides.
    #[track_caller]
    pub fn of(first: &[f64], second: &[f64], test_to_train: f64) -> Self {
        assert_eq!(first.len(), second.len(), "scores of the same splits");
        let differences: Vec<f64> = first.iter().zip(second).map(|(a, b)| a - b).collect();
        let summary = Summary::of(&differences);
        let n = differences.len() as f64;
        let sample_variance = summary.std * summary.std * n / (n - 1.0);
        let p = |scale: f64| two_sided(summary.mean, sample_variance * scale, n - 1.0);
        let count = |keep: fn(&f64) -> bool| differences.iter().filter(|d| keep(d)).count();
        Self {
            wins: count(|d| *d > 0.0),
            ties: count(|d| *d == 0.0),
            losses: count(|d| *d < 0.0),
            p_value: p(1.0 / n),
            p_value_corrected: p(1.0 / n + test_to_train),
            differences,
            summary,
        }
    }
}

/// Two-sided p-value of a mean whose estimate has the given variance.
fn two_sided(mean: f64, variance: f64, freedom: f64) -> f64 {
    if freedom < 1.0 || mean == 0.0 {
        return 1.0;
    }
    if variance == 0.0 {
        return 0.0;
    }
    2.0 * (1.0 - student_cdf((mean / variance.sqrt()).abs(), freedom))
}

/// Probability that Student's t with `freedom` degrees is below `t ≥ 0`.
fn student_cdf(t: f64, freedom: f64) -> f64 {
    1.0 - incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5) / 2.0
}

/// The `t` below which Student's t lies with probability `p ≥ ½`, by bisection.
fn student_quantile(p: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1e3);
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if student_cdf(middle, freedom) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// Regularised incomplete beta function, by its continued fraction.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges quickly below the mean; above it use the symmetry.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln();
    front.exp() * beta_fraction(x, a, b) / a
}

/// Lentz's evaluation of the continued fraction of the incomplete beta function.
fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    let safe = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let (mut c, mut d) = (1.0, 1.0 / safe(1.0 - (a + b) * x / (a + 1.0)));
    let mut value = d;
    for m in 1..300 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut last = 1.0;
        for term in [even, odd] {
            d = 1.0 / safe(1.0 + term * d);
            c = safe(1.0 + term / c);
            last = c * d;
            value *= last;
        }
        if (last - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

/// Logarithm of the gamma function for `x > 0`: Stirling's series after a shift to large `x`.
fn ln_gamma(mut x: f64) -> f64 {
    let mut shift = 0.0;
    while x < 10.0 {
        shift -= x.ln();
        x += 1.0;
    }
    let inverse = 1.0 / (x * x);
    let series =
        (1.0 / 12.0 - inverse * (1.0 / 360.0 - inverse * (1.0 / 1260.0 - inverse / 1680.0))) / x;
    shift + (x - 0.5) * x.ln() - x + (2.0 * std::f64::consts::PI).ln() / 2.0 + series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_and_probabilities_are_those_of_the_tables() {
        // scipy.stats.t.ppf(0.975, n) and t.cdf(t, n).
        for (freedom, want) in [(1.0, 12.706_204_736), (4.0, 2.776_445_105), (19.0, 2.093_024_054)]
        {
            assert!((student_quantile(0.975, freedom) - want).abs() < 1e-8);
        }
        assert!((student_cdf(1.5, 7.0) - CDF_1_5_7).abs() < 1e-12);
        assert!((student_cdf(0.2, 30.0) - CDF_0_2_30).abs() < 1e-12);
    }

    const CDF_1_5_7: f64 = 0.911_350_756_505_015;
    const CDF_0_2_30: f64 = 0.578_584_921_470_337_6;

    #[test]
    fn comparison_agrees_with_scipys_paired_test() {
        let (a, b) = ([92.1, 93.0, 92.5, 92.9], [91.8, 92.9, 92.6, 92.2]);
        let c = Comparison::of(&a, &b, 4.0);
        // scipy.stats.ttest_rel(a, b).pvalue
        assert!((c.p_value - TTEST_REL).abs() < 1e-9, "{}", c.p_value);
        assert_eq!((c.wins, c.ties, c.losses), (3, 0, 1));
        assert!(c.p_value_corrected > c.p_value);
    }

    const TTEST_REL: f64 = 0.239_442_598_636_002_98;

    #[test]
    fn equal_embeddings_do_not_differ() {
        let c = Comparison::of(&[90.0, 91.0], &[90.0, 91.0], 4.0);
        assert!((c.p_value - 1.0).abs() < 1e-12 && c.ties == 2);
        let single = Comparison::of(&[90.0], &[91.0], 4.0);
        assert!((single.p_value - 1.0).abs() < 1e-12);
        let [low, high] = single.summary.confidence_95;
        assert!((low + 1.0).abs() < 1e-12 && (high + 1.0).abs() < 1e-12);
    }
}
