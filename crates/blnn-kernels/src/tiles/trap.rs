//! The tile instructions on a CPU that has none.
//!
//! There each of them is an illegal instruction. The handler of that signal decodes it from the
//! machine code, as the manual describes it, and does on [`Emulated`] registers what it should have
//! done. So [`super::amx`] is tested as it was assembled, on any x86-64 Linux.

use std::cell::RefCell;
use std::ptr;
use std::sync::Once;

use libc::{c_int, c_void, siginfo_t, ucontext_t};

use super::Layout;
use super::emulated::Emulated;

thread_local! {
    /// The registers of this thread, between `ldtilecfg` and `tilerelease`.
    static REGISTERS: RefCell<Option<Emulated>> = const { RefCell::new(None) };
}

/// From now on the process runs tile instructions, by emulation where the CPU has none.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: all fields are numbers, for which zero is valid.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = on_illegal_instruction as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        // SAFETY: the handler has the form that `SA_SIGINFO` asks for.
        let result = unsafe { libc::sigaction(libc::SIGILL, &raw const action, ptr::null_mut()) };
        assert_eq!(result, 0, "the handler of illegal instructions");
    });
}

/// Runs the instruction that the CPU refused and steps over it. What is no tile instruction is left
/// to the system, which ends the process.
extern "C" fn on_illegal_instruction(_: c_int, _: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: nothing but the system calls this, with the state of the interrupted thread.
    let cpu = unsafe { &mut (*context.cast::<ucontext_t>()).uc_mcontext.gregs };
    let instruction = {
        let at = ptr::with_exposed_provenance(cpu[libc::REG_RIP as usize].cast_unsigned() as usize);
        let mut code = [0; LONGEST];
        // SAFETY: at least this much code follows, if only that of the function's end.
        unsafe { ptr::copy(at, code.as_mut_ptr(), LONGEST) };
        decode(&code, &general_registers(cpu))
    };
    // SAFETY: whoever wrote the instruction promised what it needs.
    match instruction.filter(|(instruction, _)| unsafe { run(instruction) }) {
        Some((_, length)) => cpu[libc::REG_RIP as usize] += length as i64,
        // SAFETY: gives the signal back; the same instruction raises it again.
        None => _ = unsafe { libc::signal(libc::SIGILL, libc::SIG_DFL) },
    }
}

/// The general registers in the order of their numbers in machine code.
fn general_registers(cpu: &[i64; 23]) -> [u64; 16] {
    use libc::{REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    use libc::{REG_RAX, REG_RBP, REG_RBX, REG_RCX, REG_RDI, REG_RDX, REG_RSI, REG_RSP};
    let order = [
        REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI, //
        REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
    ];
    order.map(|register| cpu[register as usize].cast_unsigned())
}

/// An instruction with the values of its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Instruction {
    Configure { from: u64 },
    Release,
    Zero { t: u8 },
    Load { t: u8, from: u64, stride: u64 },
    Store { t: u8, to: u64, stride: u64 },
    Multiply { c: u8, a: u8, b: u8 },
}

/// Does what the CPU would have done; `false` if that is to refuse.
///
/// # Safety
/// The memory that the instruction names must be readable or writable, as it needs.
unsafe fn run(instruction: &Instruction) -> bool {
    REGISTERS.with_borrow_mut(|registers| {
        if let Instruction::Configure { from } = *instruction {
            // SAFETY: the caller promises that a layout lies there.
            let layout = unsafe { *ptr::with_exposed_provenance::<Layout>(from as usize) };
            *registers = Some(Emulated::with(layout));
            return layout == Layout::FULL;
        }
        let Some(tiles) = registers else {
            // Without a layout only this is allowed.
            return *instruction == Instruction::Release;
        };
        match *instruction {
            Instruction::Configure { .. } => {}
            Instruction::Release => *registers = None,
            Instruction::Zero { t } => tiles.zero_register(t),
            Instruction::Multiply { c, a, b } => tiles.multiply_registers(c, a, b),
            Instruction::Load { t, from, stride } => {
                let from = ptr::with_exposed_provenance(from as usize);
                // SAFETY: the caller promises that the tile is readable.
                unsafe { tiles.load_register(t, from, stride as usize) };
            }
            Instruction::Store { t, to, stride } => {
                let to = ptr::with_exposed_provenance_mut(to as usize);
                // SAFETY: the caller promises that the tile is writable.
                unsafe { tiles.store_register(t, to, stride as usize) };
            }
        }
        true
    })
}

/// Bytes of the longest form: prefix, opcode, two bytes and a displacement of four.
const LONGEST: usize = 10;

/// Reads an instruction and its length in bytes.
///
/// All begin with a VEX prefix of three bytes: `C4`, then inverted bits that extend the numbers of
/// registers and the map of opcodes (2), then the inverted number of a third register and the
/// prefix (0: none, 2: `F3`, 3: `F2`) that tells instructions of one opcode apart.
fn decode(code: &[u8; LONGEST], registers: &[u64; 16]) -> Option<(Instruction, usize)> {
    let [0xc4, extensions, third, opcode, operands, ..] = *code else { return None };
    // Neither 64-bit operands nor 256-bit vectors.
    if extensions & 0x1f != 2 || third & 0x84 != 0 {
        return None;
    }
    let (t, b) = ((operands >> 3) & 7, !(third >> 3) & 15);
    let is_in_memory = operands >> 6 != 3;
    match (opcode, third & 3, is_in_memory) {
        (0x49, 0, true) => {
            let place = Place::decode(code, registers)?;
            Some((Instruction::Configure { from: place.sum()? }, place.length))
        }
        (0x49, 0, false) if operands == 0xc0 => Some((Instruction::Release, 5)),
        (0x49, 3, false) => Some((Instruction::Zero { t }, 5)),
        (0x4b, 3, true) => {
            let Place { start, stride, length } = Place::decode(code, registers)?;
            Some((Instruction::Load { t, from: start, stride: stride? }, length))
        }
        (0x4b, 2, true) => {
            let Place { start, stride, length } = Place::decode(code, registers)?;
            Some((Instruction::Store { t, to: start, stride: stride? }, length))
        }
        (0x5c, 2, false) => Some((Instruction::Multiply { c: t, a: operands & 7, b }, 5)),
        _ => None,
    }
}

/// An operand in memory.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Base and displacement.
    start: u64,
    /// The scaled index, which is zero if no register is one; `None` if the form has no index.
    stride: Option<u64>,
    /// Bytes of the whole instruction.
    length: usize,
}

impl Place {
    /// Addresses relative to the instruction are not known.
    fn decode(code: &[u8; LONGEST], registers: &[u64; 16]) -> Option<Self> {
        let (extensions, operands, scaled) = (!code[1], code[4], code[5]);
        let (mode, has_index) = (operands >> 6, operands & 7 == 4);
        let extended = |number: u8, bit: u8| usize::from(number & 7 | (extensions >> bit & 1) << 3);
        let base = extended(if has_index { scaled } else { operands }, 5);
        let stride = has_index.then(|| match extended(scaled >> 3, 6) {
            4 => 0,
            index => registers[index] << (scaled >> 6),
        });
        let at = if has_index { 6 } else { 5 };
        let (base, displacement, bytes) = match (mode, base & 7) {
            (0, 5) if has_index => (0, i64::from(long(code, at)), 4),
            (0, 5) => return None,
            (0, _) => (registers[base], 0, 0),
            (1, _) => (registers[base], i64::from(code[at].cast_signed()), 1),
            _ => (registers[base], i64::from(long(code, at)), 4),
        };
        Some(Self { start: base.wrapping_add_signed(displacement), stride, length: at + bytes })
    }

    /// The address of what is no tile.
    fn sum(&self) -> Option<u64> {
        self.start.checked_add(self.stride.unwrap_or(0))
    }
}

/// A displacement of four bytes.
fn long(code: &[u8; LONGEST], at: usize) -> i32 {
    i32::from_le_bytes([code[at], code[at + 1], code[at + 2], code[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> Option<(Instruction, usize)> {
        let mut code = [0x90; LONGEST];
        code[..bytes.len()].copy_from_slice(bytes);
        let registers = std::array::from_fn(|number| 1000 * number as u64);
        decode(&code, &registers)
    }

    /// Each encoding by hand from the manual.
    #[test]
    fn instructions_are_read_from_their_bytes() {
        let cases: [(&[u8], Instruction); 9] = [
            (&[0xc4, 0xe2, 0x78, 0x49, 0x07], Instruction::Configure { from: 7000 }),
            (&[0xc4, 0xe2, 0x78, 0x49, 0x44, 0x24, 0x40], Instruction::Configure { from: 4064 }),
            (&[0xc4, 0xe2, 0x78, 0x49, 0xc0], Instruction::Release),
            (&[0xc4, 0xe2, 0x7b, 0x49, 0xe8], Instruction::Zero { t: 5 }),
            (
                &[0xc4, 0xe2, 0x7b, 0x4b, 0x24, 0x37],
                Instruction::Load { t: 4, from: 7000, stride: 6000 },
            ),
            (
                &[0xc4, 0x82, 0x7b, 0x4b, 0x7c, 0x7d, 0xfe],
                Instruction::Load { t: 7, from: 12998, stride: 30000 },
            ),
            (
                &[0xc4, 0xe2, 0x7a, 0x4b, 0x8c, 0x0a, 0x00, 0x01, 0x00, 0x00],
                Instruction::Store { t: 1, to: 2256, stride: 1000 },
            ),
            (
                &[0xc4, 0xe2, 0x7a, 0x4b, 0x1c, 0x25, 0x10, 0x00, 0x00, 0x00],
                Instruction::Store { t: 3, to: 16, stride: 0 },
            ),
            (&[0xc4, 0xe2, 0x4a, 0x5c, 0xc4], Instruction::Multiply { c: 0, a: 4, b: 6 }),
        ];
        for (bytes, instruction) in cases {
            assert_eq!(decoded(bytes), Some((instruction, bytes.len())), "{bytes:02x?}");
        }
    }

    #[test]
    fn other_instructions_are_left_alone() {
        let undefined: &[u8] = &[0x0f, 0x0b];
        let products_of_bytes: &[u8] = &[0xc4, 0xe2, 0x4b, 0x5e, 0xc4];
        let relative_to_the_instruction: &[u8] = &[0xc4, 0xe2, 0x78, 0x49, 0x05, 0, 0, 0, 0];
        let load_without_index: &[u8] = &[0xc4, 0xe2, 0x7b, 0x4b, 0x07];
        for code in [undefined, products_of_bytes, relative_to_the_instruction, load_without_index]
        {
            assert_eq!(decoded(code), None, "{code:02x?}");
        }
    }

    #[test]
    fn registers_are_refused_before_they_are_configured() {
        // SAFETY: these touch no memory.
        unsafe {
            assert!(!run(&Instruction::Zero { t: 0 }));
            assert!(!run(&Instruction::Multiply { c: 0, a: 1, b: 2 }));
            assert!(run(&Instruction::Release));
        }
    }
}
