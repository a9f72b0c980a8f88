//! Counter-based random numbers: every draw is a pure function of what it is for.
//!
//! A draw is keyed by the seed, a [`Stream`], the epoch and the item's number, and computed by
//! Philox 4×32-10 (Salmon et al., SC 2011). No state is carried along, so the order of draws, the
//! number of threads and a resume cannot change one.

use blnn_kernels::philox::{self, Blocks};
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

    /// The counters from a block on: block `b` gives items `4 b .. 4 b + 4`.
    fn blocks(self, first: usize) -> Blocks {
        Blocks { first: first as u64, upper: [self.epoch, self.stream] }
    }

    /// Item `index` as a number in [0, 1), with 24 random bits.
    pub(crate) fn uniform(self, index: usize) -> f32 {
        let numbers = philox::numbers(self.blocks(index / 4).counter(0), self.key);
        (numbers[index % 4] >> 8) as f32 * (1.0 / 16_777_216.0)
    }

    /// Sets each flag to true with probability `1 − drop`.
    pub(crate) fn keep_flags(self, drop: f32, flags: &mut [bool], threads: &Threads) {
        let threshold = (f64::from(drop) * 4_294_967_296.0) as u64;
        // Whole blocks of four in every shard but the last.
        let blocks = Partition::even(flags.len().div_ceil(4));
        let mut rest = flags;
        let mut shards: [_; SHARDS] = std::array::from_fn(|s| {
            let whole = if s < blocks.shards() { 4 * blocks.range(s).len() } else { 0 };
            let length = whole.min(rest.len());
            let (shard, tail) = std::mem::take(&mut rest).split_at_mut(length);
            rest = tail;
            shard
        });
        threads.for_each_owned(&mut shards[..blocks.shards()], |s, shard| {
            philox::at_least(threshold, self.blocks(blocks.range(s).start), self.key, shard);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
