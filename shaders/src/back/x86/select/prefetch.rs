//! Software prefetch: chooses a prefetch distance for row loads with an access pattern that the hardware prefetcher
//! does not follow.
//!
//! - In a loop with long strides: the words that the following subgroups will load.
//! - With a constant distance between workgroups: the words of the next workgroup, which mostly runs next.

use cranelift_entity::{EntitySet, SecondaryMap};
use smallvec::SmallVec;

use super::incoming::{IncomingArguments, incoming_arguments};
use crate::ir::Op;
use crate::simd::{Block, ContextField, InstData, Kernel, LANES, Row, Value, WideOp};

/// Prefetch distance in bytes in a loop: the words of the next subgroup but one.
const NEXT_SUBGROUPS: i32 = 128;

/// Loop stride in words that the hardware prefetcher still follows, at most.
const MAX_HARDWARE_STRIDE: u32 = 2 * LANES;

/// Distances in words between workgroups that are worth a prefetch: at least one row, and at most what caches keep
/// until the next workgroup.
const WORKGROUP_DISTANCES: std::ops::RangeInclusive<i32> = LANES as i32..=16 * 1024;

/// Terms of an index that are looked at for the pitch of an image, at most.
const MAX_TERMS: u32 = 8;

/// Strides of values over loop iterations and workgroups, from which prefetch distances follow.
#[derive(Debug, Default)]
pub(super) struct PrefetchStrides {
    /// Loop counters with long strides.
    long_strides: EntitySet<Value>,
    /// The indices of the subgroup loops.
    subgroups: EntitySet<Value>,
    /// Increase of a value from one workgroup (or group of merged workgroups) to the next in x, if known: 0 for values
    /// that do not depend on it, unknown for values that a loop changes, as their rows would be prefetched repeatedly.
    workgroup_strides: SecondaryMap<Value, Option<i32>>,
    /// Images, by address and pitch, of which the current block prefetches a row already: a stencil's other rows are
    /// prefetched by other subgroups.
    images: SmallVec<[(Value, Value); 4]>,
    /// The current block.
    block: Option<Block>,
}

impl PrefetchStrides {
    pub(super) fn new(kernel: &Kernel) -> Self {
        let mut strides = Self::default();
        let incoming = incoming_arguments(kernel);
        strides.subgroups.extend(kernel.subgroup_loops.iter().map(|subgroup_loop| subgroup_loop.index));
        for &block in &kernel.layout {
            let data = &kernel.blocks[block];
            for (&param, arguments) in data.params.iter().zip(&incoming[block]) {
                if is_counter_with_long_stride(kernel, param, arguments) {
                    strides.long_strides.insert(param);
                }
                strides.workgroup_strides[param] = strides.subgroups.contains(param).then_some(0);
            }
            for &inst in &data.insts {
                if let [result] = *kernel.results[inst].as_slice() {
                    strides.workgroup_strides[result] = strides.workgroup_stride_of(kernel, &kernel.insts[inst]);
                }
            }
        }
        strides
    }

    /// The prefetch distance in bytes for a load of the row in that block, if any.
    pub(super) fn distance(&mut self, kernel: &Kernel, block: Block, row: &Row) -> Option<i32> {
        if !in_buffer(kernel, row.base) {
            return None;
        }
        if self.has_long_stride(kernel, row.index) {
            return Some(NEXT_SUBGROUPS);
        }
        let words = self.workgroup_strides[row.index].filter(|words| WORKGROUP_DISTANCES.contains(words))?;
        if let Some(pitch) = self.pitch(kernel, row.index, MAX_TERMS) {
            if self.block.replace(block) != Some(block) {
                self.images.clear();
            }
            if self.images.contains(&(row.base, pitch)) {
                return None;
            }
            self.images.push((row.base, pitch));
        }
        Some(words * row.width.bytes() as i32)
    }

    /// The row pitch of the image that an index belongs to: `y * pitch + x`, or that plus a row or a few words, as a
    /// sum of this many terms at most.
    fn pitch(&self, kernel: &Kernel, index: Value, terms: u32) -> Option<Value> {
        let others = terms.checked_sub(1)?;
        let Some(InstData::Pure { op: Op::IAdd | Op::ISub, args }) = kernel.definition(index) else { return None };
        let moves = |value: Value| self.workgroup_strides[value] != Some(0);
        let (x, rest) = if moves(args[0]) { (args[0], args[1]) } else { (args[1], args[0]) };
        if let Some(words) = kernel.constant(rest) {
            let is_neighbour = (words as u32).cast_signed().unsigned_abs() <= LANES;
            return is_neighbour.then(|| self.pitch(kernel, x, others))?;
        }
        let is_offset = |&pitch: &Value| is_or_negates(kernel, rest, pitch) || self.is_subgroup(kernel, rest);
        factor(kernel, rest).or_else(|| self.pitch(kernel, x, others).filter(is_offset))
    }

    /// Whether a value is a subgroup's index, possibly scaled.
    fn is_subgroup(&self, kernel: &Kernel, value: Value) -> bool {
        let index = match kernel.definition(value) {
            Some(InstData::Pure { op: Op::IMul | Op::Shl, args }) if kernel.constant(args[1]).is_some() => args[0],
            _ => value,
        };
        self.subgroups.contains(index)
    }

    /// Whether a row's index has a long stride in a loop.
    fn has_long_stride(&self, kernel: &Kernel, index: Value) -> bool {
        self.long_strides.contains(index)
            || matches!(kernel.definition(index), Some(InstData::Pure { op: Op::IAdd, args })
                if args.iter().any(|&arg| self.long_strides.contains(arg)))
    }

    /// The increase of a result, given that of its operands.
    fn workgroup_stride_of(&self, kernel: &Kernel, data: &InstData) -> Option<i32> {
        let of = |value| self.workgroup_strides[value];
        let constant = |value| kernel.constant(value).map(|bits| bits as i32);
        match data {
            InstData::Context { field: ContextField::WorkgroupId(0) } => i32::try_from(kernel.merged_workgroups).ok(),
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

/// The loaded or constant factor of a product, also of a product that is shifted once.
fn factor(kernel: &Kernel, product: Value) -> Option<Value> {
    let product = match kernel.definition(product) {
        Some(InstData::Pure { op: Op::LShr | Op::Shl, args }) if kernel.constant(args[1]).is_some() => args[0],
        _ => product,
    };
    let given = |value: Value| {
        let data = kernel.definition(value);
        matches!(data, Some(InstData::Load { .. } | InstData::ImageField { .. } | InstData::Const { .. }))
    };
    match kernel.definition(product) {
        Some(InstData::Pure { op: Op::IMul, args }) => args.iter().copied().find(|&arg| given(arg)),
        _ => None,
    }
}

fn is_or_negates(kernel: &Kernel, value: Value, of: Value) -> bool {
    let negated = matches!(kernel.definition(value), Some(InstData::Pure { op: Op::INeg, args }) if args[0] == of);
    value == of || negated
}

/// Whether an address is in a buffer, and not in workgroup or private memory.
fn in_buffer(kernel: &Kernel, base: Value) -> bool {
    let is_base = |value| matches!(kernel.definition(value), Some(InstData::BufferBase { .. }));
    match kernel.definition(base) {
        Some(InstData::Wide { op: WideOp::Add, args }) => kernel.constant(args[1]).is_some() && is_base(args[0]),
        _ => is_base(base),
    }
}

/// Whether the parameter is a counter with a long stride.
fn is_counter_with_long_stride(kernel: &Kernel, param: Value, arguments: &IncomingArguments) -> bool {
    arguments.iter().any(|&(value, _)| match kernel.definition(value) {
        Some(InstData::Pure { op: Op::IAdd, args }) if args.contains(&param) => {
            let step = if args[0] == param { args[1] } else { args[0] };
            kernel.constant(step).is_none_or(|step| (step as u32).cast_signed().unsigned_abs() > MAX_HARDWARE_STRIDE)
        }
        _ => false,
    })
}
