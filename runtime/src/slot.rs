//! Slots: where a context holds what programs find, and what can be put there.

use std::fmt;

use crate::resource::BufferSlice;

/// A place of a context: what a shader finds at a group, a binding and, where that is an array, an element.
///
/// ```
/// use spelter::Slot;
///
/// assert_eq!(Slot::from((0, 3)).to_string(), "binding 0.3");
/// assert_eq!(Slot::from((0, 3, 7)).to_string(), "binding 0.3[7]");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// The descriptor set; `@group` in WGSL.
    pub group: u32,
    /// The binding in it.
    pub binding: u32,
    /// The element of an array of buffers; 0 elsewhere.
    pub element: u32,
}

impl From<(u32, u32)> for Slot {
    fn from((group, binding): (u32, u32)) -> Self {
        Self { group, binding, element: 0 }
    }
}

impl From<(u32, u32, u32)> for Slot {
    fn from((group, binding, element): (u32, u32, u32)) -> Self {
        Self { group, binding, element }
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, binding, element } = self;
        match element {
            0 => write!(f, "binding {group}.{binding}"),
            _ => write!(f, "binding {group}.{binding}[{element}]"),
        }
    }
}

/// In which way a slot uses what is bound to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlotKind {
    /// `var<uniform>`: read only.
    UniformBuffer,
    /// `var<storage>`: read, and maybe written.
    StorageBuffer,
    /// A sampled image, or a buffer as texels: read only, through a view.
    SamplerView,
    /// A storage image, or a buffer as storage texels: read, and maybe written, through a view.
    StorageImage,
}

impl SlotKind {
    pub(crate) const COUNT: usize = 4;
    pub(crate) const ALL: [Self; Self::COUNT] =
        [Self::UniformBuffer, Self::StorageBuffer, Self::SamplerView, Self::StorageImage];

    /// Whether a kernel can write through it.
    pub(crate) fn can_write(self) -> bool {
        matches!(self, Self::StorageBuffer | Self::StorageImage)
    }
}

impl fmt::Display for SlotKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UniformBuffer => "uniform buffer",
            Self::StorageBuffer => "storage buffer",
            Self::SamplerView => "sampler view",
            Self::StorageImage => "storage image",
        })
    }
}

/// What to put into a slot: see [`Context::bind`](crate::Context::bind).
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing is bound until `Context::bind`"]
pub struct Bind<'a> {
    pub(crate) kind: SlotKind,
    pub(crate) slice: BufferSlice<'a>,
}

impl<'a> Bind<'a> {
    /// A buffer, or a part of one, as `var<uniform>`.
    pub fn uniform(buffer: impl Into<BufferSlice<'a>>) -> Self {
        Self { kind: SlotKind::UniformBuffer, slice: buffer.into() }
    }

    /// A buffer, or a part of one, as `var<storage>`.
    pub fn storage(buffer: impl Into<BufferSlice<'a>>) -> Self {
        Self { kind: SlotKind::StorageBuffer, slice: buffer.into() }
    }
}
