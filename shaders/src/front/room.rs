//! Upper bounds of the host memory that reading a module takes. A driver asks for it before: the reader makes many
//! small allocations, none of which can fail by itself.

use super::wgsl::MeasuredText;

/// Bytes for each byte of code and constants in SPIR-V, at most (measured: 30 for code, 75 for a large constant).
const PER_BYTE: u64 = 128;

/// Bytes for each byte of names and other debug instructions in SPIR-V, at most.
const PER_DEBUG_BYTE: u64 = 16;

/// Bytes for each byte of WGSL text, at most.
const PER_TEXT_BYTE: u64 = 256;

/// Bytes for each part of a constant that naga writes out where it is used, at most (measured: 80, to the kernel).
const PER_PART: u64 = 192;

/// Bytes for each further instruction of a kernel while it is translated, at most (measured: 170).
const PER_INSTRUCTION: u64 = 256;

/// Instructions for which the memory to read the smallest module suffices.
const FIRST_INSTRUCTIONS: usize = (MIN_BYTES / PER_INSTRUCTION) as usize;

/// Bytes for the smallest module.
const MIN_BYTES: u64 = 1 << 20;

/// Says whether the host has a number of bytes now.
pub type HasRoom<'a> = &'a dyn Fn(u64) -> bool;

/// Asks for host memory while a kernel grows: calls are inlined, so that a short module may have a long kernel.
#[derive(Clone, Copy)]
pub(crate) struct Growth<'a> {
    has_room: HasRoom<'a>,
    /// Instructions for which there is memory.
    allowed: usize,
}

impl<'a> Growth<'a> {
    pub(crate) fn new(has_room: HasRoom<'a>) -> Self {
        Self { has_room, allowed: FIRST_INSTRUCTIONS }
    }

    /// Asks for as much memory as a kernel of this many instructions takes, when it has outgrown what was there.
    pub(crate) fn reach(&mut self, instructions: usize) -> Result<(), String> {
        if instructions < self.allowed {
            return Ok(());
        }
        self.ask(instructions)?;
        self.allowed = 2 * instructions;
        Ok(())
    }

    /// Asks for as much memory as a kernel of this many instructions takes.
    pub(crate) fn ask(&self, instructions: usize) -> Result<(), String> {
        if (self.has_room)(instructions as u64 * PER_INSTRUCTION) {
            return Ok(());
        }
        Err(format!("the host has too little memory to translate a kernel of more than {instructions} instructions"))
    }
}

/// Bytes to read a SPIR-V module and to translate a kernel of it.
pub fn of_spirv(words: &[u32]) -> u64 {
    const HEADER: usize = 5;
    let (mut debug, mut at) = (0, HEADER);
    while let Some(&first) = words.get(at) {
        // No instruction is empty: the reader refuses the module there.
        let count = (first >> 16).max(1) as usize;
        if is_debug(first & 0xffff) {
            debug += count.min(words.len() - at);
        }
        at += count;
    }
    let bytes = |words: usize| 4 * words as u64;
    (bytes(debug) * PER_DEBUG_BYTE + bytes(words.len() - debug) * PER_BYTE).max(MIN_BYTES)
}

/// Whether an instruction is of the debug instructions that the reader keeps a name or a line of, or nothing.
fn is_debug(opcode: u32) -> bool {
    use spirv::Op;
    matches!(
        Op::from_u32(opcode),
        Some(
            Op::Nop
                | Op::Source
                | Op::SourceContinued
                | Op::SourceExtension
                | Op::Name
                | Op::MemberName
                | Op::String
                | Op::Line
                | Op::NoLine
                | Op::ModuleProcessed
        )
    )
}

/// Bytes to assemble SPIR-V text, and to keep the places of its words (measured: 10 for each byte).
pub fn of_assembly(text: &[u8]) -> u64 {
    (text.len() as u64 * 16).max(MIN_BYTES)
}

/// Bytes to read WGSL text and to translate a kernel of it.
pub fn of_wgsl(text: MeasuredText<'_>) -> u64 {
    (text.source.len() as u64 * PER_TEXT_BYTE + text.parts * PER_PART).max(MIN_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_take_less_than_code() {
        let header = [0x0723_0203, 0x1_0000, 0, 4, 0];
        let with = |inst: [u32; 4]| {
            let many = std::iter::repeat_n(inst, 1 << 20).flatten();
            of_spirv(&header.into_iter().chain(many).collect::<Vec<_>>())
        };
        // 16 MiB of names, and of sums; the header counts as code.
        assert_eq!(with([4 << 16 | 5, 1, 0x6161_6161, 0]), (16 << 24) + 20 * PER_BYTE);
        assert_eq!(with([4 << 16 | 128, 1, 2, 3]), (128 << 24) + 20 * PER_BYTE);
        // Lengths that end past the module, and empty instructions.
        assert_eq!(of_spirv(&[0x0723_0203, 0, 0, 0, 0, 0xffff_0005, 0, 0]), MIN_BYTES);
    }

    #[test]
    fn a_kernel_that_doubles_asks_once() {
        let asked = std::cell::RefCell::new(Vec::new());
        let has_room = |bytes| {
            asked.borrow_mut().push(bytes / PER_INSTRUCTION);
            bytes < 20_000 * PER_INSTRUCTION
        };
        let mut growth = Growth::new(&has_room);
        let end = (0..1 << 20).find(|&instructions| growth.reach(instructions).is_err());
        assert_eq!(end, Some(32_768));
        assert_eq!(*asked.borrow(), [4096, 8192, 16_384, 32_768]);
    }

    #[test]
    fn a_short_text_with_many_parts_takes_much() {
        let doubled: String = (1..13).map(|i| format!("const a{i} = array(a{}, a{});\n", i - 1, i - 1)).collect();
        let uses: String = (0..85).map(|i| format!("let x{i} = a12; ")).collect();
        let text = format!("const a0 = array<u32, 2>(1u, 2u);\n{doubled}fn f() {{ {uses} }}");
        let bytes_of = |text| MeasuredText::new(text).map(of_wgsl);
        let bytes = bytes_of(&text).unwrap();
        assert!(bytes > 85 * 8192 * PER_PART, "{bytes}");
        assert_eq!(bytes_of("fn f() {}").unwrap(), MIN_BYTES);
        assert!(bytes_of(&"(".repeat(10_000)).is_err());
    }
}
