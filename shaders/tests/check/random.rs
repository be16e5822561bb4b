//! Random kernels: checks change no result, every access is reported once and in its place, and no pass changes what an
//! invocation is seen to do.

use std::collections::BTreeMap;

use proptest::prelude::*;
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::ir::{BindingData, BufferSpace, InstData, Kernel, Op, Place, Type, Value, VariableSpace, verify};
use spelter_shaders::opt::{PASSES, Pass, optimize};

use crate::check::{Recorder, buffer, checked, observe, run, words};
use crate::ir::random::{self as kernels, BUFFER_WORDS};

/// Invocations of a random kernel.
const INVOCATIONS: u32 = 5;

fn input() -> GuestSlice {
    buffer(&(0..BUFFER_WORDS).map(|i| i.wrapping_mul(0x9e37_79b1) >> (i % 5 * 7)).collect::<Vec<_>>())
}

fn tape(most: usize) -> impl Strategy<Value = Vec<u32>> {
    proptest::collection::vec(any::<u32>(), 0..most)
}

/// What a kernel with checks leaves in memory, and what was seen.
fn outcome(kernel: &Kernel) -> (Vec<u32>, Recorder) {
    let memory = input();
    let recorder = observe(kernel, &[memory], [1, 1, 1]);
    (words(memory), recorder)
}

/// Another count of the accesses: the kernel itself adds to two words of another buffer for each load, store and atomic
/// on shared memory, the number of executions in bounds and the sum of their offsets.
struct Counting<'k> {
    kernel: &'k mut Kernel,
    counts: Value,
    insts: Vec<spelter_shaders::ir::Inst>,
}

impl Counting<'_> {
    fn value(&mut self, data: InstData, ty: Type) -> Value {
        let inst = self.kernel.insts.push(data);
        self.insts.push(inst);
        self.kernel.define(inst, ty)
    }

    fn constant(&mut self, number: u32) -> Value {
        self.value(InstData::Const { ty: Type::I32, bits: number.into() }, Type::I32)
    }

    fn pure(&mut self, op: Op, args: [Value; 2]) -> Value {
        self.value(InstData::Pure { op, args: args.as_slice().into() }, op.result())
    }

    fn add(&mut self, word: u32, number: Value) {
        use spelter_shaders::ir::{AtomicOp, Scope, Semantics};
        let offset = self.constant(word * 4);
        let place = Place::Buffer { space: BufferSpace::Storage, buffer: self.counts, offset };
        let (scope, semantics) = (Scope::Device, Semantics(0));
        let data = InstData::Atomic {
            op: AtomicOp::Add,
            place,
            value: Some(number),
            comparator: None,
            wide: None,
            scope,
            semantics,
            unequal: semantics,
        };
        self.value(data, Type::I32);
    }

    /// Counts the access number `number` of `bytes` bytes at an offset into memory of `size` bytes.
    fn count(&mut self, number: u32, offset: Value, bytes: u32, size: u32, align: u32) {
        let last = self.constant(size - bytes);
        let mut counted = self.pure(Op::ULe, [offset, last]);
        let low = self.constant(align - 1);
        let low = self.pure(Op::And, [offset, low]);
        let zero = self.constant(0);
        let is_aligned = self.pure(Op::IEq, [low, zero]);
        counted = self.pure(Op::LAnd, [counted, is_aligned]);
        let one = self.constant(1);
        let one = self.value(InstData::Select { condition: counted, then: one, otherwise: zero }, Type::I32);
        let offset = self.value(InstData::Select { condition: counted, then: offset, otherwise: zero }, Type::I32);
        self.add(number * 2, one);
        self.add(number * 2 + 1, offset);
    }
}

/// The kernel with counters in `binding1`, and the number of accesses.
fn counting(kernel: &Kernel) -> (Kernel, u32) {
    let mut kernel = kernel.clone();
    let binding = kernel.bindings.push(BindingData::storage(1, 3));
    let mut number = 0;
    let mut counts = None;
    for at in 0..kernel.layout.len() {
        let block = kernel.layout[at];
        let old = std::mem::take(&mut kernel.blocks[block].insts);
        let mut counting = Counting { kernel: &mut kernel, counts: Value::from_u32(0), insts: Vec::new() };
        counting.counts = *counts.get_or_insert_with(|| {
            let index = counting.constant(0);
            counting.value(InstData::Buffer { binding, index }, Type::Buffer)
        });
        for inst in old {
            let found = match counting.kernel.insts[inst] {
                InstData::Load { place, width, .. } | InstData::Store { place, width, .. } => {
                    Some((place, width.bytes(), 1))
                }
                InstData::Atomic { place, .. } => Some((place, 4, 4)),
                _ => None,
            };
            match found {
                Some((Place::Buffer { offset, .. }, bytes, align)) => {
                    counting.count(number, offset, bytes, BUFFER_WORDS * 4, align);
                    number += 1;
                }
                Some((Place::Variable { variable, offset }, bytes, align))
                    if counting.kernel.variables[variable].space == VariableSpace::Workgroup =>
                {
                    let size = counting.kernel.variables[variable].bytes;
                    counting.count(number, offset, bytes, size, align);
                    number += 1;
                }
                _ => {}
            }
            counting.insts.push(inst);
        }
        let insts = counting.insts;
        kernel.blocks[block].insts = insts;
    }
    verify(&kernel).unwrap_or_else(|error| panic!("{error}\n{kernel}"));
    (kernel, number)
}

/// Executions and sum of offsets of each access, by what was seen of a kernel with checks.
fn seen(recorder: &Recorder) -> BTreeMap<String, [u32; 2]> {
    let mut all = BTreeMap::new();
    for (_, event) in &recorder.events {
        let mut words = event.split([' ', '+']);
        let (Some(site), rest) = (words.next().filter(|word| word.starts_with("site")), words) else { continue };
        let rest: Vec<&str> = rest.filter(|word| *word != "atomic").collect();
        let offset = match rest[0] {
            "shared" => rest[1],
            "buffer" => rest[2],
            _ => continue,
        };
        let counts: &mut [u32; 2] = all.entry(site.to_owned()).or_default();
        counts[0] += 1;
        counts[1] = counts[1].wrapping_add(offset.parse().unwrap());
    }
    all
}

/// Each invocation is seen to do the same after a pass.
fn same_after(pass: &Pass, kernel: &mut Kernel, expected: &(Vec<u32>, Recorder)) -> Result<(), TestCaseError> {
    let before = kernel.to_string();
    (pass.run)(kernel);
    prop_assert_eq!(verify(kernel), Ok(()), "{}\n{}\n{}", pass.name, before, kernel);
    let (memory, recorder) = outcome(kernel);
    for local in 0..INVOCATIONS {
        prop_assert_eq!(recorder.of(local), expected.1.of(local), "{}\n{}\n{}", pass.name, before, kernel);
    }
    prop_assert_eq!(&memory, &expected.0);
    Ok(())
}

proptest! {
    #[test]
    fn checks_change_no_result(tape in tape(600), barriers: bool) {
        let kernel = kernels::kernel(&tape, barriers);
        let memory = input();
        run(&kernel, &[memory], [1, 1, 1]);
        let kernel = checked(&kernel);
        prop_assert_eq!(&outcome(&kernel).0, &words(memory));
        // Nor do they without an observer.
        let unobserved = input();
        run(&kernel, &[unobserved], [1, 1, 1]);
        prop_assert_eq!(words(unobserved), words(memory));
    }

    #[test]
    fn what_is_reported_is_what_the_kernel_counts(tape in tape(600), barriers: bool) {
        let kernel = kernels::kernel(&tape, barriers);
        let (counting, number) = counting(&kernel);
        let counts = buffer(&vec![0; number as usize * 2]);
        run(&counting, &[input(), counts], [1, 1, 1]);
        let kernel = checked(&kernel);
        let seen = seen(&outcome(&kernel).1);
        // Sites of accesses are in the order of the instructions, as the counters are.
        let sites: Vec<_> = kernel.sites.iter().filter(|(_, data)| data.action.class().is_some()).collect();
        prop_assert_eq!(sites.len(), number as usize);
        for ((site, _), count) in sites.iter().zip(words(counts).chunks(2)) {
            let seen = seen.get(&site.to_string()).copied().unwrap_or_default();
            prop_assert_eq!(&seen[..], count, "{}\n{}", site, kernel);
        }
    }

    #[test]
    fn each_pass_keeps_what_is_seen(tape in tape(400), barriers: bool) {
        let kernel = checked(&kernels::kernel(&tape, barriers));
        let expected = outcome(&kernel);
        let first = |place: usize| PASSES.iter().position(|pass| pass.name == PASSES[place].name) == Some(place);
        for pass in (0..PASSES.len()).filter(|&place| first(place)).map(|place| &PASSES[place]) {
            same_after(pass, &mut kernel.clone(), &expected)?;
        }
    }

    #[test]
    fn all_passes_keep_what_is_seen(tape in tape(900), barriers: bool) {
        let mut kernel = checked(&kernels::kernel(&tape, barriers));
        let expected = outcome(&kernel);
        let all = Pass { name: "all", run: |kernel| optimize(kernel, |_, _| {}) };
        same_after(&all, &mut kernel, &expected)?;
    }
}
