//! The reference's random splits, reproduced draw by draw.
//!
//! The authors' code asks scikit-learn for its splits, and scikit-learn asks numpy's
//! `RandomState`: a Mersenne Twister with masked rejection and a Fisher–Yates shuffle from the
//! end. Scores are comparable split by split only on the same splits, so all three are here.

/// The generator behind numpy's `RandomState(seed)` (MT19937).
///
/// ```
/// use blnn::eval::RandomState;
///
/// // numpy.random.RandomState(1).permutation(10)
/// let order = RandomState::new(1).permutation(10);
/// assert_eq!(order, [2, 9, 6, 4, 0, 3, 1, 7, 8, 5]);
/// ```
#[derive(Clone)]
pub struct RandomState {
    state: [u32; Self::SIZE],
    next: usize,
}

impl std::fmt::Debug for RandomState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RandomState(word {} of {})", self.next, Self::SIZE)
    }
}

impl RandomState {
    const SIZE: usize = 624;
    const SHIFT: usize = 397;

    /// The generator as `numpy.random.RandomState(seed)` starts it.
    pub fn new(seed: u32) -> Self {
        let mut state = [seed; Self::SIZE];
        for i in 1..Self::SIZE {
            let before = state[i - 1];
            state[i] =
                1_812_433_253_u32.wrapping_mul(before ^ (before >> 30)).wrapping_add(i as u32);
        }
        Self { state, next: Self::SIZE }
    }

    fn refill(&mut self) {
        for i in 0..Self::SIZE {
            let high = self.state[i] & 0x8000_0000;
            let low = self.state[(i + 1) % Self::SIZE] & 0x7fff_ffff;
            let mixed = high | low;
            let twist = if mixed & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + Self::SHIFT) % Self::SIZE] ^ (mixed >> 1) ^ twist;
        }
        self.next = 0;
    }

    /// The next 32 random bits.
    pub fn next_u32(&mut self) -> u32 {
        if self.next == Self::SIZE {
            self.refill();
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    /// A uniform number in [0, 1) with 53 random bits: numpy's `random_sample()`.
    pub fn uniform(&mut self) -> f64 {
        let high = f64::from(self.next_u32() >> 5);
        let low = f64::from(self.next_u32() >> 6);
        (high * 67_108_864.0 + low) / 9_007_199_254_740_992.0
    }

    /// A uniform integer in `0..=max`, by rejection under the smallest mask that covers `max`.
    fn up_to(&mut self, max: u32) -> u32 {
        let mask = u32::MAX.checked_shr(max.leading_zeros()).unwrap_or(0);
        loop {
            let value = self.next_u32() & mask;
            if value <= max {
                return value;
            }
        }
    }

    /// A random order of `0..n`: numpy's `permutation(n)`.
    pub fn permutation(&mut self, n: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..n as u32).collect();
        for i in (1..n).rev() {
            order.swap(i, self.up_to(i as u32) as usize);
        }
        order
    }
}

/// The rows of one split, as indices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrainTest {
    /// Rows to fit on.
    pub train: Vec<u32>,
    /// Rows to score on.
    pub test: Vec<u32>,
}

/// `count` shuffles of `n` rows, each cut into test (the first `⌈share · n⌉`) and training rows.
///
/// scikit-learn's `ShuffleSplit(count, test_size=share, random_state=seed)`, and `count` calls of
/// `train_test_split(test_size=share, random_state=RandomState(seed))` sharing the generator.
///
/// ```
/// let split = &blnn::eval::shuffle_splits(0, 1, 10, 0.8)[0];
/// assert_eq!(split.train, [0, 5]); // the last two of numpy.random.RandomState(0).permutation(10)
/// ```
pub fn shuffle_splits(seed: u32, count: usize, n: usize, test_share: f64) -> Vec<TrainTest> {
    let mut rng = RandomState::new(seed);
    let tests = (test_share * n as f64).ceil() as usize;
    let split = |mut test: Vec<u32>| TrainTest { train: test.split_off(tests), test };
    (0..count).map(|_| split(rng.permutation(n))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_words_are_the_reference_generators() {
        let mut rng = RandomState::new(5489);
        let words: Vec<u32> = (0..10_000).map(|_| rng.next_u32()).collect();
        assert_eq!(words[0], 3_499_211_612);
        // The value every implementation of MT19937 is checked against.
        assert_eq!(words[9_999], 4_123_659_995);
    }

    #[test]
    fn uniform_numbers_are_those_of_numpy() {
        let mut rng = RandomState::new(1);
        assert!((rng.uniform() - 0.417_022_004_702_574).abs() < 1e-15);
        assert!((rng.uniform() - 0.720_324_493_442_158_2).abs() < 1e-15);
    }

    #[test]
    fn splits_cover_all_rows_once() {
        for split in shuffle_splits(3, 4, 101, 0.8) {
            assert_eq!((split.train.len(), split.test.len()), (20, 81));
            let mut all = [split.train, split.test].concat();
            all.sort_unstable();
            assert!(all.iter().enumerate().all(|(i, &v)| i == v as usize));
        }
    }
}
