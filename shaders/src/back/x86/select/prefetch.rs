//! Which rows the processor does not see coming: their neighbours in time lie far away. Loads of such rows fetch words that
//! are needed soon with their own.
//!
//! - In a loop with long strides: what a subgroup skips is what its neighbours read in their turns.
//! - At a fixed distance from workgroup to workgroup: what the next workgroup reads, which mostly runs next.

use cranelift_entity::{EntitySet, SecondaryMap};
use smallvec::SmallVec;

use super::upper_bounds::{Passed, passed};
use crate::ir::Op;
use crate::simd::{Block, Field, InstData, Kernel, LANES, Row, Value, WideOp};

/// Bytes from a row of a loop to the words that are fetched with it: those of the next subgroup but one.
const NEXT_SUBGROUPS: i32 = 128;

/// Words from trip to trip up to which the processor sees the pattern itself.
const NEAR: u32 = 2 * LANES;

/// Words from workgroup to workgroup that are worth fetching: a row further on, and not more than caches keep until then.
const APART: std::ops::RangeInclusive<i32> = LANES as i32..=16 * 1024;

/// How values go on.
#[derive(Debug, Default)]
pub(super) struct Strides {
    /// Counters of loops that go on in long strides.
    far: EntitySet<Value>,
    /// By how much values grow from a workgroup (or those that run abreast) to the next in x, where that is known. What is the
    /// same for all counts as 0, and what a loop changes as unknown: its rows would be fetched again and again.
    growth: SecondaryMap<Value, Option<i32>>,
    /// Pictures of which the block that is written now fetches a row, by address and pitch: a stencil's other rows are those that
    /// other subgroups fetch.
    pictures: SmallVec<[(Value, Value); 4]>,
    /// That block.
    block: Option<Block>,
}

impl Strides {
    pub(super) fn new(kernel: &Kernel) -> Self {
        let mut strides = Self::default();
        let passed = passed(kernel);
        let mut indices: EntitySet<Value> = EntitySet::new();
        indices.extend(kernel.subgroup_loops.iter().map(|subgroup_loop| subgroup_loop.index));
        for &block in &kernel.layout {
            let data = &kernel.blocks[block];
            for (&param, passed) in data.params.iter().zip(&passed[block]) {
                if goes_far(kernel, param, passed) {
                    strides.far.insert(param);
                }
                strides.growth[param] = indices.contains(param).then_some(0);
            }
            for &inst in &data.insts {
                if let [result] = *kernel.results[inst].as_slice() {
                    strides.growth[result] = strides.growth_of(kernel, &kernel.insts[inst]);
                }
            }
        }
        strides
    }

    /// Bytes from the row to the words that a load of it in that block fetches, if any.
    pub(super) fn fetched(&mut self, kernel: &Kernel, block: Block, row: &Row) -> Option<i32> {
        if !in_buffer(kernel, row.base) {
            return None;
        }
        if self.is_far(kernel, row.index) {
            return Some(NEXT_SUBGROUPS);
        }
        let words = self.growth[row.index].filter(|words| APART.contains(words))?;
        if let Some(pitch) = self.pitch(kernel, row.index) {
            if self.block.replace(block) != Some(block) {
                self.pictures.clear();
            }
            if self.pictures.contains(&(row.base, pitch)) {
                return None;
            }
            self.pictures.push((row.base, pitch));
        }
        Some(words * row.width.bytes() as i32)
    }

    /// The pitch of the picture that an index is of: `y * pitch + x`, and what is a row or few words away.
    fn pitch(&self, kernel: &Kernel, index: Value) -> Option<Value> {
        let Some(InstData::Pure { op: Op::IAdd | Op::ISub, args }) = kernel.definition(index) else { return None };
        let moves = |value: Value| self.growth[value] != Some(0);
        let (x, rest) = if moves(args[0]) { (args[0], args[1]) } else { (args[1], args[0]) };
        if let Some(words) = kernel.constant(rest) {
            let near = (words as u32).cast_signed().unsigned_abs() <= LANES;
            return near.then(|| self.pitch(kernel, x))?;
        }
        let goes_on = |&pitch: &Value| is_or_negates(kernel, rest, pitch) || is_counted(kernel, rest);
        factor(kernel, rest).or_else(|| self.pitch(kernel, x).filter(goes_on))
    }

    /// Whether the row's neighbour of the next trip is far away.
    fn is_far(&self, kernel: &Kernel, index: Value) -> bool {
        self.far.contains(index)
            || matches!(kernel.definition(index), Some(InstData::Pure { op: Op::IAdd, args })
                if args.iter().any(|&arg| self.far.contains(arg)))
    }

    /// Of a value whose operands are known.
    fn growth_of(&self, kernel: &Kernel, data: &InstData) -> Option<i32> {
        let of = |value| self.growth[value];
        let constant = |value| kernel.constant(value).map(|bits| bits as i32);
        match data {
            InstData::Context { field: Field::WorkgroupId(0) } => i32::try_from(kernel.merged_workgroups).ok(),
            InstData::Pure { op, args } => match (op, args.as_slice()) {
                (Op::IAdd, &[a, b]) => of(a)?.checked_add(of(b)?),
                (Op::ISub, &[a, b]) => of(a)?.checked_sub(of(b)?),
                (Op::IMul, &[a, b]) => match (of(a)?, of(b)?) {
                    (0, 0) => Some(0),
                    (a, 0) => a.checked_mul(constant(b)?),
                    (0, b) => b.checked_mul(constant(a)?),
                    _ => None,
                },
                (Op::Shl, &[a, by]) => match of(a)? {
                    0 => Some(0),
                    a => a.checked_mul(1_i32.checked_shl(constant(by)?.cast_unsigned())?),
                },
                (_, args) => args.iter().all(|&arg| of(arg) == Some(0)).then_some(0),
            },
            _ => Some(0),
        }
    }
}

/// What of a product is not computed, if it is one, perhaps in other units.
fn factor(kernel: &Kernel, product: Value) -> Option<Value> {
    let given = |value: Value| {
        let data = kernel.definition(value);
        matches!(data, Some(InstData::Load { .. } | InstData::ImageField { .. } | InstData::Const { .. }))
    };
    match kernel.definition(product) {
        Some(InstData::Pure { op: Op::LShr | Op::Shl, args }) if kernel.constant(args[1]).is_some() => {
            factor(kernel, args[0])
        }
        Some(InstData::Pure { op: Op::IMul, args }) => args.iter().copied().find(|&arg| given(arg)),
        _ => None,
    }
}

/// Whether a value is the subgroup's number, perhaps in other units.
fn is_counted(kernel: &Kernel, value: Value) -> bool {
    match kernel.definition(value) {
        None => true,
        Some(InstData::Pure { op: Op::IMul | Op::Shl, args }) => {
            kernel.definition(args[0]).is_none() && kernel.constant(args[1]).is_some()
        }
        _ => false,
    }
}

fn is_or_negates(kernel: &Kernel, value: Value, of: Value) -> bool {
    let negated = matches!(kernel.definition(value), Some(InstData::Pure { op: Op::INeg, args }) if args[0] == of);
    value == of || negated
}

/// Whether an address is that of a buffer's word, not of what a workgroup or an invocation has for itself.
fn in_buffer(kernel: &Kernel, base: Value) -> bool {
    let is_base = |value| matches!(kernel.definition(value), Some(InstData::BufferBase { .. }));
    match kernel.definition(base) {
        Some(InstData::Wide { op: WideOp::Add, args }) => kernel.constant(args[1]).is_some() && is_base(args[0]),
        _ => is_base(base),
    }
}

/// Whether the parameter is a counter that goes on by many words.
fn goes_far(kernel: &Kernel, param: Value, passed: &Passed) -> bool {
    passed.iter().any(|&(value, _)| match kernel.definition(value) {
        Some(InstData::Pure { op: Op::IAdd, args }) if args.contains(&param) => {
            let step = if args[0] == param { args[1] } else { args[0] };
            kernel.constant(step).is_none_or(|step| (step as u32).cast_signed().unsigned_abs() > NEAR)
        }
        _ => false,
    })
}
