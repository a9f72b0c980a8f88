//! How many tests ran, read from what the test programs print.

use std::ops::AddAssign;

/// Counts summed over test programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) ignored: usize,
}

impl Tally {
    /// Reads one line of output; only the line that closes a test program counts.
    pub(crate) fn from_line(line: &str) -> Option<Self> {
        let counts = line.trim().strip_prefix("test result: ")?;
        let count = |word: &str| {
            counts.split([';', '.']).find_map(|part| {
                let (number, name) = part.trim().split_once(' ')?;
                (name == word).then(|| number.parse().ok()).flatten()
            })
        };
        Some(Self {
            passed: count("passed")?,
            failed: count("failed")?,
            ignored: count("ignored")?,
        })
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_count() {
        let ok = "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; \
                  finished in 0.51s";
        let bad = "test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out";
        let mut sum = Tally::from_line(ok).unwrap();
        sum += Tally::from_line(bad).unwrap();
        let expected = Tally { passed: 16, failed: 2, ignored: 1 };
        assert_eq!(sum, expected);
    }

    #[test]
    fn other_lines_do_not() {
        assert_eq!(Tally::from_line("test tally::works ... ok"), None);
        assert_eq!(Tally::from_line("running 12 tests"), None);
    }
}
