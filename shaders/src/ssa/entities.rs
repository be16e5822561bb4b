//! Typed ids: each is an index into a table of a kernel and prints as the text form reads it.

/// Declares ids with the prefix that they are printed with: `Value "v"` prints `v7`.
macro_rules! entities {
    ($($(#[$doc:meta])* $name:ident $prefix:literal)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub struct $name(u32);
            cranelift_entity::entity_impl!($name, $prefix);
        )*
    };
}

pub(crate) use entities;
