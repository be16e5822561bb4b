//! The comparison of the names of two layouts that have the same numbers: fields of one type may be swapped.

use super::difference::name_of;
use super::{DataLayout, DataMember};

/// A field that the other structure has at another byte: numbers of one type that were swapped are at the places of
/// each other. Structures that are elements or members with the same bytes are compared, too, and what a structure with
/// one member wraps. A name of one side only is free, those of padding, and those of another level of structures.
pub(super) fn misplaced(shader: &DataLayout, rust: &DataLayout) -> Option<String> {
    let is_same = is_same_part(shader, rust);
    let (shader, rust) = (unwrapped(shader), unwrapped(rust));
    match (shader, rust) {
        (DataLayout::Struct { .. }, DataLayout::Struct { .. }) if is_same => misplaced_from(shader, 0, rust),
        // The one is what the other begins with, or a part of that.
        (DataLayout::Struct { members, .. }, DataLayout::Struct { .. }) if rust.bytes() < shader.bytes() => {
            misplaced(counterpart(members, 0, rust)?, rust)
        }
        (DataLayout::Struct { .. }, DataLayout::Struct { members, .. }) => {
            misplaced(shader, counterpart(members, 0, shader)?)
        }
        (DataLayout::Array { element: a, stride: s, .. }, DataLayout::Array { element: b, stride: t, .. }) => {
            match (s == t, s > t) {
                (true, _) => misplaced(a, b),
                // An element of the one is several of the other.
                (_, true) => misplaced(a, rust),
                _ => misplaced(shader, b),
            }
        }
        (DataLayout::Struct { members, .. }, DataLayout::Array { element, stride, .. }) => match *stride {
            stride if stride >= shader.bytes() => misplaced(shader, element),
            stride => in_elements(members, stride).find_map(|member| misplaced(&member.layout, element)),
        },
        (DataLayout::Array { element, stride, .. }, DataLayout::Struct { members, .. }) => match *stride {
            stride if stride >= rust.bytes() => misplaced(element, rust),
            stride => in_elements(members, stride).find_map(|member| misplaced(element, &member.layout)),
        },
        _ => None,
    }
}

/// The same of two layouts that begin at one byte, if they are the same part.
fn misplaced_part(shader: &DataLayout, rust: &DataLayout) -> Option<String> {
    if is_same_part(shader, rust) { misplaced(shader, rust) } else { None }
}

/// The same of what a part of a block has all of.
fn misplaced_within(shader: &DataLayout, start: u64, rust: &DataLayout) -> Option<String> {
    if start == 0 && is_same_part(shader, rust) { misplaced(shader, rust) } else { misplaced_from(shader, start, rust) }
}

/// The same, where the Rust type begins at byte `start` of the shader's block. What is inside of a member is compared
/// with that only.
pub(super) fn misplaced_from(shader: &DataLayout, start: u64, rust: &DataLayout) -> Option<String> {
    let (of, theirs) = match shader {
        DataLayout::Struct { name, members } => (name, members),
        DataLayout::Array { element, stride, .. } => {
            let inside = start.checked_rem(*stride)?;
            return match inside {
                inside if inside.saturating_add(end(rust)) <= element.bytes() => {
                    misplaced_within(element, inside, rust)
                }
                0 => misplaced(shader, rust),
                _ => None,
            };
        }
        _ => return None,
    };
    if let Some(whole) = around(theirs, start, rust).filter(|whole| has_structures(&whole.layout)) {
        return misplaced_within(&whole.layout, start - whole.offset, rust);
    }
    let ours = match unwrapped(rust) {
        DataLayout::Struct { members, .. } => members,
        DataLayout::Array { element, stride, .. } => {
            let after = theirs.iter().filter(|their| their.offset >= start && their.offset - start < rust.bytes());
            let mut in_places = after.filter(|their| (their.offset - start).checked_rem(*stride) == Some(0));
            return in_places.find_map(|their| misplaced_part(&their.layout, element));
        }
        _ => return None,
    };
    let named = || ours.iter().filter(|our| !is_padding(our));
    let moved = named().find_map(|our| {
        let place = start + our.offset;
        let (name, at, of) = (&our.name, elsewhere(theirs, place, our)?, quoted_name(of));
        Some(format!("`{name}` is at byte {at} in the shader{of} and at byte {place} in {}", name_of(rust)))
    });
    let within =
        || named().find_map(|our| misplaced(counterpart(theirs, start + our.offset, &our.layout)?, &our.layout));
    moved.or_else(within)
}

/// The byte where the shader has the name of a field that begins at `place`, in the innermost structure that has all of
/// the field, if that is another byte.
fn elsewhere(theirs: &[DataMember], place: u64, our: &DataMember) -> Option<u64> {
    if let Some(whole) = around(theirs, place, &our.layout) {
        let is_all = whole.offset == place && is_same_part(&whole.layout, &our.layout);
        match &whole.layout {
            // What one of them wraps may have the name of the other.
            layout if is_all && (begins_with(layout, our) || begins_with(&our.layout, whole)) => return None,
            DataLayout::Struct { members, .. } if !is_all => {
                return elsewhere(members, place - whole.offset, our).map(|at| whole.offset + at);
            }
            layout if !is_all && has_structures(layout) => return None,
            _ => {}
        }
    }
    let their = theirs.iter().find(|their| their.name == our.name)?;
    (their.offset != place).then_some(their.offset)
}

/// The part of a structure that has exactly the bytes of a layout at `place`.
fn counterpart<'a>(theirs: &'a [DataMember], place: u64, our: &DataLayout) -> Option<&'a DataLayout> {
    let whole = around(theirs, place, our)?;
    match &whole.layout {
        layout if whole.offset == place && is_same_part(layout, our) => Some(layout),
        DataLayout::Struct { members, .. } => counterpart(members, place - whole.offset, our),
        _ => None,
    }
}

/// The member that has all numbers of a layout that begins at `place`.
fn around<'a>(theirs: &'a [DataMember], place: u64, our: &DataLayout) -> Option<&'a DataMember> {
    let end = place.saturating_add(end(our));
    let has = |their: &&DataMember| their.offset <= place && end <= their.offset.saturating_add(their.layout.bytes());
    theirs.iter().find(has)
}

/// Whether a member that begins with the structure, and has the same bytes, has the name of the field.
fn begins_with(layout: &DataLayout, field: &DataMember) -> bool {
    let DataLayout::Struct { members, .. } = layout else { return false };
    let mut first = members.iter().filter(|first| first.offset == 0 && is_same_part(&first.layout, &field.layout));
    first.any(|first| first.name == field.name || begins_with(&first.layout, field))
}

/// Whether two layouts that begin at one byte end at one, too; one may have padding where the other has numbers.
fn is_same_part(a: &DataLayout, b: &DataLayout) -> bool {
    end(a) <= b.bytes() && end(b) <= a.bytes()
}

/// Bytes to the end of the last number that is not padding.
fn end(layout: &DataLayout) -> u64 {
    match layout {
        DataLayout::Struct { members, .. } => {
            let named = members.iter().filter(|member| !is_padding(member));
            named.map(|member| member.offset.saturating_add(end(&member.layout))).max().unwrap_or(0)
        }
        DataLayout::Array { element, count: Some(count @ 1..), stride } => {
            (count - 1).saturating_mul(*stride) + end(element)
        }
        layout => layout.bytes(),
    }
}

fn is_padding(member: &DataMember) -> bool {
    member.name.starts_with('_')
}

/// Whether it is a structure, or an array of some.
fn has_structures(layout: &DataLayout) -> bool {
    match layout {
        DataLayout::Struct { .. } => true,
        DataLayout::Array { element, .. } => has_structures(element),
        _ => false,
    }
}

/// The structure or array in structures that have nothing else but padding, or the layout itself.
fn unwrapped(mut layout: &DataLayout) -> &DataLayout {
    while let DataLayout::Struct { members, .. } = layout {
        let mut named = members.iter().filter(|member| !is_padding(member));
        let (Some(DataMember { offset: 0, layout: within, .. }), None) = (named.next(), named.next()) else { break };
        if !matches!(within, DataLayout::Struct { .. } | DataLayout::Array { .. }) {
            break;
        }
        layout = within;
    }
    layout
}

/// The members that begin where an element of an array does.
fn in_elements(members: &[DataMember], stride: u64) -> impl Iterator<Item = &DataMember> {
    members.iter().filter(move |member| member.offset.checked_rem(stride) == Some(0))
}

/// The name of a structure of the shader, if it has one.
fn quoted_name(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!("'s `{name}`") }
}

#[cfg(test)]
mod tests {
    use super::super::Layout;
    use super::super::difference::difference;
    use super::super::test_layouts::{F32, member, structure};
    use super::*;

    /// Two numbers that are swapped, within what wraps or repeats them on one side only.
    #[test]
    fn swapped_numbers_are_found_wherever_they_are() {
        let ball = |names: [&str; 2]| {
            let [a, b] = names;
            DataLayout::Struct {
                name: "Ball".into(),
                members: vec![member(a, 0, DataLayout::Scalar(F32)), member(b, 4, DataLayout::Scalar(F32))],
            }
        };
        let array = |element: DataLayout, count| {
            let stride = element.bytes();
            DataLayout::Array { element: Box::new(element), count, stride }
        };
        let wrap = |layout| structure(vec![member("inner", 0, layout)]);
        let two = |layout: DataLayout| structure(vec![member("first", 0, layout.clone()), member("second", 8, layout)]);
        for (make, of) in [
            (wrap as fn(DataLayout) -> DataLayout, 1),
            (|ball| DataLayout::Array { stride: 8, element: Box::new(ball), count: Some(2) }, 2),
        ] {
            let (same, swapped) = (ball(["mass", "size"]), ball(["size", "mass"]));
            let alone = |ball: &DataLayout| if of == 1 { ball.clone() } else { two(ball.clone()) };
            for (shader, rust) in [(make(same.clone()), alone(&swapped)), (alone(&same), make(swapped.clone()))] {
                let found = difference(&shader, &rust).unwrap_or_default();
                assert!(
                    found.contains("`size` is at byte 4 in the shader's `Ball` and at byte 0 in `Ball`"),
                    "{shader} {rust}: {found}"
                );
            }
            for (shader, rust) in [(make(same.clone()), alone(&same)), (alone(&same), make(same.clone()))] {
                assert_eq!(difference(&shader, &rust), None, "{shader} {rust}");
            }
        }
        // An array without a size, and one of pairs.
        let pairs = array(array(ball(["size", "mass"]), Some(2)), Some(4));
        assert!(misplaced(&array(ball(["mass", "size"]), None), &pairs).is_some());
        assert_eq!(misplaced(&array(ball(["size", "mass"]), None), &pairs), None);
        // A part of push constants.
        let block = structure(vec![
            member("at", 0, DataLayout::Scalar(F32)),
            member("mass", 4, DataLayout::Scalar(F32)),
            member("size", 8, DataLayout::Scalar(F32)),
        ]);
        assert!(misplaced_from(&block, 4, &ball(["size", "mass"])).is_some());
        assert_eq!(misplaced_from(&block, 4, &ball(["mass", "size"])), None);
        let block = structure(vec![member("at", 0, <[f32; 2]>::layout()), member("ball", 8, ball(["mass", "size"]))]);
        assert!(misplaced_from(&block, 8, &ball(["size", "mass"])).is_some());
    }

    /// A name belongs to one structure: those of structures in it or around it are others.
    #[test]
    fn names_are_compared_on_their_level_only() {
        let f32 = || DataLayout::Scalar(F32);
        let of = |names: &[&str]| {
            let members = names.iter().zip(0..).map(|(name, at)| member(name, 4 * at, f32())).collect();
            structure(members)
        };
        let two = |layout: DataLayout| DataLayout::Array {
            stride: layout.bytes(),
            count: Some(2),
            element: Box::new(layout),
        };
        // A part of push constants that is a member of the block.
        let more = structure(vec![member("scale", 0, f32()), member("more", 4, of(&["scale"]))]);
        assert_eq!(misplaced_from(&more, 4, &of(&["scale"])), None);
        assert_eq!(misplaced_from(&more, 4, &structure(vec![member("more", 0, of(&["scale"]))])), None);
        assert!(misplaced_from(&more, 4, &of(&["b"])).is_none());
        let pair = structure(vec![member("size", 0, f32()), member("pair", 4, of(&["mass", "size", "a", "b"]))]);
        for (start, rust, is_right) in [
            (4, of(&["mass", "size", "a", "b"]), true),
            (4, of(&["size", "mass", "a", "b"]), false),
            (4, of(&["mass", "size"]), true),
            (12, of(&["a", "b"]), true),
            (12, of(&["b", "a"]), false),
            (4, of(&["size"]), false),
            (0, of(&["size", "x"]), true),
            (0, of(&["pair"]), false),
        ] {
            assert_eq!(misplaced_from(&pair, start, &rust).is_none(), is_right, "{start} {rust:?}");
        }
        // A part of an array of structures.
        let all = two(of(&["mass", "size"]));
        assert_eq!(misplaced_from(&all, 8, &of(&["mass", "size"])), None);
        assert!(misplaced_from(&all, 8, &of(&["size", "mass"])).is_some());
        let inner = || of(&["mass", "size"]);
        let swapped = || of(&["size", "mass"]);
        let block = |name: &str, layout: DataLayout| structure(vec![member(name, 0, layout), member("size", 8, f32())]);
        let with = |name: &str, layout: DataLayout| structure(vec![member(name, 0, layout), member("other", 8, f32())]);
        for (shader, rust, is_right) in [
            // The structure's name for `size` is not the block's.
            (block("ball", inner()), with("ball", inner()), true),
            (block("ball", inner()), with("ball", swapped()), false),
            (block("ball", inner()), with("size", inner()), false),
            // Without the structure.
            (block("ball", inner()), of(&["mass", "size", "z"]), true),
            (block("ball", inner()), of(&["size", "mass", "z"]), false),
            (block("size_of", inner()), of(&["a", "b", "size"]), true),
            (block("mass", of(&["a", "mass"])), of(&["a", "mass", "size"]), true),
            // Several members as one structure.
            (of(&["a", "mass", "size"]), with("pair", of(&["size", "x"])), true),
            (of(&["a", "mass", "size"]), with("mass", of(&["x", "y"])), false),
            // What wraps a number has a name, and the number another.
            (block("more", of(&["size", "x"])), block("more", of(&["size", "x"])), true),
            (
                structure(vec![member("more", 0, of(&["size"])), member("size", 4, f32())]),
                of(&["size", "more_size"]),
                true,
            ),
            (structure(vec![member("more", 0, of(&["a"])), member("size", 4, f32())]), of(&["size", "more"]), false),
            (of(&["a", "b"]), structure(vec![member("b", 0, of(&["a"])), member("c", 4, f32())]), true),
            // Padding on one side, and what it leaves of a structure.
            (
                structure(vec![member("ball", 0, inner())]),
                structure(vec![member("it", 0, swapped()), member("_pad", 8, f32())]),
                false,
            ),
            (of(&["mass", "size", "x"]), of(&["mass", "size", "_x"]), true),
            (of(&["mass", "size", "x"]), of(&["size", "mass", "_x"]), false),
            // Arrays of structures, and structures.
            (two(inner()), of(&["a", "b", "size", "mass"]), true),
            (two(inner()), structure(vec![member("size", 0, inner()), member("mass", 8, inner())]), true),
            (two(inner()), structure(vec![member("x", 0, inner()), member("y", 8, swapped())]), false),
            (structure(vec![member("size", 0, inner()), member("mass", 8, inner())]), two(inner()), true),
            (two(two(inner())), two(structure(vec![member("x", 0, inner()), member("y", 8, swapped())])), false),
            (two(two(inner())), two(two(of(&["size"]))), true),
            // An element that is several members.
            (
                structure(vec![
                    member("a", 0, inner()),
                    member("b", 8, swapped()),
                    member("c", 16, inner()),
                    member("d", 24, swapped()),
                ]),
                two(structure(vec![member("x", 0, inner()), member("y", 8, swapped())])),
                true,
            ),
        ] {
            assert_eq!(misplaced(&shader, &rust).is_none(), is_right, "{shader:?} {rust:?}");
        }
    }
}
