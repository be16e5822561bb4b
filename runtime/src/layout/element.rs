//! Rust types as values: what a typed buffer or push constants hold, for checks that run when the type is no parameter
//! any more.

use std::any::{TypeId, type_name};
use std::fmt;

use super::{DataLayout, Layout};

/// A type of values.
#[derive(Clone, Copy)]
pub(crate) struct ElementType {
    id: TypeId,
    size: u64,
    name: &'static str,
    layout: fn() -> DataLayout,
}

impl ElementType {
    pub(crate) fn of<T: Layout + 'static>() -> Self {
        Self { id: TypeId::of::<T>(), size: size_of::<T>() as u64, name: type_name::<T>(), layout: T::layout }
    }

    /// What tells it from other types.
    pub(crate) fn id(&self) -> TypeId {
        self.id
    }

    /// Bytes of a value, and from one to the next.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn layout(&self) -> DataLayout {
        (self.layout)()
    }
}

impl PartialEq for ElementType {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl fmt::Debug for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// What a buffer holds: values of one type, or one value and an array of others after it.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct BufferType {
    /// The values, or the one before the array.
    pub(crate) head: ElementType,
    pub(crate) tail: Option<Tail>,
}

/// The array at the end of a buffer.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Tail {
    /// Its first byte.
    pub(crate) start: u64,
    pub(crate) element: ElementType,
}

impl BufferType {
    pub(crate) fn of<T: Layout + 'static>() -> Self {
        Self { head: ElementType::of::<T>(), tail: None }
    }

    /// The array begins where a `repr(C)` struct would have it.
    pub(crate) fn with_tail<H: Layout + 'static, T: Layout + 'static>() -> Self {
        let start = size_of::<H>().next_multiple_of(align_of::<T>()) as u64;
        Self { head: ElementType::of::<H>(), tail: Some(Tail { start, element: ElementType::of::<T>() }) }
    }

    /// What tells it from other types.
    pub(crate) fn id(&self) -> (TypeId, Option<TypeId>) {
        (self.head.id, self.tail.map(|tail| tail.element.id))
    }

    /// Bytes at multiples of which a value may begin; none if only the first byte of a buffer is one.
    pub(crate) fn step(&self) -> Option<u64> {
        self.tail.is_none().then_some(self.head.size)
    }
}

impl fmt::Debug for BufferType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tail {
            None => self.head.fmt(f),
            Some(tail) => write!(f, "{:?} with an array of {:?}", self.head, tail.element),
        }
    }
}
