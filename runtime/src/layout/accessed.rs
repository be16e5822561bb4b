//! Whether values that the host reads or writes are of the type that a handle gives to its buffer. Rust's types of both
//! are known at different places, so what can be compared are identities, names of types, and the numbers of a layout.

use std::any::{TypeId, type_name};
use std::ops::{ControlFlow, Range};

use super::difference::{MAX_ELEMENTS, name_of, uniform};
use super::element::{BufferType, ElementType};
use super::scalar::{element_name, scalar_of};
use super::{DataLayout, ScalarType};

impl BufferType {
    /// Why the bytes `range` of the buffer are no values of type `T`. Bytes (`u8`) and numbers of the type that is
    /// there are always allowed; of other types than the buffer's, whose layout is not known, only the size is
    /// compared, if the buffer holds plain numbers.
    pub(crate) fn mistaken_for<T: 'static>(&self, range: &Range<u64>) -> Option<String> {
        let Some(tail) = self.tail else { return self.head.mistaken_for::<T>(range.clone(), 0) };
        let head = range.start..range.end.min(tail.start);
        let rest = range.start.saturating_sub(tail.start)..range.end.saturating_sub(tail.start);
        let in_head = self.head.mistaken_for::<T>(head, 0);
        in_head.or_else(|| tail.element.mistaken_for::<T>(rest, tail.start))
    }
}

impl ElementType {
    /// The same of an array of these values that begins at the byte `first` of a buffer, and a range in the array.
    fn mistaken_for<T: 'static>(&self, range: Range<u64>, first: u64) -> Option<String> {
        let (size, wanted) = (self.size(), size_of::<T>() as u64);
        if range.is_empty() || size == 0 || wanted == 0 {
            return None;
        }
        let is_same = TypeId::of::<T>() == self.id();
        match scalar_of::<T>() {
            Some(ScalarType::Uint(8)) => return None,
            Some(scalar) if !is_same => return self.has_other_number(scalar, range, first),
            _ => {}
        }
        let layout = self.layout();
        let is_known =
            is_same || element_name(type_name::<T>()) == element_name(self.name()) || uniform(&layout).is_some();
        let (larger, smaller) = (size.max(wanted), size.min(wanted));
        if !is_known || !larger.is_multiple_of(smaller) {
            return Some(format!("it holds values of type {}, not `{}`", name_of(&layout), type_name::<T>()));
        }
        let start = range.start;
        (!start.is_multiple_of(smaller)).then(|| {
            let at = first + start;
            format!("byte {at} is inside of a value: those of type {} have {size} bytes", name_of(&layout))
        })
    }

    /// The first number that the range overlaps, if that has another type or begins at another byte than the values.
    fn has_other_number(&self, scalar: ScalarType, range: Range<u64>, first: u64) -> Option<String> {
        let layout = self.layout();
        let (layout, size) = repeated(&layout, self.size());
        let bytes = scalar.bytes();
        let found = layout.visit(MAX_ELEMENTS, &mut |number| {
            // The first of these numbers that ends in the range or after it.
            let end = number.offset + number.scalar.bytes();
            let before = (range.start + 1).saturating_sub(end).div_ceil(size);
            let at = number.offset + before * size;
            let is_padding = number.path.split('.').any(|name| name.starts_with('_'));
            let fits = number.scalar == scalar && at.abs_diff(range.start).is_multiple_of(bytes);
            if is_padding || at >= range.end || fits {
                return ControlFlow::Continue(());
            }
            ControlFlow::Break((number.scalar, number.path.to_owned(), at))
        });
        let (there, path, at) = found.break_value()?;
        let of = match (layout, path.is_empty()) {
            (DataLayout::Struct { .. }, false) => format!("`{path}` ({there}) of {}", name_of(layout)),
            _ => there.to_string(),
        };
        if there != scalar {
            return Some(format!("it holds {of} at byte {}, not {scalar}", first + at));
        }
        // Where the first value that the host accesses begins, or one of them ends.
        let edge = range.start + at.saturating_sub(range.start).next_multiple_of(bytes);
        Some(format!("byte {} is inside of a number: {of} begins at byte {}", first + edge, first + at))
    }
}

/// What values of `size` bytes consist of when they follow each other, and its size: of arrays, an element. The numbers
/// of long arrays are not all visited.
fn repeated(mut layout: &DataLayout, mut size: u64) -> (&DataLayout, u64) {
    while let DataLayout::Array { element, count: Some(count), stride } = layout {
        if *stride == 0 || count.saturating_mul(*stride) != size {
            break;
        }
        (layout, size) = (&**element, *stride);
    }
    (layout, size)
}
