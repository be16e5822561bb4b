//! Unsigned upper bounds of 32-bit scalars and of the lanes of vectors, from constants, operations and subgroup-loop
//! counters: accesses that are provably in bounds need no check, and shifts by small amounts no mask.
//!
//! The transfer functions are those of the value-range analysis of the scalar IR, whose operations have the same
//! meaning here.

use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

use crate::analysis::{Range, Ranges};
use crate::ir::Op;
use crate::simd::{Block, InstData, Kernel, Type, Value};

/// The range of each value: of a vector, in any of its lanes.
#[derive(Debug)]
pub(super) struct UpperBounds(SecondaryMap<Value, Range>);

/// Arguments of a block parameter, each with the branch condition if it is the first target of a branch.
pub(super) type Passed = SmallVec<[(Value, Option<Value>); 2]>;

impl UpperBounds {
    pub(super) fn new(kernel: &Kernel) -> Self {
        let mut bounds = Self(SecondaryMap::with_default(Range::ANY));
        let passed = passed(kernel);
        for &block in &kernel.layout {
            for (position, &param) in kernel.blocks[block].params.iter().enumerate() {
                if is_word(kernel, param) {
                    let all = passed[block].get(position).into_iter().flatten();
                    let ranges = all.map(|&passed| bounds.of_passed(kernel, passed));
                    bounds.0[param] = ranges.reduce(Range::join).unwrap_or(Range::ANY);
                }
            }
            for &inst in &kernel.blocks[block].insts {
                if let [result] = *kernel.results[inst].as_slice()
                    && is_word(kernel, result)
                {
                    bounds.0[result] = bounds.of_inst(&kernel.insts[inst]);
                }
            }
        }
        bounds
    }

    /// The upper bound of an `s32`, or of the words of a `v32`.
    pub(super) fn of(&self, value: Value) -> u32 {
        self.0[value].high
    }

    /// The range of a back edge's argument is not known yet, unless the loop condition `argument < limit` gives it.
    fn of_passed(&self, kernel: &Kernel, (value, condition): (Value, Option<Value>)) -> Range {
        let range = self.0[value];
        match condition.and_then(|condition| kernel.definition(condition)) {
            Some(InstData::Pure { op: Op::ULt, args }) if args[0] == value => {
                let max = kernel.constant(args[1]).and_then(|limit| (limit as u32).checked_sub(1));
                max.map_or(range, |max| range.meet(Range::up_to(max)))
            }
            _ => range,
        }
    }

    fn of_inst(&self, data: &InstData) -> Range {
        match data {
            InstData::Const { bits, .. } => Range::exact(*bits as u32),
            InstData::Splat { value } => self.0[*value],
            InstData::Select { then, otherwise, .. } => self.0[*then].join(self.0[*otherwise]),
            InstData::Pure { op, args } => {
                let args: SmallVec<[Range; 4]> = args.iter().map(|&arg| self.0[arg]).collect();
                Ranges::evaluate(*op, &args)
            }
            _ => Range::ANY,
        }
    }
}

fn is_word(kernel: &Kernel, value: Value) -> bool {
    matches!(kernel.ty(value), Type::S32 | Type::V32)
}

/// For each block with parameters, the incoming arguments of each.
pub(super) fn passed(kernel: &Kernel) -> SecondaryMap<Block, Vec<Passed>> {
    let mut passed: SecondaryMap<Block, Vec<Passed>> = SecondaryMap::new();
    for &block in &kernel.layout {
        let Some(&last) = kernel.blocks[block].insts.last() else { continue };
        let data = &kernel.insts[last];
        for (number, call) in data.targets().iter().enumerate() {
            if call.args.is_empty() {
                continue;
            }
            let condition = match data {
                InstData::Branch { condition, .. } if number == 0 => Some(*condition),
                _ => None,
            };
            let all = &mut passed[call.block];
            all.resize(all.len().max(call.args.len()), Passed::new());
            for (position, &arg) in call.args.iter().enumerate() {
                all[position].push((arg, condition));
            }
        }
    }
    passed
}
