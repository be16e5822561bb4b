//! Rules for single instructions: operand types and parameters.

use super::{
    Address, BoundedIndex, ContextField, Elements, InstData, Kernel, LANES, LaneAddress, Row, Type, Value, WideOp,
};
use crate::ir::op::{is_basic, works_on_doubles, works_on_exponents, works_on_subwords};
use crate::ir::{self, AtomicOp, Op, Width};
use crate::ssa;

type Operands = ssa::Operands<Kernel>;

type Result<T = ()> = std::result::Result<T, String>;

/// The required types of an instruction's operands, or the rule that the instruction violates on its own. All operands
/// are in the kernel.
pub(crate) fn operand_types(kernel: &Kernel, data: &InstData) -> Result<Operands> {
    let mut operands = Operands::new();
    match *data {
        InstData::Const { ty, bits } => check_const(ty, bits)?,
        InstData::Pure { op, ref args } => pure_types(kernel, op, args, &mut operands)?,
        InstData::Select { condition, then, otherwise } => {
            let ty = kernel.ty(then);
            if kernel.ty(condition) == Type::Mask {
                vector(ty)?;
            } else {
                operands.push((condition, Type::S1));
            }
            operands.push((otherwise, ty));
        }
        InstData::Wide { op, ref args } => wide_types(kernel, op, args, &mut operands)?,
        InstData::Splat { value } => match kernel.ty(value) {
            Type::S1 | Type::S32 => {}
            ty => return Err(format!("there is no splat of {ty}")),
        },
        InstData::Extract { vector, lane } => {
            if let Some(lane) = kernel.constant(lane).filter(|&lane| lane >= u64::from(LANES)) {
                return Err(format!("there is no lane {lane}"));
            }
            operands.extend([(vector, Type::V32), (lane, Type::S32)]);
        }
        InstData::Pick { first, second, ref words } => {
            if let Some(word) = words.iter().find(|&&word| u32::from(word) >= 2 * LANES) {
                return Err(format!("there is no word {word} of two vectors"));
            }
            operands.extend([(first, Type::V32), (second, Type::V32)]);
        }
        InstData::Permute { vector, lanes } => operands.extend([(vector, Type::V32), (lanes, Type::V32)]),
        InstData::FirstLane { mask } | InstData::MaskBits { mask } | InstData::Any { mask } => {
            operands.push((mask, Type::Mask));
        }
        InstData::Context { field } => check_field(field)?,
        InstData::BufferBase { buffer }
        | InstData::BufferLen { buffer }
        | InstData::ImageField { image: buffer, .. } => {
            // `u32::MAX` deliberately names no descriptor: an index out of the array's bounds.
            let named = kernel.constant(buffer).filter(|&number| number != u64::from(u32::MAX));
            if let Some(number) = named.filter(|&number| number >= u64::from(kernel.descriptors)) {
                return Err(format!("there is no descriptor {number}"));
            }
            operands.push((buffer, Type::S32));
        }
        InstData::BufferAt { low, high } => operands.extend([(low, Type::S32), (high, Type::S32)]),
        InstData::Poll { lanes, .. } => {
            operands.extend(lanes.into_iter().flat_map(|[number, mask]| [(number, Type::S32), (mask, Type::Mask)]));
        }
        InstData::Branch { condition, .. } => operands.push((condition, Type::S1)),
        InstData::Switch { selector, .. } => operands.push((selector, Type::S32)),
        InstData::Lanes { .. }
        | InstData::Undef { .. }
        | InstData::Fence
        | InstData::NextWorkgroup
        | InstData::Jump { .. }
        | InstData::Return => {}
        InstData::Load { ty, address } => {
            word(ty)?;
            address_types(kernel, address, &mut operands)?;
        }
        InstData::Store { width, address, value, mask } => {
            word(kernel.ty(value))?;
            if width == Width::Half {
                return Err("a store is of a word or a byte".into());
            }
            address_types(kernel, address, &mut operands)?;
            operands.push((mask, Type::Mask));
        }
        InstData::LoadRow { row } => row_types(row, &mut operands),
        InstData::StoreRow { row, value, mask } => {
            row_types(row, &mut operands);
            operands.extend([(value, Type::V32), (mask, Type::Mask)]);
        }
        InstData::LoadElements { ref elements } => element_types(elements, &mut operands, true)?,
        InstData::StoreElements { ref elements, ref values, mask } => {
            element_types(elements, &mut operands, false)?;
            if values.len() != elements.limits.len() {
                return Err(format!("{} words have {} limits", values.len(), elements.limits.len()));
            }
            operands.extend(values.iter().map(|&value| (value, Type::V32)));
            operands.push((mask, Type::Mask));
        }
        InstData::Gather { lanes, mask } => {
            lane_types(lanes, &mut operands)?;
            operands.push((mask, Type::Mask));
        }
        InstData::GatherElements { base, index, ref masks } => {
            if !matches!(masks.len(), 2 | 4) {
                return Err(format!("elements are gathered by 2 or 4 words, not {}", masks.len()));
            }
            operands.extend([(base, Type::S64), (index, Type::V32)]);
            operands.extend(masks.iter().map(|&mask| (mask, Type::Mask)));
        }
        InstData::Scatter { lanes, value, mask, .. } => {
            lane_types(lanes, &mut operands)?;
            operands.extend([(value, Type::V32), (mask, Type::Mask)]);
        }
        InstData::Atomic { op, lanes, value, comparator, wide, mask, .. } => {
            let expected = (!op.is_load(), op == AtomicOp::CompareExchange);
            if (value.is_some(), comparator.is_some()) != expected {
                return Err(format!("atomic.{} has the wrong number of operands", op.name()));
            }
            if wide.is_some_and(|highs| highs.map(|high| high.is_some()) != [value.is_some(), comparator.is_some()]) {
                return Err(format!("atomic64.{} has the wrong number of operands", op.name()));
            }
            if wide.is_some() && (op.is_half() || op == AtomicOp::FAddHalf) {
                return Err(format!("there is no atomic64.{}", op.name()));
            }
            lane_types(lanes, &mut operands)?;
            let highs = wide.into_iter().flatten().flatten();
            operands.extend(value.into_iter().chain(comparator).chain(highs).map(|operand| (operand, Type::V32)));
            operands.push((mask, Type::Mask));
        }
        InstData::FrameLoad { ty, frame, at } => frame_types(kernel, ty, frame, at, &mut operands)?,
        InstData::FrameStore { frame, at, value } => frame_types(kernel, kernel.ty(value), frame, at, &mut operands)?,
        InstData::Call { ref routine, area, mask } => {
            routine.check()?;
            let bytes = routine.bytes();
            if bytes > kernel.call_bytes {
                return Err(format!("rows of {bytes} bytes do not fit {}", kernel.call_bytes));
            }
            if !is_calls(kernel, area) {
                return Err(format!("{area} is not where the rows are"));
            }
            operands.extend([(area, Type::S64), (mask, Type::Mask)]);
        }
        InstData::Zero { base, bytes } => {
            if bytes % 4 != 0 {
                return Err(format!("{bytes} bytes are not a whole number of words"));
            }
            operands.push((base, Type::S64));
        }
    }
    Ok(operands)
}

/// Whether an address is that of the call area.
pub(crate) fn is_calls(kernel: &Kernel, address: Value) -> bool {
    matches!(kernel.definition(address), Some(InstData::Context { field: ContextField::Calls }))
}

fn check_const(ty: Type, bits: u64) -> Result {
    let limit = match ty {
        Type::S1 => 1,
        Type::S32 | Type::V32 => u64::from(u32::MAX),
        Type::S64 => u64::MAX,
        Type::Mask => (1 << LANES) - 1,
    };
    if bits > limit { Err(format!("{bits:#x} is not a valid {ty}")) } else { Ok(()) }
}

fn check_field(field: ContextField) -> Result {
    match field {
        ContextField::NumWorkgroups(component) | ContextField::WorkgroupId(component) if component > 2 => {
            Err(format!("there is no {field}"))
        }
        _ => Ok(()),
    }
}

fn vector(ty: Type) -> Result {
    if ty.is_vector() { Ok(()) } else { Err(format!("{ty} is not a vector")) }
}

/// Checks that a type can be in memory: a 32-bit word.
fn word(ty: Type) -> Result {
    if matches!(ty, Type::S32 | Type::V32) { Ok(()) } else { Err(format!("memory holds no {ty}")) }
}

fn pure_types(kernel: &Kernel, op: Op, args: &[Value], operands: &mut Operands) -> Result {
    let params = op.params();
    if args.len() != params.len() {
        return Err(format!("{} takes {} operands, not {}", op.name(), params.len(), args.len()));
    }
    if !is_basic(op) && !works_on_exponents(op) {
        return Err(format!("lowering leaves no {}", op.name()));
    }
    let vector = args.iter().any(|&arg| kernel.ty(arg).is_vector());
    let float = op.result() == ir::Type::F32 || params.contains(&ir::Type::F32);
    if !vector && (float || works_on_doubles(op) || works_on_subwords(op)) {
        return Err(format!("{} is on vectors only", op.name()));
    }
    for (&arg, param) in args.iter().zip(params) {
        let ty = match (param, vector) {
            (ir::Type::Bool, false) => Type::S1,
            (ir::Type::Bool, true) => Type::Mask,
            (_, false) => Type::S32,
            (_, true) => Type::V32,
        };
        operands.push((arg, ty));
    }
    Ok(())
}

fn wide_types(kernel: &Kernel, op: WideOp, args: &[Value], operands: &mut Operands) -> Result {
    let params = op.params();
    if args.len() != params.len() {
        return Err(format!("wide.{} takes {} operands, not {}", op.name(), params.len(), args.len()));
    }
    if op == WideOp::Shr && kernel.constant(args[1]).is_none_or(|shift| shift >= 64) {
        return Err(format!("{} is not a constant below 64", args[1]));
    }
    operands.extend(args.iter().copied().zip(params.iter().copied()));
    Ok(())
}

fn check_scale(scale: u8) -> Result {
    if matches!(scale, 1 | 2 | 4 | 8) { Ok(()) } else { Err(format!("there is no scale {scale}")) }
}

fn address_types(kernel: &Kernel, address: Address, operands: &mut Operands) -> Result {
    check_scale(address.scale)?;
    operands.push((address.base, Type::S64));
    match address.index {
        None if address.scale != 1 => Err(format!("scale {} without an index", address.scale)),
        None => Ok(()),
        Some(BoundedIndex { index, limit }) => {
            let ty = kernel.ty(index);
            if !matches!(ty, Type::S32 | Type::S64) {
                return Err(format!("{index} is {ty}, not s32 or s64"));
            }
            operands.push((limit, ty));
            Ok(())
        }
    }
}

fn row_types(row: Row, operands: &mut Operands) {
    operands.extend([(row.base, Type::S64), (row.index, Type::S32), (row.limit, Type::S32)]);
}

/// Stride of strided accesses in bytes, at most.
const MAX_STRIDE: u32 = 1 << 16;

fn element_types(elements: &Elements, operands: &mut Operands, load: bool) -> Result {
    let &Elements { base, index, segments, ref limits, width, .. } = elements;
    let (count, stride) = (limits.len(), elements.stride());
    let min = if elements.are_dense() && segments.is_none() { 2 } else { 1 };
    if !(min..=4).contains(&count) {
        return Err(format!("elements have {min} to 4 words, not {count}"));
    }
    let bytes = width.bytes();
    if stride < count as u32 * bytes || stride > MAX_STRIDE || !stride.is_multiple_of(bytes) {
        return Err(format!("elements of {count} words are not {stride} bytes apart"));
    }
    match width {
        Width::Word if load && !elements.are_dense() && count != 4 => {
            return Err("words are loaded with all words of their elements, or four".into());
        }
        Width::Word => {}
        _ if stride > 8 => return Err(format!("elements of sub-words are not {stride} bytes apart")),
        _ if segments.is_some() => return Err("sub-words have no segments".into()),
        _ => {}
    }
    if segments.is_some_and(|segments| !matches!(segments.lanes, 4 | 8)) {
        return Err("segments have 4 or 8 lanes".into());
    }
    operands.extend([(base, Type::S64), (index, Type::S32)]);
    operands.extend(segments.map(|segments| (segments.step, Type::S32)));
    operands.extend(limits.iter().map(|&limit| (limit, Type::S32)));
    Ok(())
}

fn lane_types(lanes: LaneAddress, operands: &mut Operands) -> Result {
    check_scale(lanes.scale)?;
    operands.extend([(lanes.base, Type::S64), (lanes.index, Type::V32)]);
    Ok(())
}

fn frame_types(kernel: &Kernel, ty: Type, frame: Value, at: u32, operands: &mut Operands) -> Result {
    let bytes = if ty == Type::V32 { 4 * u64::from(LANES) } else { 8 };
    let (place, max) =
        if is_calls(kernel, frame) { ("rows", kernel.call_bytes) } else { ("a frame", kernel.frame_bytes) };
    if u64::from(at) + bytes > u64::from(max) {
        return Err(format!("a {ty} at {at} does not fit {place} of {max} bytes"));
    }
    operands.push((frame, Type::S64));
    Ok(())
}
