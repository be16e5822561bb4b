//! The types of SIMD values: what all lanes share, and what each lane has for itself.

use std::fmt;

/// The type of a value. The number is that of its bits, `s` is for scalars, `v` for vectors of 16 lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A truth value that all lanes share.
    S1,
    /// A 32-bit integer that all lanes share.
    S32,
    /// A 64-bit integer that all lanes share: host addresses, lengths, offsets before they are checked.
    S64,
    /// 32 bits in each lane, an integer or a float. A float that all lanes share is one of these, too.
    V32,
    /// A truth value in each lane.
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

    /// The type that [`Type::name`] names.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|ty| ty.name() == name)
    }

    /// Whether lanes may differ.
    pub fn is_vector(self) -> bool {
        matches!(self, Self::V32 | Self::Mask)
    }

    /// Bytes that a value takes in a frame, where it stands at a multiple of that.
    pub(crate) fn frame_bytes(self) -> u32 {
        if self == Self::V32 { 64 } else { 8 }
    }

    /// The vector type of this scalar type; itself for vectors, `None` for [`Type::S64`].
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
