//! The whole pipeline on one page: text or words → module → kernel → optimised, lowered, widened → code.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::back::x86::{self, Isa};
use crate::back::{Code, interp};
use crate::front::{Error, SpecializationConstant, spirv, wgsl};
use crate::ir::{Kernel, SourceLine};
use crate::lower::math::{self, MathOptions};
use crate::work::Work;
use crate::{float_mode, opt, simd, vectorize};

/// A module that was read and found valid as far as that is independent of entry point and specialization.
#[derive(Debug)]
pub enum Module {
    /// From SPIR-V words.
    Spirv(spirv::Module),
    /// From WGSL text.
    Wgsl(Box<wgsl::Module>),
}

impl Module {
    /// Reads a SPIR-V module.
    pub fn from_spirv(words: &[u32]) -> Result<Self, Error> {
        float_mode::with_default(|| spirv::Module::parse(words).map(Self::Spirv))
    }

    /// Reads WGSL text; it becomes SPIR-V when a kernel is asked for, since overrides must be known by then.
    pub fn from_wgsl(source: &str) -> Result<Self, Error> {
        float_mode::with_default(|| wgsl::Module::parse(source).map(|module| Self::Wgsl(Box::new(module))))
    }

    /// Names of the compute entry points, in the module's order.
    pub fn entry_points(&self) -> impl Iterator<Item = &str> {
        let names: Vec<&str> = match self {
            Self::Spirv(module) => module.entry_points().collect(),
            Self::Wgsl(module) => module.entry_points().collect(),
        };
        names.into_iter()
    }

    /// The specialization constants, in the module's order.
    pub fn specialization_constants(&self) -> Vec<SpecializationConstant> {
        match self {
            Self::Spirv(module) => module.specialization_constants().collect(),
            Self::Wgsl(module) => module.specialization_constants().collect(),
        }
    }

    /// Where the text declares what is bound at a group and a number; `None` of SPIR-V.
    pub fn declared(&self, group: u32, binding: u32) -> Option<SourceLine> {
        match self {
            Self::Spirv(_) => None,
            Self::Wgsl(module) => module.declared(group, binding),
        }
    }

    /// Whether kernels may have arrays of descriptors to which only a layout gives a size
    /// ([`Kernel::size_runtime_arrays`]).
    pub fn may_have_runtime_arrays(&self) -> bool {
        match self {
            Self::Spirv(module) => module.may_have_runtime_arrays(),
            Self::Wgsl(module) => module.may_have_runtime_arrays(),
        }
    }

    /// As [`Module::kernel`], sooner: the kernel knows no source lines if the module is WGSL. Errors do.
    pub fn kernel_without_lines(&self, entry: &str, specialization: &BTreeMap<u32, u64>) -> Result<Kernel, Error> {
        float_mode::with_default(|| match self {
            Self::Spirv(module) => module.kernel(entry, specialization),
            Self::Wgsl(module) => module.kernel_without_lines(entry, specialization),
        })
    }

    /// The line of the source at a word that a kernel of [`Module::kernel_without_lines`] names
    /// ([`Stop::word`](crate::abi::Stop::word)), if the module tells.
    pub fn line_of(&self, entry: &str, specialization: &BTreeMap<u32, u64>, word: u32) -> Option<SourceLine> {
        match self {
            Self::Spirv(module) => module.line_of(word),
            Self::Wgsl(module) => module.line_of(entry, specialization, word),
        }
    }

    /// Specializes an entry point: the scalar IR, verified. `specialization` maps `SpecId` to the constant's bits; ids
    /// that the module does not have are ignored, as Vulkan asks.
    pub fn kernel(&self, entry: &str, specialization: &BTreeMap<u32, u64>) -> Result<Kernel, Error> {
        float_mode::with_default(|| match self {
            Self::Spirv(module) => module.kernel(entry, specialization),
            Self::Wgsl(module) => module.kernel(entry, specialization),
        })
    }
}

/// What runs kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Backend {
    /// The interpreter: one invocation at a time, on every machine.
    Interpreter,
    /// Machine code, 16 invocations at a time.
    X86(Isa),
}

impl Backend {
    /// Those that this machine has, the fastest first.
    pub fn available() -> impl Iterator<Item = Self> {
        Isa::available().map(Self::X86).chain([Self::Interpreter])
    }

    /// The fastest of this machine.
    pub fn best() -> Self {
        Self::available().next().unwrap_or(Self::Interpreter)
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interpreter => "interpreter",
            Self::X86(isa) => isa.name(),
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Backend {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match Self::available().find(|backend| backend.name() == name) {
            Some(backend) => Ok(backend),
            None => {
                let names: Vec<&str> = Self::available().map(Self::name).collect();
                Err(format!("`{name}` is no back end of this machine; there are {}", names.join(", ")))
            }
        }
    }
}

/// How free compilation is with floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Floats {
    /// A product and a sum may become one operation, rounded once.
    pub contract: bool,
    /// `InverseSqrt` may be two units in the last place off.
    pub fast_inverse_sqrt: bool,
    /// Exponentials and logarithms may use operations on exponents, which AVX-512 has.
    pub exponents: bool,
}

impl Floats {
    /// What Vulkan allows: as fast as can be.
    pub const FAST: Self = Self { contract: true, fast_inverse_sqrt: true, exponents: false };
    /// Every operation rounded for itself, so that back ends agree on all bits.
    pub const EXACT: Self = Self { contract: false, fast_inverse_sqrt: false, exponents: false };

    /// With the operations that an instruction set has.
    pub fn on(self, isa: Isa) -> Self {
        Self { exponents: isa == Isa::Avx512, ..self }
    }
}

/// A kernel made ready to run.
#[derive(Debug)]
pub struct Compiled {
    /// What runs.
    pub code: Box<dyn Code>,
    /// What runs it: the interpreter if there is no machine code for this kernel.
    pub backend: Backend,
    /// Why it is not the back end that was asked for.
    pub fallback: Option<String>,
}

/// Makes a kernel ready to run.
pub fn compile(kernel: &Kernel, backend: Backend) -> Compiled {
    compile_within(kernel, backend, |_| Ok(()))
}

/// Makes a kernel ready to run where the host has memory for that: `room` is asked for bytes before they are needed, and what it
/// gives is kept until the code is made. A kernel for which it has none is interpreted.
pub fn compile_within<R>(kernel: &Kernel, backend: Backend, room: impl Fn(u64) -> Result<R, String>) -> Compiled {
    let Backend::X86(isa) = backend else {
        return interpreted(kernel, None);
    };
    match float_mode::with_default(|| machine_code(kernel, isa, room)) {
        Ok(code) => Compiled { code, backend, fallback: None },
        Err(reason) => interpreted(kernel, Some(reason)),
    }
}

fn interpreted(kernel: &Kernel, fallback: Option<String>) -> Compiled {
    Compiled { code: interpret(kernel), backend: Backend::Interpreter, fallback }
}

/// Makes a kernel ready for the interpreter, as it is.
pub fn interpret(kernel: &Kernel) -> Box<dyn Code> {
    Box::new(interp::Program::new(kernel))
}

/// Most instructions, optimised and lowered, of a kernel that becomes machine code: more would take seconds.
const MAX_INSTRUCTIONS: usize = 1 << 17;

/// Most instructions of a kernel as it is read, which is often many times as long: compilers for other shading languages
/// leave the work to drivers.
const MAX_INSTRUCTIONS_READ: usize = 1 << 19;

/// Bytes of the host that compiling takes, at most: for each instruction of the kernel as it is read (measured: 1,500), for each
/// instruction and each argument of a branch in the SIMD form (measured: 90), and besides.
const PER_INSTRUCTION: u64 = 4 << 10;
const PER_OPERAND: u64 = 128;
const BESIDES: u64 = 4 << 20;

fn machine_code<R>(
    kernel: &Kernel,
    isa: Isa,
    room: impl Fn(u64) -> Result<R, String>,
) -> Result<Box<dyn Code>, String> {
    let _room = room(kernel.insts.len() as u64 * PER_INSTRUCTION + BESIDES)?;
    let lowered = lower_for(kernel, isa, |_, _| {})?;
    let wide = widen(&lowered, isa).map_err(|error| error.to_string())?;
    check_widened(&wide)?;
    let _more = room(wide.size() as u64 * PER_OPERAND)?;
    let program = x86::compile(&wide, isa).map_err(|error| error.to_string())?;
    Ok(Box::new(program.with_messages(kernel.messages.clone())))
}

/// Widens a lowered kernel as it is best for an instruction set.
///
/// # Errors
///
/// What the SIMD form cannot express.
pub fn widen(kernel: &Kernel, isa: Isa) -> Result<simd::Kernel, vectorize::Unsupported> {
    let mut wide = vectorize::widen(kernel)?;
    let passes = if isa == Isa::Avx512 { 5 } else { 2 };
    wide.work.visit(passes * wide.size());
    if isa == Isa::Avx512 {
        // AVX2's vectors are two halves: two chains of results as they are, and too few registers for more.
        simd::licm(&mut wide);
        simd::unroll_and_jam(&mut wide, simd::Pairs::WhereFaster);
        simd::schedule(&mut wide, simd::Scheduled::WhereFaster);
    }
    simd::merge_blocks(&mut wide);
    simd::workgroup_loop(&mut wide);
    Ok(wide)
}

/// Proves that a SIMD form is sound, and looks whether there is work left for the rest.
///
/// # Errors
///
/// Widening went wrong, or compiling has taken too long.
pub fn check_widened(wide: &simd::Kernel) -> Result<(), String> {
    wide.work.visit(wide.size());
    // Machine code does whatever the SIMD form says: a wrong one must not get there.
    if let Err(error) = simd::verify(wide) {
        debug_assert!(false, "widening made a wrong kernel: {error}\n{wide}");
        return Err(format!("widening made a wrong kernel: {error}"));
    }
    wide.work.visit(wide.size());
    wide.work.check().map_err(|spent| spent.to_string())
}

fn check_size(kernel: &Kernel, form: &str, most: usize) -> Result<(), String> {
    let instructions: usize = kernel.layout.iter().map(|&block| kernel.blocks[block].insts.len()).sum();
    if instructions > most {
        return Err(format!("{instructions} instructions, {form}, are more than {most}"));
    }
    Ok(())
}

/// As [`lower`], for machine code.
///
/// # Errors
///
/// The kernel is larger than what becomes machine code.
pub fn lower_for(kernel: &Kernel, isa: Isa, after: impl FnMut(&'static str, &Kernel)) -> Result<Kernel, String> {
    check_size(kernel, "as they are read", MAX_INSTRUCTIONS_READ)?;
    let lowered = lower(kernel, Floats::FAST.on(isa), after);
    lowered.work.check().map_err(|spent| spent.to_string())?;
    check_size(&lowered, "optimised", MAX_INSTRUCTIONS)?;
    Ok(lowered)
}

/// Optimises a kernel and leaves only operations that machines have; `after` sees the kernel after each step.
pub fn lower(kernel: &Kernel, floats: Floats, mut after: impl FnMut(&'static str, &Kernel)) -> Kernel {
    // Each way to machine code has its own budget.
    let mut kernel = Kernel { work: Work::default(), ..kernel.clone() };
    opt::optimize(&mut kernel, |pass, kernel| after(pass.name, kernel));
    if floats.contract {
        (opt::CONTRACT.run)(&mut kernel);
        after(opt::CONTRACT.name, &kernel);
    }
    let instructions = kernel.insts.len();
    let Floats { fast_inverse_sqrt, exponents, .. } = floats;
    math::run(&mut kernel, MathOptions { fast_inverse_sqrt, exponents });
    after("math", &kernel);
    // Where nothing was expanded, products that were fused are all that is left to do.
    let cleanup = if kernel.insts.len() == instructions { &[opt::DCE] } else { opt::CLEANUP };
    for pass in cleanup {
        kernel.work.visit(kernel.size());
        (pass.run)(&mut kernel);
        after(pass.name, &kernel);
    }
    kernel
}
