//! Prints kernels in the text form that [`Kernel::parse`] reads. `docs/simd.md` describes it.

use std::fmt::{self, Display, Formatter};

use super::{
    Address, BoundedIndex, Elements, Inst, InstData, Kernel, LaneAddress, Row, Segments, Spacing, SubgroupLoop, Type,
    Value,
};
use crate::ir::Width;
use crate::ssa::{LineOf, print_atomic_operands, print_blocks};
use crate::text::{list, switch};

impl Kernel {
    /// The text form; with `line_of`, source lines are comments.
    pub(super) fn print(&self, f: &mut Formatter<'_>, line_of: Option<LineOf<'_, Inst>>) -> fmt::Result {
        writeln!(f, "simd kernel \"{}\"", self.name.escape_default())?;
        let head = [
            ("descriptors", self.descriptors),
            ("shared", self.shared_bytes),
            ("private", self.private_bytes),
            ("frames", self.frame_bytes),
            ("calls", self.call_bytes),
            ("subgroup_order", self.subgroup_order),
        ];
        for (name, number) in head.into_iter().filter(|(_, number)| *number != 0) {
            writeln!(f, "{name} {number}")?;
        }
        if self.merged_workgroups != 1 {
            writeln!(f, "merged_workgroups {}", self.merged_workgroups)?;
        }
        if self.releases {
            writeln!(f, "releases")?;
        }
        if !self.tables.is_empty() {
            list(f, "tables [", &self.tables, "]\n")?;
        }
        for SubgroupLoop { preheader, header, latch, index, step, count } in &self.subgroup_loops {
            writeln!(f, "subgroup_loop {preheader}, {header}, {latch}, index {index}, step {step}, count {count}")?;
        }
        print_blocks(f, self, line_of)
    }
}

impl Display for InstData {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Const { ty, bits } => write!(f, "const.{ty} {}", Bits(*ty, *bits)),
            Self::Lanes { values } => list(f, "lanes [", values.iter().map(|&word| Bits(Type::V32, word.into())), "]"),
            Self::Undef { ty } => write!(f, "undef.{ty}"),
            Self::Pure { op, args } => list(f, &format!("{} ", op.name()), args, ""),
            Self::Select { condition, then, otherwise } => write!(f, "select {condition}, {then}, {otherwise}"),
            Self::Wide { op, args } => list(f, &format!("wide.{} ", op.name()), args, ""),
            Self::Splat { value } => write!(f, "splat {value}"),
            Self::Pick { first, second, words } => {
                write!(f, "pick {first}, {second}, ")?;
                list(f, "[", words.iter(), "]")
            }
            Self::Extract { vector, lane } => write!(f, "extract {vector}, {lane}"),
            Self::Permute { vector, lanes } => write!(f, "permute {vector}, {lanes}"),
            Self::MaskBits { mask } => write!(f, "mask_bits {mask}"),
            Self::FirstLane { mask } => write!(f, "first_lane {mask}"),
            Self::Any { mask } => write!(f, "any {mask}"),
            Self::Context { field } => write!(f, "context {field}"),
            Self::BufferBase { buffer } => write!(f, "buffer_base {buffer}"),
            Self::BufferLen { buffer } => write!(f, "buffer_len {buffer}"),
            Self::BufferAt { low, high } => write!(f, "buffer_at {low}, {high}"),
            Self::ImageField { image, field } => write!(f, "image_field {} {image}", field.name()),
            Self::Call { routine, area, mask } => write!(f, "{} {area} mask {mask}", routine.name()),
            Self::Fence => f.write_str("fence"),
            Self::Poll { at, lanes } => poll(f, *at, lanes.as_ref()),
            Self::NextWorkgroup => f.write_str("next_workgroup"),
            Self::Jump { to } => write!(f, "jump {to}"),
            Self::Branch { condition, then, otherwise } => write!(f, "branch {condition}, {then}, {otherwise}"),
            Self::Switch { selector, default, cases } => switch(f, selector, default, cases),
            Self::Return => f.write_str("return"),
            Self::Load { ty, address } => write!(f, "load.{ty} {address}"),
            Self::Store { width, address, value, mask } => {
                write!(f, "store{} {address}, {value} mask {mask}", WidthSuffix(*width))
            }
            Self::LoadRow { row } => write!(f, "load_row{} {row}", WidthSuffix(row.width)),
            Self::StoreRow { row, value, mask } => {
                write!(f, "store_row{} {row}, {value} mask {mask}", WidthSuffix(row.width))
            }
            Self::LoadElements { elements } => {
                write!(f, "load_elements{} {elements}", WidthSuffix(elements.width))
            }
            Self::StoreElements { elements, values, mask } => {
                write!(f, "store_elements{} {elements}, {} mask {mask}", WidthSuffix(elements.width), Brackets(values))
            }
            Self::Gather { lanes, mask } => write!(f, "gather {lanes} mask {mask}"),
            Self::GatherElements { base, index, masks } => {
                write!(f, "gather_elements {base} + {index} masks {}", Brackets(masks))
            }
            Self::Scatter { width, lanes, value, mask } => {
                write!(f, "scatter{} {lanes}, {value} mask {mask}", WidthSuffix(*width))
            }
            Self::Atomic { op, lanes, value, comparator, wide, lock, sequential, mask } => {
                let bits = if wide.is_some() { "64" } else { "" };
                write!(f, "atomic{bits}.{} {lanes}", op.name())?;
                print_atomic_operands(f, *value, *comparator, *wide)?;
                let lock = if *lock { " lock" } else { "" };
                let sequential = if *sequential { " sequential" } else { "" };
                write!(f, "{lock}{sequential} mask {mask}")
            }
            Self::FrameLoad { ty, frame, at } => write!(f, "frame_load.{ty} {frame} + {at}"),
            Self::FrameStore { frame, at, value } => write!(f, "frame_store {frame} + {at}, {value}"),
            Self::Zero { base, bytes } => write!(f, "zero {base}, {bytes}"),
        }
    }
}

fn poll(f: &mut Formatter<'_>, at: u32, lanes: Option<&[Value; 2]>) -> fmt::Result {
    f.write_str("poll")?;
    if at != 0 {
        write!(f, " at {at}")?;
    }
    lanes.map_or(Ok(()), |[number, mask]| write!(f, " {number} mask {mask}"))
}

impl Display for Elements {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} + {}", self.base, self.index)?;
        if let Some(Segments { lanes, step }) = self.segments {
            write!(f, " segments {lanes} {step}")?;
        }
        match self.spacing {
            Spacing::Bytes(_) if self.are_dense() => {}
            Spacing::Bytes(bytes) => write!(f, " * {bytes}")?,
            Spacing::Words(words) => write!(f, " by {words}")?,
        }
        write!(f, " if < {}", Brackets(&self.limits))
    }
}

/// Prints `.u8` or `.u16`, nothing for words.
struct WidthSuffix(Width);

impl Display for WidthSuffix {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0 == Width::Word { Ok(()) } else { write!(f, ".{}", self.0.name()) }
    }
}

/// Prints a constant of a type in its most readable spelling. The parser accepts any spelling that fits the type.
struct Bits(Type, u64);

impl Display for Bits {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(ty, bits) = *self;
        match (ty, u32::try_from(bits).ok()) {
            (Type::S1, Some(0)) => f.write_str("false"),
            (Type::S1, Some(1)) => f.write_str("true"),
            (Type::S32, Some(word)) => write!(f, "{}", word.cast_signed()),
            (Type::S64, _) => write!(f, "{bits}"),
            (Type::V32, Some(word)) => print_word(f, word),
            // Masks, and constants that the verifier rejects.
            _ => write!(f, "{bits:#x}"),
        }
    }
}

/// Prints a word that may be an integer or a float: small integers in decimal, floats with few digits as floats, other
/// words in hexadecimal.
fn print_word(f: &mut Formatter<'_>, word: u32) -> fmt::Result {
    let float = f32::from_bits(word);
    let digits = format!("{float:?}");
    if word.cast_signed().unsigned_abs() < 1 << 16 {
        write!(f, "{}", word.cast_signed())
    } else if float.is_normal() && digits.len() <= 8 {
        f.write_str(&digits)
    } else {
        write!(f, "{word:#x}")
    }
}

/// Prints values in brackets; `[]` if there are none.
struct Brackets<'a>(&'a [Value]);

impl Display for Brackets<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        list(f, "", self.0, "")?;
        f.write_str("]")
    }
}

/// Prints ` + 8`, nothing for 0.
fn print_disp(f: &mut Formatter<'_>, disp: i32) -> fmt::Result {
    if disp == 0 { Ok(()) } else { write!(f, " + {disp}") }
}

impl Display for Address {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { base, index, scale, disp } = *self;
        write!(f, "{base}")?;
        let Some(BoundedIndex { index, limit }) = index else { return print_disp(f, disp) };
        write!(f, " + {index} * {scale}")?;
        print_disp(f, disp)?;
        write!(f, " if {index} < {limit}")
    }
}

impl Display for Row {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} + {} if < {}", self.base, self.index, self.limit)
    }
}

impl Display for LaneAddress {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} + {} * {}", self.base, self.index, self.scale)?;
        print_disp(f, self.disp)
    }
}
