//! The x86-64 back end: the SIMD form becomes machine code.
//!
//! [`compile`] is the whole of it: `select` writes machine instructions with virtual registers (`vcode`), `regalloc2`
//! colours them, `encode` turns them into bytes, `code_memory` makes those executable and `call` calls them.

mod atomic;
mod call;
mod code_memory;
mod contiguous_atomics;
mod encode;
mod lane_groups;
mod listing;
mod pool;
mod regalloc;
mod scatter_add;
mod select;
mod stack;
mod store;
mod vcode;

use iced_x86::Register;

use self::call::Needs;
use self::code_memory::CodeMemory;
pub use self::code_memory::{CodeUsage, code_usage};
pub use self::stack::Stack;
use super::{Code, Scratch, Workgroups};
use crate::abi::{DispatchArgs, Outcome};
use crate::host::Message;
use crate::ir::Op;
use crate::simd::Kernel;
use crate::simd::Routine;

/// A set of vector instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isa {
    /// AVX-512 with F, BW, CD, DQ and VL: 16 lanes in a register, masks in registers of their own.
    Avx512,
    /// AVX2 with FMA: 16 lanes in two registers, masks as lanes.
    Avx2,
}

impl Isa {
    /// All of them, the fastest first.
    pub const ALL: [Self; 2] = [Self::Avx512, Self::Avx2];

    /// Those that this machine can run, the fastest first.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|isa| isa.detected())
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Avx512 => "avx512",
            Self::Avx2 => "avx2",
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn detected(self) -> bool {
        macro_rules! all {
            ($($feature:tt)*) => { $(std::arch::is_x86_feature_detected!($feature))&&* };
        }
        // Every machine with AVX2 has the bit operations; asking costs nothing.
        let avx2 = all!("avx2" "fma" "f16c" "bmi1" "bmi2" "lzcnt" "popcnt" "cmpxchg16b");
        match self {
            Self::Avx512 => avx2 && all!("avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl"),
            Self::Avx2 => avx2,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn detected(self) -> bool {
        false
    }

    /// The first vector register in its full width.
    fn vector_register(self) -> Register {
        match self {
            Self::Avx512 => Register::ZMM0,
            Self::Avx2 => Register::YMM0,
        }
    }

    /// Words of 8 bytes in a vector register.
    fn vector_words(self) -> usize {
        match self {
            Self::Avx512 => 8,
            Self::Avx2 => 4,
        }
    }
}

/// Why a kernel has no machine code. Another back end can run it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// An operation that lowering should have replaced.
    #[error("no machine code for `{}`", .0.name())]
    Unsupported(Op),
    /// More instructions or values than the allocator can number, or too large a frame.
    #[error("the kernel is too large for machine code")]
    TooLarge,
    /// The register allocator gave up.
    #[error("registers: {0}")]
    Registers(String),
    /// An instruction could not be encoded.
    #[error("encoding: {0}")]
    Encoding(String),
    /// No memory for code.
    #[error("code memory: {0}")]
    Memory(String),
}

/// How registers are assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registers {
    /// By live ranges, which are split and merged, but in one pass where the kernel is so large that this would take seconds.
    BySize,
    /// In one pass, whatever the size: values that live across blocks are kept in memory.
    InOnePass,
}

/// A stage of the compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Instruction selection.
    Select,
    /// Register allocation.
    Regalloc,
    /// Encoding, and making the code executable.
    Encode,
}

impl Stage {
    /// The name in tables of times.
    pub fn name(self) -> &'static str {
        match self {
            Self::Select => "select",
            Self::Regalloc => "regalloc",
            Self::Encode => "encode",
        }
    }
}

/// A kernel as machine code.
#[derive(Debug)]
pub struct Program {
    memory: CodeMemory,
    entry: usize,
    needs: Needs,
    /// Routines by the numbers that the code knows.
    routines: Vec<Routine>,
    /// Messages by the numbers that the code knows.
    messages: Vec<Message>,
    /// Whether it writes past the caches.
    streams: bool,
    most_steps: Option<u64>,
    spills: Spills,
}

/// What did not fit into registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spills {
    /// Places of 8 bytes on the stack.
    pub slots: usize,
    /// Moves that the allocator added, between registers or from and to the stack.
    pub moves: usize,
}

/// Compiles a kernel that the SIMD form's verifier accepts; the code of another one may do anything.
pub fn compile(kernel: &Kernel, isa: Isa) -> Result<Program, CompileError> {
    compile_staged(kernel, isa, Registers::BySize, |_| {})
}

/// As [`compile`], with a choice; tells when a stage is done, to those who have a clock.
pub fn compile_staged(
    kernel: &Kernel,
    isa: Isa,
    registers: Registers,
    mut done: impl FnMut(Stage),
) -> Result<Program, CompileError> {
    let code = select::select(kernel, isa)?;
    done(Stage::Select);
    let mut tables = regalloc::Tables::default();
    let allocation = regalloc::allocate(&mut tables, &code, isa, registers)?;
    done(Stage::Regalloc);
    let spills = Spills { slots: allocation.num_spillslots, moves: allocation.edits.len() };
    let image = encode::encode(&code, allocation, isa)?;
    let memory = CodeMemory::new(&image.bytes).map_err(|error| CompileError::Memory(error.to_string()))?;
    done(Stage::Encode);
    let needs = Needs {
        descriptors: kernel.descriptors as usize,
        shared_bytes: kernel.shared_bytes as usize,
        private_bytes: kernel.private_bytes as usize,
        frame_bytes: kernel.frame_bytes as usize,
        call_bytes: kernel.call_bytes as usize,
        stack_bytes: image.stack_bytes,
        images: code.images,
        pieces: code.pieces,
        repeats: code.repeats,
        abreast: kernel.abreast,
        workgroup_size: kernel.workgroup_size,
        isa,
    };
    Ok(Program {
        memory,
        entry: image.entry,
        needs,
        streams: code.streams,
        most_steps: kernel.most_steps,
        routines: code.routines,
        messages: Vec::new(),
        spills,
    })
}

impl Program {
    /// With the texts of the messages that the kernel prints.
    pub fn with_messages(self, messages: Vec<Message>) -> Self {
        Self { messages, ..self }
    }

    /// What did not fit into registers.
    pub fn spills(&self) -> Spills {
        self.spills
    }

    /// Bytes of code and constants.
    pub fn code_bytes(&self) -> usize {
        self.memory.bytes().len()
    }

    /// The machine code as text, one instruction to a line, with labels; constants follow.
    pub fn assembly(&self) -> String {
        listing::listing(self.memory.bytes(), self.entry)
    }
}

impl Program {
    fn run_each(&self, args: &DispatchArgs<'_>, workgroups: Workgroups, scratch: &mut Scratch) -> Outcome {
        let known = (&self.routines[..], &self.messages[..]);
        call::run(&self.memory, self.entry, self.needs, known, args, workgroups, scratch)
    }
}

impl Code for Program {
    fn run(&self, args: &DispatchArgs<'_>, workgroup: [u32; 3], scratch: &mut Scratch) -> Outcome {
        self.run_each(args, Workgroups::one(workgroup), scratch)
    }

    fn run_all(&self, args: &DispatchArgs<'_>, workgroups: Workgroups, scratch: &mut Scratch) -> Outcome {
        self.run_each(args, workgroups, scratch)
    }

    fn most_steps(&self) -> Option<u64> {
        self.most_steps
    }

    fn settle(&self) {
        if self.streams {
            call::order_stores();
        }
    }

    fn store(&self) -> Option<Vec<u8>> {
        Some(self.to_bytes())
    }
}
