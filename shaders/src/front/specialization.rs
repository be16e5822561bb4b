//! Specialization constants as declared by a module: ids, names and types.

use std::fmt;

/// A constant that a caller may set before compilation (`SpecId`; `override` in WGSL).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecializationConstant {
    /// `SpecId` or `@id`; a WGSL `override` without one is set by its name.
    pub id: Option<u32>,
    /// Its number in maps of values: the id, or for an override without one a number above all that `@id` can be.
    pub key: u32,
    /// Its name; empty if the module has none.
    pub name: String,
    /// Its type.
    pub ty: ConstantType,
}

/// The declared type of a specialization constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConstantType {
    /// `bool`.
    Bool,
    /// Signed integer of that many bits.
    Int(u32),
    /// Unsigned integer of that many bits.
    Uint(u32),
    /// Float of that many bits.
    Float(u32),
}

impl ConstantType {
    /// The bits of the float of this type that is nearest to a value; `None` if that is infinity and the value is
    /// finite, and for a type that is no float of 16, 32 or 64 bits.
    pub fn float(self, value: f64) -> Option<u64> {
        let (nearest, bits) = match self {
            Self::Float(16) => {
                let nearest = half::f16::from_f64(value);
                (nearest.to_f64(), u64::from(nearest.to_bits()))
            }
            Self::Float(32) => (f64::from(value as f32), u64::from((value as f32).to_bits())),
            Self::Float(64) => (value, value.to_bits()),
            _ => return None,
        };
        (nearest.is_finite() || !value.is_finite()).then_some(bits)
    }
}

impl fmt::Display for ConstantType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("bool"),
            Self::Int(bits) => write!(f, "i{bits}"),
            Self::Uint(bits) => write!(f, "u{bits}"),
            Self::Float(bits) => write!(f, "f{bits}"),
        }
    }
}

impl fmt::Display for SpecializationConstant {
    /// Format of messages: `3 (name: u32)`, and without an id `name (u32)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.id, self.name.as_str()) {
            (Some(id), "") => write!(f, "{id}: {}", self.ty),
            (Some(id), name) => write!(f, "{id} ({name}: {})", self.ty),
            (None, name) => write!(f, "{name} ({})", self.ty),
        }
    }
}
