//! One mechanism for chains of structures whose fields are known by name: properties and features alike.
//!
//! A field has one value, in the structure of the version or extension that it came with; every other structure that
//! has the field is filled from there, under the name that it has there if that is another one (`field = value`).

/// Fills the structures of a chain: `values; head; structure: part { fields }`, where `part` is the field of `values`
/// that has them.
macro_rules! structures {
    ($values:ty; $head:ty; $($structure:ty: $part:ident { $($field:ident $(= $value:ident)?),* $(,)? })*) => {
        /// Fills the structures of a chain.
        fn fill_chain(values: &$values, chain: &mut $crate::c::OutChain<'_, $head>) {
            $(chain.fill(|structure: &mut $structure| {
                $(structure.$field = structures!(@value values $part $field $($value)?);)*
            });)*
        }
    };
    (@value $values:ident $part:ident $field:ident) => { $values.$part.$field };
    (@value $values:ident $part:ident $field:ident $value:ident) => { $values.$part.$value };
}

/// As [`structures!`], for fields that a program switches on: what it asks for is compared with what there is. The
/// features of 1.0, which are in no chain, come first.
macro_rules! switches {
    (
        $values:ty; $head:ty; $by:ty;
        $first:ty: $first_part:ident { $($switch:ident),* $(,)? }
        $($structure:ty: $part:ident { $($field:ident),* $(,)? })*
    ) => {
        structures! { $values; $head; $($structure: $part { $($field),* })* }

        /// Those of 1.0 that are wanted and not there.
        fn missing_of_first(values: &$values, wanted: &$first) -> Vec<&'static str> {
            let of = [$((stringify!($switch), wanted.$switch, values.$first_part.$switch)),*];
            of.into_iter().filter(|(_, wanted, there)| *wanted != 0 && *there == 0).map(|(name, ..)| name).collect()
        }

        /// Those that the chain of a creation wants and that are not there.
        fn missing_of_chain(values: &$values, info: $crate::c::In<'_, $by>) -> Vec<&'static str> {
            let mut missing = Vec::new();
            $(if let Some(structure) = info.next::<$structure>() {
                let of = [$((stringify!($field), structure.$field, values.$part.$field)),*];
                let of = of.into_iter().filter(|(_, wanted, there)| *wanted != 0 && *there == 0);
                missing.extend(of.map(|(name, ..)| name));
            })*
            missing
        }

        /// Every structure's fields, with whether they are there.
        #[cfg(test)]
        fn all(values: &$values) -> Vec<(&'static str, &'static str, bool)> {
            vec![
                $((stringify!($first), stringify!($switch), values.$first_part.$switch != 0)),*
                $(, $((stringify!($structure), stringify!($field), values.$part.$field != 0)),*)*
            ]
        }
    };
}

pub(super) use {structures, switches};
