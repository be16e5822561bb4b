//! The numbers of Rust and the scalar types of shaders that they are: one table.

use std::any::type_name;

use super::{DataLayout, Layout, ScalarType};

macro_rules! scalars {
    ($($ty:ty => $scalar:expr),+ $(,)?) => {
        $(impl Layout for $ty {
            fn layout() -> DataLayout {
                DataLayout::Scalar($scalar)
            }
        })+

        /// The type of a number by its Rust name.
        fn named(name: &str) -> Option<ScalarType> {
            match name {
                $(stringify!($ty) => Some($scalar),)+
                "half::binary16::f16" => Some(ScalarType::Float(16)),
                _ => None,
            }
        }
    };
}

scalars! {
    u8 => ScalarType::Uint(8),
    u16 => ScalarType::Uint(16),
    u32 => ScalarType::Uint(32),
    u64 => ScalarType::Uint(64),
    i8 => ScalarType::Int(8),
    i16 => ScalarType::Int(16),
    i32 => ScalarType::Int(32),
    i64 => ScalarType::Int(64),
    f32 => ScalarType::Float(32),
    f64 => ScalarType::Float(64),
}

/// Rust has no stable type of 16 bits for it.
impl Layout for half::f16 {
    fn layout() -> DataLayout {
        DataLayout::Scalar(ScalarType::Float(16))
    }
}

/// The type of the numbers that `T` consists of, if it is a number, or an array of numbers or of such arrays.
///
/// Rust has no other way to look into an array of any length whose type is a parameter than the name of the type. Rust
/// does not guarantee how it writes that; a test would notice a change, and programs would miss a check, no more.
pub(crate) fn scalar_of<T>() -> Option<ScalarType> {
    named(element_name(type_name::<T>()))
}

/// The name of the elements of an array type, also of one of arrays; another type's own.
pub(super) fn element_name(mut name: &str) -> &str {
    while let Some(array) = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        let Some((element, _)) = array.rsplit_once("; ") else { break };
        name = element;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_of_numbers_are_known() {
        assert_eq!(scalar_of::<[i16; 4]>(), Some(ScalarType::Int(16)));
        assert_eq!(scalar_of::<f64>(), Some(ScalarType::Float(64)));
        assert_eq!(scalar_of::<[f32; 8]>(), Some(ScalarType::Float(32)));
        assert_eq!(scalar_of::<[[[u8; 4]; 1920]; 2]>(), Some(ScalarType::Uint(8)));
        assert_eq!(scalar_of::<[u64; 0]>(), Some(ScalarType::Uint(64)));
        assert_eq!(scalar_of::<[half::f16; 2]>(), Some(ScalarType::Float(16)));
    }

    #[test]
    fn other_types_are_not() {
        struct Pair([u32; 2]);
        let _ = Pair([0; 2]).0;
        assert_eq!((scalar_of::<(u32, u32)>(), scalar_of::<[(f32, f32); 2]>()), (None, None));
        assert_eq!((scalar_of::<Pair>(), scalar_of::<[Pair; 2]>()), (None, None));
        assert_eq!((scalar_of::<&'static [u32; 2]>(), scalar_of::<()>(), scalar_of::<char>()), (None, None, None));
        assert_eq!(scalar_of::<std::num::Wrapping<u32>>(), None);
    }
}
