//! Words picked from a list by the key that a table has for each, in their order.

use crate::simd::{Simd, dispatch};

/// A table of keys, one byte each.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    /// The keys, and [`Keys::BEHIND`] bytes for vector instructions that read words of four.
    bytes: Vec<u8>,
}

impl Keys {
    /// Bytes behind the last key.
    const BEHIND: usize = 3;

    /// So many keys, all alike.
    pub(crate) fn new(key: u8, len: usize) -> Self {
        Self { bytes: vec![key; len + Self::BEHIND] }
    }

    /// The keys.
    #[inline(always)]
    pub(crate) fn all(&self) -> &[u8] {
        &self.bytes[..self.bytes.len() - Self::BEHIND]
    }

    /// The keys, to be changed.
    pub(crate) fn all_mut(&mut self) -> &mut [u8] {
        let len = self.bytes.len() - Self::BEHIND;
        &mut self.bytes[..len]
    }

    /// Where the bytes are: from each key on, four can be read.
    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.bytes.as_ptr()
    }
}

dispatch! {
    /// Writes the words whose key is `key` to the front of `out`; returns how many there are. What is
    /// behind them in `out` is of no use.
    ///
    /// # Panics
    /// If a word has no key, or `out` no room for those that are picked.
    pub(crate) fn pick(words: &[u32], keys: &Keys, key: u8, out: &mut [u32]) -> usize = pick_kernel
}

#[inline(always)]
unsafe fn pick_kernel<S: Simd>(words: &[u32], keys: &Keys, key: u8, out: &mut [u32]) -> usize {
    let mut picked = 0;
    for words in words.chunks(16) {
        let out = &mut out[picked..];
        // SAFETY: the CPU has the instructions of `S`, and there are at most 16 words.
        picked += unsafe { S::pick16(words, keys, key, out) };
    }
    picked
}

/// [`pick`] without vector instructions.
#[inline(always)]
pub(crate) fn pick_one_by_one(words: &[u32], keys: &Keys, key: u8, out: &mut [u32]) -> usize {
    let keys = keys.all();
    let mut picked = 0;
    for &word in words {
        let is_picked = *keys.get(word as usize).expect("a word with a key") == key;
        // Written always, kept or overwritten next: no branch on a random key.
        match out.get_mut(picked) {
            Some(slot) => *slot = word,
            None => assert!(!is_picked, "no room for a word"),
        }
        picked += usize::from(is_picked);
    }
    picked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(len: usize) -> Keys {
        let mut keys = Keys::new(0, len);
        keys.all_mut().iter_mut().enumerate().for_each(|(i, k)| *k = (i * i * 7 % 11 % 4) as u8);
        keys
    }

    #[test]
    fn words_are_picked_in_their_order_for_all_lengths() {
        let keys = keys(100);
        for len in 0..70 {
            let words: Vec<u32> = (0..len).map(|i| (i * 37 + 99) % 100).collect();
            for key in 0..4 {
                let want: Vec<u32> =
                    words.iter().copied().filter(|&w| keys.all()[w as usize] == key).collect();
                for room in [want.len(), words.len()] {
                    for pick in [pick, pick_one_by_one] {
                        let mut out = vec![u32::MAX; room];
                        let picked = pick(&words, &keys, key, &mut out);
                        assert_eq!(out[..picked], want, "{len} words, key {key}");
                    }
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "a word with a key")]
    fn a_word_without_a_key_is_refused() {
        pick(&[3, 100], &keys(100), 0, &mut [0; 2]);
    }

    #[test]
    #[should_panic(expected = "no room for a word")]
    fn room_for_the_picked_words_is_needed() {
        let keys = Keys::new(1, 20);
        pick(&[1; 18], &keys, 1, &mut [0; 17]);
    }
}
