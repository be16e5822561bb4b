//! The comparison of two layouts: each number at its place, with its type.

use std::ops::{ControlFlow, Range};

use spelter_shaders::front::PlacedScalar;

use super::names::misplaced;
use super::{DataLayout, DataMember, ScalarType};

/// Elements of an array whose numbers are compared one by one, before the last one. The numbers of two arrays of
/// different strides or lengths cannot agree that long and in the last element, unless the strides are far larger than
/// those of any vertex or particle.
pub(super) const MAX_ELEMENTS: u64 = 1 << 12;

/// The first number that only one of them has, or that has another type in the other; else a name that has another
/// place in the other.
pub(super) fn difference(shader: &DataLayout, rust: &DataLayout) -> Option<String> {
    // Arrays of equal strides and lengths agree if their elements do, however many there are.
    if let (
        DataLayout::Array { element: a, count: Some(m), stride: s },
        DataLayout::Array { element: b, count: Some(n), stride: t },
    ) = (shader, rust)
        && (m, s) == (n, t)
    {
        return difference(a, b);
    }
    difference_within(shader, rust, 0..u64::MAX).or_else(|| misplaced(shader, rust))
}

/// The first number that only one of them has, or that has another type in the other, of those bytes of the shader's
/// block that are in the range, where the Rust type begins.
pub(super) fn difference_within(shader: &DataLayout, rust: &DataLayout, part: Range<u64>) -> Option<String> {
    let of = name_of(rust);
    let missing = shader.visit(MAX_ELEMENTS, &mut |number| {
        let PlacedScalar { offset, scalar, of: whole, path } = number;
        if !part.contains(&offset) {
            return ControlFlow::Continue(());
        }
        let has = match rust.at(offset - part.start) {
            Some(there) if there == scalar => return ControlFlow::Continue(()),
            Some(there) => format!("{of} has {there}"),
            None => match offset_of(rust, path).map(|other| part.start + other) {
                Some(other) if Some(other) != offset_of(shader, path) => format!("{of} has `{path}` at byte {other}"),
                _ => format!("{of} has no number there"),
            },
        };
        ControlFlow::Break(format!("the shader has {}{whole}{} at byte {offset}, {has}", quoted(path), close(path)))
    });
    let surplus = || {
        rust.visit(MAX_ELEMENTS, &mut |number| {
            let PlacedScalar { offset, scalar, path, .. } = number;
            let offset = part.start + offset;
            let is_padding = path.split('.').any(|name| name.starts_with('_'));
            if is_padding || shader.at(offset).is_some() {
                return ControlFlow::Continue(());
            }
            let has = format!("{of} has {}{scalar}{} at byte {offset}", quoted(path), close(path));
            ControlFlow::Break(format!("{has}, the shader has no number there (padding needs a name with `_`)"))
        })
    };
    missing.break_value().or_else(|| surplus().break_value())
}

/// `path` and an opening bracket for the type after it; nothing for the whole.
fn quoted(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("`{path}` (") }
}

fn close(path: &str) -> &'static str {
    if path.is_empty() { "" } else { ")" }
}

/// The first byte of the member with these names.
fn offset_of(layout: &DataLayout, path: &str) -> Option<u64> {
    let found = layout.visit(MAX_ELEMENTS, &mut |number| match number.path == path || is_in(number.path, path) {
        true => ControlFlow::Break(number.offset),
        false => ControlFlow::Continue(()),
    });
    found.break_value()
}

/// Whether a path goes on from another: a vector of the shader is an array of the host.
fn is_in(path: &str, whole: &str) -> bool {
    !whole.is_empty() && path.strip_prefix(whole).is_some_and(|rest| rest.starts_with('['))
}

/// A type of Rust, for messages.
pub(super) fn name_of(layout: &DataLayout) -> String {
    match layout {
        DataLayout::Struct { name, .. } => format!("`{name}`"),
        DataLayout::Array { element, count: Some(count), .. } => {
            format!("`[{}; {count}]`", name_of(element).trim_matches('`'))
        }
        layout => format!("`{layout}`"),
    }
}

/// The type of its numbers, if they all have the same one and follow each other without holes.
pub(super) fn uniform(layout: &DataLayout) -> Option<ScalarType> {
    match layout {
        DataLayout::Scalar(scalar) => Some(*scalar),
        DataLayout::Vector { scalar, stride, .. } => (*stride == scalar.bytes()).then_some(*scalar),
        DataLayout::Matrix { scalar, columns, rows, stride, row_major } => {
            let inner = u64::from(if *row_major { *columns } else { *rows });
            (*stride == inner * scalar.bytes()).then_some(*scalar)
        }
        DataLayout::Array { element, stride, .. } => uniform(element).filter(|_| *stride == element.bytes()),
        DataLayout::Struct { members, .. } => {
            let (mut end, mut all) = (0, None);
            for DataMember { offset, layout, .. } in members {
                let scalar = uniform(layout)?;
                if *offset != end || *all.get_or_insert(scalar) != scalar {
                    return None;
                }
                end = offset + layout.bytes();
            }
            all
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Layout;
    use super::super::test_layouts::{F32, member, structure};
    use super::*;

    #[test]
    fn each_difference_is_named() {
        let vec3 = || DataLayout::Vector { scalar: F32, count: 3, stride: 4 };
        let shader = structure(vec![member("count", 0, u32::layout()), member("at", 16, vec3())]);
        let of = |members| difference(&shader, &structure(members));
        let count = || member("count", 0, u32::layout());
        assert_eq!(of(vec![count(), member("at", 16, <[f32; 3]>::layout())]), None);
        // Names may differ, as long as no name is at two places.
        assert_eq!(
            of(vec![count(), member("_hole", 4, <[u32; 3]>::layout()), member("b", 16, <[f32; 3]>::layout())]),
            None
        );
        for (members, expected) in [
            (
                vec![count(), member("at", 4, <[f32; 3]>::layout())],
                "the shader has `at` (vec3<f32>) at byte 16, `Params` has `at` at byte 4",
            ),
            (
                vec![member("count", 0, f32::layout()), member("at", 16, <[f32; 3]>::layout())],
                "the shader has `count` (u32) at byte 0, `Params` has f32",
            ),
            (
                vec![count(), member("at", 16, <[f32; 2]>::layout())],
                "the shader has `at` (vec3<f32>) at byte 24, `Params` has no number there",
            ),
            (
                vec![count(), member("at", 16, <[f32; 4]>::layout())],
                "`Params` has `at[3]` (f32) at byte 28, the shader has no number there \
                 (padding needs a name with `_`)",
            ),
            (
                vec![member("at", 0, u32::layout()), member("count", 16, <[f32; 3]>::layout())],
                "`at` is at byte 16 in the shader's `Params` and at byte 0 in `Params`",
            ),
        ] {
            assert_eq!(of(members).as_deref(), Some(expected));
        }
    }

    #[test]
    fn matrices_and_large_arrays_are_arrays_of_the_host() {
        let matrix = |row_major| DataLayout::Matrix { scalar: F32, columns: 4, rows: 4, stride: 16, row_major };
        assert_eq!(difference(&matrix(false), &<[[f32; 4]; 4]>::layout()), None);
        assert_eq!(difference(&matrix(true), &<[f32; 16]>::layout()), None);
        let vec4 = DataLayout::Vector { scalar: F32, count: 4, stride: 4 };
        let many = DataLayout::Array { element: Box::new(vec4), count: Some(1 << 30), stride: 16 };
        assert_eq!(difference(&many, &<[[f32; 4]; 1 << 30]>::layout()), None);
        // Elements of three floats follow each other without the hole that the shader does not have, up to the end.
        let short = <[[f32; 4]; 3]>::layout();
        assert_eq!(
            difference(&many, &short).as_deref(),
            Some("the shader has `[3]` (vec4<f32>) at byte 48, `[[f32; 4]; 3]` has no number there")
        );
    }
}
