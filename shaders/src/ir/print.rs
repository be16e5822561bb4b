//! Prints kernels as text: what [`Kernel::parse`] reads. `docs/ir.md` describes the form.

use std::fmt::{self, Display, Formatter};

use super::names::SEMANTICS;
use super::{
    Access, Binding, BindingData, Inst, InstData, Kernel, MemoryModel, Merge, Place, Semantics, Type, VariableData,
    Width,
};
use crate::host::Message;
use crate::ssa::{LineOf, print_atomic_operands, print_blocks};
use crate::text::{list, switch};

impl Kernel {
    /// The text form; with `line_of`, source lines are comments.
    pub(super) fn print(&self, f: &mut Formatter<'_>, line_of: Option<LineOf<'_, Inst>>) -> fmt::Result {
        let [x, y, z] = self.workgroup_size;
        writeln!(f, "kernel \"{}\" {x}, {y}, {z}", self.name.escape_default())?;
        if self.push_bytes != 0 {
            writeln!(f, "push {}", self.push_bytes)?;
        }
        if self.memory_model != MemoryModel::default() {
            writeln!(f, "memory_model {}", self.memory_model.name())?;
        }
        for (binding, data) in &self.bindings {
            print_binding(f, binding, data)?;
        }
        for (variable, VariableData { space, bytes, name, words }) in &self.variables {
            write!(f, "{variable} = {} {bytes} \"{}\"", space.name(), name.escape_default())?;
            list(f, " [", words, "]")?;
            writeln!(f)?;
        }
        for (number, Message { text, operands }) in self.messages.iter().enumerate() {
            write!(f, "message{number} = \"{}\"", text.escape_default())?;
            operands.iter().try_for_each(|operand| write!(f, " {}", operand.name()))?;
            writeln!(f)?;
        }
        for (site, data) in &self.sites {
            writeln!(f, "{site} = {data}")?;
        }
        print_blocks(f, self, line_of)
    }
}

fn print_binding(f: &mut Formatter<'_>, binding: Binding, data: &BindingData) -> fmt::Result {
    let BindingData { set, binding: number, kind, count, min_bytes, read_only, image, .. } = data;
    let kind = kind.name();
    let read_only = if *read_only { " read_only" } else { "" };
    let image = image.map(|image| format!(" {}", image.name())).unwrap_or_default();
    writeln!(f, "{binding} = {kind} {set}.{number}[{count}] {min_bytes}{image}{read_only}")
}

pub(super) fn print_annotation(f: &mut Formatter<'_>, merge: Option<Merge>) -> fmt::Result {
    match merge {
        None => Ok(()),
        Some(Merge::Selection { merge }) => writeln!(f, "    selection {merge}"),
        Some(Merge::Loop { merge, continuing }) => writeln!(f, "    loop {merge}, {continuing}"),
    }
}

pub(super) fn print_inst(kernel: &Kernel, f: &mut Formatter<'_>, inst: Inst, data: &InstData) -> fmt::Result {
    let Some(value) = kernel.results[inst] else { return write!(f, "{data}") };
    match data {
        // The only instruction with a type suffix that its operands would imply: they may be defined later in the text.
        InstData::Select { condition, then, otherwise } => {
            let ty = kernel.values.get(value).map_or("?", |def| def.ty().name());
            write!(f, "select.{ty} {condition}, {then}, {otherwise}")
        }
        data => write!(f, "{data}"),
    }?;
    if kernel.no_contraction.contains(inst) { f.write_str(" no_contraction") } else { Ok(()) }
}

impl Display for InstData {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Const { ty, bits } => print_const(f, *ty, *bits),
            Self::Pure { op, args } => list(f, &format!("{} ", op.name()), args, ""),
            Self::Select { condition, then, otherwise } => write!(f, "select {condition}, {then}, {otherwise}"),
            Self::BuiltIn { builtin, component } => write!(f, "builtin {}.{component}", builtin.name()),
            Self::Element { base, index, stride } => write!(f, "element {base}, {index} * {stride}"),
            Self::Buffer { binding, index } => write!(f, "buffer {binding}[{index}]"),
            Self::BufferSize { buffer } => write!(f, "buffer_size {buffer}"),
            Self::BufferNumber { buffer } => write!(f, "buffer_number {buffer}"),
            Self::BufferOf { number } => write!(f, "buffer_of {number}"),
            Self::BufferAt { low, high } => write!(f, "buffer_at {low}, {high}"),
            Self::BufferNear { low, high } => write!(f, "buffer_near {low}, {high}"),
            Self::BufferOffset { buffer, low, high } => write!(f, "buffer_offset {buffer}, {low}, {high}"),
            Self::Reaches { buffer, offset } => write!(f, "reaches {buffer} + {offset}"),
            Self::ImageField { image, field } => write!(f, "image_field {} {image}", field.name()),
            Self::Image { op, image, sampler, args, access } => {
                write!(f, "image.{} ", op.name())?;
                list(f, "", [image].into_iter().chain(sampler).chain(args), "")?;
                write!(f, "{access}")
            }
            Self::Load { ty, width: Width::Word, place, access } => write!(f, "load.{ty} {place}{access}"),
            Self::Load { width, place, access, .. } => write!(f, "load.{} {place}{access}", width.name()),
            Self::Store { width, place, value, access } => {
                let narrow = *width != Width::Word;
                let (dot, width) = if narrow { (".", width.name()) } else { ("", "") };
                write!(f, "store{dot}{width} {place}, {value}{access}")
            }
            Self::Subgroup { op, args } => list(f, &format!("subgroup.{} ", op.name()), args, ""),
            Self::Atomic { .. } => print_atomic(f, self),
            Self::Clock { scope } => write!(f, "clock {}", scope.name()),
            Self::Print { message, args } => list(f, &format!("print message{message}, "), args, ""),
            Self::HighWord { of } => write!(f, "high_word {of}"),
            Self::Barrier { execution, memory, semantics } => {
                write!(f, "barrier {} {} {semantics}", execution.name(), memory.name())
            }
            Self::Fence { scope, semantics } => write!(f, "fence {} {semantics}", scope.name()),
            Self::Check { site, place, width: Width::Word } => write!(f, "check {site} {place}"),
            Self::Check { site, place, width } => write!(f, "check.{} {site} {place}", width.name()),
            Self::CheckImage { site, op, image, sampler, args } => {
                write!(f, "check_image.{} {site} ", op.name())?;
                list(f, "", [image].into_iter().chain(sampler).chain(args), "")
            }
            Self::Sync { site, place, bytes, wrote } => {
                write!(f, "sync {site}")?;
                place.map_or(Ok(()), |place| write!(f, " {place} bytes {bytes}"))?;
                wrote.map_or(Ok(()), |wrote| write!(f, " wrote {wrote}"))
            }
            Self::Jump { to } => write!(f, "jump {to}"),
            Self::Branch { condition, then, otherwise } => write!(f, "branch {condition}, {then}, {otherwise}"),
            Self::Switch { selector, default, cases } => switch(f, selector, default, cases),
            Self::Return => f.write_str("return"),
            Self::Unreachable => f.write_str("unreachable"),
        }
    }
}

fn print_const(f: &mut Formatter<'_>, ty: Type, bits: u64) -> fmt::Result {
    write!(f, "const.{ty} ")?;
    let word = u32::try_from(bits).ok();
    match (ty, word) {
        (Type::Bool, Some(0)) => f.write_str("false"),
        (Type::Bool, Some(1)) => f.write_str("true"),
        (Type::I32, Some(word)) => write!(f, "{}", word.cast_signed()),
        (Type::F32, Some(word)) if f32::from_bits(word).is_finite() => write!(f, "{:?}", f32::from_bits(word)),
        // NaNs and infinities by their bits, as well as constants that the verifier rejects.
        _ => write!(f, "{bits:#x}"),
    }
}

fn print_atomic(f: &mut Formatter<'_>, data: &InstData) -> fmt::Result {
    let InstData::Atomic { op, place, value, comparator, wide, scope, semantics, unequal } = data else {
        return Ok(());
    };
    let bits = if wide.is_some() { "64" } else { "" };
    write!(f, "atomic{bits}.{} {place}", op.name())?;
    print_atomic_operands(f, *value, *comparator, *wide)?;
    write!(f, " {} {semantics}", scope.name())?;
    if unequal.0 != 0 { write!(f, " unequal {unequal}") } else { Ok(()) }
}

impl Display for Place {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Buffer { space, buffer, offset } => write!(f, "{} {buffer} + {offset}", space.name()),
            Self::Push { offset } => write!(f, "push + {offset}"),
            Self::Variable { variable, offset } => write!(f, "{variable} + {offset}"),
        }
    }
}

impl Display for Access {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.volatile {
            f.write_str(" volatile")?;
        }
        if self.non_private {
            f.write_str(" non_private")?;
        }
        self.available_visible.map_or(Ok(()), |scope| write!(f, " made {}", scope.name()))
    }
}

impl Display for Semantics {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("relaxed");
        }
        let (mut rest, mut bar) = (self.0, "");
        for &(bit, name) in SEMANTICS.iter().filter(|(bit, _)| self.0 & bit != 0) {
            write!(f, "{bar}{name}")?;
            (rest, bar) = (rest & !bit, "|");
        }
        if rest != 0 { write!(f, "{bar}{rest:#x}") } else { Ok(()) }
    }
}
