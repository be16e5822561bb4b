//! Identifiers and kinds that the whole crate shares: slots, resources, objects, batches, accesses. This module imports
//! nothing from the crate.

use std::fmt;

use spelter_shaders::ir::BindingKind;

/// A binding point of a context: a group, a binding and, for an array, an element.
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

/// How a slot uses the bound resource.
///
/// ```
/// # fn main() -> Result<(), spelter::Error> {
/// assert_eq!(spelter::SlotKind::SamplerView.to_string(), "sampler view");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlotKind {
    /// `var<uniform>`: read only.
    UniformBuffer,
    /// `var<storage>`: read, and possibly written.
    StorageBuffer,
    /// A sampled image, or a buffer as texels: read only, through a view.
    SamplerView,
    /// A storage image, or a buffer as storage texels: read, and possibly written, through a view.
    StorageImage,
    /// A sampler without a resource.
    Sampler,
}

impl SlotKind {
    pub(crate) const COUNT: usize = 5;
    pub(crate) const ALL: [Self; Self::COUNT] =
        [Self::UniformBuffer, Self::StorageBuffer, Self::SamplerView, Self::StorageImage, Self::Sampler];

    /// The kind of slot that a binding of this kind needs.
    pub(crate) fn of(kind: BindingKind) -> Self {
        match kind {
            BindingKind::UniformBuffer => Self::UniformBuffer,
            BindingKind::StorageBuffer => Self::StorageBuffer,
            BindingKind::StorageImage | BindingKind::StorageTexelBuffer => Self::StorageImage,
            BindingKind::SampledImage | BindingKind::CombinedImageSampler | BindingKind::UniformTexelBuffer => {
                Self::SamplerView
            }
            BindingKind::Sampler => Self::Sampler,
        }
    }

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
            Self::Sampler => "sampler",
        })
    }
}

/// The identity of a buffer or image: all handles of it have the same, whatever its storage.
///
/// ```
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let (a, b) = (context.buffer_zeroed(4)?, context.buffer_zeroed(4)?);
/// assert!(a.id() == a.clone().id() && a.id() != b.id());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId(pub(crate) u64);

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "resource {}", self.0)
    }
}

/// The identity of an object, the storage of a resource. No two objects of a process have the same, even if one is made
/// from the memory of the other.
///
/// ```
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let buffer = context.buffer_zeroed(4)?;
/// let id = buffer.object()?.id;
/// assert_eq!(buffer.object()?.id, id);
/// assert!(id.to_string().starts_with("object "));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub(crate) u64);

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "object {}", self.0)
    }
}

/// The identity of a descriptor set: all handles of it have the same.
///
/// ```
/// use spelter::{BindingKind, SetBinding};
///
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let layout = [SetBinding::new(0, BindingKind::StorageBuffer)];
/// let set = context.descriptor_set_of(&layout).updatable().build()?;
/// assert!(set.id() == set.clone().id() && set.id().to_string().starts_with("set "));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetId(pub(crate) u64);

impl fmt::Display for SetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "set {}", self.0)
    }
}

/// The number of a context in its device, counted from 1 on.
///
/// ```
/// # fn main() -> Result<(), spelter::Error> {
/// let context = spelter::Context::new()?;
/// assert_eq!([&context, &context.sibling()].map(|one| one.id().to_string()), ["context 1", "context 2"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(pub(crate) u64);

impl fmt::Display for ContextId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "context {}", self.0)
    }
}

/// A batch of a context, by its serial.
///
/// ```
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let buffer = context.buffer_zeroed(4)?;
/// context.fill(&buffer, 1)?;
/// let batch = buffer.object()?.writers[0];
/// assert_eq!((batch.context, batch.to_string()), (context.id(), "batch 1 of context 1".to_owned()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchId {
    /// The context that recorded it.
    pub context: ContextId,
    /// Its number in the context, counted from 1 on.
    pub serial: u64,
}

impl fmt::Display for BatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "batch {} of {}", self.serial, self.context)
    }
}

/// The identity of a command buffer: all handles of it have the same, also after it was recorded again.
///
/// ```
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let [a, b] = [context.record(|_| Ok(()))?, context.record(|_| Ok(()))?];
/// assert!(a.id() == a.clone().id() && a.id() != b.id());
/// assert!(a.id().to_string().starts_with("command buffer "));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandBufferId(pub(crate) u64);

impl fmt::Display for CommandBufferId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "command buffer {}", self.0)
    }
}

/// A kind of command, for events and messages.
///
/// ```
/// assert_eq!(spelter::CommandKind::Dispatch.to_string(), "dispatch");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CommandKind {
    /// A direct or indirect dispatch.
    Dispatch,
    /// A copy from resource to resource, or of levels that an invalidation keeps.
    Copy,
    /// A fill of bytes.
    Fill,
    /// A clear of an image.
    Clear,
    /// A copy of bytes that the host wrote to a staging buffer.
    Write,
}

impl CommandKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Dispatch => "dispatch",
            Self::Copy => "copy",
            Self::Fill => "fill",
            Self::Clear => "clear",
            Self::Write => "write",
        }
    }
}

impl fmt::Display for CommandKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The number of a batch in its context, counted from 1 on; 0 is before the first.
pub(crate) type Serial = u64;

/// The use of an object by a command or by the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// It is only read.
    Read,
    /// It may be written.
    Write,
}

impl Access {
    pub(crate) fn writes(self) -> bool {
        self == Self::Write
    }
}
