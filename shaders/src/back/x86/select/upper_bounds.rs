//! Unsigned upper bounds of 32-bit scalars, from constants and from subgroup-loop counters: accesses that are provably
//! in bounds need no check.

use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

use crate::ir::Op;
use crate::simd::{Block, InstData, Kernel, Type, Value};

/// The upper bound of each value.
#[derive(Debug)]
pub(super) struct UpperBounds(SecondaryMap<Value, u32>);

/// Arguments of a block parameter, each with the branch condition if it is the first target of a branch.
pub(super) type Passed = SmallVec<[(Value, Option<Value>); 2]>;

impl UpperBounds {
    pub(super) fn new(kernel: &Kernel) -> Self {
        let mut bounds = Self(SecondaryMap::with_default(u32::MAX));
        let passed = passed(kernel);
        for &block in &kernel.layout {
            for (position, &param) in kernel.blocks[block].params.iter().enumerate() {
                if kernel.ty(param) == Type::S32 {
                    let all = passed[block].get(position).into_iter().flatten();
                    bounds.0[param] = all.map(|&passed| bounds.of_passed(kernel, passed)).max().unwrap_or(u32::MAX);
                }
            }
            for &inst in &kernel.blocks[block].insts {
                if let [result] = *kernel.results[inst].as_slice()
                    && kernel.ty(result) == Type::S32
                    && let Some(found) = bounds.of_inst(&kernel.insts[inst])
                {
                    bounds.0[result] = found;
                }
            }
        }
        bounds
    }

    /// The upper bound of an `s32`.
    pub(super) fn of(&self, value: Value) -> u32 {
        self.0[value]
    }

    /// The bound of a back edge's argument is not known yet, unless the loop condition `argument < limit` gives it.
    fn of_passed(&self, kernel: &Kernel, (value, condition): (Value, Option<Value>)) -> u32 {
        let limit = match condition.and_then(|condition| kernel.definition(condition)) {
            Some(InstData::Pure { op: Op::ULt, args }) if args[0] == value => {
                kernel.constant(args[1]).and_then(|limit| (limit as u32).checked_sub(1))
            }
            _ => None,
        };
        limit.unwrap_or(u32::MAX).min(self.of(value))
    }

    fn of_inst(&self, data: &InstData) -> Option<u32> {
        match data {
            &InstData::Const { ty: Type::S32, bits } => Some(bits as u32),
            InstData::Pure { op, args } => {
                let all: SmallVec<[u32; 4]> = args.iter().map(|&arg| self.of(arg)).collect();
                match (op, &all[..]) {
                    (Op::IAdd, &[a, b]) => a.checked_add(b),
                    (Op::IMul, &[a, b]) => a.checked_mul(b),
                    (Op::And | Op::UMin, &[a, b]) => Some(a.min(b)),
                    _ => None,
                }
            }
            _ => None,
        }
    }
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
