//! Engines: every one runs every test file, and all must agree.

use spelter_shaders::back::x86::{self, Isa, RegisterAllocation};
use spelter_shaders::back::{Code, Scratch, Workgroups};
use spelter_shaders::compile::{self, Floats};
use spelter_shaders::ir::{InstData, Kernel, Scope, Semantics, verify};
use spelter_shaders::schedule::Schedule;
use spelter_shaders::{check, opt, simd, vectorize};

use crate::range_checks::held;

/// Prepares a kernel for execution.
pub type Prepare = fn(&Kernel) -> Box<dyn Code>;

/// A way to run a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Engine {
    /// Name for messages.
    pub name: &'static str,
    /// Prepares a kernel.
    pub prepare: Prepare,
    /// Prepares a kernel that is already lowered, if the engine lowers kernels: after passes that may change the last
    /// bits of floats.
    pub of_lowered: Option<Prepare>,
}

impl Engine {
    /// Whether it lowers kernels, as for machine code.
    pub fn is_compiled(&self) -> bool {
        self.of_lowered.is_some()
    }

    /// The instruction set that it lowers for.
    pub fn isa(&self) -> Option<Isa> {
        Isa::available().find(|isa| self.name.starts_with(isa.name()))
    }
}

/// An engine that lowers kernels, with its preparation.
macro_rules! compiled {
    ($name:literal, $isa:ident, $of_lowered:expr) => {
        Engine {
            name: $name,
            prepare: |kernel| $of_lowered(&lowered(kernel, Some(Isa::$isa))),
            of_lowered: Some(|kernel| $of_lowered(kernel)),
        }
    };
    ($name:literal, $isa:ident as $variant:ident) => {
        compiled!($name, $isa, |kernel: &Kernel| machine_code(kernel, Isa::$isa, Variant::$variant))
    };
}

/// All engines of this machine; the first is the reference interpreter.
pub fn engines() -> Vec<Engine> {
    let mut engines = interpreters();
    for isa in Isa::available() {
        engines.extend(match isa {
            Isa::Avx512 => [
                compiled!("avx512", Avx512 as Plain),
                compiled!("avx512 in pairs", Avx512 as Interleave),
                compiled!("avx512 in one pass", Avx512 as OnePass),
                compiled!("avx512 held to its ranges", Avx512, |kernel| compile::interpret(&held(kernel))),
            ],
            Isa::Avx2 => [
                compiled!("avx2", Avx2 as Plain),
                compiled!("avx2 in pairs", Avx2 as Interleave),
                compiled!("avx2 in one pass", Avx2 as OnePass),
                compiled!("avx2 held to its ranges", Avx2, |kernel| compile::interpret(&held(kernel))),
            ],
        });
    }
    engines
}

fn interpreters() -> Vec<Engine> {
    let engine = |name, prepare| Engine { name, prepare, of_lowered: None };
    vec![
        engine("interpreter", compile::interpret),
        engine("interpreter of the IR's text", |kernel| compile::interpret(&through_text(kernel))),
        engine("interpreter with checks", |kernel| compile::interpret(&through_text(&checked(kernel)))),
        engine("interpreter of the optimised kernel", |kernel| compile::interpret(&optimised(kernel))),
    ]
}

/// Decisions that otherwise depend on the kernel's size or shape, and must be right for all kernels.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Variant {
    Plain,
    /// Unroll and jam wherever it is possible, and scheduling of all blocks.
    Interleave,
    /// One-pass register allocation, as for huge kernels.
    OnePass,
}

/// Machine code of a lowered kernel: every form on the way is verified. A kernel that cannot be compiled is a failure,
/// since users' kernels look the same; exceptions are mutants with control flow that no valid shader has, and
/// unaligned variables, which only the interpreter supports.
fn machine_code(kernel: &Kernel, isa: Isa, variant: Variant) -> Box<dyn Code> {
    let mut wide = match vectorize::widen(kernel, compile::access_costs(isa)) {
        Ok(wide) => wide,
        Err(error)
            if ["more than one entry block", "not multiples of 4"]
                .iter()
                .any(|known| error.to_string().contains(known)) =>
        {
            return compile::interpret(kernel);
        }
        Err(error) => panic!("{error}\n{kernel}"),
    };
    if variant != Variant::OnePass {
        simd::hoist_shared_loads(&mut wide);
    }
    if variant == Variant::Interleave {
        simd::unroll_and_jam(&mut wide, simd::Interleave::WherePossible);
        simd::schedule(&mut wide, simd::Scheduled::Everywhere);
    }
    // Without that, code returns after each workgroup.
    if variant != Variant::OnePass {
        simd::merge_simd_blocks(&mut wide);
        simd::workgroup_loop(&mut wide);
    }
    simd::verify(&wide).unwrap_or_else(|error| panic!("{error}\n{kernel}\n{wide}"));
    let registers =
        if variant == Variant::OnePass { RegisterAllocation::InOnePass } else { RegisterAllocation::BySize };
    let program = x86::compile_staged(&wide, isa, registers, |_| {});
    Box::new(program.unwrap_or_else(|error| panic!("{error}\n{kernel}\n{wide}")))
}

/// The input of machine code for an instruction set: the interpreter computes the same bits from it as machine code
/// does.
pub fn lowered(kernel: &Kernel, isa: Option<Isa>) -> Kernel {
    let floats = isa.map_or(Floats::EXACT, |isa| Floats::EXACT.on(isa));
    compile::lower(kernel, floats, |step, after| {
        verify(after).unwrap_or_else(|error| panic!("{step}: {error}\n{after}"));
    })
}

/// A kernel printed and parsed again.
fn through_text(kernel: &Kernel) -> Kernel {
    let text = kernel.to_string();
    let parsed = Kernel::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    verify(&parsed).unwrap_or_else(|error| panic!("{error}\n{text}"));
    parsed
}

/// A kernel with the checks of checked mode.
pub fn checked(kernel: &Kernel) -> Kernel {
    let mut kernel = kernel.clone();
    check::insert(&mut kernel);
    verify(&kernel).unwrap_or_else(|error| panic!("{error}\n{kernel}"));
    kernel
}

/// A kernel after all passes, each of which must leave a valid one.
fn optimised(kernel: &Kernel) -> Kernel {
    let mut kernel = kernel.clone();
    opt::optimize(&mut kernel, |pass, after| {
        verify(after).unwrap_or_else(|error| panic!("{}: {error}\n{after}", pass.name));
    });
    kernel
}

/// Barriers before every memory access make the interpreter switch to the next invocation there, within a subgroup or
/// the workgroup.
pub fn interleaved(kernel: &Kernel, execution: Scope) -> Kernel {
    let mut kernel = kernel.clone();
    for &block in &kernel.layout {
        let mut insts = Vec::new();
        for &inst in &kernel.blocks[block].insts {
            let touches = matches!(
                kernel.insts[inst],
                InstData::Load { .. } | InstData::Store { .. } | InstData::Atomic { .. } | InstData::Image { .. }
            );
            if touches {
                let (memory, semantics) = (execution, Semantics(0));
                insts.push(kernel.insts.push(InstData::Barrier { execution, memory, semantics }));
            }
            insts.push(inst);
        }
        kernel.blocks[block].insts = insts;
    }
    kernel
}

/// Runs all workgroups of a dispatch in order, until one is stopped.
pub fn dispatch(
    code: &dyn Code,
    args: &spelter_shaders::abi::DispatchArgs<'_>,
    scratch: &mut Scratch,
) -> spelter_shaders::abi::Outcome {
    dispatch_scheduled(code, args, Schedule::Ascending, scratch)
}

/// Runs all workgroups of a dispatch in the order of a schedule, until one is stopped.
pub fn dispatch_scheduled(
    code: &dyn Code,
    args: &spelter_shaders::abi::DispatchArgs<'_>,
    schedule: Schedule,
    scratch: &mut Scratch,
) -> spelter_shaders::abi::Outcome {
    let count = args.num_workgroups.iter().map(|&count| u64::from(count)).product();
    code.run_all(args, Workgroups::new(0..count, args.num_workgroups, [0; 3]).scheduled(schedule), scratch)
}
