//! The x86-64 back end: the SIMD form becomes machine code.
//!
//! [`compile`] is the pipeline: `select` emits machine instructions with virtual registers (`vcode`), `regalloc2`
//! assigns registers, `encode` emits bytes, `code_memory` makes them executable and `call` calls them.

mod atomic;
mod call;
mod code_memory;
mod encode;
mod function;
mod lane_groups;
mod listing;
mod observe;
mod pool;
mod regalloc;
mod select;
mod stack;
mod store;
mod vcode;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use iced_x86::Register;

use self::code_memory::CodeMemory;
pub use self::code_memory::{CodeUsage, code_usage};
use self::function::{Areas, KernelFunction, Needs};
pub use self::stack::Stack;
use super::{Code, ObservedCode, Scratch, Workgroups};
use crate::abi::{DispatchArgs, Outcome};
use crate::check::observer::Observer;
use crate::host::Message;
use crate::ir::{Op, SourceLine};
use crate::simd::Kernel;
use crate::work::Spent;

/// A vector instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isa {
    /// AVX-512 with F, BW, CD, DQ and VL: 16 lanes per register, masks in mask registers.
    Avx512,
    /// AVX2 with FMA: 16 lanes in two registers, masks as vectors of all-ones and all-zeros lanes.
    Avx2,
}

impl Isa {
    /// All instruction sets, fastest first.
    pub const ALL: [Self; 2] = [Self::Avx512, Self::Avx2];

    /// The instruction sets that this machine supports, fastest first.
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

    // Generated code has the calling convention that C has on these systems; on Windows C has another one.
    #[cfg(all(target_arch = "x86_64", unix))]
    fn detected(self) -> bool {
        macro_rules! all {
            ($($feature:tt)*) => { $(std::arch::is_x86_feature_detected!($feature))&&* };
        }
        // Every machine with AVX2 has the bit-manipulation extensions; the test is cheap.
        let avx2 = all!("avx2" "fma" "f16c" "bmi1" "bmi2" "lzcnt" "popcnt");
        match self {
            Self::Avx512 => avx2 && all!("avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl"),
            Self::Avx2 => avx2,
        }
    }

    #[cfg(not(all(target_arch = "x86_64", unix)))]
    fn detected(self) -> bool {
        false
    }

    /// The first vector register at its full width.
    fn vector_register(self) -> Register {
        match self {
            Self::Avx512 => Register::ZMM0,
            Self::Avx2 => Register::YMM0,
        }
    }

    /// Size of a vector register in 8-byte words.
    fn vector_words(self) -> usize {
        match self {
            Self::Avx512 => 8,
            Self::Avx2 => 4,
        }
    }

    /// Registers that hold a vector of 16 lanes.
    fn registers_per_vector(self) -> u8 {
        match self {
            Self::Avx512 => 1,
            Self::Avx2 => 2,
        }
    }

    /// How many vector registers it has.
    fn vector_registers(self) -> usize {
        match self {
            Self::Avx512 => 32,
            Self::Avx2 => 16,
        }
    }

    /// The mask registers that hold masks: 0 encodes "no mask".
    fn mask_registers(self) -> std::ops::Range<usize> {
        match self {
            Self::Avx512 => 1..8,
            Self::Avx2 => 0..0,
        }
    }
}

/// Why a kernel has no machine code. The interpreter can still run it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// An operation that lowering should have replaced.
    #[error("no machine code for `{}`", .0.name())]
    Unsupported(Op),
    /// More instructions or values than the allocator can number, or too large a frame.
    #[error("the kernel is too large for machine code")]
    TooLarge,
    /// Registers take too long to assign: many values are live over many blocks.
    #[error("{0}")]
    TooMuchWork(Spent),
    /// The register allocator failed.
    #[error("registers: {0}")]
    Registers(String),
    /// An instruction could not be encoded.
    #[error("encoding: {0}")]
    Encoding(String),
    /// No memory for code.
    #[error("code memory: {0}")]
    Memory(String),
}

/// The register-allocation strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterAllocation {
    /// Live-range splitting and merging (Ion); a single pass for kernels so large that Ion would take seconds.
    BySize,
    /// A single pass (fastalloc) for any size: values that live across blocks are spilled.
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
pub struct MachineCode {
    function: KernelFunction,
    /// Whether it contains non-temporal stores.
    nontemporal: bool,
    max_steps: Option<u64>,
    spills: Spills,
    forms: BTreeSet<&'static str>,
    source: SourceMap,
}

/// Where the code comes from, for listings: not kept in stored code.
#[derive(Clone, Debug, Default)]
struct SourceMap {
    /// Offsets in the image at which the origin changes, with the SPIR-V word.
    origins: Vec<(u32, u32)>,
    lines: Arc<BTreeMap<u32, SourceLine>>,
}

/// Spill statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spills {
    /// Spill slots of 8 bytes.
    pub slots: usize,
    /// Moves that the allocator inserted, between registers or from and to the stack.
    pub moves: usize,
}

/// Compiles a kernel that passes the SIMD form's verifier; the code of any other kernel has undefined behaviour.
pub fn compile(kernel: &Kernel, isa: Isa) -> Result<MachineCode, CompileError> {
    compile_staged(kernel, isa, RegisterAllocation::BySize, |_| {})
}

/// As [`compile`], with a register-allocation strategy; calls `done` at the end of each stage, for timing.
pub fn compile_staged(
    kernel: &Kernel,
    isa: Isa,
    registers: RegisterAllocation,
    mut done: impl FnMut(Stage),
) -> Result<MachineCode, CompileError> {
    let code = select::select(kernel, isa)?;
    done(Stage::Select);
    kernel.work.visit(regalloc::steps(&code));
    kernel.work.check().map_err(CompileError::TooMuchWork)?;
    let mut tables = regalloc::AllocationTables::default();
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
        subgroup_order: kernel.subgroup_order as usize,
        stack_bytes: image.stack_bytes,
        images: code.images,
        address_ranges: code.address_ranges,
        workgroup_loop: code.workgroup_loop,
        merged_workgroups: kernel.merged_workgroups,
        workgroup_size: kernel.workgroup_size,
        isa,
    };
    let function = KernelFunction {
        memory,
        entry: image.entry,
        needs,
        areas: Areas::new(&needs, &kernel.inline),
        routines: code.routines,
        messages: Vec::new(),
        inline: kernel.inline.clone(),
    };
    Ok(MachineCode {
        function,
        nontemporal: code.nontemporal,
        max_steps: kernel.max_steps,
        spills,
        forms: code.forms,
        source: SourceMap { origins: image.origins, lines: Arc::clone(&kernel.lines) },
    })
}

impl MachineCode {
    /// Sets the texts of the messages that the kernel prints.
    pub fn with_messages(mut self, messages: Vec<Message>) -> Self {
        self.function.messages = messages;
        self
    }

    /// Spill statistics.
    pub fn spills(&self) -> Spills {
        self.spills
    }

    /// The special forms of operations that instruction selection chose, by name, for tools. Empty if the machine code
    /// comes from [`Code::store`].
    pub fn forms(&self) -> &BTreeSet<&'static str> {
        &self.forms
    }

    /// Size of code and constants in bytes.
    pub fn code_bytes(&self) -> usize {
        self.function.memory.bytes().len()
    }

    /// The disassembly, one instruction per line, with labels; constants follow.
    pub fn assembly(&self) -> String {
        listing::listing(self.function.memory.bytes(), self.function.entry, &BTreeMap::new())
    }

    /// As [`MachineCode::assembly`], with a comment that names the source line where that changes, if the module has
    /// debug lines. Moves between registers, and slow paths after the last block, belong to the line before them.
    pub fn assembly_with_source_lines(&self) -> String {
        let SourceMap { origins, lines } = &self.source;
        let line_at = |&(at, word): &(u32, u32)| Some((u64::from(at), SourceLine::of_word(lines, word)?));
        let lines: BTreeMap<u64, &SourceLine> = origins.iter().filter_map(line_at).collect();
        listing::listing(self.function.memory.bytes(), self.function.entry, &lines)
    }
}

impl Code for MachineCode {
    fn run_all(&self, args: &DispatchArgs<'_>, mut workgroups: Workgroups, scratch: &mut Scratch) -> Outcome {
        self.function.run(args, &mut workgroups, None, scratch)
    }

    fn max_steps(&self) -> Option<u64> {
        self.max_steps
    }

    fn settle(&self) {
        if self.nontemporal {
            call::order_stores();
        }
    }

    fn store(&self) -> Option<Vec<u8>> {
        Some(self.to_bytes())
    }
}

impl ObservedCode for MachineCode {
    fn run_observed(
        &self,
        args: &DispatchArgs<'_>,
        mut workgroups: Workgroups,
        scratch: &mut Scratch,
        observer: &mut dyn Observer,
    ) -> Outcome {
        let outcome = self.function.run(args, &mut workgroups, Some(observer), scratch);
        self.settle();
        outcome
    }
}
