//! Parses one instruction of the text form; the mnemonic selects the syntax of its operands.

use smallvec::SmallVec;

use super::parse::Parser;
use super::{
    Address, BoundedIndex, ContextField, Elements, InstData, LANES, LaneAddress, Routine, Row, Segments, Spacing, Type,
    Value, WideOp,
};
use crate::image;
use crate::ir::{AtomicOp, Op, Width};
use crate::ssa::{address_pair, atomic_operands, control, float, number_or_bits, operand, value_pair, values, word};
use crate::text::{Line, ParseError};

type Result<T> = std::result::Result<T, ParseError>;

/// An instruction.
pub(crate) fn instruction(parser: &mut Parser, line: &mut Line<'_>) -> Result<InstData> {
    let unknown = line.error("no such instruction");
    let word = line.word("an instruction", Some)?;
    if let Some(op) = Op::from_name(word) {
        return Ok(InstData::Pure { op, args: values(parser, line, op.params().len())? });
    }
    match word.split_once('.') {
        Some((word, detail)) => detailed(parser, line, word, detail)?.ok_or(unknown),
        None => match simple(parser, line, word)? {
            Some(data) => Ok(data),
            None => match memory(parser, line, word)? {
                Some(data) => Ok(data),
                None => Ok(control(parser, line, word)?.ok_or(unknown)?.into()),
            },
        },
    }
}

/// Instructions with a type or an operation after the mnemonic's dot.
fn detailed(parser: &mut Parser, line: &mut Line<'_>, word: &str, detail: &str) -> Result<Option<InstData>> {
    let ty = Type::from_name(detail);
    Ok(Some(match (word, ty) {
        ("const", Some(ty)) => InstData::Const { ty, bits: bits(line, ty)? },
        ("undef", Some(ty)) => InstData::Undef { ty },
        ("load", Some(ty)) => InstData::Load { ty, address: address(parser, line)? },
        ("frame_load", Some(ty)) => {
            let (frame, at) = frame(parser, line)?;
            InstData::FrameLoad { ty, frame, at }
        }
        ("wide", None) => {
            let Some(op) = WideOp::from_name(detail) else { return Ok(None) };
            InstData::Wide { op, args: values(parser, line, op.params().len())? }
        }
        ("image" | "call" | "check", None) => {
            let Some(routine) = Routine::from_name(word, detail) else { return Ok(None) };
            let area = parser.value(line)?;
            InstData::Call { routine, area, mask: mask(parser, line)? }
        }
        ("atomic" | "atomic64", None) => {
            let Some(op) = AtomicOp::from_name(detail) else { return Ok(None) };
            atomic(parser, line, op, word == "atomic64")?
        }
        ("store", None) => {
            let Some(width) = Width::from_name(detail) else { return Ok(None) };
            store(parser, line, width)?
        }
        ("load_row" | "store_row" | "scatter", None) => {
            let Some(width) = Width::from_name(detail) else { return Ok(None) };
            row_or_scatter(parser, line, word, width)?
        }
        ("load_elements" | "store_elements", None) => {
            let Some(width) = Width::from_name(detail) else { return Ok(None) };
            elements(parser, line, word, width)?
        }
        _ => return Ok(None),
    }))
}

/// Instructions without a dot that neither access memory nor end a block.
fn simple(parser: &mut Parser, line: &mut Line<'_>, word: &str) -> Result<Option<InstData>> {
    Ok(Some(match word {
        "lanes" => lanes(line)?,
        "select" => {
            let (condition, then, otherwise) = (parser.value(line)?, operand(parser, line)?, operand(parser, line)?);
            InstData::Select { condition, then, otherwise }
        }
        "splat" => InstData::Splat { value: parser.value(line)? },
        "extract" => InstData::Extract { vector: parser.value(line)?, lane: operand(parser, line)? },
        "pick" => {
            let [first, second] = value_pair(parser, line)?;
            line.expect(',')?;
            InstData::Pick { first, second, words: words(line)? }
        }
        "permute" => InstData::Permute { vector: parser.value(line)?, lanes: operand(parser, line)? },
        "mask_bits" => InstData::MaskBits { mask: parser.value(line)? },
        "first_lane" => InstData::FirstLane { mask: parser.value(line)? },
        "any" => InstData::Any { mask: parser.value(line)? },
        "context" => InstData::Context { field: line.word("a field of the context", ContextField::from_name)? },
        "buffer_base" => InstData::BufferBase { buffer: parser.value(line)? },
        "buffer_len" => InstData::BufferLen { buffer: parser.value(line)? },
        "buffer_at" => InstData::BufferAt { low: parser.value(line)?, high: operand(parser, line)? },
        "image_field" => {
            let field = line.word("a field of an image", image::Field::from_name)?;
            InstData::ImageField { image: parser.value(line)?, field }
        }
        "fence" => InstData::Fence,
        "poll" => {
            let at = if line.eat_word("at") { line.unsigned()? } else { 0 };
            let lanes = if line.is_done() { None } else { Some([parser.value(line)?, mask(parser, line)?]) };
            InstData::Poll { at, lanes }
        }
        "next_workgroup" => InstData::NextWorkgroup,
        _ => return Ok(None),
    }))
}

/// The operands of a store of one word or byte.
fn store(parser: &mut Parser, line: &mut Line<'_>, width: Width) -> Result<InstData> {
    let (address, value) = (address(parser, line)?, operand(parser, line)?);
    Ok(InstData::Store { width, address, value, mask: mask(parser, line)? })
}

/// Instructions without a dot that take an address.
fn memory(parser: &mut Parser, line: &mut Line<'_>, word: &str) -> Result<Option<InstData>> {
    Ok(Some(match word {
        "store" => store(parser, line, Width::Word)?,
        "load_row" | "store_row" | "scatter" => row_or_scatter(parser, line, word, Width::Word)?,
        "load_elements" | "store_elements" => elements(parser, line, word, Width::Word)?,
        "gather" => {
            let lanes = lane_address(parser, line)?;
            InstData::Gather { lanes, mask: mask(parser, line)? }
        }
        "gather_elements" => {
            let [base, index] = address_pair(parser, line)?;
            line.word("`masks`", |word| (word == "masks").then_some(()))?;
            InstData::GatherElements { base, index, masks: brackets(parser, line)? }
        }
        "frame_store" => {
            let (frame, at) = frame(parser, line)?;
            InstData::FrameStore { frame, at, value: operand(parser, line)? }
        }
        "zero" => {
            let base = parser.value(line)?;
            line.expect(',')?;
            InstData::Zero { base, bytes: line.unsigned()? }
        }
        _ => return Ok(None),
    }))
}

/// Row and scatter accesses to words or sub-words.
fn row_or_scatter(parser: &mut Parser, line: &mut Line<'_>, word: &str, width: Width) -> Result<InstData> {
    Ok(match word {
        "load_row" => InstData::LoadRow { row: row(parser, line, width)? },
        "store_row" => {
            let (row, value) = (row(parser, line, width)?, operand(parser, line)?);
            InstData::StoreRow { row, value, mask: mask(parser, line)? }
        }
        _ => {
            let (lanes, value) = (lane_address(parser, line)?, operand(parser, line)?);
            InstData::Scatter { width, lanes, value, mask: mask(parser, line)? }
        }
    })
}

/// `mask v0`
fn mask(parser: &mut Parser, line: &mut Line<'_>) -> Result<Value> {
    line.word("`mask`", |word| (word == "mask").then_some(()))?;
    parser.value(line)
}

/// `[v0, v1]`, any number of values.
fn brackets(parser: &mut Parser, line: &mut Line<'_>) -> Result<SmallVec<[Value; 4]>> {
    let mut values = SmallVec::new();
    line.expect('[')?;
    while !line.eat(']') {
        values.push(if values.is_empty() { parser.value(line)? } else { operand(parser, line)? });
    }
    Ok(values)
}

/// A constant of a type; words may be written as floats, with a point or an exponent.
fn bits(line: &mut Line<'_>, ty: Type) -> Result<u64> {
    match ty {
        Type::S1 if line.eat_word("false") => Ok(0),
        Type::S1 if line.eat_word("true") => Ok(1),
        _ => number_or_bits(line, |text| match ty {
            Type::V32 if text.contains(['.', 'e']) => float(text),
            Type::V32 | Type::S32 => word(text),
            Type::S64 | Type::Mask => text.parse().ok(),
            Type::S1 => None,
        }),
    }
}

/// `[0, 1, 2, …]`: a word for each lane.
fn lanes(line: &mut Line<'_>) -> Result<InstData> {
    let mut values = Box::new([0; LANES as usize]);
    for (lane, value) in values.iter_mut().enumerate() {
        line.expect(if lane == 0 { '[' } else { ',' })?;
        let error = line.error("expected a constant of 32 bits");
        *value = u32::try_from(bits(line, Type::V32)?).map_err(|_| error)?;
    }
    line.expect(']')?;
    Ok(InstData::Lanes { values })
}

/// `[0, 17, …]`: an index for each lane.
fn words(line: &mut Line<'_>) -> Result<Box<[u8; LANES as usize]>> {
    let mut words = Box::new([0; LANES as usize]);
    for (lane, word) in words.iter_mut().enumerate() {
        line.expect(if lane == 0 { '[' } else { ',' })?;
        let error = line.error("expected a number from 0 to 31");
        let number = u8::try_from(bits(line, Type::V32)?).ok().filter(|&number| u32::from(number) < 2 * LANES);
        *word = number.ok_or(error)?;
    }
    line.expect(']')?;
    Ok(words)
}

/// ` + 8`, optional.
fn disp(line: &mut Line<'_>) -> Result<i32> {
    if line.eat('+') { line.number_as("a signed number of 32 bits", |text| text.parse().ok()) } else { Ok(0) }
}

/// `* 4`
fn scale(line: &mut Line<'_>) -> Result<u8> {
    line.expect('*')?;
    line.number_as("a scale", |text| text.parse().ok())
}

/// `v0 + 8` or `v0 + v1 * 4 + 8 if v1 < v2`
fn address(parser: &mut Parser, line: &mut Line<'_>) -> Result<Address> {
    let base = parser.value(line)?;
    if !line.eat('+') {
        return Ok(Address { base, index: None, scale: 1, disp: 0 });
    }
    if line.peek_word().is_none() {
        let disp = line.number_as("an index or a signed number of 32 bits", |text| text.parse().ok())?;
        return Ok(Address { base, index: None, scale: 1, disp });
    }
    let index = parser.value(line)?;
    let (scale, disp) = (scale(line)?, disp(line)?);
    line.word("`if`", |word| (word == "if").then_some(()))?;
    let other = line.error(format!("expected {index}"));
    if parser.value(line)? != index {
        return Err(other);
    }
    line.expect('<')?;
    Ok(Address { base, index: Some(BoundedIndex { index, limit: parser.value(line)? }), scale, disp })
}

/// `v0 + v1 * 4 + 8`
fn lane_address(parser: &mut Parser, line: &mut Line<'_>) -> Result<LaneAddress> {
    let [base, index] = address_pair(parser, line)?;
    Ok(LaneAddress { base, index, scale: scale(line)?, disp: disp(line)? })
}

/// `v0 + v1 if < v2`
fn row(parser: &mut Parser, line: &mut Line<'_>, width: Width) -> Result<Row> {
    let [base, index] = address_pair(parser, line)?;
    below(line)?;
    Ok(Row { base, index, limit: parser.value(line)?, width })
}

/// `v0 + v1 segments 8 v4 * 16 if < [v2, v3]`, and the stored values of a store.
fn elements(parser: &mut Parser, line: &mut Line<'_>, word: &str, width: Width) -> Result<InstData> {
    let [base, index] = address_pair(parser, line)?;
    let mut segments = None;
    if line.eat_word("segments") {
        let lanes = line.number_as("a number of lanes", |text| text.parse().ok())?;
        segments = Some(Segments { lanes, step: parser.value(line)? });
    }
    let spacing = if line.eat('*') {
        Some(Spacing::Bytes(line.unsigned()?))
    } else if line.eat_word("by") {
        Some(Spacing::Words(line.unsigned()?))
    } else {
        None
    };
    below(line)?;
    let limits: SmallVec<[Value; 4]> = brackets(parser, line)?;
    let spacing = spacing.unwrap_or(Spacing::Bytes(limits.len() as u32 * width.bytes()));
    let elements = Box::new(Elements { base, index, segments, spacing, limits, width });
    if word == "load_elements" {
        return Ok(InstData::LoadElements { elements });
    }
    line.expect(',')?;
    let values = brackets(parser, line)?;
    Ok(InstData::StoreElements { elements, values, mask: mask(parser, line)? })
}

/// `if <`
fn below(line: &mut Line<'_>) -> Result<()> {
    line.word("`if`", |word| (word == "if").then_some(()))?;
    line.expect('<')
}

/// `v0 + 64`
fn frame(parser: &mut Parser, line: &mut Line<'_>) -> Result<(Value, u32)> {
    let frame = parser.value(line)?;
    line.expect('+')?;
    Ok((frame, line.unsigned()?))
}

fn atomic(parser: &mut Parser, line: &mut Line<'_>, op: AtomicOp, is_wide: bool) -> Result<InstData> {
    let lanes = lane_address(parser, line)?;
    let (value, comparator, wide) = atomic_operands(parser, line, is_wide)?;
    let (lock, sequential) = (line.eat_word("lock"), line.eat_word("sequential"));
    Ok(InstData::Atomic { op, lanes, value, comparator, wide, lock, sequential, mask: mask(parser, line)? })
}
