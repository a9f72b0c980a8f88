//! Which instructions the CPU has, found once per process, and the vector type kernels are
//! written over. See `README.md` beside this file for the pattern.

#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "aarch64")]
pub(crate) use neon::Neon;
pub(crate) use scalar::Scalar;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Avx2, Avx512, Avx512Bf16};

use std::sync::OnceLock;

use crate::pick::{Keys, pick_one_by_one};

/// A set of vector instructions that kernels exist for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isa {
    /// Portable code, the oracle of the others.
    Scalar,
    /// x86-64 with AVX2 and FMA: 8 floats at a time.
    Avx2,
    /// x86-64 with AVX-512 F, BW, DQ and VL: 16 floats at a time.
    Avx512,
    /// The same with AVX-512 BF16, whose instructions round to bfloat16 and multiply pairs of it.
    Avx512Bf16,
    /// 64-bit ARM: 4 floats at a time.
    Neon,
}

impl Isa {
    /// The name used in reports and by the environment variable `BLNN_KERNELS`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Avx512Bf16 => "avx512bf16",
            Self::Neon => "neon",
        }
    }

    /// All instruction sets this CPU has, the best first.
    pub fn available() -> Vec<Self> {
        let mut found = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            let avx2 = has!("avx2") && has!("fma");
            if avx2 && has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl") {
                if has!("avx512bf16") {
                    found.push(Self::Avx512Bf16);
                }
                found.push(Self::Avx512);
            }
            if avx2 {
                found.push(Self::Avx2);
            }
        }
        #[cfg(target_arch = "aarch64")]
        found.push(Self::Neon);
        found.push(Self::Scalar);
        found
    }
}

/// The instruction set all kernels of this process use: the best one the CPU has, or the one
/// named by the environment variable `BLNN_KERNELS` where the CPU has it (for tests and to
/// narrow down a problem).
pub fn isa() -> Isa {
    static CHOSEN: OnceLock<Isa> = OnceLock::new();
    *CHOSEN.get_or_init(|| wish().ok().flatten().unwrap_or(Isa::available()[0]))
}

/// The instruction set that `BLNN_KERNELS` names, if it names one.
///
/// # Errors
/// The name, if it is none that this CPU has: [`isa`] is then the best one.
pub fn wish() -> Result<Option<Isa>, String> {
    let named = std::env::var("BLNN_KERNELS").unwrap_or_default();
    let found = Isa::available().into_iter().find(|isa| isa.name() == named);
    if found.is_none() && !named.is_empty() { Err(named) } else { Ok(found) }
}

/// A vector of `f32` lanes. Kernels are generic over it and instantiated once an [`Isa`] by
/// [`dispatch!`].
///
/// # Safety
/// Every method must only run on a CPU that has the instructions of the implementing type;
/// `load` and `store` need `LANES` readable or writable floats behind the pointer.
pub(crate) trait Simd: Copy {
    /// The register type.
    type V: Copy;
    /// Floats in a register.
    const LANES: usize;
    /// Rows of the register tile of `A · B`, whose width is [`Simd::TILE_VECTORS`] registers.
    const TILE_ROWS: usize;
    /// Registers in a row of the register tile.
    const TILE_VECTORS: usize;

    unsafe fn splat(x: f32) -> Self::V;
    unsafe fn load(p: *const f32) -> Self::V;
    unsafe fn store(p: *mut f32, v: Self::V);
    /// Asks for the line of memory at `p` to be brought into the level-2 cache; any address will do.
    #[inline(always)]
    unsafe fn prefetch(p: *const f32) {
        let _ = p;
    }
    /// Asks for the line of memory at `p` to be brought into the nearest cache; any address will do.
    #[inline(always)]
    unsafe fn prefetch_near(p: *const f32) {
        let _ = p;
    }
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V;
    /// `a * b + c`
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// `if x > 0 { a } else { b }`, lane by lane.
    unsafe fn if_positive(x: Self::V, a: Self::V, b: Self::V) -> Self::V;
    /// The sum of all lanes, in a fixed order.
    unsafe fn sum(v: Self::V) -> f32;
    /// The nearest bfloat16 of each lane, ties to even; what is no number stays so.
    unsafe fn round16(v: Self::V) -> Self::V;
    /// Words of two rounded lanes each: the upper half of `low` below that of `high`.
    unsafe fn pair16(low: Self::V, high: Self::V) -> Self::V;
    /// Words of two lanes each, rounded: `low` below `high`.
    #[inline(always)]
    unsafe fn narrow16(low: Self::V, high: Self::V) -> Self::V {
        // SAFETY: the caller promises a CPU with the instructions.
        unsafe { Self::pair16(Self::round16(low), Self::round16(high)) }
    }
    /// The lower bfloat16 of each word.
    unsafe fn low16(words: Self::V) -> Self::V;
    /// The upper bfloat16 of each word.
    unsafe fn high16(words: Self::V) -> Self::V;
    /// [`crate::pick::pick`] for at most 16 words.
    ///
    /// # Safety
    /// The CPU must have the instructions; there must be at most 16 words.
    #[inline(always)]
    unsafe fn pick16(words: &[u32], keys: &Keys, key: u8, out: &mut [u32]) -> usize {
        pick_one_by_one(words, keys, key, out)
    }
    /// Transposes 16 rows of 16 words.
    ///
    /// # Safety
    /// 256 words must be readable behind `from` and writable behind `to`, apart from each other.
    #[inline(always)]
    unsafe fn transpose_words(from: *const f32, to: *mut f32) {
        for row in 0..16 {
            for column in 0..16 {
                // SAFETY: both places are among the 256 words the caller promises.
                unsafe { *to.add(column * 16 + row) = *from.add(row * 16 + column) };
            }
        }
    }
}

/// Defines `fn name(args)` that runs `kernel::<S>(args)` with the widest [`Simd`] type of this
/// CPU. The kernel must be `#[inline(always)]`, so that it is compiled with the instructions of
/// the wrapper it lands in.
macro_rules! dispatch {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $kernel:path) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments, reason = "kernels take their shapes and strides apart")]
        $vis fn $name($($arg: $ty),*) $(-> $ret)? {
            use $kernel as kernel;
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                #[allow(clippy::too_many_arguments, reason = "as above")]
                unsafe fn avx512($($arg: $ty),*) $(-> $ret)? {
                    // SAFETY: this function's own features are those the type needs.
                    unsafe { kernel::<$crate::simd::Avx512>($($arg),*) }
                }
                #[target_feature(enable = "avx2,fma")]
                #[allow(clippy::too_many_arguments, reason = "as above")]
                unsafe fn avx2($($arg: $ty),*) $(-> $ret)? {
                    // SAFETY: this function's own features are those the type needs.
                    unsafe { kernel::<$crate::simd::Avx2>($($arg),*) }
                }
                match $crate::simd::isa() {
                    $crate::simd::Isa::Avx512 | $crate::simd::Isa::Avx512Bf16 => {
                        // SAFETY: `isa` returns only what the CPU was found to have.
                        return unsafe { avx512($($arg),*) };
                    }
                    // SAFETY: as above.
                    $crate::simd::Isa::Avx2 => return unsafe { avx2($($arg),*) },
                    _ => {}
                }
            }
            #[cfg(target_arch = "aarch64")]
            if $crate::simd::isa() == $crate::simd::Isa::Neon {
                // SAFETY: NEON is part of every 64-bit ARM CPU this target runs on.
                return unsafe { kernel::<$crate::simd::Neon>($($arg),*) };
            }
            // SAFETY: the scalar type needs no special instructions.
            unsafe { kernel::<$crate::simd::Scalar>($($arg),*) }
        }
    };
}
pub(crate) use dispatch;

/// Like [`dispatch!`], for kernels that round to bfloat16 all the time: where the CPU has
/// instructions for that, they run as [`Avx512Bf16`].
macro_rules! dispatch_rounding {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) = $kernel:path) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments, reason = "kernels take their shapes and strides apart")]
        $vis fn $name($($arg: $ty),*) {
            #[cfg(target_arch = "x86_64")]
            if $crate::simd::isa() == $crate::simd::Isa::Avx512Bf16 {
                use $kernel as kernel;
                #[target_feature(enable = "avx512bf16,avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                #[allow(clippy::too_many_arguments, reason = "as above")]
                unsafe fn avx512bf16($($arg: $ty),*) {
                    // SAFETY: this function's own features are those the type needs.
                    unsafe { kernel::<$crate::simd::Avx512Bf16>($($arg),*) }
                }
                // SAFETY: the CPU was found to have the instructions.
                return unsafe { avx512bf16($($arg),*) };
            }
            $crate::simd::dispatch! { fn plain($($arg: $ty),*) = $kernel }
            plain($($arg),*);
        }
    };
}
pub(crate) use dispatch_rounding;

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests that are run with lesser kernels would else test the best ones again.
    #[test]
    fn kernels_that_are_named_are_in_force() {
        let named = wish().expect("BLNN_KERNELS names kernels of this CPU");
        assert_eq!(isa(), named.unwrap_or(Isa::available()[0]));
    }
}
