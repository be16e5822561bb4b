//! A Rust type as a value: its layout, for checks that run when the type is no parameter any more.

use std::any::{TypeId, type_name};
use std::fmt;

use super::{DataLayout, Layout};

/// The type of the values in a buffer or of push constants.
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
