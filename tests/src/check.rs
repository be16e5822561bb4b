//! Runs a test file on every engine and compares the outputs with the expectations and with each other.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU32;

use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES, Outcome, address_ranges};
use spelter_shaders::back::{Code, Scratch};
use spelter_shaders::compile::Module;
use spelter_shaders::front::{Error, spvasm};
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::image::{Descriptor, TexelView};
use spelter_shaders::ir::{Kernel, verify};
use spelter_shaders::schedule::Schedule;

use crate::case::{Case, Expect, Slot};
use crate::engine::{self, Engine};
use crate::values::{self, Kind};

/// Contents of buffers as words.
pub type Memory = BTreeMap<Slot, Vec<u32>>;

/// Mismatches that are shown for each line of expectations.
const SHOWN: usize = 8;

/// Runs the case; the error lists all mismatches.
pub fn check(case: &Case) -> Result<(), String> {
    let kernel = match (front(case), &case.error) {
        (Ok(kernel), None) => kernel,
        (Ok(_), Some(wanted)) => return Err(format!("was taken, but must be refused: {wanted}")),
        (Err(error), Some(wanted)) if error.to_string().contains(wanted) => return Ok(()),
        (Err(error), Some(wanted)) => return Err(format!("wrong refusal\n  expected: {wanted}\n  got:      {error}")),
        (Err(error), None) => return Err(format!("was refused: {error}")),
    };
    verify(&kernel).map_err(|error| format!("the reader made a bad kernel: {error}"))?;
    let mut first: Option<(Engine, Memory)> = None;
    for engine in engine::engines() {
        let memory = run(case, &kernel, engine)?;
        if engine.is_compiled() {
            // The last bits of transcendental functions are those of the lowered kernel.
            let expected = run(case, &engine::lowered(&kernel, engine.isa()), engine::engines()[0])?;
            if !agree(&expected, &memory) {
                return Err(format!(
                    "{} and the interpreter of the same kernel disagree: {}",
                    engine.name,
                    difference(&expected, &memory)
                ));
            }
            compare_roughly(case, engine.name, &memory)?;
            continue;
        }
        compare(case, engine.name, &memory)?;
        match &first {
            Some((oracle, expected)) if *expected != memory => {
                return Err(format!("{} and {} disagree: {}", oracle.name, engine.name, difference(expected, &memory)));
            }
            Some(_) => {}
            None => first = Some((engine, memory)),
        }
    }
    Ok(())
}

/// Runs the case in the order of each schedule: memory is as in ascending order. Machine code, which runs lanes in
/// lockstep, also agrees with the interpreter in the same order. The error lists all mismatches.
pub fn check_scheduled(case: &Case, schedules: &[Schedule]) -> Result<(), String> {
    let kernel = front(case).map_err(|error| format!("was refused: {error}"))?;
    let kernel = Kernel { takes_schedule: true, ..kernel };
    let engines = engine::engines();
    let mut wrong = Vec::new();
    for engine in &engines {
        let oracle = if engine.is_compiled() { engine::lowered(&kernel, engine.isa()) } else { kernel.clone() };
        let (code, interpreted) = ((engine.prepare)(&kernel), (engines[0].prepare)(&oracle));
        let ascending = run_code(case, &kernel, &*code, Schedule::Ascending)?;
        for &schedule in schedules {
            let memory = run_code(case, &kernel, &*code, schedule)?;
            let expected = run_code(case, &kernel, &*interpreted, schedule)?;
            for (what, expected) in [("ascending order", &ascending), ("the interpreter", &expected)] {
                if !agree(expected, &memory) {
                    let difference = difference(expected, &memory);
                    wrong.push(format!("{}, {schedule}, and {what} disagree: {difference}", engine.name));
                }
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// The kernel of a case, or the front end's error.
pub fn front(case: &Case) -> Result<Kernel, Error> {
    let module = if case.is_wgsl() {
        Module::from_wgsl(&case.text)?
    } else {
        Module::from_spirv(&spvasm::assemble(&case.text)?)?
    };
    let entry = match &case.entry {
        Some(entry) => entry.clone(),
        None => module.entry_points().next().unwrap_or("main").to_owned(),
    };
    let mut kernel = module.kernel(&entry, &case.specialization)?;
    size_runtime_arrays(case, &mut kernel);
    Ok(kernel)
}

/// As a pipeline layout would: as many elements as the case binds.
pub fn size_runtime_arrays(case: &Case, kernel: &mut Kernel) {
    kernel.size_runtime_arrays(|data| {
        let slots = case.binds.keys().chain(case.images.keys()).chain(case.samplers.keys());
        let own = slots.filter(|slot| (slot.set, slot.binding) == (data.set, data.binding));
        own.map(|slot| slot.element + 1).max().unwrap_or(0)
    });
}

/// Runs the dispatch of a case on fresh buffers and reads them back.
pub fn run(case: &Case, kernel: &Kernel, engine: Engine) -> Result<Memory, String> {
    let code = (engine.prepare)(kernel);
    run_code(case, kernel, &*code, Schedule::Ascending).map_err(|problem| format!("{} {problem}", engine.name))
}

/// Runs the code of a kernel on the fresh buffers of a case, in the order of a schedule.
fn run_code(case: &Case, kernel: &Kernel, code: &dyn Code, schedule: Schedule) -> Result<Memory, String> {
    let inputs = Inputs::new(case, kernel)?;
    let stop = AtomicU32::new(0);
    match engine::dispatch_scheduled(code, &inputs.args(case, &stop), schedule, &mut Scratch::default()) {
        Outcome::Done => {}
        Outcome::Stopped => return Err("stopped without a request".into()),
        Outcome::OutOfMemory => return Err("has no memory to run".into()),
    }
    // Addresses differ from run to run.
    for [(slot, at), _] in &case.addresses {
        inputs.slots.get(slot).into_iter().for_each(|slice| slice.write(*at as u64, &[0; 8]));
    }
    let contents = inputs.slots.into_iter().map(|(slot, slice)| match case.images.get(&slot) {
        None => Ok((slot, words(slice))),
        Some(image) => {
            let bytes = image.read(slice)?;
            let texels = GuestSlice::leak(bytes.len().next_multiple_of(4));
            texels.write(0, &bytes);
            Ok((slot, words(texels)))
        }
    });
    contents.collect()
}

/// The memory of a case before its dispatch, and what the kernel is given.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// All memory.
    pub slots: BTreeMap<Slot, GuestSlice>,
    buffers: Vec<GuestSlice>,
    images: Vec<Descriptor>,
    push: [u8; MAX_PUSH_BYTES],
}

impl Inputs {
    /// Fresh memory.
    ///
    /// # Errors
    ///
    /// The case is not consistent.
    pub fn new(case: &Case, kernel: &Kernel) -> Result<Self, String> {
        let mut slots = BTreeMap::new();
        for (slot, words) in case.binds.iter().filter(|(slot, _)| !case.images.contains_key(slot)) {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.bits.to_le_bytes()).collect();
            let slice = GuestSlice::leak(bytes.len());
            slice.write(0, &bytes);
            slots.insert(*slot, slice);
        }
        let images = images(case, &mut slots)?;
        for [(slot, at), (of, offset)] in &case.addresses {
            let (Some(slice), Some(of)) = (slots.get(slot), slots.get(of)) else { return Err("no such slot".into()) };
            slice.write(*at as u64, &((of.address() + offset) as u64).to_le_bytes());
        }
        let mut buffers = descriptors(kernel, &slots);
        if kernel.has_addresses() {
            let mut all: Vec<GuestSlice> = slots.values().copied().filter(|slice| !slice.is_empty()).collect();
            all.sort_by_key(|slice| slice.address());
            buffers.extend(address_ranges(all));
        }
        let images: Vec<Descriptor> =
            wanted(kernel).map(|slot| images.get(&slot).copied().unwrap_or(Descriptor::NULL)).collect();
        let mut push = [0; MAX_PUSH_BYTES];
        let pushed: Vec<u8> = case.push.iter().flat_map(|word| word.bits.to_le_bytes()).collect();
        push.get_mut(..pushed.len()).ok_or("too many push constants")?.copy_from_slice(&pushed);
        Ok(Self { slots, buffers, images, push })
    }

    /// The arguments of the dispatch.
    pub fn args<'a>(&'a self, case: &Case, stop: &'a AtomicU32) -> DispatchArgs<'a> {
        let Self { buffers, images, push, .. } = self;
        DispatchArgs { buffers, push, images, num_workgroups: case.groups, stop }
    }
}

/// The images, samplers and texel buffers of a case; the memory of images is added to the slots.
fn images(case: &Case, slots: &mut BTreeMap<Slot, GuestSlice>) -> Result<BTreeMap<Slot, Descriptor>, String> {
    let mut images: BTreeMap<Slot, Descriptor> = BTreeMap::new();
    for (slot, image) in &case.images {
        let words = case.binds.get(slot).map(Vec::as_slice).unwrap_or_default();
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.bits.to_le_bytes()).collect();
        // The last word may extend past the texels.
        let all = image.fill(&[])?.memory;
        bytes.truncate(image.read(all)?.len());
        let view = image.fill(&bytes)?;
        slots.insert(*slot, view.memory);
        images.insert(*slot, Descriptor { view, ..Descriptor::NULL });
    }
    for (slot, format) in &case.texels {
        let memory = slots.get(slot).copied().unwrap_or(GuestSlice::EMPTY);
        let view = TexelView::of_buffer(memory, *format, 1 << 27);
        images.insert(*slot, Descriptor { view, ..Descriptor::NULL });
    }
    for (slot, sampler) in &case.samplers {
        images.entry(*slot).or_insert(Descriptor::NULL).sampler = *sampler;
    }
    Ok(images)
}

/// One slice for each descriptor of the kernel; unbound ones are empty.
pub fn descriptors(kernel: &Kernel, slots: &BTreeMap<Slot, GuestSlice>) -> Vec<GuestSlice> {
    wanted(kernel).map(|slot| slots.get(&slot).copied().unwrap_or(GuestSlice::EMPTY)).collect()
}

/// The descriptors of a kernel, flattened.
fn wanted(kernel: &Kernel) -> impl Iterator<Item = Slot> {
    let bindings = kernel.bindings.values();
    bindings.flat_map(|data| (0..data.count).map(|element| Slot { set: data.set, binding: data.binding, element }))
}

fn words(slice: GuestSlice) -> Vec<u32> {
    (0..slice.len() / 4).map(|at| slice.load_u32(at * 4)).collect()
}

/// Relative error of floats that lowering may cause in the test files.
const ROUGHLY: f32 = 1e-6;

fn compare(case: &Case, engine: &str, memory: &Memory) -> Result<(), String> {
    let wrong: Vec<String> = case.expects.iter().filter_map(|expect| mismatch(case, expect, memory)).collect();
    if wrong.is_empty() { Ok(()) } else { Err(format!("{engine}: wrong contents\n{}", wrong.join("\n"))) }
}

/// Mismatches of the contents of buffers, except for floats that differ in their last bits.
pub fn compare_roughly(case: &Case, engine: &str, memory: &Memory) -> Result<(), String> {
    let mut case = case.clone();
    for word in case.expects.iter_mut().flat_map(|expect| &mut expect.words) {
        if word.kind == Kind::F32 {
            word.kind = Kind::Near(ROUGHLY);
        }
    }
    compare(&case, engine, memory)
}

fn mismatch(case: &Case, expect: &Expect, memory: &Memory) -> Option<String> {
    let Slot { set, binding, element } = expect.slot;
    let place = format!("{}:{}: binding {set}.{binding}[{element}]", case.path.display(), expect.line + 1);
    let Some(have) = actual(expect, memory) else { return Some(format!("{place} has fewer bytes than expected")) };
    let pairs = expect.words.iter().zip(&have).enumerate();
    let wrong: Vec<_> = pairs.filter(|(_, (want, have))| !want.accepts(**have)).collect();
    let lines = wrong.iter().take(SHOWN).map(|(at, (want, have))| {
        let index = at + expect.offset / 4;
        let (want, got) = (want.kind.show(want.bits), want.kind.show(**have));
        format!("{place}, word {index}: expected {want}, got {got} (0x{have:08x})")
    });
    let more = wrong.len().saturating_sub(SHOWN);
    let rest = (more > 0).then(|| format!("{place}: and {more} more"));
    (!wrong.is_empty()).then(|| lines.chain(rest).collect::<Vec<_>>().join("\n"))
}

/// The words that an expectation covers; `None` past the end of the buffer or if it is not bound.
fn actual(expect: &Expect, memory: &Memory) -> Option<Vec<u32>> {
    let from = expect.offset / 4;
    Some(memory.get(&expect.slot)?.get(from..from + expect.words.len())?.to_vec())
}

/// Whether two runs gave the same, except for which NaN a float is.
fn agree(expected: &Memory, got: &Memory) -> bool {
    let nan = |word: u32| f32::from_bits(word).is_nan();
    let same = |(a, b): (&u32, &u32)| a == b || nan(*a) && nan(*b);
    expected.len() == got.len()
        && expected.iter().all(|(slot, words)| {
            got.get(slot).is_some_and(|other| words.len() == other.len() && words.iter().zip(other).all(same))
        })
}

fn difference(expected: &Memory, got: &Memory) -> String {
    for (slot, words) in expected {
        let other = got.get(slot).map_or(&[][..], Vec::as_slice);
        if let Some(at) = (0..words.len()).find(|at| other.get(*at) != words.get(*at)) {
            return format!(
                "binding {}.{}, word {at}: {:?}, {:?}",
                slot.set,
                slot.binding,
                words.get(at),
                other.get(at)
            );
        }
    }
    "different buffers".into()
}

/// The text of a case with its wrong expectations replaced by what the first engine computes.
pub fn bless(case: &Case) -> Result<String, String> {
    let kernel = front(case).map_err(|error| error.to_string())?;
    let memory = run(case, &kernel, engine::engines()[0])?;
    let mut lines: Vec<String> = case.text.lines().map(str::to_owned).collect();
    for expect in case.expects.iter().filter(|expect| mismatch(case, expect, &memory).is_some()) {
        let have = actual(expect, &memory).ok_or("an expectation is longer than its buffer")?;
        let line = &mut lines[expect.line];
        let end = line.find(':').map_or(line.len(), |at| at + 1);
        line.truncate(end);
        line.push(' ');
        line.push_str(&values::print(&expect.words, &have));
    }
    Ok(lines.join("\n") + "\n")
}
