//! The range analysis: what it finds in small texts, and that what it finds is true wherever a random kernel comes.

use proptest::prelude::*;
use spelter_shaders::analysis::Ranges;
use spelter_shaders::ir::{Access, BindingData, Block, BufferSpace, Inst, InstData, Kernel, Op, Place, Type, Value};

use crate::ir::random::{self, BUFFER_WORDS};
use crate::opt::{parse, run};

/// Holds what is known about values where block `at` uses them: least, greatest, divisor.
#[track_caller]
fn known(body: &str, at: u32, expected: &[(u32, u32, u32, u32)]) {
    let kernel = parse(body);
    let ranges = Ranges::new(&kernel);
    for &(value, low, high, multiple) in expected {
        let range = ranges.at(Block::from_u32(at), Value::from_u32(value));
        assert_eq!((range.low, range.high, 1 << range.zeros.min(31)), (low, high, multiple), "v{value}\n{kernel}");
    }
}

const MAX: u32 = u32::MAX;

#[test]
fn operations_bound_their_results() {
    let body = "block0:
        v0 = builtin local_invocation_id.0
        v1 = builtin local_invocation_id.1
        v3 = const.i32 12
        v2 = load.i32 push + v3
        v17 = builtin global_invocation_id.0
        v4 = const.i32 4
        v5 = and v2, v3
        v6 = shl v0, v4
        v7 = umod v2, v3
        v8 = lshr v2, v3
        v9 = iadd v6, v5
        v10 = umin v2, v3
        v11 = imul v2, v4
        v12 = or v6, v7
        v13 = element v6, v0 * 8
        v14 = element v6, v2 * 8
        v15 = isub v3, v0
        v16 = udiv v6, v3
        return";
    known(
        body,
        0,
        &[
            (0, 0, 7, 1),
            (1, 0, 0, 1 << 31),
            (2, 0, MAX, 1),
            (5, 0, 12, 4),
            (6, 0, 112, 16),
            (7, 0, 11, 1),
            (8, 0, MAX >> 12, 1),
            (9, 0, 124, 4),
            (10, 0, 12, 1),
            (11, 0, MAX - 3, 4),
            (12, 0, 123, 1),
            (13, 0, 168, 8),
            (14, 0, MAX, 1),
            (15, 5, 12, 1),
            (16, 0, 9, 1),
            (17, 0, 65_535 * 8 - 1, 1),
        ],
    );
    let ranges = Ranges::new(&parse(body));
    assert_eq!([13, 14].map(|v| ranges.range(Value::from_u32(v)).zeros_unless_max), [3, 3]);
    assert_eq!(ranges.upper(Value::from_u32(6)), 112);
}

/// A loop from `first` whose body goes on while `condition` of the counter `v5` holds.
fn counting(first: u32, condition: &str, step: &str) -> String {
    format!(
        "block0:
            v0 = const.i32 {first}
            v1 = const.i32 16
            v2 = const.i32 1
            v3 = const.i32 0
            v4 = load.i32 push + v3
            v20 = const.i32 4
            jump block1(v0)
        block1(v5: i32):
            v6 = {condition}
            loop block4, block3
            branch v6, block2, block4
        block2:
            v7 = shl v5, v20
            jump block3
        block3:
            v8 = {step}
            jump block1(v8)
        block4:
            return"
    )
}

#[test]
fn loops_bound_their_counters() {
    for less in ["ult v5, v1", "slt v5, v1"] {
        let body = counting(0, less, "iadd v5, v2");
        known(&body, 1, &[(5, 0, 16, 1)]);
        known(&body, 2, &[(5, 0, 15, 1), (7, 0, 240, 16), (8, 1, 16, 1)]);
        known(&body, 4, &[(5, 16, 16, 16)]);
    }
    // Steps of 4: always a multiple of it.
    known(&counting(8, "sle v5, v1", "iadd v5, v20"), 2, &[(5, 8, 16, 4), (8, 12, 20, 4)]);
    // Halved until nothing is left.
    known(&counting(128, "slt v3, v5", "lshr v5, v2"), 2, &[(5, 1, 128, 1), (8, 0, 64, 1)]);
    // Up to an unknown limit: natural at least.
    known(&counting(0, "slt v5, v4", "iadd v5, v2"), 2, &[(5, 0, 0x7fff_fffe, 1), (8, 1, 0x7fff_ffff, 1)]);
    // Wraps around.
    known(&counting(0, "ule v5, v1", "isub v5, v2"), 2, &[(5, 0, 16, 1), (8, 0, MAX, 1)]);
}

#[test]
fn branches_tell_about_what_they_compare() {
    let body = "block0:
        v2 = const.i32 100
        v0 = load.i32 push + v2
        v1 = load.i32 push + v2
        v3 = const.i32 50
        v4 = ult v0, v2
        v5 = slt v3, v1
        v6 = lnot v5
        v7 = land v4, v6
        selection block2
        branch v7, block1, block2
    block1:
        v8 = select.i32 v4, v0, v3
        selection block3
        switch v1, block3 [7: block4, 9: block3]
    block4:
        v9 = ine v0, v2
        jump block3
    block3:
        jump block2
    block2:
        return";
    known(body, 0, &[(0, 0, MAX, 1), (8, 0, 99, 1)]);
    known(body, 1, &[(0, 0, 99, 1), (1, 0, MAX, 1)]);
    known(body, 4, &[(0, 0, 99, 1), (1, 7, 7, 1)]);
    known(body, 2, &[(0, 0, MAX, 1)]);
}

#[test]
fn parameters_take_what_their_branches_pass() {
    let body = "block0:
        v0 = builtin local_invocation_id.0
        v1 = const.i32 4
        v2 = const.i32 24
        v3 = ult v0, v1
        selection block1
        branch v3, block1(v0, v2), block1(v1, v1)
    block1(v4: i32, v5: i32):
        return";
    known(body, 1, &[(4, 0, 4, 1), (5, 4, 24, 4)]);
}

/// Adds instructions that write to `binding1` where an operand is outside of what is known about it.
fn with_checks(kernel: &Kernel) -> Kernel {
    let ranges = Ranges::new(kernel);
    let mut kernel = kernel.clone();
    let binding = kernel.bindings.push(BindingData::storage(9, 9));
    let mut checker = Checker { kernel, list: Vec::new() };
    let zero = checker.word(0);
    let errors = checker.value(InstData::Buffer { binding, index: zero }, Type::Buffer);
    let prologue = std::mem::take(&mut checker.list);
    for block in checker.kernel.layout.clone() {
        for inst in checker.kernel.blocks[block].insts.clone() {
            let mut uses = Vec::new();
            checker.kernel.insts[inst].for_each_use(|value| uses.push(value));
            for value in uses.into_iter().filter(|&value| checker.kernel.ty(value) == Type::I32).collect::<Vec<_>>() {
                let range = ranges.at(block, value);
                checker.check(
                    errors,
                    value,
                    [range.low, range.high, range.zeros.into(), range.zeros_unless_max.into()],
                );
            }
            checker.list.push(inst);
        }
        checker.kernel.blocks[block].insts = std::mem::take(&mut checker.list);
    }
    let entry = checker.kernel.layout[0];
    checker.kernel.blocks[entry].insts.splice(0..0, prologue);
    checker.kernel
}

struct Checker {
    kernel: Kernel,
    list: Vec<Inst>,
}

impl Checker {
    fn value(&mut self, data: InstData, ty: Type) -> Value {
        let inst = self.kernel.insts.push(data);
        let value = self.kernel.define(inst, ty);
        self.list.push(inst);
        value
    }

    fn word(&mut self, bits: u32) -> Value {
        self.value(InstData::Const { ty: Type::I32, bits: bits.into() }, Type::I32)
    }

    fn pure(&mut self, op: Op, args: &[Value]) -> Value {
        self.value(InstData::Pure { op, args: args.iter().copied().collect() }, op.result())
    }

    fn is_multiple(&mut self, value: Value, zeros: u32) -> Value {
        let mask = self.word(((1u64 << zeros) - 1) as u32);
        let rest = self.pure(Op::And, &[value, mask]);
        let zero = self.word(0);
        self.pure(Op::IEq, &[rest, zero])
    }

    fn check(&mut self, errors: Value, value: Value, [low, high, zeros, zeros_unless_max]: [u32; 4]) {
        let (low, high, outside) = (self.word(low), self.word(high), self.word(u32::MAX));
        let from = self.pure(Op::ULe, &[low, value]);
        let to = self.pure(Op::ULe, &[value, high]);
        let multiple = self.is_multiple(value, zeros);
        let is_max = self.pure(Op::IEq, &[value, outside]);
        let multiple_too = self.is_multiple(value, zeros_unless_max);
        let multiple_too = self.pure(Op::LOr, &[is_max, multiple_too]);
        let both = [from, to, multiple].into_iter().fold(multiple_too, |all, one| self.pure(Op::LAnd, &[all, one]));
        let zero = self.word(0);
        let offset = self.value(InstData::Select { condition: both, then: outside, otherwise: zero }, Type::I32);
        let place = Place::Buffer { space: BufferSpace::Storage, buffer: errors, offset };
        let number = self.word(value.as_u32() + 1);
        let store = self.kernel.insts.push(InstData::Store {
            width: Default::default(),
            place,
            value: number,
            access: Access::default(),
        });
        self.list.push(store);
    }
}

proptest! {
    #[test]
    fn what_is_known_is_true(tape in proptest::collection::vec(any::<u32>(), 0..600), barriers: bool) {
        let kernel = random::kernel(&tape, barriers);
        let checked = with_checks(&kernel);
        prop_assert_eq!(spelter_shaders::ir::verify(&checked), Ok(()));
        let errors = crate::opt::run_with(&checked, &[&[5; BUFFER_WORDS as usize], &[0]]).swap_remove(1);
        prop_assert_eq!(errors, [0], "{}", kernel);
    }
}

#[test]
fn the_checks_of_this_test_find_lies() {
    let kernel = parse("block0:\n v0 = builtin local_invocation_id.0\n v1 = iadd v0, v0\n return");
    let mut checked = with_checks(&kernel);
    assert_eq!(crate::opt::run_with(&checked, &[&[], &[], &[], &[0]])[3], [0]);
    checked.workgroup_size[0] = 9;
    assert_eq!(crate::opt::run_with(&checked, &[&[], &[], &[], &[0]])[3], [1]);
    assert!(run(&kernel, &[]).is_empty());
}
