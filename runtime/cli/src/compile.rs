//! `spelter compile`: intermediate forms and machine code of a shader, and compile times.

use std::time::{Duration, Instant};

use serde_json::json;
use spelter_driver::host_memory::Room;
use spelter_shaders::back::x86::{self, Isa, RegisterAllocation};
use spelter_shaders::compile::{self, Floats};
use spelter_shaders::ir::Kernel;
use spelter_shaders::lower::math::{self, MathOptions};

use crate::args::{CompileArgs, Emit};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::shader;

/// Prints the form that the options ask for.
pub(crate) fn run(args: &CompileArgs, output: &mut Output) -> Result<(), Failure> {
    let reads_only = args.emit == Emit::Ir && args.no_opt;
    if args.isa.is_some() && reads_only {
        return Err(Failure::new(
            "--isa has no effect on --emit ir --no-opt, which shows the kernel before lowering".to_owned(),
        ));
    }
    let mut clock = Clock::new();
    let shader = shader::load(&args.file)?;
    clock.restart();
    let module = shader.module()?;
    clock.lap("read");
    let entry = spelter::choose_entry(module.entry_points(), args.entry.as_deref()).map_err(|e| shader.refused(e))?;
    let specialization = shader::specialization(&module, &args.spec)?;
    let kernel = shader.kernel(&module, &entry, &specialization)?;
    clock.lap("specialize");
    if let Err(misuse) = spelter_driver::check_workgroup(&kernel) {
        let (problem, rule) = (misuse.problem, misuse.vuid);
        output::note(format!("{entry}: no device can run this kernel, not even `spelter run`: {problem} ({rule})"));
    }
    let isa = args.isa.or_else(|| Isa::available().next()).unwrap_or(Isa::Avx2);
    let text = emit(kernel, args, isa, &mut clock).map_err(|problem| shader.problem(format!("{entry}: {problem}")))?;
    let text = shader.listing(text);
    if args.json {
        return output.json(&json!({
            "file": args.file.display().to_string(),
            "entry": entry,
            "emit": args.emit.name(),
            "isa": (!reads_only).then(|| isa.name()),
            "text": text,
            "times": clock.laps.iter().map(|(stage, time)| json!({ "stage": stage, "seconds": time.as_secs_f64() }))
                .collect::<Vec<_>>(),
        }));
    }
    output.line(text.trim_end())?;
    if args.time { clock.print(output) } else { Ok(()) }
}

/// The kernel in the requested form, or why it has none.
fn emit(mut kernel: Kernel, args: &CompileArgs, isa: Isa, clock: &mut Clock) -> Result<String, String> {
    if args.emit == Emit::Ir && args.no_opt {
        return Ok(kernel.with_source_lines().to_string());
    }
    let room = |bytes| Room::of(bytes).map_err(|refused| refused.to_string());
    let _room = room(compile::bytes_to_widen(&kernel))?;
    if args.no_opt {
        let Floats { fast_inverse_sqrt, exponents, .. } = Floats::FAST.on(isa);
        math::run(&mut kernel, MathOptions { fast_inverse_sqrt, exponents });
        clock.lap("math");
    } else if args.emit == Emit::Ir {
        kernel = compile::lower(&kernel, Floats::FAST.on(isa), |step, _| clock.lap(step));
    } else {
        kernel = compile::lower_for(&kernel, isa, |step, _| clock.lap(step)).map_err(interpreted)?;
    }
    if args.emit == Emit::Ir {
        return Ok(kernel.with_source_lines().to_string());
    }
    let wide = compile::widen(&kernel, isa).map_err(|error| interpreted(error.to_string()))?;
    clock.lap("widen");
    compile::check_widened(&wide).map_err(interpreted)?;
    clock.lap("verify");
    if args.emit == Emit::Simd {
        return Ok(wide.with_source_lines().to_string());
    }
    let _more = room(compile::bytes_to_encode(&wide))?;
    let program = x86::compile_staged(&wide, isa, RegisterAllocation::BySize, |stage| clock.lap(stage.name()))
        .map_err(|error| error.to_string())?;
    Ok(program.assembly_with_source_lines())
}

/// The message for a kernel without machine code.
fn interpreted(reason: String) -> String {
    format!("this kernel has no machine code and is interpreted: {reason}")
}

/// The times of the stages, in order.
struct Clock {
    start: Instant,
    laps: Vec<(&'static str, Duration)>,
}

impl Clock {
    fn new() -> Self {
        Self { start: Instant::now(), laps: Vec::new() }
    }

    /// Forgets the time since the last stage.
    fn restart(&mut self) {
        self.start = Instant::now();
    }

    /// Ends a stage.
    fn lap(&mut self, stage: &'static str) {
        self.laps.push((stage, self.start.elapsed()));
        self.restart();
    }

    /// Prints the times as comments, so that the output can still be parsed as a kernel.
    fn print(&self, output: &mut Output) -> Result<(), Failure> {
        let total = self.laps.iter().map(|lap| lap.1).sum();
        let rows = self.laps.iter().copied().chain([("total", total)]);
        output.line("")?;
        for (stage, time) in rows {
            output.line(format!("; {stage:<10} {:9.3} ms", time.as_secs_f64() * 1e3))?;
        }
        Ok(())
    }
}
