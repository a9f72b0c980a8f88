//! Tile registers in plain Rust: the twin of the instructions, down to the order of the sums.

use super::{Layout, Tiles};

/// Eight registers and their layout.
#[derive(Debug)]
pub(crate) struct Emulated {
    layout: Layout,
    registers: [[[u32; 16]; 16]; 8],
}

impl Emulated {
    /// Registers of any layout.
    pub(crate) fn with(layout: Layout) -> Self {
        Self { layout, registers: [[[0; 16]; 16]; 8] }
    }

    /// Rows and words a row of a register.
    fn size(&self, register: u8) -> (usize, usize) {
        let register = usize::from(register);
        (self.layout.rows[register].into(), usize::from(self.layout.row_bytes[register]) / 4)
    }

    /// `tilezero`
    pub(crate) fn zero_register(&mut self, t: u8) {
        self.registers[usize::from(t)] = [[0; 16]; 16];
    }

    /// `tileloadd`
    ///
    /// # Safety
    /// All bytes of the tile must be readable.
    pub(crate) unsafe fn load_register(&mut self, t: u8, from: *const f32, stride: usize) {
        self.zero_register(t);
        let (rows, words) = self.size(t);
        for (r, row) in self.registers[usize::from(t)][..rows].iter_mut().enumerate() {
            for (w, word) in row[..words].iter_mut().enumerate() {
                // SAFETY: the caller promises that the tile's bytes are readable.
                *word = unsafe { *from.byte_add(r * stride).add(w) }.to_bits();
            }
        }
    }

    /// `tilestored`
    ///
    /// # Safety
    /// All bytes of the tile must be writable.
    pub(crate) unsafe fn store_register(&mut self, t: u8, to: *mut f32, stride: usize) {
        let (rows, words) = self.size(t);
        for (r, row) in self.registers[usize::from(t)][..rows].iter().enumerate() {
            for (w, &word) in row[..words].iter().enumerate() {
                // SAFETY: the caller promises that the tile's bytes are writable.
                unsafe { *to.byte_add(r * stride).add(w) = f32::from_bits(word) };
            }
        }
    }

    /// `tdpbf16ps`: the sums over the lower and the upper values of the pairs are kept apart,
    /// added to each other, and then to what was there.
    pub(crate) fn multiply_registers(&mut self, c: u8, a: u8, b: u8) {
        let ((rows, columns), (_, depth)) = (self.size(c), self.size(a));
        let [c, a, b] = [c, a, b].map(usize::from);
        for m in 0..rows {
            for n in 0..columns {
                let mut sums = [0.0f32; 2];
                for k in 0..depth {
                    let (x, y) = (self.registers[a][m][k], self.registers[b][k][n]);
                    sums[0] = flush(half(x << 16).mul_add(half(y << 16), sums[0]));
                    sums[1] = flush(half(x).mul_add(half(y), sums[1]));
                }
                let old = flush(f32::from_bits(self.registers[c][m][n]));
                let new = flush(old + flush(sums[0] + sums[1]));
                self.registers[c][m][n] = new.to_bits();
            }
        }
        // What lies beyond a register's layout reads as zero afterwards.
        for (m, row) in self.registers[c].iter_mut().enumerate() {
            row[if m < rows { columns } else { 0 }..].fill(0);
        }
    }
}

impl Tiles for Emulated {
    unsafe fn configure() -> Self {
        Self::with(Layout::FULL)
    }

    fn clear<const T: u8>(&mut self) {
        self.zero_register(T);
    }

    unsafe fn read<const T: u8>(&mut self, from: *const f32, stride: usize) {
        // SAFETY: the caller promises the same.
        unsafe { self.load_register(T, from, stride) };
    }

    unsafe fn write<const T: u8>(&mut self, to: *mut f32, stride: usize) {
        // SAFETY: the caller promises the same.
        unsafe { self.store_register(T, to, stride) };
    }

    fn multiply<const C: u8, const A: u8, const B: u8>(&mut self) {
        self.multiply_registers(C, A, B);
    }
}

/// The bfloat16 in the upper half of a word.
pub(super) fn half(word: u32) -> f32 {
    flush(f32::from_bits(word & 0xffff_0000))
}

/// The instruction reads and writes numbers too small for their exponent as zero.
pub(super) fn flush(x: f32) -> f32 {
    if x.is_subnormal() { 0.0f32.copysign(x) } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bf16(x: f32) -> u32 {
        assert_eq!(crate::bf16::round(x), x);
        x.to_bits() >> 16
    }

    #[test]
    fn rows_and_columns_beyond_the_layout_stay_untouched_in_memory_and_zero_in_registers() {
        let mut tiles = Emulated::with(Layout::uniform(3, 8));
        let source: Vec<f32> = (0..40).map(|i| i as f32).collect();
        let mut target = vec![-1.0; 40];
        // SAFETY: three rows of two words, five words apart, lie inside both vectors.
        unsafe {
            tiles.read::<2>(source.as_ptr(), 20);
            tiles.write::<2>(target.as_mut_ptr(), 20);
        }
        for (i, &got) in target.iter().enumerate() {
            let inside = i < 15 && i % 5 < 2;
            assert_eq!(got, if inside { i as f32 } else { -1.0 });
        }
        assert_eq!(tiles.registers[2][3], [0; 16]);
        assert_eq!(tiles.registers[2][0][2..], [0; 14]);
    }

    #[test]
    fn a_product_of_pairs_adds_to_what_is_there() {
        let mut tiles = Emulated::with(Layout::uniform(2, 8));
        // A is 2×4 (two pairs a row), B is 4×2 (two rows of pairs).
        let (a, b) = (
            [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]],
            [[1.0, -1.0], [2.0, 0.5], [4.0, 3.0], [-2.0, 1.0]],
        );
        for m in 0..2 {
            for k in 0..2 {
                tiles.registers[1][m][k] = bf16(a[m][2 * k]) | bf16(a[m][2 * k + 1]) << 16;
                tiles.registers[2][m][k] = bf16(b[2 * m][k]) | bf16(b[2 * m + 1][k]) << 16;
            }
        }
        tiles.registers[0][1][1] = 100f32.to_bits();
        tiles.multiply::<0, 1, 2>();
        for (m, row) in a.iter().enumerate() {
            for n in 0..2 {
                let sum: f32 = row.iter().zip(&b).map(|(a, b)| a * b[n]).sum();
                let old = if (m, n) == (1, 1) { 100.0 } else { 0.0 };
                assert_eq!(f32::from_bits(tiles.registers[0][m][n]), old + sum);
            }
        }
        assert_eq!(tiles.registers[0][2], [0; 16]);
    }

    #[test]
    fn tiny_numbers_count_as_zero() {
        let mut tiles = Emulated::with(Layout::uniform(1, 4));
        tiles.registers[1][0][0] = 0x0001;
        tiles.registers[2][0][0] = bf16(crate::bf16::round(1e30));
        tiles.multiply::<0, 1, 2>();
        assert_eq!(tiles.registers[0][0][0], 0);
    }
}
