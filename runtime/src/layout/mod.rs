//! Layouts of Rust types, to be checked against those that a shader declares.
//!
//! Bytes that a program writes for another layout than the shader's are not noticed by the device: `vec3<f32>` is
//! aligned to 16 bytes, `[f32; 3]` in a `repr(C)` struct to 4. The check compares the place and type of each number.

mod accessed;
mod block;
mod difference;
mod element;
mod names;
mod scalar;
#[cfg(test)]
mod test_layouts;

pub use block::Block;
pub(crate) use block::{BlockPlace, of_buffer, of_push, with_rule};
pub(crate) use element::{BufferType, ElementType};
pub(crate) use scalar::scalar_of;
pub use spelter_shaders::front::{DataLayout, DataMember, ScalarType};

/// A type whose layout in memory is known: numbers (also [`half::f16`](crate::half::f16), for `f16` of shaders), arrays
/// of them, and structs by [`layout!`](crate::layout!). Types of other crates implement it by hand, or are checked
/// through a type of their own ([`Block`] shows it for `encase`).
///
/// Elements of `array<vec3f>` and columns of `mat3x3f` are 16 bytes apart: they are structs
/// `Padded { v: [f32; 3], _padding: u32 }` in [`layout!`](crate::layout!), and the matrix is `[Padded; 3]`.
///
/// ```
/// use spelter::{DataLayout, Layout};
///
/// /// A vector of three floats.
/// #[derive(Clone, Copy)]
/// #[repr(C, align(16))]
/// struct Vec3A([f32; 3]);
///
/// impl Layout for Vec3A {
///     fn layout() -> DataLayout {
///         <[f32; 3]>::layout()
///     }
/// }
/// assert_eq!(<[Vec3A; 2]>::layout().to_string(), "array<array<f32, 3>, 2>");
/// ```
pub trait Layout: Sized {
    /// The offsets and types of all numbers in it.
    fn layout() -> DataLayout;
}

impl<T: Layout, const N: usize> Layout for [T; N] {
    fn layout() -> DataLayout {
        DataLayout::Array { element: Box::new(T::layout()), count: Some(N as u64), stride: size_of::<T>() as u64 }
    }
}

/// Gives a struct its [`Layout`]: around its definition, or with its name and all fields. The types of the fields need
/// a [`Layout`], too; for a field of another crate's type, `as` says what it is made of. A field that is left out or
/// does not exist, or that has another size than the type after `as`, is an error of the compiler. Fields whose name
/// begins with `_` are padding: the shader need not have anything there.
///
/// The struct must be `repr(C)`: otherwise Rust may order the fields as it likes, and the check fails.
///
/// ```
/// use spelter::bytemuck::NoUninit;
///
/// # mod glam {
/// #     #[derive(Clone, Copy, spelter::bytemuck::NoUninit)]
/// #     #[bytemuck(crate = "spelter::bytemuck")]
/// #     #[repr(C)]
/// #     pub struct Vec3 { pub x: f32, pub y: f32, pub z: f32 }
/// # }
/// spelter::layout! {
///     #[derive(Clone, Copy, NoUninit)]
///     #[bytemuck(crate = "spelter::bytemuck")]
///     #[repr(C)]
///     struct Ball {
///         at: glam::Vec3 as [f32; 3],
///         radius: f32,
///         color: [f32; 3],
///         _padding: u32,
///     }
/// }
///
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let program = context.program_wgsl(
///     "struct Ball { at: vec3f, radius: f32, color: vec3f }
///      @group(0) @binding(0) var<storage, read_write> balls: array<Ball>;
///      @compute @workgroup_size(1) fn main() { balls[0].at.z = balls[1].radius; }",
/// )?;
/// let at = glam::Vec3 { x: 1.0, y: 2.0, z: 3.0 };
/// let balls = context.typed_buffer(&[Ball { at, radius: 0.5, color: [1.0; 3], _padding: 0 }; 2])?;
/// context.dispatch(&program).bind(0, 0, &balls).groups([1, 1, 1])?; // the layouts agree
/// assert_eq!(context.read_range::<f32>(&balls, 8..12)?, [0.5]);
/// # Ok(())
/// # }
/// ```
///
/// Of a struct that is defined elsewhere:
///
/// ```
/// #[repr(C)]
/// struct Params {
///     count: u32,
///     scale: f32,
/// }
/// spelter::layout!(Params { count, scale });
///
/// assert_eq!(<Params as spelter::Layout>::layout().bytes(), 8);
/// ```
#[macro_export]
macro_rules! layout {
    (@field $name:ident $field:ident) => {{
        fn of_field<S, T: $crate::Layout>(_: fn(&S) -> &T) -> $crate::DataLayout {
            <T as $crate::Layout>::layout()
        }
        of_field(|of: &$name| &of.$field)
    }};
    (@field $name:ident $field:ident $as:ty) => {{
        fn of_field<S, T, A: $crate::Layout>(_: fn(&S) -> &T) -> $crate::DataLayout {
            const {
                let same = ::std::mem::size_of::<T>() == ::std::mem::size_of::<A>();
                ::std::assert!(same, "the type after `as` has another size than the field");
            }
            <A as $crate::Layout>::layout()
        }
        of_field::<_, _, $as>(|of: &$name| &of.$field)
    }};
    ($name:ident { $($field:ident $(as $as:ty)?),* $(,)? }) => {
        impl $crate::Layout for $name {
            fn layout() -> $crate::DataLayout {
                // All fields are named.
                fn _all(of: $name) {
                    let $name { $($field: _),* } = of;
                }
                $crate::DataLayout::Struct {
                    name: ::std::stringify!($name).to_owned(),
                    members: ::std::vec![$($crate::DataMember {
                        name: ::std::stringify!($field).to_owned(),
                        offset: ::std::mem::offset_of!($name, $field) as u64,
                        layout: $crate::layout!(@field $name $field $($as)?),
                    }),*],
                }
            }
        }
    };
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[$of_field:meta])* $field_vis:vis $field:ident: $ty:ty $(as $as:ty)?),* $(,)?
    }) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[$of_field])* $field_vis $field: $ty),*
        }
        $crate::layout!($name { $($field $(as $as)?),* });
    };
}
