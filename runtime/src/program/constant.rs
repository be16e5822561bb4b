//! Values of specialization constants, and their conversion to the type of a constant.

use std::fmt;

use spelter_shaders::front::{ConstantType, SpecializationConstant};

use crate::error::Error;

/// The value of a specialization constant: `3u32.into()`.
///
/// ```
/// use spelter::Constant;
///
/// # fn main() -> Result<(), spelter::Error> {
/// assert_eq!(Constant::from(3u32), Constant::U32(3));
/// assert_eq!(Constant::from(0.5f32).to_string(), "0.5");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Constant {
    /// Unsigned; also for a signed constant whose type has the value.
    U32(u32),
    /// Signed; also for an unsigned constant whose type has the value.
    I32(i32),
    /// Unsigned with 64 bits; also for a signed constant whose type has the value.
    U64(u64),
    /// Signed with 64 bits; also for an unsigned constant whose type has the value.
    I64(i64),
    /// Float; also for a constant with 64 bits, and rounded for one with 16 bits.
    F32(f32),
    /// Float with 64 bits; also for a constant with fewer bits, rounded, if the result is finite or the value is not.
    F64(f64),
    /// Boolean.
    Bool(bool),
}

impl Constant {
    /// The bits of the value in the constant's type. [`Error::Constant`] if the type does not have the value.
    ///
    /// ```
    /// use spelter::Constant;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let text = "@id(3) override scale: f32 = 4.0;
    ///     @group(0) @binding(0) var<storage, read_write> to: f32;
    ///     @compute @workgroup_size(1) fn main() { to = scale; }";
    /// let program = context.program_wgsl(text)?;
    /// let scale = &program.specialization_constants()[0];
    /// assert_eq!(Constant::F32(1.0).bits_for(scale)?, 0x3f80_0000);
    /// assert!(Constant::Bool(true).bits_for(scale).is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn bits_for(self, constant: &SpecializationConstant) -> Result<u64, Error> {
        let bits = match (constant.ty, self) {
            (ConstantType::Uint(width), Self::U32(value)) => within(u64::from(value), width),
            (ConstantType::Uint(width), Self::U64(value)) => within(value, width),
            (ConstantType::Uint(width), Self::I32(value)) => {
                u64::try_from(value).ok().and_then(|value| within(value, width))
            }
            (ConstantType::Int(width), Self::I32(value)) => signed(i64::from(value), width),
            (ConstantType::Int(width), Self::U32(value)) => signed(i64::from(value), width),
            (ConstantType::Int(width), Self::U64(value)) => {
                i64::try_from(value).ok().and_then(|value| signed(value, width))
            }
            (ConstantType::Int(width), Self::I64(value)) => signed(value, width),
            (ConstantType::Uint(width), Self::I64(value)) => {
                u64::try_from(value).ok().and_then(|value| within(value, width))
            }
            (ConstantType::Float(32), Self::F32(value)) => Some(value.to_bits().into()),
            (ConstantType::Float(_), Self::F32(value)) => constant.ty.float(value.into()),
            (ConstantType::Float(_), Self::F64(value)) => constant.ty.float(value),
            (ConstantType::Bool, Self::Bool(value)) => Some(value.into()),
            _ => None,
        };
        let hint = || match (constant.ty, self) {
            (ConstantType::Float(_), Self::U32(_) | Self::I32(_) | Self::U64(_) | Self::I64(_)) => {
                format!("write {self}.0")
            }
            (ConstantType::Uint(width), Self::U32(_) | Self::I32(_) | Self::U64(_) | Self::I64(_)) => {
                format!("it is from 0 to {}", u64::MAX >> 64u32.saturating_sub(width).min(63))
            }
            (ConstantType::Int(width), Self::U32(_) | Self::I32(_) | Self::U64(_) | Self::I64(_)) => {
                let unused = 64u32.saturating_sub(width).min(63);
                format!("it is from {} to {}", i64::MIN >> unused, i64::MAX >> unused)
            }
            (ConstantType::Float(width), Self::F32(_) | Self::F64(_)) => match width {
                16 => "it is from -65504.0 to 65504.0".to_owned(),
                32 => format!("it is from {:?} to {:?}", f32::MIN, f32::MAX),
                _ => format!("floats of {width} bits are not supported"),
            },
            (ConstantType::Uint(_) | ConstantType::Int(_), Self::F32(_) | Self::F64(_)) => {
                "write an integer, such as 3".to_owned()
            }
            (ConstantType::Bool, _) => "write true or false".to_owned(),
            (_, Self::Bool(_)) => format!("write a number of type {}", constant.ty),
        };
        bits.ok_or_else(|| Error::Constant(format!("{constant} cannot be {self}: {}", hint())))
    }
}

/// The value, if it fits `bits` bits.
fn within(value: u64, bits: u32) -> Option<u64> {
    (bits >= 64 || value >> bits == 0).then_some(value)
}

/// The value in two's complement with `bits` bits, if it fits.
fn signed(value: i64, bits: u32) -> Option<u64> {
    let unused = 64u32.checked_sub(bits)?;
    (value << unused >> unused == value).then_some(value.cast_unsigned() << unused >> unused)
}

impl fmt::Display for Constant {
    /// As Rust writes the literal: `2`, `2.0`, `true`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::U32(value) => write!(f, "{value}"),
            Self::I32(value) => write!(f, "{value}"),
            Self::U64(value) => write!(f, "{value}"),
            Self::I64(value) => write!(f, "{value}"),
            Self::F32(value) => write!(f, "{value:?}"),
            Self::F64(value) => write!(f, "{value:?}"),
            Self::Bool(value) => write!(f, "{value}"),
        }
    }
}

macro_rules! constant_from {
    ($($ty:ident $variant:ident),*) => {
        $(impl From<$ty> for Constant {
            fn from(value: $ty) -> Self {
                Self::$variant(value)
            }
        })*
    };
}
constant_from!(u32 U32, i32 I32, u64 U64, i64 I64, f32 F32, bool Bool);
