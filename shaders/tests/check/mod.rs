//! Checked mode at its boundary: where checks are inserted, what the interpreter and machine code report to an
//! observer, and that neither checks nor passes change anything else.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod barriers;
mod compile;
mod images;
mod observed;
mod random;
mod subsume;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::AtomicU32;

use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES, Outcome};
use spelter_shaders::back::x86::{self, Isa};
use spelter_shaders::back::{Code, ObservedCode, Scratch, Workgroups, interp::Program};
use spelter_shaders::check::insert;
use spelter_shaders::check::observer::{DivergentBarrier, Invocation, Memory, Observer, Target};
use spelter_shaders::compile::{check_widened, lower_for, widen};
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::image::Descriptor;
use spelter_shaders::ir::{Kernel, Scope, Site, verify};

/// Parses and verifies.
fn parse(text: &str) -> Kernel {
    let kernel = Kernel::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    verify(&kernel).unwrap_or_else(|error| panic!("{error}\n{text}"));
    kernel
}

/// The kernel with checks, verified; its text must be that of the kernel that it parses to.
fn checked(kernel: &Kernel) -> Kernel {
    let mut kernel = kernel.clone();
    insert(&mut kernel);
    verify(&kernel).unwrap_or_else(|error| panic!("{error}\n{kernel}"));
    assert_eq!(parse(&kernel.to_string()).to_string(), kernel.to_string());
    kernel
}

/// The machine code of a kernel with checks, for each instruction set of the machine; its SIMD form must be that of the
/// text that it prints. Or why there is none.
fn machine_code(kernel: &Kernel) -> Vec<(Isa, Result<x86::MachineCode, String>)> {
    let program = |isa: Isa| {
        let lowered = lower_for(kernel, isa, |_, _| {})?;
        let wide = widen(&lowered, isa).map_err(|error| error.to_string())?;
        let text = wide.to_string();
        assert_eq!(spelter_shaders::simd::Kernel::parse(&text).map(|wide| wide.to_string()).as_ref(), Ok(&text));
        check_widened(&wide)?;
        x86::compile(&wide, isa).map_err(|error| error.to_string())
    };
    Isa::available().map(|isa| (isa, program(isa))).collect()
}

/// Why a kernel with checks is interpreted that might have machine code.
const DIVERGENT: &str = "a kernel with checks has a control barrier that may be in divergent control flow";

/// Writes down all events: one line each, with addresses relative to the buffers.
#[derive(Default)]
struct Recorder {
    buffers: Vec<GuestSlice>,
    /// The invocation, or the workgroup, and what happened.
    events: Vec<(Option<Invocation>, String)>,
}

impl Recorder {
    fn place(&self, target: Target) -> String {
        let Target { memory, bytes, reference } = target;
        match memory {
            Memory::Workgroup(offset) => format!("shared {offset}+{bytes} of var{reference}"),
            Memory::Device(address) => {
                let buffer = self.buffers[reference as usize];
                format!("buffer {reference} {}+{bytes}", address - buffer.address() as u64)
            }
        }
    }

    /// The events of an invocation in order.
    fn of(&self, local: u32) -> Vec<&str> {
        let is = |by: &Option<Invocation>| by.is_some_and(|by| by.local == local);
        self.events.iter().filter(|(by, _)| is(by)).map(|(_, event)| &**event).collect()
    }

    /// What machine code must report in the same order: all of each invocation, and all that is of none.
    fn by_invocation(&self) -> BTreeMap<Option<Invocation>, Vec<&str>> {
        let mut all: BTreeMap<_, Vec<&str>> = BTreeMap::new();
        self.events.iter().for_each(|(by, event)| all.entry(*by).or_default().push(event));
        all
    }

    /// All events, each with its invocation.
    fn text(&self) -> String {
        let mut text = String::new();
        for (by, event) in &self.events {
            match by {
                Some(by) => writeln!(text, "{}.{}: {event}", by.workgroup, by.local).unwrap(),
                None => writeln!(text, "{event}").unwrap(),
            }
        }
        text
    }
}

impl Observer for Recorder {
    fn access(&mut self, by: Invocation, site: Site, target: Target) {
        let event = format!("{site} {}", self.place(target));
        self.events.push((Some(by), event));
    }

    fn atomic(&mut self, by: Invocation, site: Site, target: Target, wrote: bool) {
        let event = format!("{site} atomic {} {wrote}", self.place(target));
        self.events.push((Some(by), event));
    }

    fn fence(&mut self, by: Invocation, site: Site) {
        self.events.push((Some(by), format!("{site} fence")));
    }

    fn arrive(&mut self, by: Invocation, site: Site) {
        self.events.push((Some(by), format!("{site} arrives")));
    }

    fn divergent_barrier(&mut self, barrier: DivergentBarrier<'_>) {
        let DivergentBarrier { execution, waiting, missing } = barrier;
        let mut event = format!("divergent {}:", execution.name());
        for (by, site) in waiting {
            write!(event, " {}@{site}", by.local).unwrap();
        }
        event += ", without";
        missing.iter().for_each(|by| write!(event, " {}", by.local).unwrap());
        self.events.push((None, event));
    }

    fn release(&mut self, workgroup: u64, execution: Scope, subgroup: Option<u32>) {
        let which = subgroup.map_or_else(String::new, |number| format!(" {number}"));
        self.events.push((None, format!("workgroup {workgroup} released: {}{which}", execution.name())));
    }

    fn end(&mut self, by: Invocation) {
        self.events.push((Some(by), "ends".into()));
    }
}

/// Words in memory of their own.
fn buffer(words: &[u32]) -> GuestSlice {
    let slice = GuestSlice::leak(words.len() * 4);
    for (place, &word) in words.iter().enumerate() {
        slice.store_u32(place as u64 * 4, word);
    }
    slice
}

/// All words of a buffer.
fn words(buffer: GuestSlice) -> Vec<u32> {
    (0..buffer.len() / 4).map(|place| buffer.load_u32(place * 4)).collect()
}

fn with_args<R>(buffers: &[GuestSlice], groups: [u32; 3], run: impl FnOnce(&DispatchArgs<'_>, &mut Scratch) -> R) -> R {
    with_images(buffers, &[], groups, run)
}

fn with_images<R>(
    buffers: &[GuestSlice],
    images: &[Descriptor],
    groups: [u32; 3],
    run: impl FnOnce(&DispatchArgs<'_>, &mut Scratch) -> R,
) -> R {
    let (push, stop) = ([0; MAX_PUSH_BYTES], AtomicU32::new(0));
    let args = DispatchArgs { buffers, push: &push, images, num_workgroups: groups, stop: &stop };
    run(&args, &mut Scratch::default())
}

/// Runs a dispatch without an observer.
fn run(kernel: &Kernel, buffers: &[GuestSlice], groups: [u32; 3]) {
    let all = Workgroups::new(0..groups.iter().map(|&count| u64::from(count)).product(), groups, [0; 3]);
    let outcome = with_args(buffers, groups, |args, scratch| Program::new(kernel).run_all(args, all, scratch));
    assert_eq!(outcome, Outcome::Done);
}

/// Runs a dispatch of a kernel with checks, and records what happens.
fn observe(kernel: &Kernel, buffers: &[GuestSlice], groups: [u32; 3]) -> Recorder {
    observe_in(&Program::new(kernel), buffers, groups)
}

fn observe_in(code: &dyn ObservedCode, buffers: &[GuestSlice], groups: [u32; 3]) -> Recorder {
    let all = Workgroups::new(0..groups.iter().map(|&count| u64::from(count)).product(), groups, [0; 3]);
    let mut recorder = Recorder { buffers: buffers.to_vec(), events: Vec::new() };
    let outcome = with_args(buffers, groups, |args, scratch| code.run_observed(args, all, scratch, &mut recorder));
    assert_eq!(outcome, Outcome::Done);
    recorder
}

/// As [`observe`]; machine code must report the same of each invocation, unless barriers may be in divergent control
/// flow. What the buffers hold must not depend on the order of invocations.
#[track_caller]
fn observe_in_all(kernel: &Kernel, buffers: &[GuestSlice], groups: [u32; 3]) -> Recorder {
    let before: Vec<Vec<u32>> = buffers.iter().map(|&buffer| words(buffer)).collect();
    let reference = observe(kernel, buffers, groups);
    for (isa, program) in machine_code(kernel) {
        for (buffer, words) in buffers.iter().zip(&before) {
            (0..).step_by(4).zip(words).for_each(|(at, &word)| buffer.store_u32(at, word));
        }
        match program {
            Ok(program) => {
                let found = observe_in(&program, buffers, groups);
                assert_eq!(found.by_invocation(), reference.by_invocation(), "{isa:?}");
            }
            Err(reason) => {
                assert_eq!(reason, DIVERGENT);
                let is_divergent = |(_, event): &(_, String)| event.starts_with("divergent");
                assert!(reference.events.iter().any(is_divergent), "{}", reference.text());
            }
        }
    }
    reference
}

/// The events of a kernel whose text lacks the head: three invocations in a workgroup, two buffers of 4 words of 0.
#[track_caller]
fn events(body: &str, groups: [u32; 3]) -> String {
    events_of(3, body, groups)
}

/// As [`events`], of a number of invocations in a workgroup.
#[track_caller]
fn events_of(invocations: u32, body: &str, groups: [u32; 3]) -> String {
    let text = format!(
        "kernel \"test\" {invocations}, 1, 1\nbinding0 = storage 0.0[1] 0\nbinding1 = storage 0.1[1] 0\n\
         var0 = workgroup 8 \"a\"\nvar1 = workgroup 16 \"b\"\n{body}"
    );
    let buffers = [buffer(&[0; 4]), buffer(&[0; 4])];
    observe_in_all(&checked(&parse(&text)), &buffers, groups).text()
}
