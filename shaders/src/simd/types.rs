//! Types of SIMD values: uniform scalars, and vectors with an element for each lane.

use std::fmt;

/// Type of a value. The number is the width in bits, `s` stands for scalars, `v` for vectors of 16 lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A uniform boolean.
    S1,
    /// A uniform 32-bit integer.
    S32,
    /// A uniform 64-bit integer: host addresses, lengths, offsets before the bounds check.
    S64,
    /// 32 bits in each lane, an integer or a float. Uniform floats have this type, too.
    V32,
    /// A boolean in each lane.
    Mask,
}

impl Type {
    /// All types.
    pub const ALL: [Self; 5] = [Self::S1, Self::S32, Self::S64, Self::V32, Self::Mask];

    /// The name in the text form.
    pub fn name(self) -> &'static str {
        match self {
            Self::S1 => "s1",
            Self::S32 => "s32",
            Self::S64 => "s64",
            Self::V32 => "v32",
            Self::Mask => "mask",
        }
    }

    /// The type with this [`Type::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|ty| ty.name() == name)
    }

    /// Whether the value has an element for each lane.
    pub fn is_vector(self) -> bool {
        matches!(self, Self::V32 | Self::Mask)
    }

    /// Bytes of a value in a frame; also its alignment there.
    pub(crate) fn frame_bytes(self) -> u32 {
        if self == Self::V32 { 64 } else { 8 }
    }

    /// The vector type with elements of this scalar type; vectors map to themselves, [`Type::S64`] to `None`.
    pub fn widened(self) -> Option<Self> {
        match self {
            Self::S1 | Self::Mask => Some(Self::Mask),
            Self::S32 | Self::V32 => Some(Self::V32),
            Self::S64 => None,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
