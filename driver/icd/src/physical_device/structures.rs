//! Macros for the tables of properties and features.
//!
//! A field has one line with one value, in the structure of the version or extension that introduced it. The structures
//! of the extensions that a version contains are groups of its fields, and are filled with the same values.

/// Declares a structure with the values of a table, and fills `pNext` chains with them.
///
/// The first structure is in no chain. In the others, the fields of a group `Extension { ... }` are also the fields of
/// that structure, under the name that follows `as` if it has another one there; fields in plain braces are in no other
/// structure.
macro_rules! properties {
    (
        $(#[$doc:meta])*
        struct $values:ident($($given:ident: $given_ty:ty),*) in $head:ty;
        $first:ident: $first_ty:ty { $($first_field:ident: $first_value:expr,)* }
        $($part:ident: $structure:ty {
            $($($extension:ty)? { $($field:ident $(as $alias:ident)?: $value:expr,)* })*
        })*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $values {
            pub(crate) $first: $first_ty,
            $(pub(crate) $part: $structure,)*
        }

        impl $values {
            pub(crate) fn new($($given: $given_ty),*) -> Self {
                let mut values = Self { $first: Default::default(), $($part: Default::default(),)* };
                $(values.$first.$first_field = $first_value;)*
                $($($(values.$part.$field = $value;)*)*)*
                values
            }

            /// Fills the structures of a chain, except its head.
            fn fill_chain(&self, chain: &mut $crate::c::OutChain<'_, $head>) {
                $(
                    chain.fill(|structure: &mut $structure| {
                        $($(structure.$field = self.$part.$field;)*)*
                    });
                    $($crate::physical_device::structures::properties!(
                        @fill self chain $part [$($extension)?] $($field $(as $alias)?,)*
                    );)*
                )*
            }
        }
    };
    (@fill $values:ident $chain:ident $part:ident [] $($fields:tt)*) => {};
    (@fill $values:ident $chain:ident $part:ident [$extension:ty] $($field:ident $(as $alias:ident)?,)*) => {
        $chain.fill(|structure: &mut $extension| {
            $($crate::physical_device::structures::properties!(
                @set structure $values $part $field $($alias)?
            );)*
        });
    };
    (@set $structure:ident $values:ident $part:ident $field:ident) => {
        $structure.$field = $values.$part.$field;
    };
    (@set $structure:ident $values:ident $part:ident $field:ident $alias:ident) => {
        $structure.$alias = $values.$part.$field;
    };
}

/// As [`properties!`], for features, whose values are booleans: also lists those that a program enables and that are
/// not supported.
macro_rules! features {
    (
        $(#[$doc:meta])*
        struct $values:ident($($given:ident: $given_ty:ty),*) in $head:ty;
        $first:ident: $first_ty:ty { $($first_field:ident: $first_value:expr,)* }
        $($part:ident: $structure:ty { $($($extension:ty)? { $($field:ident: $value:expr,)* })* })*
    ) => {
        $crate::physical_device::structures::properties! {
            $(#[$doc])*
            struct $values($($given: $given_ty),*) in $head;
            $first: $first_ty { $($first_field: ash::vk::Bool32::from($first_value),)* }
            $($part: $structure { $($($extension)? { $($field: ash::vk::Bool32::from($value),)* })* })*
        }

        impl $values {
            /// Features of the first structure that are enabled and not supported.
            fn missing_of_first(&self, enabled: &$first_ty) -> Vec<&'static str> {
                let mut missing = Vec::new();
                $(features!(@missing missing enabled self $first $first_field);)*
                missing
            }

            /// Features in the chain of a device creation that are enabled and not supported.
            fn missing_of_chain(&self, info: $crate::c::In<'_, ash::vk::DeviceCreateInfo<'_>>) -> Vec<&'static str> {
                let mut missing = Vec::new();
                $(
                    if let Some(enabled) = info.next::<$structure>() {
                        $($(features!(@missing missing enabled self $part $field);)*)*
                    }
                    $(features!(@missing_of missing info self $part [$($extension)?] $($field)*);)*
                )*
                missing
            }

            /// Every feature with its structure, and whether it is supported.
            #[cfg(test)]
            fn all(&self) -> Vec<(&'static str, &'static str, bool)> {
                vec![
                    $((stringify!($first_ty), stringify!($first_field), self.$first.$first_field != 0),)*
                    $($($((stringify!($structure), stringify!($field), self.$part.$field != 0),)*)*)*
                ]
            }
        }
    };
    (@missing $missing:ident $enabled:ident $values:ident $part:ident $field:ident) => {
        if $enabled.$field != 0 && $values.$part.$field == 0 {
            $missing.push(stringify!($field));
        }
    };
    (@missing_of $missing:ident $info:ident $values:ident $part:ident [] $($field:ident)*) => {};
    (@missing_of $missing:ident $info:ident $values:ident $part:ident [$extension:ty] $($field:ident)*) => {
        if let Some(enabled) = $info.next::<$extension>() {
            $(features!(@missing $missing enabled $values $part $field);)*
        }
    };
}

pub(super) use {features, properties};
