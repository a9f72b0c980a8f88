//! Philox 4×32-10 (Salmon et al., SC 2011): random numbers as a pure function of a counter and a
//! key.

use crate::simd::{Simd, dispatch};

/// Counters that are worked on at once.
const LANES: usize = 16;

/// Factors of a round, and what each adds to the key.
const FACTORS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const STEPS: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

fn next_key(key: [u32; 2]) -> [u32; 2] {
    [key[0].wrapping_add(STEPS[0]), key[1].wrapping_add(STEPS[1])]
}

/// Four random numbers for a counter.
///
/// ```
/// let zeros = blnn_kernels::philox::numbers([0; 4], [0; 2]);
/// assert_eq!(zeros[0], 0x6627_e8d5);
/// ```
pub fn numbers(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let a = u64::from(counter[0]) * u64::from(FACTORS[0]);
        let b = u64::from(counter[2]) * u64::from(FACTORS[1]);
        counter = [
            (b >> 32) as u32 ^ counter[1] ^ key[0],
            b as u32,
            (a >> 32) as u32 ^ counter[3] ^ key[1],
            a as u32,
        ];
        key = next_key(key);
    }
    counter
}

/// [`numbers`] of many counters, word by word, in the lower halves: in this form the compiler finds
/// the vector instructions, which multiply the lower halves of wide lanes.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "one loop a vector instruction")]
fn many_numbers(mut counters: [[u64; LANES]; 4], mut key: [u32; 2]) -> [[u64; LANES]; 4] {
    const LOWER: u64 = u32::MAX as u64;
    for _ in 0..10 {
        let [c0, c1, c2, c3] = counters;
        let [mut a, mut b, mut x, mut y] = [[0; LANES]; 4];
        for l in 0..LANES {
            a[l] = (c0[l] & LOWER) * u64::from(FACTORS[0]);
        }
        for l in 0..LANES {
            b[l] = (c2[l] & LOWER) * u64::from(FACTORS[1]);
        }
        for l in 0..LANES {
            x[l] = b[l] >> 32 ^ c1[l] & LOWER ^ u64::from(key[0]);
        }
        for l in 0..LANES {
            y[l] = a[l] >> 32 ^ c3[l] & LOWER ^ u64::from(key[1]);
        }
        counters = [x, b, y, a];
        key = next_key(key);
    }
    counters
}

/// The counters of some random numbers: the block of four they are in, and two words that all share.
#[derive(Clone, Copy, Debug)]
pub struct Blocks {
    /// The first block.
    pub first: u64,
    /// The upper half of every counter.
    pub upper: [u32; 2],
}

impl Blocks {
    /// The counter of block `first + offset`.
    #[inline(always)]
    pub fn counter(self, offset: usize) -> [u32; 4] {
        let block = self.first + offset as u64;
        [block as u32, (block >> 32) as u32, self.upper[0], self.upper[1]]
    }
}

/// Whether the random numbers of the blocks are at least `threshold`, four flags a block.
pub fn at_least(threshold: u64, blocks: Blocks, key: [u32; 2], flags: &mut [bool]) {
    match u32::try_from(threshold) {
        Ok(threshold) => compare(threshold, blocks, key, flags),
        Err(_) => flags.fill(false),
    }
}

dispatch! {
    fn compare(threshold: u32, blocks: Blocks, key: [u32; 2], flags: &mut [bool]) = compare_kernel
}

#[inline(always)]
unsafe fn compare_kernel<S: Simd>(
    threshold: u32,
    blocks: Blocks,
    key: [u32; 2],
    flags: &mut [bool],
) {
    // Narrow vectors are slower than none.
    let chunk = if S::LANES >= 8 { 4 * LANES } else { usize::MAX };
    let mut chunks = flags.chunks_exact_mut(chunk);
    let mut done = 0;
    for chunk in &mut chunks {
        compare_chunk(threshold, blocks, done, key, chunk);
        done += LANES;
    }
    for (offset, four) in chunks.into_remainder().chunks_mut(4).enumerate() {
        let found = numbers(blocks.counter(done + offset), key);
        four.iter_mut().zip(found).for_each(|(flag, number)| *flag = number >= threshold);
    }
}

#[inline(always)]
fn compare_chunk(threshold: u32, blocks: Blocks, done: usize, key: [u32; 2], flags: &mut [bool]) {
    let upper = blocks.upper.map(|word| [u64::from(word); LANES]);
    let mut numbers = [0; LANES];
    for (lane, number) in numbers.iter_mut().enumerate() {
        *number = blocks.first + (done + lane) as u64;
    }
    let counters = [numbers, numbers.map(|number| number >> 32), upper[0], upper[1]];
    let found = many_numbers(counters, key);
    for (lane, four) in flags.chunks_exact_mut(4).enumerate() {
        let kept = |k: usize| u32::from(found[k][lane] as u32 >= threshold) << (8 * k);
        let bytes = (kept(0) | kept(1) | kept(2) | kept(3)).to_le_bytes();
        four.iter_mut().zip(bytes).for_each(|(flag, byte)| *flag = byte != 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_published_test_vectors() {
        assert_eq!(numbers([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            numbers([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            numbers(
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0]
            ),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn flags_compare_the_numbers_one_by_one() {
        let (key, upper) = ([7, 9], [3, 1]);
        // Across the end of the counter's first word, with whole chunks, blocks and a rest.
        for (first, count) in [(0, 0), (5, 3), (u64::from(u32::MAX) - 20, 4 * 37 + 2), (1, 1000)] {
            for threshold in [0, 1 << 31, u64::from(u32::MAX), 1 << 32] {
                let mut flags = vec![true; count];
                at_least(threshold, Blocks { first, upper }, key, &mut flags);
                for (i, flag) in flags.into_iter().enumerate() {
                    let block = first + i as u64 / 4;
                    let counter = [block as u32, (block >> 32) as u32, upper[0], upper[1]];
                    let number = numbers(counter, key)[i % 4];
                    assert_eq!(flag, u64::from(number) >= threshold, "flag {i} from {first}");
                }
            }
        }
    }
}
