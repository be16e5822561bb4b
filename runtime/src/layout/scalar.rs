//! The numbers of Rust and the scalar types of shaders that they are: one table.

use std::any::TypeId;

use super::{DataLayout, Layout, ScalarType};

macro_rules! scalars {
    ($($ty:ty => $scalar:expr),+ $(,)?) => {
        $(impl Layout for $ty {
            fn layout() -> DataLayout {
                DataLayout::Scalar($scalar)
            }
        })+

        /// The type of the numbers that `T` consists of, if it is a number or an array of up to four.
        pub(crate) fn scalar_of<T: 'static>() -> Option<ScalarType> {
            let wanted = TypeId::of::<T>();
            $(if [
                TypeId::of::<$ty>(),
                TypeId::of::<[$ty; 1]>(),
                TypeId::of::<[$ty; 2]>(),
                TypeId::of::<[$ty; 3]>(),
                TypeId::of::<[$ty; 4]>(),
            ]
            .contains(&wanted)
            {
                return Some($scalar);
            })+
            None
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_arrays_of_numbers_are_known() {
        assert_eq!(scalar_of::<[i16; 4]>(), Some(ScalarType::Int(16)));
        assert_eq!(scalar_of::<f64>(), Some(ScalarType::Float(64)));
        assert_eq!((scalar_of::<[f32; 5]>(), scalar_of::<(u32, u32)>()), (None, None));
    }
}
