//! The whole pipeline: text or words → module → kernel → optimised, lowered, vectorized → code.

mod module;

use std::fmt;
use std::str::FromStr;

use cranelift_entity::EntitySet;

pub use self::module::Module;
use crate::back::x86::{self, Isa};
use crate::back::{Code, ObservedCode, interp};
use crate::ir::{Binding, Kernel, VERIFIES};
use crate::lower::math::{self, MathOptions};
use crate::vectorize::AccessCosts;
use crate::{check, float_mode, opt, simd, vectorize};

/// Runs kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Backend {
    /// The interpreter: one invocation at a time, on every machine.
    Interpreter,
    /// Machine code, 16 invocations at a time.
    X86(Isa),
}

impl Backend {
    /// The back ends that this machine supports, the fastest first.
    pub fn available() -> impl Iterator<Item = Self> {
        Isa::available().map(Self::X86).chain([Self::Interpreter])
    }

    /// The fastest back end that this machine supports.
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
                Err(format!("`{name}` is not a back end of this machine; available are {}", names.join(", ")))
            }
        }
    }
}

/// Floating-point freedoms of compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Floats {
    /// A product and a sum may be fused into one operation, rounded once.
    pub contract: bool,
    /// `InverseSqrt` may be off by two units in the last place.
    pub fast_inverse_sqrt: bool,
    /// Exponentials and logarithms may use the exponent operations of AVX-512.
    pub exponents: bool,
}

impl Floats {
    /// All freedoms that Vulkan allows.
    pub const FAST: Self = Self { contract: true, fast_inverse_sqrt: true, exponents: false };
    /// Every operation is rounded separately, so that all back ends compute the same bits.
    pub const EXACT: Self = Self { contract: false, fast_inverse_sqrt: false, exponents: false };

    /// Adds the operations that an instruction set has.
    pub fn on(self, isa: Isa) -> Self {
        let exponents = match isa {
            Isa::Avx512 => true,
            Isa::Avx2 => false,
        };
        Self { exponents, ..self }
    }
}

/// A kernel that is ready to run.
#[derive(Debug)]
pub struct Compiled {
    /// The code to run.
    pub code: Box<dyn Code>,
    /// The back end that runs it: the interpreter if the kernel has no machine code.
    pub backend: Backend,
    /// Why it is not the requested back end.
    pub fallback: Option<String>,
}

/// Compiles a kernel.
pub fn compile(kernel: &Kernel, backend: Backend) -> Compiled {
    compile_within(kernel, backend, |_| Ok(()))
}

/// Compiles a kernel if the host has the memory for that: `room` is called with a byte count before the memory is
/// needed, and its result is kept until the code is made. If `room` fails, the kernel is interpreted.
pub fn compile_within<R>(kernel: &Kernel, backend: Backend, room: impl Fn(u64) -> Result<R, String>) -> Compiled {
    let Backend::X86(isa) = backend else {
        return interpreted(kernel, None);
    };
    match float_mode::with_default(|| program(kernel, isa, room)) {
        Ok(program) => Compiled { code: Box::new(program), backend, fallback: None },
        Err(reason) => interpreted(kernel, Some(reason)),
    }
}

fn interpreted(kernel: &Kernel, fallback: Option<String>) -> Compiled {
    Compiled { code: interpret(kernel), backend: Backend::Interpreter, fallback }
}

/// A kernel with the checks of checked mode, ready to run.
#[derive(Debug)]
pub struct Checked {
    /// The code to run.
    pub code: Box<dyn ObservedCode>,
    /// The kernel that runs; its [`sites`](Kernel::sites) are those that observers get.
    pub kernel: Kernel,
    /// The back end that runs it.
    pub backend: Backend,
    /// Why it is not the requested back end.
    pub fallback: Option<String>,
}

/// The checks of a checked kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Checks {
    /// Those that find every race of a dispatch: redundant ones are left out ([`check::subsume`]), and memory barriers
    /// are a part of the control barrier beside them ([`check::complete_semantics`], [`check::merge_fences`]).
    Needed,
    /// Those of `Needed` that find every race of a dispatch in which the memory of the bindings that the kernel writes
    /// ([`check::written_bindings`]) is not that of others, and which reads no device addresses.
    NeededApart,
    /// As `Needed`, for a dispatch as with `NeededApart`: machine code only notes which instruction reads the memory of
    /// the other bindings.
    NeededMarked,
    /// One for each access, so that reports name the access: for replays.
    All,
}

/// Inserts the checks of checked mode into a kernel as it was read ([`Module::kernel`]) and compiles it. Kernels with
/// control barriers that may be in divergent control flow are interpreted, besides those that always are.
pub fn compile_checked(kernel: &Kernel, backend: Backend, checks: Checks) -> Checked {
    let mut kernel = kernel.clone();
    check::insert(&mut kernel);
    if checks == Checks::NeededMarked {
        let written = check::written_bindings(&kernel);
        kernel.inputs_apart.extend(kernel.bindings.keys().filter(|&binding| !written.contains(binding)));
    }
    if checks != Checks::All {
        check::complete_semantics(&mut kernel);
        check::merge_fences(&mut kernel);
        opt::run_all(opt::NUMBERING, &mut kernel);
        check::subsume(&mut kernel);
        check::drop_unshared(&mut kernel);
    }
    if checks == Checks::NeededApart {
        check::drop_unwritten(&mut kernel);
    }
    // A replay records every access.
    kernel.inline_checks = checks != Checks::All;
    with_checks(kernel, backend)
}

/// As [`compile_checked`] with [`Checks::All`], and without all checks and syncs but those of accesses that may be to
/// the memory of these bindings: for replays that need to know no more.
pub fn compile_checked_for(kernel: &Kernel, backend: Backend, bindings: &EntitySet<Binding>) -> Checked {
    let mut kernel = kernel.clone();
    check::insert(&mut kernel);
    check::keep_accesses(&mut kernel, bindings);
    with_checks(kernel, backend)
}

/// Compiles a kernel that has its checks.
fn with_checks(kernel: Kernel, backend: Backend) -> Checked {
    let interpreted = |kernel: Kernel, fallback: Option<String>| {
        let code = Box::new(interp::Program::new(&kernel));
        Checked { code, kernel, backend: Backend::Interpreter, fallback }
    };
    let Backend::X86(isa) = backend else { return interpreted(kernel, None) };
    match float_mode::with_default(|| program(&kernel, isa, |_| Ok(()))) {
        Ok(program) => Checked { code: Box::new(program), kernel, backend, fallback: None },
        Err(reason) => interpreted(kernel, Some(reason)),
    }
}

/// Prepares a kernel for the interpreter, without optimisation.
pub fn interpret(kernel: &Kernel) -> Box<dyn Code> {
    Box::new(interp::Program::new(kernel))
}

/// Instructions of an optimised and lowered kernel that becomes machine code, at most: more would take seconds.
const MAX_INSTRUCTIONS: usize = 1 << 17;

/// Instructions of a kernel before optimisation, at most. Often many times the optimised count: compilers for other
/// shading languages leave the work to drivers.
const MAX_INSTRUCTIONS_READ: usize = 1 << 19;

/// Upper bounds of host memory for compilation, in bytes: for each instruction before optimisation (measured: 1,500),
/// for each instruction and branch argument in the SIMD form (measured: 90), and a constant.
const PER_INSTRUCTION: u64 = 4 << 10;
const PER_OPERAND: u64 = 128;
const FIXED_BYTES: u64 = 4 << 20;

/// Upper bound of host memory for an instruction in the interpreter's form, in bytes.
const PER_INTERPRETED: u64 = 256;

/// Host memory to prepare a kernel for the interpreter, at most.
pub fn bytes_to_interpret(kernel: &Kernel) -> u64 {
    kernel.insts.len() as u64 * PER_INTERPRETED
}

/// Host memory to optimise and vectorize a kernel, at most.
pub fn bytes_to_widen(kernel: &Kernel) -> u64 {
    kernel.insts.len() as u64 * PER_INSTRUCTION + FIXED_BYTES
}

/// Host memory to make machine code of a SIMD form, at most.
pub fn bytes_to_encode(wide: &simd::Kernel) -> u64 {
    wide.size() as u64 * PER_OPERAND
}

fn program<R>(kernel: &Kernel, isa: Isa, room: impl Fn(u64) -> Result<R, String>) -> Result<x86::MachineCode, String> {
    let _room = room(bytes_to_widen(kernel))?;
    let lowered = lower_for(kernel, isa, |_, _| {})?;
    let wide = widen(&lowered, isa).map_err(|error| error.to_string())?;
    check_widened(&wide)?;
    let _more = room(bytes_to_encode(&wide))?;
    let program = x86::compile(&wide, isa).map_err(|error| error.to_string())?;
    Ok(program.with_messages(kernel.messages.clone()))
}

/// One pass on the SIMD form.
#[derive(Clone, Copy, Debug)]
pub struct SimdPass {
    /// Name in timings and dumps.
    pub name: &'static str,
    /// Changes the kernel in place.
    pub run: fn(&mut simd::Kernel),
    /// The instruction sets that it runs for.
    pub isas: &'static [Isa],
}

/// AVX2 splits a vector into two halves: already two independent dependency chains, and too few registers for more.
const UNSPLIT: &[Isa] = &[Isa::Avx512];
const ALL: &[Isa] = &Isa::ALL;

/// All passes on the SIMD form, in order.
pub const SIMD_PASSES: &[SimdPass] = &[
    // Loads of workgroup memory move out of the subgroup loop.
    SimdPass { name: "hoist_shared_loads", run: simd::hoist_shared_loads, isas: UNSPLIT },
    // Two iterations of the subgroup loop at once.
    SimdPass {
        name: "unroll_and_jam",
        run: |kernel| _ = simd::unroll_and_jam(kernel, simd::Interleave::WhereProfitable),
        isas: UNSPLIT,
    },
    // Order of the instructions of long blocks.
    SimdPass {
        name: "schedule",
        run: |kernel| simd::schedule(kernel, simd::Scheduled::WhereProfitable),
        isas: UNSPLIT,
    },
    // Merges blocks with their only predecessor.
    SimdPass { name: "merge_simd_blocks", run: simd::merge_simd_blocks, isas: ALL },
    // A loop over the workgroups of a row.
    SimdPass { name: "workgroup_loop", run: simd::workgroup_loop, isas: ALL },
];

/// What accesses cost on an instruction set, for the vectorizer.
pub fn access_costs(isa: Isa) -> &'static AccessCosts {
    match isa {
        Isa::Avx512 => &AccessCosts::AVX512,
        Isa::Avx2 => &AccessCosts::AVX2,
    }
}

/// Vectorizes a lowered kernel for an instruction set.
///
/// # Errors
///
/// The kernel has something that the SIMD form cannot express.
pub fn widen(kernel: &Kernel, isa: Isa) -> Result<simd::Kernel, vectorize::Unsupported> {
    widen_with(kernel, isa, |_, _| {})
}

/// As [`widen`]; `after` sees the SIMD form after vectorization and after each pass. In builds that verify
/// (`VERIFIES`) each result is checked, so that a pass that breaks a rule is named.
///
/// # Errors
///
/// As [`widen`].
pub fn widen_with(
    kernel: &Kernel,
    isa: Isa,
    mut after: impl FnMut(&'static str, &simd::Kernel),
) -> Result<simd::Kernel, vectorize::Unsupported> {
    let mut wide = vectorize::widen(kernel, access_costs(isa))?;
    let mut done = |pass: &'static str, wide: &simd::Kernel| {
        if VERIFIES && let Err(error) = simd::verify(wide) {
            panic!("after {pass}: {error}\n{wide}");
        }
        after(pass, wide);
    };
    done("vectorize", &wide);
    let passes = SIMD_PASSES.iter().filter(|pass| pass.isas.contains(&isa));
    wide.work.visit(passes.clone().count() * wide.size());
    for pass in passes {
        (pass.run)(&mut wide);
        done(pass.name, &wide);
    }
    Ok(wide)
}

/// Verifies the SIMD form and checks that the work budget has not been spent.
///
/// # Errors
///
/// The SIMD form is invalid, or compilation has taken too long.
pub fn check_widened(wide: &simd::Kernel) -> Result<(), String> {
    wide.work.visit(wide.size());
    // Machine code has no checks of its own: an invalid SIMD form must not reach it.
    if let Err(error) = simd::verify(wide) {
        debug_assert!(false, "vectorization made an invalid kernel: {error}\n{wide}");
        return Err(format!("vectorization made an invalid kernel: {error}"));
    }
    wide.work.visit(wide.size());
    wide.work.check().map_err(|spent| spent.to_string())
}

fn check_size(kernel: &Kernel, form: &str, max: usize) -> Result<(), String> {
    let instructions: usize = kernel.layout.iter().map(|&block| kernel.blocks[block].insts.len()).sum();
    if instructions > max {
        return Err(format!("{instructions} instructions, {form}, are more than {max}"));
    }
    Ok(())
}

/// As [`lower`], for machine code.
///
/// # Errors
///
/// The kernel is too large for machine code.
pub fn lower_for(kernel: &Kernel, isa: Isa, after: impl FnMut(&'static str, &Kernel)) -> Result<Kernel, String> {
    check_size(kernel, "as they are read", MAX_INSTRUCTIONS_READ)?;
    let lowered = lower(kernel, Floats::FAST.on(isa), after);
    lowered.work.check().map_err(|spent| spent.to_string())?;
    check_size(&lowered, "optimised", MAX_INSTRUCTIONS)?;
    Ok(lowered)
}

/// Optimises a kernel and replaces the operations that machines lack; `after` sees the kernel after each step.
pub fn lower(kernel: &Kernel, floats: Floats, mut after: impl FnMut(&'static str, &Kernel)) -> Kernel {
    // Each compilation to machine code has its own budget.
    let mut kernel = Kernel { work: kernel.work.anew(), ..kernel.clone() };
    opt::optimize(&mut kernel, |pass, kernel| after(pass.name, kernel));
    if floats.contract {
        opt::CONTRACT.apply(&mut kernel);
        after(opt::CONTRACT.name, &kernel);
    }
    let instructions = kernel.insts.len();
    let Floats { fast_inverse_sqrt, exponents, .. } = floats;
    math::run(&mut kernel, MathOptions { fast_inverse_sqrt, exponents });
    opt::debug_verify("math", &kernel);
    after("math", &kernel);
    // If no operation was expanded, fusing products and sums left only dead instructions.
    let cleanup = if kernel.insts.len() == instructions { &[opt::DCE] } else { opt::CLEANUP };
    for pass in cleanup {
        kernel.work.visit(kernel.size());
        pass.apply(&mut kernel);
        after(pass.name, &kernel);
    }
    kernel
}
