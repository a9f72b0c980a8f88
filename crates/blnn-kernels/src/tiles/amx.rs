//! The tile registers of x86-64 CPUs with AMX. Each method is one instruction.

use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count, _MM_HINT_T0, _mm_prefetch, _xgetbv};
use std::sync::OnceLock;

use super::{Layout, Tiles};

/// What `ldtilecfg` reads. Static, because a compiler that does not see through the instruction
/// might drop the writes to a local one.
static LAYOUT: Layout = Layout::FULL;

/// The registers, in use by the thread that made this.
///
/// They are configured for each block and given back after it: a clean thread is switched faster,
/// and other libraries that use the registers on the same thread are left alone.
#[derive(Debug)]
pub(crate) struct Amx(());

/// One instruction on tiles. All registers are named as clobbered: which one is a constant of the
/// instance, and the compiler itself never uses any.
macro_rules! instruction {
    ($text:literal, [$($option:ident),*], $($operands:tt)*) => {
        asm!(
            $text,
            $($operands)*
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack, preserves_flags $(, $option)*),
        )
    };
}

impl Tiles for Amx {
    #[inline(always)]
    unsafe fn configure() -> Self {
        // SAFETY: the caller promises that the CPU has the instruction and the system allows it;
        // the layout is valid for palette 1.
        unsafe {
            instruction!("ldtilecfg [{layout}]", [readonly], layout = in(reg) &raw const LAYOUT,);
        };
        Self(())
    }

    #[inline(always)]
    fn clear<const T: u8>(&mut self) {
        // SAFETY: `self` exists, so the registers are configured; memory is not touched.
        unsafe { instruction!("tilezero tmm{t}", [nomem], t = const T,) };
    }

    #[inline(always)]
    unsafe fn read<const T: u8>(&mut self, from: *const f32, stride: usize) {
        // SAFETY: the caller promises that the tile's bytes are readable, and the registers are
        // configured.
        unsafe {
            instruction!(
                "tileloadd tmm{t}, [{from} + {stride}*1]", [readonly],
                t = const T, from = in(reg) from, stride = in(reg) stride,
            );
        }
    }

    #[inline(always)]
    fn ask_for(&mut self, from: *const f32) {
        for row in 0..16 {
            // SAFETY: a prefetch reads nothing; every x86-64 CPU has it.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(16 * row).cast()) };
        }
    }

    #[inline(always)]
    unsafe fn write<const T: u8>(&mut self, to: *mut f32, stride: usize) {
        // SAFETY: the caller promises that the tile's bytes are writable, and the registers are
        // configured.
        unsafe {
            instruction!(
                "tilestored [{to} + {stride}*1], tmm{t}", [],
                t = const T, to = in(reg) to, stride = in(reg) stride,
            );
        }
    }

    #[inline(always)]
    fn multiply<const C: u8, const A: u8, const B: u8>(&mut self) {
        // SAFETY: `self` exists, so the registers are configured, all with the same size;
        // memory is not touched.
        unsafe {
            instruction!(
                "tdpbf16ps tmm{c}, tmm{a}, tmm{b}", [nomem],
                c = const C, a = const A, b = const B,
            );
        }
    }
}

impl Drop for Amx {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: `self` exists, so the CPU has the instruction; memory is not touched.
        unsafe { instruction!("tilerelease", [nomem],) };
    }
}

/// Whether the CPU has the instructions and the operating system lets this process use them.
/// Asked once; a refusal is silent, because everything works without.
pub(crate) fn available() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        (cpu_has_tiles() && system_saves_tiles() && permitted()) || emulated_instead()
    })
}

/// Only builds for tests emulate what is missing.
fn emulated_instead() -> bool {
    #[cfg(feature = "emulated-amx")]
    super::trap::install();
    cfg!(feature = "emulated-amx")
}

/// CPUID leaf 7: AMX-BF16 is bit 22 of EDX, AMX-TILE bit 24.
fn cpu_has_tiles() -> bool {
    const BITS: u32 = 1 << 22 | 1 << 24;
    __cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx & BITS == BITS
}

/// The system saves the registers when it switches threads: bits 17 and 18 of XCR0, which can be
/// read if bit 27 of ECX of CPUID leaf 1 is set.
fn system_saves_tiles() -> bool {
    #[target_feature(enable = "xsave")]
    fn enabled_state() -> u64 {
        // SAFETY: the caller found that the register can be read.
        unsafe { _xgetbv(0) }
    }
    const BITS: u64 = 0b11 << 17;
    if __cpuid(1).ecx & 1 << 27 == 0 {
        return false;
    }
    // SAFETY: the bit says that the instruction is there and enabled.
    let state = unsafe { enabled_state() };
    state & BITS == BITS
}

/// Linux hands out the large state on request only, for the whole process.
fn permitted() -> bool {
    const REQUEST_PERMISSION: libc::c_int = 0x1023;
    const TILE_DATA: libc::c_ulong = 18;
    // SAFETY: the call takes two numbers and changes nothing but what the process may use.
    unsafe { libc::syscall(libc::SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0 }
}
