//! Types of SSA values, and the representation of their bits in constant folder, interpreter and text.

use std::fmt;

/// The type of an SSA value. Integers are signless: operations choose the signedness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// `false` or `true`, as bits 0 or 1. Stored in memory as an `i32` of 0 or 1.
    Bool,
    /// 32-bit integer.
    I32,
    /// IEEE 754 binary32.
    F32,
    /// A descriptor's buffer: the result of `buffer` and an operand of memory operations. Opaque.
    Buffer,
}

impl Type {
    /// The name in the text form.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I32 => "i32",
            Self::F32 => "f32",
            Self::Buffer => "buffer",
        }
    }

    /// The type that [`Type::name`] names.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Bool, Self::I32, Self::F32, Self::Buffer].into_iter().find(|ty| ty.name() == name)
    }

    /// Size in memory in bytes; `None` for types that cannot be stored.
    pub fn bytes(self) -> Option<u32> {
        match self {
            Self::I32 | Self::F32 => Some(4),
            Self::Bool | Self::Buffer => None,
        }
    }
}

/// Width of a load or store. Sub-word loads zero-extend to an `i32`; sub-word stores write its low bytes and keep the
/// neighbouring bytes in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Width {
    /// One byte.
    Byte,
    /// Two bytes.
    Half,
    /// Four bytes.
    #[default]
    Word,
}

impl Width {
    /// Width in bytes.
    pub fn bytes(self) -> u32 {
        match self {
            Self::Byte => 1,
            Self::Half => 2,
            Self::Word => 4,
        }
    }

    /// Mask of the bits of this width.
    pub fn mask(self) -> u32 {
        u32::MAX >> (32 - 8 * self.bytes())
    }

    /// The name of a sub-word width in the text forms.
    pub fn name(self) -> &'static str {
        match self {
            Self::Byte => "u8",
            Self::Half => "u16",
            Self::Word => "u32",
        }
    }

    /// The sub-word width with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Byte, Self::Half].into_iter().find(|width| width.name() == name)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A Rust type that represents an SSA type in the functions of the op table.
pub trait ScalarValue: Copy {
    /// The SSA type; `u32` and `i32` have the same one.
    const TYPE: Type;
    /// Reads a register.
    fn from_bits(bits: u64) -> Self;
    /// Writes a register; unused high bits are 0.
    fn to_bits(self) -> u64;
}

impl ScalarValue for bool {
    const TYPE: Type = Type::Bool;
    fn from_bits(bits: u64) -> Self {
        bits != 0
    }
    fn to_bits(self) -> u64 {
        u64::from(self)
    }
}

impl ScalarValue for u32 {
    const TYPE: Type = Type::I32;
    fn from_bits(bits: u64) -> Self {
        bits as Self
    }
    fn to_bits(self) -> u64 {
        u64::from(self)
    }
}

impl ScalarValue for i32 {
    const TYPE: Type = Type::I32;
    fn from_bits(bits: u64) -> Self {
        bits as Self
    }
    fn to_bits(self) -> u64 {
        u64::from(self.cast_unsigned())
    }
}

impl ScalarValue for f32 {
    const TYPE: Type = Type::F32;
    fn from_bits(bits: u64) -> Self {
        Self::from_bits(bits as u32)
    }
    fn to_bits(self) -> u64 {
        u64::from(self.to_bits())
    }
}
