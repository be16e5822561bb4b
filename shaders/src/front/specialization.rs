//! Specialization constants as a module declares them: what a caller may set, and to what.

use std::fmt;

/// A constant that a caller may set before a kernel is made (`SpecId`; an `override` in WGSL).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecializationConstant {
    /// `SpecId` or `@id`; a WGSL `override` without one cannot be set from outside.
    pub id: Option<u32>,
    /// Its name, where the module keeps it; else empty.
    pub name: String,
    /// Its type.
    pub ty: ConstantType,
}

/// The type of a specialization constant, as its author sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConstantType {
    /// `bool`.
    Bool,
    /// Signed integer of so many bits.
    Int(u32),
    /// Unsigned integer of so many bits.
    Uint(u32),
    /// Float of so many bits.
    Float(u32),
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
    /// `3 (name: u32)`, as messages list them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.id, self.name.as_str()) {
            (Some(id), "") => write!(f, "{id}: {}", self.ty),
            (Some(id), name) => write!(f, "{id} ({name}: {})", self.ty),
            (None, name) => write!(f, "`{name}`, which has no @id and cannot be set"),
        }
    }
}
