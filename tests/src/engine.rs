//! What runs kernels: every engine in the list runs every test file, and all must agree.

use spelter_shaders::back::x86::{self, Isa, Registers};
use spelter_shaders::back::{Code, Scratch};
use spelter_shaders::compile::{self, Floats};
use spelter_shaders::ir::{Kernel, verify};
use spelter_shaders::{opt, simd};

/// A way to run a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Engine {
    /// Name for messages.
    pub name: &'static str,
    /// Makes a kernel ready.
    pub prepare: fn(&Kernel) -> Box<dyn Code>,
}

impl Engine {
    /// Whether it makes machine code, after passes that may change the last bits of floats.
    pub fn is_compiled(&self) -> bool {
        self.isa().is_some()
    }

    /// The instruction set of its machine code.
    pub fn isa(&self) -> Option<Isa> {
        Isa::available().find(|isa| self.name.starts_with(isa.name()))
    }
}

/// All engines of this machine; the first is the oracle.
pub fn engines() -> Vec<Engine> {
    let mut engines = interpreters();
    for isa in Isa::available() {
        engines.extend(match isa {
            Isa::Avx512 => [
                Engine { name: isa.name(), prepare: |kernel| compiled(kernel, Isa::Avx512, Variant::Plain) },
                Engine { name: "avx512 in pairs", prepare: |kernel| compiled(kernel, Isa::Avx512, Variant::Pairs) },
                Engine {
                    name: "avx512 in one pass",
                    prepare: |kernel| compiled(kernel, Isa::Avx512, Variant::OnePass),
                },
            ],
            Isa::Avx2 => [
                Engine { name: isa.name(), prepare: |kernel| compiled(kernel, Isa::Avx2, Variant::Plain) },
                Engine { name: "avx2 in pairs", prepare: |kernel| compiled(kernel, Isa::Avx2, Variant::Pairs) },
                Engine { name: "avx2 in one pass", prepare: |kernel| compiled(kernel, Isa::Avx2, Variant::OnePass) },
            ],
        });
    }
    engines
}

fn interpreters() -> Vec<Engine> {
    vec![
        Engine { name: "interpreter", prepare: compile::interpret },
        Engine { name: "interpreter of the IR's text", prepare: |kernel| compile::interpret(&through_text(kernel)) },
        Engine {
            name: "interpreter of the optimised kernel",
            prepare: |kernel| compile::interpret(&optimised(kernel)),
        },
    ]
}

/// What is chosen by the kernel's size or shape otherwise, and has to be right for all kernels.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Variant {
    Plain,
    /// Subgroups run in pairs wherever they can.
    Pairs,
    /// Registers are assigned in one pass, as for huge kernels.
    OnePass,
}

/// Machine code, with floats as exact as the interpreter's where Vulkan asks for it: every form on the way is verified, and
/// no kernel of the tests may be one that only the interpreter can run.
fn compiled(kernel: &Kernel, isa: Isa, variant: Variant) -> Box<dyn Code> {
    let lowered = lowered(kernel, Some(isa));
    let mut wide = match simd::widen(&lowered) {
        Ok(wide) => wide,
        // Mutants of control flow may be what no valid shader is.
        Err(error) if error.to_string().contains("more than one way in") => return compile::interpret(&lowered),
        Err(error) => panic!("{error}\n{lowered}"),
    };
    if variant == Variant::Pairs {
        simd::pair(&mut wide, simd::Pairs::WherePossible);
    }
    simd::verify(&wide).unwrap_or_else(|error| panic!("{error}\n{lowered}\n{wide}"));
    let registers = if variant == Variant::OnePass { Registers::InOnePass } else { Registers::BySize };
    let program =
        x86::compile_staged(&wide, isa, registers, |_| {}).unwrap_or_else(|error| panic!("{error}\n{lowered}\n{wide}"));
    Box::new(program)
}

/// What machine code for an instruction set is made of: the interpreter gives the same bits for it as machine code does.
pub fn lowered(kernel: &Kernel, isa: Option<Isa>) -> Kernel {
    let floats = isa.map_or(Floats::EXACT, |isa| Floats::EXACT.on(isa));
    compile::lower(kernel, floats, |step, after| {
        verify(after).unwrap_or_else(|error| panic!("{step}: {error}\n{after}"));
    })
}

/// A kernel printed and parsed again: nothing that matters may be lost.
fn through_text(kernel: &Kernel) -> Kernel {
    let text = kernel.to_string();
    let parsed = Kernel::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    verify(&parsed).unwrap_or_else(|error| panic!("{error}\n{text}"));
    parsed
}

/// A kernel after all passes, each of which must leave one that is valid.
fn optimised(kernel: &Kernel) -> Kernel {
    let mut kernel = kernel.clone();
    opt::optimize(&mut kernel, |pass, after| {
        verify(after).unwrap_or_else(|error| panic!("{}: {error}\n{after}", pass.name));
    });
    kernel
}

/// Runs all workgroups of a dispatch in order; stops where the stop flag is seen.
pub fn dispatch(
    code: &dyn Code,
    args: &spelter_shaders::abi::DispatchArgs<'_>,
    scratch: &mut Scratch,
) -> spelter_shaders::abi::Outcome {
    use spelter_shaders::abi::Outcome;
    let [x, y, z] = args.num_workgroups;
    for workgroup in (0..z).flat_map(|z| (0..y).flat_map(move |y| (0..x).map(move |x| [x, y, z]))) {
        if code.run(args, workgroup, scratch) == Outcome::Stopped {
            return Outcome::Stopped;
        }
    }
    Outcome::Done
}
