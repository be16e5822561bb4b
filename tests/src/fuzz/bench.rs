//! Runs programs on every engine, with the same memory, and compares every byte afterwards.

mod racing;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;

use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES, Outcome, address_ranges};
use spelter_shaders::back::x86::{self, Isa};
use spelter_shaders::back::{Code, Scratch, Workgroups};
use spelter_shaders::compile::{self, Floats};
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::ir::{InstData, Kernel, Type, verify};
use spelter_shaders::opt;

use super::expression::is_transcendental;
use super::feature::{Feature, Features};
use super::program::Program;
use crate::engine::{self, Engine};

/// Bytes around each buffer that must stay unchanged.
const GUARD: usize = 128;

/// Interval of the watchdog.
const TICK: Duration = Duration::from_millis(100);

/// Watchdog ticks after which a run is stopped: 20 seconds. Programs take well below one second.
const PATIENCE: u32 = 200;

/// Floating-point freedoms of machine code: those that are visible in the lowered kernel.
const FLOATS: Floats = Floats { contract: true, ..Floats::EXACT };

thread_local! {
    /// The thread's last panic: its message with its position.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// A failed check of a program.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The two runs that differ, or what failed. Equal for the same fault of a smaller program.
    pub what: String,
    /// Position and kind of the difference.
    pub detail: String,
}

/// Memory and engines for one program after the other.
#[derive(Debug)]
pub struct Bench {
    engines: Vec<Engine>,
    arena: GuestSlice,
    scratch: Scratch,
    watch: Arc<Watch>,
    racing: bool,
}

#[derive(Debug, Default)]
struct Watch {
    stop: AtomicU32,
    /// Odd during a run.
    runs: AtomicU64,
}

/// The placement of a program's buffers in the arena, and their initial contents.
struct Image {
    /// The buffer that receives the addresses of all buffers.
    addresses: Option<usize>,
    /// Whether the kernel uses buffer device addresses.
    has_addresses: bool,
    /// First byte and length of each buffer.
    places: Vec<(usize, usize)>,
    bytes: Vec<u8>,
}

impl Default for Bench {
    fn default() -> Self {
        Self::new(engine::engines())
    }
}

/// The lowered and optimised kernel and, for each instruction set, its SIMD form and its machine code, as text.
pub fn stages(kernel: &Kernel) -> String {
    let last = match lowered(kernel, FLOATS) {
        Ok(kernel) => kernel,
        Err(finding) => return finding.what,
    };
    let mut text = last.to_string();
    for isa in Isa::available() {
        let wide = match compile::widen(&last, isa) {
            Ok(wide) => wide,
            Err(error) => return text + &error.to_string(),
        };
        text += &format!("\n; {}\n{wide}\n", isa.name());
        let code = caught(isa.name(), "panics", || x86::compile(&wide, isa));
        text += &match code {
            Ok(Ok(code)) => code.assembly(),
            Ok(Err(error)) => error.to_string(),
            Err(finding) => finding.what,
        };
    }
    text
}

impl Bench {
    /// For these engines; the first is the reference.
    pub fn new(engines: Vec<Engine>) -> Self {
        let watch = Arc::new(Watch::default());
        let weak = Arc::downgrade(&watch);
        std::thread::spawn(move || guard(&weak));
        Self { engines, arena: GuestSlice::EMPTY, scratch: Scratch::default(), watch, racing: false }
    }

    /// From now on programs race against a thread that writes to their buffers: the only check is that they end and
    /// stay in bounds.
    pub fn race(&mut self) {
        self.racing = true;
    }

    /// Runs the program on all engines and compares.
    pub fn check(&mut self, program: &Program) -> Result<(), Finding> {
        if self.racing {
            return self.check_racing(program);
        }
        let image = Image::new(program);
        verify(&program.kernel).map_err(|error| finding("the generator made a bad kernel", error))?;
        let oracle = self.engines[0];
        let expected = self.run(oracle, &program.kernel, program, &image)?;
        let (compiled, others): (Vec<Engine>, Vec<Engine>) =
            self.engines.iter().skip(1).copied().partition(Engine::is_compiled);
        // Optimised kernels follow below, without contraction.
        for engine in others.into_iter().filter(|engine| !engine.name.contains("optimised")) {
            let got = self.run(engine, &program.kernel, program, &image)?;
            compare(program, &image, engine.name, &expected, &got)?;
        }
        // Contraction changes results; all else must not.
        let plain = uncontracted(&program.kernel);
        let got = self.run(oracle, &optimized(&plain)?, program, &image)?;
        compare(program, &image, "optimisation", &expected, &got)?;
        if is_exact(&plain) {
            let got = self.run(oracle, &lowered(&plain, Floats::EXACT)?, program, &image)?;
            compare(program, &image, "lowering", &expected, &got)?;
        }
        // The remaining steps of compilation must not change results.
        let last = lowered(&program.kernel, FLOATS)?;
        let expected = self.run(oracle, &last, program, &image)?;
        for engine in compiled {
            let Some(of_lowered) = engine.of_lowered else { continue };
            let got = self.run_prepared(engine.name, || of_lowered(&last), program, &image)?;
            compare(program, &image, engine.name, &expected, &got)?;
        }
        Ok(())
    }

    /// The reference's counts in the last buffer of a program with marks.
    pub fn reached(&mut self, program: &Program) -> Result<Features, Finding> {
        let image = Image::new(program);
        let memory = self.run(self.engines[0], &program.kernel, program, &image)?;
        let mut reached = Features::default();
        let first = image.places.last().map_or(0, |place| place.0);
        for (&feature, count) in Feature::ALL.iter().zip(memory[first..].chunks_exact(4)) {
            if count != [0; 4] {
                reached.insert(feature);
            }
        }
        Ok(reached)
    }

    /// One run on fresh memory: the contents of the arena afterwards.
    fn run(&mut self, engine: Engine, kernel: &Kernel, program: &Program, image: &Image) -> Result<Vec<u8>, Finding> {
        self.run_prepared(engine.name, || (engine.prepare)(kernel), program, image)
    }

    /// As [`Bench::run`], with a function that prepares the code.
    fn run_prepared(
        &mut self,
        name: &str,
        prepare: impl FnOnce() -> Box<dyn Code>,
        program: &Program,
        image: &Image,
    ) -> Result<Vec<u8>, Finding> {
        let code = caught(name, "panics when it prepares", prepare)?;
        self.load(image);
        let mut buffers = image.buffers(self.arena);
        let images = program.images(&mut buffers);
        let mut push = [0; MAX_PUSH_BYTES];
        let pushed = program.push.len().min(MAX_PUSH_BYTES);
        push[..pushed].copy_from_slice(&program.push[..pushed]);
        let watch = Arc::clone(&self.watch);
        watch.stop.store(0, Relaxed);
        watch.runs.fetch_add(1, Relaxed);
        let args = DispatchArgs {
            buffers: &buffers,
            images: &images,
            push: &push,
            num_workgroups: program.groups,
            stop: &watch.stop,
        };
        let outcome = caught(name, "panics when it runs", || dispatch(&*code, &args, program, &mut self.scratch));
        watch.runs.fetch_add(1, Relaxed);
        match outcome? {
            Outcome::Done => {}
            Outcome::Stopped => return Err(finding(&format!("{name}: hangs"), "was stopped by the watchdog")),
            Outcome::OutOfMemory => return Err(finding(&format!("{name}: memory"), "there was none for its frame")),
        }
        let mut memory = vec![0; image.bytes.len()];
        self.arena.read(0, &mut memory);
        Ok(memory)
    }

    /// Copies a program's initial memory to the arena, which grows if necessary.
    fn load(&mut self, image: &Image) {
        if (self.arena.len() as usize) < image.bytes.len() {
            self.arena = GuestSlice::leak(image.bytes.len().next_power_of_two());
        }
        self.arena.write(0, &image.bytes);
        let table = image.addresses.and_then(|number| image.places.get(number));
        for ((first, _), number) in image.places.iter().zip(0..).filter(|_| table.is_some()) {
            let address = (self.arena.address() + first) as u64;
            let (start, bytes) = table.copied().unwrap_or_default();
            self.arena.slice(start as u64, bytes as u64).write(number * 8, &address.to_le_bytes());
        }
    }
}

impl Image {
    fn new(program: &Program) -> Self {
        let mut bytes: Vec<u8> = Vec::new();
        let mut places = Vec::new();
        for buffer in &program.buffers {
            let first = (bytes.len() + GUARD).next_multiple_of(64) + buffer.lead as usize;
            // Unlike the values of programs, and different everywhere.
            bytes.extend((bytes.len()..first).map(|at| (at * 37 + 101) as u8));
            places.push((first, buffer.bytes.len()));
            bytes.extend_from_slice(&buffer.bytes);
        }
        bytes.extend((bytes.len()..(bytes.len() + GUARD).next_multiple_of(64)).map(|at| (at * 37 + 101) as u8));
        Self { addresses: program.addresses, has_addresses: program.kernel.has_addresses(), places, bytes }
    }

    /// The program's buffers, in memory that holds the image.
    fn buffers(&self, arena: GuestSlice) -> Vec<GuestSlice> {
        let places = self.places.iter().map(|&(first, bytes)| arena.slice(first as u64, bytes as u64));
        let mut buffers: Vec<GuestSlice> = places.collect();
        if self.has_addresses {
            let all = buffers.clone();
            buffers.extend(address_ranges(all.into_iter().filter(|buffer| !buffer.is_empty())));
        }
        buffers
    }

    /// The bytes outside of all buffers.
    fn outside(&self) -> impl Iterator<Item = usize> {
        let ends = self.places.iter().map(|&(first, bytes)| first + bytes);
        let starts = self.places.iter().map(|&(first, _)| first).chain([self.bytes.len()]);
        std::iter::once(0).chain(ends).zip(starts).flat_map(|(end, start)| end..start)
    }
}

fn dispatch(code: &dyn Code, args: &DispatchArgs<'_>, program: &Program, scratch: &mut Scratch) -> Outcome {
    let count = program.groups.iter().map(|&count| u64::from(count)).product();
    code.run_all(args, Workgroups::new(0..count, program.groups, program.base), scratch)
}

/// The kernel with no operations fused.
pub(crate) fn uncontracted(kernel: &Kernel) -> Kernel {
    let mut kernel = kernel.clone();
    for (inst, data) in &kernel.insts {
        if matches!(data, InstData::Pure { op, .. } if op.result() == Type::F32) {
            kernel.no_contraction.insert(inst);
        }
    }
    kernel
}

/// Whether no result depends on the implementation of an operation.
pub(crate) fn is_exact(kernel: &Kernel) -> bool {
    kernel.insts.values().all(|data| !matches!(data, InstData::Pure { op, .. } if is_transcendental(*op)))
}

/// The kernel optimised and lowered; every step must leave a valid one.
pub(crate) fn lowered(kernel: &Kernel, floats: Floats) -> Result<Kernel, Finding> {
    let mut result = Ok(());
    let lowered = caught("lowering", "panics", || {
        compile::lower(kernel, floats, |step, kernel| {
            if let (Ok(()), Err(error)) = (&result, verify(kernel)) {
                result = Err(finding(&format!("{step} makes a bad kernel"), error));
            }
        })
    })?;
    result.map(|()| lowered)
}

/// The kernel after all passes, each of which must leave a valid one.
pub(crate) fn optimized(kernel: &Kernel) -> Result<Kernel, Finding> {
    let mut kernel = kernel.clone();
    let mut result = Ok(());
    caught("optimisation", "panics", || {
        opt::optimize(&mut kernel, |pass, kernel| {
            if let (Ok(()), Err(error)) = (&result, verify(kernel)) {
                result = Err(finding(&format!("pass {} makes a bad kernel", pass.name), error));
            }
        });
    })?;
    result.map(|()| kernel)
}

pub(crate) fn finding(what: &str, detail: impl ToString) -> Finding {
    Finding { what: what.into(), detail: detail.to_string() }
}

/// Turns a panic into a finding.
pub(crate) fn caught<R>(subject: &str, what: &str, work: impl FnOnce() -> R) -> Result<R, Finding> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let bare = || payload.downcast_ref::<&str>().map(ToString::to_string);
        let bare = || bare().or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
        let message = match PANIC.take() {
            known if !known.is_empty() => known,
            _ => bare(),
        };
        // Numbers differ between programs; the position does not.
        let place = message.split_whitespace().next().unwrap_or_default();
        finding(&format!("{subject} {what}: {place}"), &message)
    })
}

/// From now on panics become details of findings instead of output.
pub fn quiet_panics() {
    std::panic::set_hook(Box::new(|info| {
        let message = info.payload_as_str().unwrap_or("a panic without a message");
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        PANIC.set(format!("{place}: {message}"));
    }));
}

fn compare(program: &Program, image: &Image, subject: &str, expected: &[u8], got: &[u8]) -> Result<(), Finding> {
    if expected == got {
        return Ok(());
    }
    let differing: Vec<usize> = (0..expected.len()).filter(|&at| expected[at] != got[at]).collect();
    let first = differing[0];
    let inside = image.places.iter().position(|&(start, bytes)| (start..start + bytes).contains(&first));
    let Some(number) = inside else {
        let detail = format!("byte {first} of the arena, outside of all buffers; {} bytes", differing.len());
        return Err(finding(&format!("{subject}: writes out of bounds"), detail));
    };
    let (start, bytes) = image.places[number];
    let word = (first - start) / 4 * 4;
    let show = |memory: &[u8]| {
        let mut word_bytes = [0; 4];
        let end = (word + 4).min(bytes);
        word_bytes[..end - word].copy_from_slice(&memory[start + word..start + end]);
        let bits = u32::from_le_bytes(word_bytes);
        format!("0x{bits:08x} ({}, {})", bits.cast_signed(), f32::from_bits(bits))
    };
    let detail = format!(
        "{}, byte {word}: expected {}, got {}; {} bytes differ",
        program.name_of(number),
        show(expected),
        show(got),
        differing.len()
    );
    Err(finding(&format!("{subject}: wrong memory"), detail))
}

impl Program {
    /// Binding and element of a buffer.
    pub fn name_of(&self, buffer: usize) -> String {
        let mut rest = buffer;
        for (binding, data) in &self.kernel.bindings {
            if rest < data.count as usize {
                return format!("{binding}[{rest}]");
            }
            rest -= data.count as usize;
        }
        format!("buffer {buffer}")
    }
}

/// Stops a run that takes too long; ends when its bench is dropped.
fn guard(watch: &Weak<Watch>) {
    let (mut seen, mut looks) = (0, 0);
    loop {
        std::thread::sleep(TICK);
        let Some(watch) = watch.upgrade() else { return };
        let runs = watch.runs.load(Relaxed);
        (seen, looks) = if runs == seen { (seen, looks + 1) } else { (runs, 0) };
        if looks >= PATIENCE && runs % 2 == 1 {
            watch.stop.store(1, Relaxed);
        }
    }
}
