//! Intermediate forms of a kernel as texts and counts, for tools that show them.

use crate::back::x86;
use crate::compile::{self, Backend};
use crate::float_mode;
use crate::ir::Kernel;

/// The forms of a kernel. `simd` and `assembly` are empty for kernels that the interpreter runs.
#[derive(Clone, Debug, Default)]
pub struct Explained {
    /// The scalar IR, optimised and lowered.
    pub scalar: String,
    /// The SIMD form.
    pub simd: String,
    /// The machine code.
    pub assembly: String,
    /// Counts: name, what it counts, value.
    pub statistics: Vec<(&'static str, &'static str, u64)>,
}

/// Runs the whole pipeline, as [`compile::compile`] does, and keeps the intermediate forms.
pub fn explain(kernel: &Kernel, backend: Backend) -> Explained {
    let Backend::X86(isa) = backend else {
        return Explained { scalar: kernel.to_string(), ..Explained::default() };
    };
    float_mode::with_default(|| {
        let Ok(lowered) = compile::lower_for(kernel, isa, |_, _| {}) else {
            return Explained { scalar: kernel.to_string(), ..Explained::default() };
        };
        let scalar = lowered.layout.iter().map(|&block| lowered.blocks[block].insts.len()).sum::<usize>();
        let mut explained = Explained { scalar: lowered.to_string(), ..Explained::default() };
        explained.count("scalar instructions", "instructions of the scalar IR, lowered", scalar);
        let Ok(wide) = compile::widen(&lowered, isa) else { return explained };
        let simd = wide.layout.iter().map(|&block| wide.blocks[block].insts.len()).sum::<usize>();
        explained.simd = wide.to_string();
        explained.count("SIMD instructions", "instructions of the SIMD form, 16 lanes each", simd);
        explained.count("private bytes", "bytes of private memory of a workgroup", wide.private_bytes as usize);
        explained.count("workgroup bytes", "bytes of workgroup memory", wide.shared_bytes as usize);
        explained.count("frame bytes", "bytes kept for a workgroup across barriers", wide.frame_bytes as usize);
        if compile::check_widened(&wide).is_err() {
            return explained;
        }
        let Ok(program) = x86::compile(&wide, isa) else { return explained };
        explained.assembly = program.assembly();
        let machine = explained.assembly.lines().filter(|line| line.starts_with("    ")).count();
        explained.count("machine instructions", "instructions of the machine code", machine);
        explained.count("code bytes", "bytes of machine code and constants", program.code_bytes());
        explained.count(
            "spill slots",
            "places of 8 bytes on the stack for what no register had room for",
            program.spills().slots,
        );
        explained.count("register moves", "moves that the register allocator added", program.spills().moves);
        explained
    })
}

impl Explained {
    fn count(&mut self, name: &'static str, what: &'static str, value: usize) {
        self.statistics.push((name, what, value as u64));
    }
}
