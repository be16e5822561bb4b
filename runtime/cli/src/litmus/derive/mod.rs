//! A litmus test from a shader: each invocation of a small launch becomes a thread, whose loads, stores, atomics and
//! barriers are operations of the memory model.
//!
//! 1. The kernel is that of the reader, without optimisation, apart from private variables that become values: no
//!    access of shared memory is added, dropped or moved.
//! 2. A location is a word of a storage buffer or of a workgroup variable. Uniform and read-only buffers and push
//!    constants do not change during a dispatch; their values are numbers.
//! 3. Arithmetic on loaded values is that of 32-bit integers. A value that it cannot express, as of floats, is unknown:
//!    it can be stored, but no branch and no address may depend on it.
//! 4. An update (`atomicAdd` and the like) does not wrap at 32 bits.
//! 5. What has no litmus form is refused, with the line and the reason.

mod code;
mod invocation;
mod memory;
mod pure;
mod rules;
mod walk;
mod words;

use std::collections::BTreeMap;
use std::path::Path;

use spelter_memory_model::event::Agent;
use spelter_memory_model::format::Test;
use spelter_memory_model::program::{Instruction, InstructionKind, Program, Thread};
use spelter_memory_model::search::Limits;
use spelter_memory_model::{describe, format};
use spelter_shaders::ir::{Kernel, MemoryModel};
use spelter_shaders::opt;

use crate::args::DeriveArgs;
use crate::failure::Failure;
use crate::file;
use crate::names;
use crate::shader::{self, Shader};
use crate::structured::Bind;
use crate::value::Value;

use invocation::{BuiltIns, Shared};
use memory::Memory;
use walk::Walk;
pub(super) use words::edit_words;

/// The largest number of invocations: more take long to derive.
const MAX_INVOCATIONS: u64 = 4096;

/// The largest buffer: larger ones have no purpose in a litmus test.
const MAX_BYTES: u64 = 1 << 20;

/// Why a kernel has no litmus test.
#[derive(Clone, Debug)]
struct Refusal {
    /// The line, or 0.
    line: u32,
    why: String,
}

/// The bytes of a buffer by set, binding and element.
type BytesBySlot = BTreeMap<(u32, u32, u32), Vec<u8>>;

/// A launch on the command line.
struct Launch {
    groups: [u32; 3],
    /// The bytes of storage and uniform buffers, by group, binding and element.
    storage: BytesBySlot,
    uniform: BytesBySlot,
    push: Vec<u8>,
    /// Group, binding and name of variables.
    names: Vec<(u32, u32, String)>,
    /// The lines of an assembled text by the words of its module.
    lines: BTreeMap<u32, u32>,
}

/// A test that was derived from a shader.
pub(super) struct Derived {
    pub(super) test: Test,
    /// The threads in text form: a line for each, and one for each of its operations.
    pub(super) listing: Vec<String>,
    /// The language of the shader, as far as the memory model knows it.
    pub(super) language: MemoryModel,
}

/// The litmus test of a shader.
pub(super) fn derive(path: &Path, args: &DeriveArgs) -> Result<Derived, Failure> {
    let shader = shader::load(path)?;
    let mut args = args.clone();
    let binds = args.bind.iter_mut().map(|bind| ("--bind", &bind.name, &mut bind.slot));
    let uniforms = args.uniform.iter_mut().map(|bind| ("--uniform", &bind.name, &mut bind.slot));
    names::look_up(&shader, binds.chain(uniforms))?;
    let module = shader.module()?;
    let entry = spelter::choose_entry(module.entry_points(), args.entry.as_deref()).map_err(|e| shader.refused(e))?;
    let specialization = shader::specialization(&module, &args.spec)?;
    let mut kernel = shader.kernel(&module, &entry, &specialization)?;
    for pass in [opt::CFG, opt::MEM2REG, opt::CFG] {
        (pass.run)(&mut kernel);
    }
    let launch = Launch {
        groups: args.groups.map_or([1; 3], |groups| groups.0),
        storage: contents("--bind", &args.bind)?,
        uniform: contents("--uniform", &args.uniform)?,
        push: args.push.iter().flat_map(|push| push.0.iter().copied()).collect(),
        names: module.binding_names(),
        lines: text_lines(&kernel, &shader),
    };
    unused(&kernel, &launch)?;
    let program = threads(&kernel, &launch, args.subgroup_size).map_err(|refusal| refused(&shader, &refusal))?;
    let mut warnings = Vec::new();
    if kernel.memory_model == MemoryModel::Glsl450 {
        let message =
            "the module has the memory model GLSL450, in which accesses of buffers without Coherent are private";
        let place = spelter_memory_model::program::Place { line: 1, column: 1 };
        warnings.push(format::Error { place, message: message.to_owned() });
    }
    let listing = listing(&program);
    let language = kernel.memory_model;
    Ok(Derived { test: Test { program, questions: Vec::new(), warnings }, listing, language })
}

/// The lines of the instructions of a kernel in an assembled text.
fn text_lines(kernel: &Kernel, shader: &Shader) -> BTreeMap<u32, u32> {
    let insts = kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts);
    let words = insts.map(|&inst| kernel.origins[inst]).filter(|word| *word != 0);
    words.filter_map(|word| Some((word, shader.line_of_word(word)?))).collect()
}

fn refused(shader: &Shader, refusal: &Refusal) -> Failure {
    let at = if refusal.line > 0 { format!("line {}: ", refusal.line) } else { String::new() };
    shader.problem(format!("{at}no litmus test can be derived: {}", refusal.why))
}

/// The bytes of the options.
fn contents(option: &str, binds: &[Bind]) -> Result<BytesBySlot, Failure> {
    let mut all = BTreeMap::new();
    for Bind { slot, value, .. } in binds {
        let wrong = |problem: &str| Failure::misuse(format!("{option} {slot}: {problem}"));
        let bytes = match value {
            Value::Null => return Err(wrong("a litmus test has no null descriptors")),
            Value::Same(_) => return Err(wrong("a litmus test has no two descriptors of the same memory")),
            Value::Zeros(bytes) if *bytes <= MAX_BYTES => vec![0; *bytes as usize],
            Value::Zeros(bytes) => return Err(wrong(&format!("{bytes} bytes are more than {MAX_BYTES}"))),
            Value::Bytes(bytes) => bytes.clone(),
            Value::File(path) => {
                file::read(path, MAX_BYTES).map_err(|failure| failure.of(format_args!("{option} {slot}")))?
            }
        };
        if all.insert((slot.group, slot.binding, slot.element), bytes).is_some() {
            return Err(Failure::misuse(format!("binding {slot} is given twice")));
        }
    }
    Ok(all)
}

/// Checks that each option is for a binding of the kernel.
fn unused(kernel: &Kernel, launch: &Launch) -> Result<(), Failure> {
    for (option, fills) in [("--bind", &launch.storage), ("--uniform", &launch.uniform)] {
        for &(group, binding, element) in fills.keys() {
            let has = |data: &spelter_shaders::ir::BindingData| {
                (data.set, data.binding) == (group, binding) && element < data.count.max(1)
            };
            if !kernel.bindings.values().any(has) {
                return Err(Failure::misuse(format!("{option} {group}.{binding}: {:?} does not use it", kernel.name)));
            }
        }
    }
    Ok(())
}

/// The program of all invocations.
fn threads(kernel: &Kernel, launch: &Launch, subgroup_size: u32) -> Result<Program, Refusal> {
    let size = kernel.workgroup_size;
    let invocations: u64 = launch.groups.iter().chain(&size).map(|&n| u64::from(n)).fold(1, u64::saturating_mul);
    if invocations == 0 || invocations > MAX_INVOCATIONS {
        let why = format!("the launch has {invocations} invocations, where 1 to {MAX_INVOCATIONS} are possible");
        return Err(Refusal { line: 0, why });
    }
    let memory = Memory::new(kernel, launch).map_err(|why| Refusal { line: 0, why })?;
    let mut shared = Shared::new(kernel, launch, memory);
    let (mut threads, mut sources) = (Vec::new(), Vec::new());
    let (mut number, mut events, max_events) = (0, 0, Limits::default().events);
    for workgroup in points(launch.groups) {
        for local in points(size) {
            let builtins = BuiltIns { groups: launch.groups, workgroup, size, local, subgroup_size };
            let agent = Agent::Device {
                subgroup: builtins.workgroup_index() * builtins.subgroups() + builtins.subgroup(),
                workgroup: builtins.workgroup_index(),
                queue_family: 0,
                device: 0,
            };
            let code = Walk::new(&mut shared, builtins).run()?;
            number += 1;
            events += least_events(&code.instructions);
            if events > max_events {
                let why = format!(
                    "the first {number} of {invocations} invocations have {events} accesses and barriers, and an \
                     execution has at most {max_events}: use fewer workgroups or a smaller workgroup size"
                );
                return Err(Refusal { line: 0, why });
            }
            let name = format!("T{}", number - 1);
            threads.push(Thread { name, agent, code: code.instructions, registers: Vec::new() });
            sources.push(code.sources);
        }
    }
    if let (true, Some(refusal)) = (shared.branches_on_loads, shared.unknown_store) {
        return Err(refusal);
    }
    // Invocations that do nothing change nothing, unless others wait for them.
    let waits = threads.iter().any(has_control_barrier);
    let kept = threads.into_iter().zip(sources).filter(|(thread, _)| waits || !thread.code.is_empty());
    let (threads, sources): (Vec<_>, Vec<_>) = kept.unzip();
    let locations = shared.memory.locations;
    let references = locations.iter().map(|(name, _)| name.clone()).collect();
    Ok(Program { name: kernel.name.clone(), threads, references, locations, sources, ..Program::default() })
}

/// Events that every execution of the code has.
fn least_events(code: &[Instruction]) -> usize {
    let executes = |at: &&Instruction| matches!(at.kind, InstructionKind::Execute { .. });
    // After a branch, some paths may end.
    let straight = code.iter().take_while(|at| !matches!(at.kind, InstructionKind::Branch { .. }));
    straight.filter(executes).count()
}

fn has_control_barrier(thread: &Thread) -> bool {
    let is_one = |at: &Instruction| matches!(at.kind, InstructionKind::Execute { barrier: Some(_), .. });
    thread.code.iter().any(is_one)
}

/// The points of a grid, x fastest.
fn points([x, y, z]: [u32; 3]) -> impl Iterator<Item = [u32; 3]> {
    (0..z).flat_map(move |z| (0..y).flat_map(move |y| (0..x).map(move |x| [x, y, z])))
}

/// The threads as text.
fn listing(program: &Program) -> Vec<String> {
    let mut lines = Vec::new();
    for thread in program.threads.iter().filter(|thread| !thread.code.is_empty()) {
        let group = match thread.agent {
            Agent::Device { workgroup, .. } => format!("workgroup {workgroup}"),
            Agent::Host => String::new(),
        };
        let note = if walk::branches(&thread.code) { ", with branches on loaded values" } else { "" };
        lines.push(format!("{} ({group}){note}", thread.name));
        for (at, instruction) in thread.code.iter().enumerate() {
            let InstructionKind::Execute { operation, value, .. } = &instruction.kind else { continue };
            let written = match value {
                Some(spelter_memory_model::program::Expression::Operand(
                    spelter_memory_model::program::Operand::Constant(number),
                )) => Some(*number),
                _ => None,
            };
            let text = describe::operation(program, operation, None, written);
            let line = match instruction.place.line {
                0 => String::new(),
                line => format!("   line {line}"),
            };
            lines.push(format!("  {}:{} {text}{line}", thread.name, at + 1));
        }
    }
    lines
}
