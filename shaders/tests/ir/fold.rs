//! The interpreter against the meaning of each operation, and against a slow evaluator that knows no registers.

use std::collections::HashMap;

use proptest::prelude::*;
use spelter_shaders::ir::{
    AtomicOp, Block, BlockCall, BuiltIn, InstData, Kernel, Op, Place, Type, Value, VariableSpace, element,
};

use crate::ir::random::{self, BUFFER_WORDS};
use crate::ir::{check, run};

/// A kernel that applies `op` to constants as they come from memory, so that nothing is folded.
fn apply(op: Op, args: &[u32]) -> u32 {
    let mut body = String::from("block0:\n v0 = const.i32 0\n v1 = buffer binding0[v0]\n");
    let mut names = Vec::new();
    for (place, ty) in op.params().iter().enumerate() {
        let (offset, loaded, operand) = (10 + place, 20 + place, 30 + place);
        let loads = if *ty == Type::F32 { "f32" } else { "i32" };
        body += &format!(" v{offset} = const.i32 {}\n v{loaded} = load.{loads} storage v1 + v{offset}\n", place * 4);
        if *ty == Type::Bool {
            body += &format!(" v{operand} = ine v{loaded}, v0\n");
            names.push(format!("v{operand}"));
        } else {
            names.push(format!("v{loaded}"));
        }
    }
    body += &format!(" v2 = {} {}\n", op.name(), names.join(", "));
    body += match op.result() {
        Type::Bool => " v3 = bool_to_int v2\n store storage v1 + v0, v3\n return",
        _ => " store storage v1 + v0, v2\n return",
    };
    let text = format!("kernel \"k\" 1, 1, 1\nbinding0 = storage 0.0[1] 0\n{body}");
    run(&crate::ir::parse(&text), args)[0]
}

/// Bits that arithmetic likes to get wrong, and any others.
fn word() -> impl Strategy<Value = u32> {
    let special = [0, 1, 31, 32, u32::MAX, 0x8000_0000, 0x7fff_ffff, 0x7f80_0000, 0xff80_0000, 0x7fc0_0000, 1 << 23];
    prop_oneof![any::<u32>(), prop::sample::select(special.to_vec()), any::<f32>().prop_map(f32::to_bits), 0u32..64]
}

/// The bits, with one NaN for all: which one an operation gives is unspecified.
fn same_nan(op: Op, bits: u64) -> u64 {
    let is_nan = op.result() == Type::F32 && f32::from_bits(bits as u32).is_nan();
    if is_nan { u64::from(f32::NAN.to_bits()) } else { bits }
}

proptest! {
    #[test]
    fn every_operation_computes_what_it_folds_to(args in proptest::collection::vec(word(), 4)) {
        for &op in Op::ALL {
            let registers: Vec<u64> = op
                .params()
                .iter()
                .zip(&args)
                .map(|(&ty, &bits)| if ty == Type::Bool { u64::from(bits != 0) } else { u64::from(bits) })
                .collect();
            let [is, wanted] = [u64::from(apply(op, &args)), op.fold(&registers)].map(|bits| same_nan(op, bits));
            prop_assert_eq!(is, wanted, "{} {:x?}", op.name(), &registers);
        }
    }

    #[test]
    fn registers_hold_what_values_are(tape in proptest::collection::vec(any::<u32>(), 0..400)) {
        let kernel = random::kernel(&tape, false);
        let input: Vec<u32> = (0..BUFFER_WORDS).map(|i| i.wrapping_mul(0x9e37_79b1)).collect();
        let mut evaluator = Evaluator { kernel: &kernel, buffer: input.clone(), shared: vec![0; 8], private: vec![] };
        (0..kernel.invocations()).for_each(|index| evaluator.invocation(index));
        prop_assert_eq!(run(&kernel, &input), evaluator.buffer, "{}", kernel);
    }

    #[test]
    fn kernels_with_barriers_end(tape in proptest::collection::vec(any::<u32>(), 0..400)) {
        run(&random::kernel(&tape, true), &[7; BUFFER_WORDS as usize]);
    }
}

#[test]
fn a_result_without_uses_has_no_effect() {
    let body = "block0:
        v0 = const.i32 0
        v1 = buffer binding0[v0]
        v2 = load.i32 storage v1 + v0
        v3 = iadd v2, v2
        v4 = iadd v2, v0
        store storage v1 + v0, v4
        return";
    check(1, body, &[5], &[5]);
}

/// Runs SSA as it stands: one map from value to bits.
struct Evaluator<'a> {
    kernel: &'a Kernel,
    buffer: Vec<u32>,
    shared: Vec<u32>,
    private: Vec<u32>,
}

impl Evaluator<'_> {
    fn invocation(&mut self, index: u32) {
        self.private = vec![0; 8];
        let mut values = HashMap::new();
        let mut block = self.kernel.layout[0];
        while let Some(next) = self.block(block, index, &mut values) {
            block = next;
        }
    }

    fn block(&mut self, block: Block, index: u32, values: &mut HashMap<Value, u64>) -> Option<Block> {
        for &inst in &self.kernel.blocks[block].insts {
            let data = &self.kernel.insts[inst];
            let get = |value: &Value| values[value];
            let call = match data {
                InstData::Jump { to } => to,
                InstData::Branch { condition, then, otherwise } => {
                    if get(condition) != 0 {
                        then
                    } else {
                        otherwise
                    }
                }
                InstData::Switch { selector, default, cases } => {
                    cases.iter().find(|case| u64::from(case.0) == get(selector)).map_or(default, |case| &case.1)
                }
                InstData::Return | InstData::Unreachable => return None,
                _ => {
                    let bits = self.value(data, index, values);
                    if let Some(result) = self.kernel.results[inst] {
                        values.insert(result, bits);
                    }
                    continue;
                }
            };
            return Some(self.enter(call, values));
        }
        unreachable!("the verifier wants terminators")
    }

    fn enter(&self, call: &BlockCall, values: &mut HashMap<Value, u64>) -> Block {
        let args: Vec<u64> = call.args.iter().map(|arg| values[arg]).collect();
        values.extend(self.kernel.blocks[call.block].params.iter().copied().zip(args));
        call.block
    }

    fn value(&mut self, data: &InstData, index: u32, values: &HashMap<Value, u64>) -> u64 {
        let get = |value: &Value| values[value];
        match data {
            InstData::Const { bits, .. } => *bits,
            InstData::Pure { op, args } => op.fold(&args.iter().map(get).collect::<Vec<_>>()),
            InstData::Select { condition, then, otherwise } => get(if get(condition) != 0 { then } else { otherwise }),
            InstData::BuiltIn { builtin: BuiltIn::LocalInvocationIndex, .. } => index.into(),
            InstData::Element { base, index, stride } => element(get(base) as u32, get(index) as u32, *stride).into(),
            InstData::Buffer { .. } => 0,
            InstData::BufferSize { .. } => self.buffer.len() as u64 * 4,
            InstData::Load { width, place, .. } => {
                let shift = 8 * (values[&place.offset()] as u32 % 4);
                self.word(place, values).map_or(0, |word| u64::from(*word >> shift & width.mask()))
            }
            InstData::Store { width, place, value, .. } => {
                let value = get(value) as u32;
                let shift = 8 * (values[&place.offset()] as u32 % 4);
                let mask = width.mask() << shift;
                if let Some(word) = self.word(place, values) {
                    *word = *word & !mask | value << shift & mask;
                }
                0
            }
            InstData::Atomic { op, place, value: Some(value), .. } => {
                let value = get(value) as u32;
                let Some(word) = self.word(place, values) else { return 0 };
                let old = *word;
                *word = match op {
                    AtomicOp::Add => old.wrapping_add(value),
                    AtomicOp::UMax => old.max(value),
                    AtomicOp::Exchange => value,
                    AtomicOp::SMin => old.cast_signed().min(value.cast_signed()).cast_unsigned(),
                    AtomicOp::Xor => old ^ value,
                    other => unreachable!("{other:?} is not generated"),
                };
                old.into()
            }
            other => unreachable!("{other} is not generated"),
        }
    }

    fn word(&mut self, place: &Place, values: &HashMap<Value, u64>) -> Option<&mut u32> {
        let (words, offset) = match place {
            Place::Buffer { offset, .. } => (&mut self.buffer, offset),
            Place::Variable { variable, offset } => match self.kernel.variables[*variable].space {
                VariableSpace::Workgroup => (&mut self.shared, offset),
                VariableSpace::Private => (&mut self.private, offset),
                VariableSpace::Constant => unreachable!("not generated"),
            },
            Place::Push { .. } => unreachable!("not generated"),
        };
        words.get_mut(values[offset] as usize / 4)
    }
}
