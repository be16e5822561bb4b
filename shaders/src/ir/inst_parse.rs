//! Parses one instruction of the text form; the mnemonic selects the syntax of its operands.

use smallvec::SmallVec;

use super::names::SEMANTICS;
use super::parse::{Parser, declared_binding, declared_site, declared_variable};
use super::{Access, AtomicOp, BufferSpace, BuiltIn, InstData, Op, Place, Scope, Semantics, SubgroupOp, Type, Width};
use crate::image::{Field, ImageOp};
use crate::ssa::{address_pair, atomic_operands, control, float, number_or_bits, operand, value_pair, values, word};
use crate::text::{Line, ParseError};

type Result<T> = std::result::Result<T, ParseError>;

/// An instruction with the type of its result.
pub(super) fn instruction(parser: &mut Parser, line: &mut Line<'_>) -> Result<(InstData, Option<Type>)> {
    let unknown = line.error("no such instruction");
    let word = line.word("an instruction", Some)?;
    if let Some(op) = Op::from_name(word) {
        let args = values(parser, line, op.params().len())?;
        return Ok((InstData::Pure { op, args }, Some(op.result())));
    }
    let data = match word.split_once('.') {
        Some(("const", ty)) => constant(line, Type::from_name(ty).ok_or(unknown)?)?,
        Some(("select", ty)) => {
            // Operands may be defined later in the text, so their types are unknown here.
            let ty = Type::from_name(ty).ok_or(unknown)?;
            return Ok((select(parser, line)?, Some(ty)));
        }
        Some(("load", ty)) => match Width::from_name(ty) {
            Some(width) => load(parser, line, Type::I32, width)?,
            None => load(parser, line, Type::from_name(ty).ok_or(unknown)?, Width::Word)?,
        },
        Some(("store", width)) => store(parser, line, Width::from_name(width).ok_or(unknown)?)?,
        Some(("image", op)) => image(parser, line, ImageOp::from_name(op).ok_or(unknown)?)?,
        Some(("check", width)) => check(parser, line, Width::from_name(width).ok_or(unknown)?)?,
        Some(("check_image", op)) => check_image(parser, line, ImageOp::from_name(op).ok_or(unknown)?)?,
        Some(("subgroup", op)) => subgroup(parser, line, SubgroupOp::from_name(op).ok_or(unknown)?)?,
        Some(("atomic", op)) => atomic(parser, line, AtomicOp::from_name(op).ok_or(unknown)?, false)?,
        Some(("atomic64", op)) => atomic(parser, line, AtomicOp::from_name(op).ok_or(unknown)?, true)?,
        Some(_) => return Err(unknown),
        None if word == "unreachable" => InstData::Unreachable,
        None => match other(parser, line, word)? {
            Some(data) => data,
            None => control(parser, line, word)?.ok_or(unknown)?.into(),
        },
    };
    let ty = data.result_type(|_| None);
    Ok((data, ty))
}

fn constant(line: &mut Line<'_>, ty: Type) -> Result<InstData> {
    let bits = match ty {
        Type::Bool if line.eat_word("false") => 0,
        Type::Bool if line.eat_word("true") => 1,
        _ => number_or_bits(line, |text| match ty {
            Type::I32 => word(text),
            Type::F32 => float(text),
            Type::Bool | Type::Buffer => None,
        })?,
    };
    Ok(InstData::Const { ty, bits })
}

fn select(parser: &mut Parser, line: &mut Line<'_>) -> Result<InstData> {
    let condition = parser.value(line)?;
    Ok(InstData::Select { condition, then: operand(parser, line)?, otherwise: operand(parser, line)? })
}

/// Instructions without a dot, other than terminators.
fn other(parser: &mut Parser, line: &mut Line<'_>, word: &str) -> Result<Option<InstData>> {
    Ok(Some(match word {
        "builtin" => {
            let (builtin, component) = line.word("a built-in with its component", |word| {
                let (name, component) = word.split_once('.')?;
                Some((BuiltIn::from_name(name)?, component.parse().ok()?))
            })?;
            InstData::BuiltIn { builtin, component }
        }
        "element" => {
            let [base, index] = value_pair(parser, line)?;
            line.expect('*')?;
            InstData::Element { base, index, stride: line.unsigned()? }
        }
        "buffer" => {
            let binding = declared_binding(parser, line)?;
            line.expect('[')?;
            let index = parser.value(line)?;
            line.expect(']')?;
            InstData::Buffer { binding, index }
        }
        "buffer_size" => InstData::BufferSize { buffer: parser.value(line)? },
        "buffer_number" => InstData::BufferNumber { buffer: parser.value(line)? },
        "buffer_of" => InstData::BufferOf { number: parser.value(line)? },
        "buffer_at" => {
            let [low, high] = value_pair(parser, line)?;
            InstData::BufferAt { low, high }
        }
        "buffer_near" => {
            let [low, high] = value_pair(parser, line)?;
            InstData::BufferNear { low, high }
        }
        "buffer_offset" => {
            let buffer = parser.value(line)?;
            line.expect(',')?;
            let [low, high] = value_pair(parser, line)?;
            InstData::BufferOffset { buffer, low, high }
        }
        "reaches" => {
            let [buffer, offset] = address_pair(parser, line)?;
            InstData::Reaches { buffer, offset }
        }
        "image_field" => {
            let field = line.word("a field of an image", Field::from_name)?;
            InstData::ImageField { image: parser.value(line)?, field }
        }
        "clock" => InstData::Clock { scope: scope(line)? },
        "print" => {
            let message = line.word("a message", |word| word.strip_prefix("message")?.parse().ok())?;
            let mut args = SmallVec::new();
            while line.eat(',') {
                args.push(parser.value(line)?);
            }
            InstData::Print { message, args }
        }
        "high_word" => InstData::HighWord { of: parser.value(line)? },
        "store" => store(parser, line, Width::Word)?,
        "check" => check(parser, line, Width::Word)?,
        "sync" => sync(parser, line)?,
        "barrier" => {
            let (execution, memory) = (scope(line)?, scope(line)?);
            InstData::Barrier { execution, memory, semantics: semantics(line)? }
        }
        "fence" => {
            let scope = scope(line)?;
            InstData::Fence { scope, semantics: semantics(line)? }
        }
        _ => return Ok(None),
    }))
}

/// `site0 storage v0 + v1`
fn check(parser: &mut Parser, line: &mut Line<'_>, width: Width) -> Result<InstData> {
    let site = declared_site(parser, line)?;
    Ok(InstData::Check { site, place: place(parser, line)?, width })
}

/// `site0 v0, v1, v2`
fn check_image(parser: &mut Parser, line: &mut Line<'_>, op: ImageOp) -> Result<InstData> {
    let site = declared_site(parser, line)?;
    let image = parser.value(line)?;
    let sampler = if op.has_sampler() { Some(operand(parser, line)?) } else { None };
    let args = op.params().iter().map(|_| operand(parser, line)).collect::<Result<_>>()?;
    Ok(InstData::CheckImage { site, op, image, sampler, args })
}

/// `site0`, `site0 storage v0 + v1 bytes 4 wrote v2`
fn sync(parser: &mut Parser, line: &mut Line<'_>) -> Result<InstData> {
    let site = declared_site(parser, line)?;
    let (mut at, mut bytes) = (None, 0);
    if line.peek_word().is_some() {
        at = Some(place(parser, line)?);
        line.keyword("bytes")?;
        bytes = line.unsigned()?;
    }
    let wrote = if line.eat_word("wrote") { Some(parser.value(line)?) } else { None };
    Ok(InstData::Sync { site, place: at, bytes, wrote })
}

/// `v0, v1, v2`: the image, the sampler if there is one, and the other operands.
fn image(parser: &mut Parser, line: &mut Line<'_>, op: ImageOp) -> Result<InstData> {
    let image = parser.value(line)?;
    let sampler = if op.has_sampler() { Some(operand(parser, line)?) } else { None };
    let args = op.params().iter().map(|_| operand(parser, line)).collect::<Result<_>>()?;
    Ok(InstData::Image { op, image, sampler, args, access: access(line)? })
}

fn subgroup(parser: &mut Parser, line: &mut Line<'_>, op: SubgroupOp) -> Result<InstData> {
    let count = op.params().into_iter().flatten().count();
    Ok(InstData::Subgroup { op, args: values(parser, line, count)? })
}

fn load(parser: &mut Parser, line: &mut Line<'_>, ty: Type, width: Width) -> Result<InstData> {
    let place = place(parser, line)?;
    Ok(InstData::Load { ty, width, place, access: access(line)? })
}

fn store(parser: &mut Parser, line: &mut Line<'_>, width: Width) -> Result<InstData> {
    let (place, value) = (place(parser, line)?, operand(parser, line)?);
    Ok(InstData::Store { width, place, value, access: access(line)? })
}

fn atomic(parser: &mut Parser, line: &mut Line<'_>, op: AtomicOp, is_wide: bool) -> Result<InstData> {
    let place = place(parser, line)?;
    let (value, comparator, wide) = atomic_operands(parser, line, is_wide)?;
    let (scope, order) = (scope(line)?, semantics(line)?);
    let unequal = if line.eat_word("unequal") { semantics(line)? } else { Semantics::default() };
    Ok(InstData::Atomic { op, place, value, comparator, wide, scope, semantics: order, unequal })
}

fn place(parser: &mut Parser, line: &mut Line<'_>) -> Result<Place> {
    if line.eat_word("push") {
        line.expect('+')?;
        return Ok(Place::Push { offset: parser.value(line)? });
    }
    if let Ok(space) = line.word("a space", BufferSpace::from_name) {
        let [buffer, offset] = address_pair(parser, line)?;
        return Ok(Place::Buffer { space, buffer, offset });
    }
    let variable = declared_variable(parser, line)?;
    line.expect('+')?;
    Ok(Place::Variable { variable, offset: parser.value(line)? })
}

pub(super) fn access(line: &mut Line<'_>) -> Result<Access> {
    let (volatile, non_private) = (line.eat_word("volatile"), line.eat_word("non_private"));
    let available_visible = if line.eat_word("made") { Some(scope(line)?) } else { None };
    Ok(Access { volatile, non_private, available_visible })
}

pub(super) fn scope(line: &mut Line<'_>) -> Result<Scope> {
    line.word("a scope", Scope::from_name)
}

/// `relaxed`, or names and numbers separated by `|`.
pub(super) fn semantics(line: &mut Line<'_>) -> Result<Semantics> {
    if line.eat_word("relaxed") {
        return Ok(Semantics(0));
    }
    let mut bits = 0;
    loop {
        bits |= if line.peek_word().is_some() {
            let bit = |word: &str| SEMANTICS.iter().find(|(_, name)| *name == word).map(|(bit, _)| *bit);
            line.word("memory semantics", bit)?
        } else {
            line.unsigned()?
        };
        if !line.eat('|') {
            return Ok(Semantics(bits));
        }
    }
}
