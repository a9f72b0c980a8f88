//! Counter-based random numbers: every draw is a pure function of what it is for.
//!
//! A draw is keyed by the seed, a [`Stream`], the epoch and the item's number, and computed by
//! Philox 4×32-10 (Salmon et al., SC 2011). No state is carried along, so the order of draws, the
//! number of threads and a resume cannot change one.

use blnn_kernels::{Partition, SHARDS, Threads};

/// What a random number is for. Two streams never share a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Which directed edges a view keeps.
    Edges {
        /// 0 or 1.
        view: u32,
    },
    /// Which feature columns a view keeps.
    Features {
        /// 0 or 1.
        view: u32,
    },
    /// The initial values of a parameter.
    Parameter {
        /// The parameter's position in the model.
        index: u32,
    },
    /// A part of a generated graph.
    Generated {
        /// 0 for edges, 1 for attributes.
        part: u32,
    },
}

impl Stream {
    fn number(self) -> u32 {
        match self {
            Self::Edges { view } => view,
            Self::Features { view } => 16 + view,
            Self::Generated { part } => 32 + part,
            Self::Parameter { index } => 1024 + index,
        }
    }
}

/// The random numbers of one stream in one epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws {
    key: [u32; 2],
    epoch: u32,
    stream: u32,
}

impl Draws {
    /// The draws for a seed, a stream and an epoch (0 for what is drawn once).
    pub(crate) fn new(seed: u64, stream: Stream, epoch: usize) -> Self {
        let key = [seed as u32, (seed >> 32) as u32];
        Self { key, epoch: epoch as u32, stream: stream.number() }
    }

    /// Four 32-bit numbers: items `4 * block .. 4 * block + 4`.
    fn block(self, block: usize) -> [u32; 4] {
        philox([block as u32, (block as u64 >> 32) as u32, self.epoch, self.stream], self.key)
    }

    /// Item `index` as a number in [0, 1), with 24 random bits.
    pub(crate) fn uniform(self, index: usize) -> f32 {
        (self.block(index / 4)[index % 4] >> 8) as f32 * (1.0 / 16_777_216.0)
    }

    /// Sets each flag to true with probability `1 − drop`.
    pub(crate) fn keep_flags(self, drop: f32, flags: &mut [bool], threads: &Threads) {
        let threshold = (f64::from(drop) * 4_294_967_296.0) as u64;
        let blocks = Partition::even(flags.len() / 4);
        let (whole, rest) = flags.split_at_mut(flags.len() / 4 * 4);
        let mut shards: [_; SHARDS] = blocks.split_wide(whole, 4);
        threads.for_each_owned(&mut shards[..blocks.shards()], |s, shard| {
            for (block, four) in blocks.range(s).zip(shard.chunks_exact_mut(4)) {
                for (flag, number) in four.iter_mut().zip(self.block(block)) {
                    *flag = u64::from(number) >= threshold;
                }
            }
        });
        let last = self.block(blocks.rows());
        rest.iter_mut().zip(last).for_each(|(flag, number)| *flag = u64::from(number) >= threshold);
    }
}

/// Philox 4×32 with ten rounds.
fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let a = u64::from(counter[0]) * 0xD251_1F53;
        let b = u64::from(counter[2]) * 0xCD9E_8D57;
        counter = [
            (b >> 32) as u32 ^ counter[1] ^ key[0],
            b as u32,
            (a >> 32) as u32 ^ counter[3] ^ key[1],
            a as u32,
        ];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    counter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn philox_gives_the_published_test_vectors() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            philox([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox(
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0]
            ),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn flags_have_the_right_share_and_do_not_depend_on_threads() {
        let draws = Draws::new(7, Stream::Edges { view: 1 }, 3);
        let mut one = vec![false; 40_003];
        let mut two = one.clone();
        draws.keep_flags(0.3, &mut one, &Threads::new(1));
        draws.keep_flags(0.3, &mut two, &Threads::new(2));
        assert_eq!(one, two);
        let kept = one.iter().filter(|&&k| k).count() as f64 / one.len() as f64;
        assert!((kept - 0.7).abs() < 0.01, "kept {kept}");
        draws.keep_flags(0.0, &mut one, &Threads::new(1));
        assert!(one.iter().all(|&k| k));
    }

    #[test]
    fn epochs_views_and_seeds_differ() {
        let at = |seed, view, epoch| Draws::new(seed, Stream::Edges { view }, epoch).uniform(5);
        assert_ne!(at(1, 0, 0), at(2, 0, 0));
        assert_ne!(at(1, 0, 0), at(1, 1, 0));
        assert_ne!(at(1, 0, 0), at(1, 0, 1));
        assert!((0.0..1.0).contains(&at(1, 0, 0)));
    }
}
