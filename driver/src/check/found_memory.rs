//! The memory of a finding: a binding or variable of a kernel, a buffer or image, an address.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The memory that two accesses have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundMemory {
    /// Where it is.
    pub place: FoundPlace,
    /// The bytes, from the start of the descriptor's range or of the variable.
    pub bytes: Range<u64>,
    /// The buffer or image that a descriptor has a part of, if the program gave it a name.
    pub resource: Option<NamedResource>,
}

/// A buffer or image with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedResource {
    /// Which of the two.
    pub kind: ResourceKind,
    /// The name that the program gave it (`vkSetDebugUtilsObjectNameEXT`).
    pub name: Arc<str>,
}

/// A resource of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundPlace {
    /// A buffer or image.
    Descriptor {
        /// `DescriptorSet`; WGSL's group.
        set: u32,
        /// `Binding`.
        binding: u32,
        /// Element of an array of descriptors.
        element: u32,
        /// Name of the variable, if the module has it.
        name: Option<Arc<str>>,
    },
    /// A workgroup variable.
    Variable {
        /// Its name; empty if the module has none.
        name: Arc<str>,
    },
    /// A buffer or image, in findings about transfers and the host.
    Resource {
        /// Which of the two.
        kind: ResourceKind,
        /// The name that the program gave it.
        name: Option<Arc<str>>,
        /// Its number: buffers and images that got memory before it.
        number: u64,
    },
    /// Memory at a device address.
    Address(u64),
}

/// A kind of resource with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceKind {
    /// `VkBuffer`.
    Buffer,
    /// `VkImage`.
    Image,
}

impl ResourceKind {
    /// The kind, as a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Buffer => "buffer",
            Self::Image => "image",
        }
    }
}

impl FoundMemory {
    pub(super) fn new(place: FoundPlace, bytes: Range<u64>) -> Self {
        Self { place, bytes, resource: None }
    }

    /// With the name of the buffer or image, if it has one and is known by a descriptor.
    pub(super) fn of(self, resource: Option<Self>) -> Self {
        let named = match resource.map(|resource| resource.place) {
            Some(FoundPlace::Resource { kind, name: Some(name), .. }) => Some(NamedResource { kind, name }),
            _ => None,
        };
        Self { resource: named, ..self }
    }
}

impl FoundPlace {
    /// The name of the variable or resource, if it has one.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Descriptor { name, .. } | Self::Resource { name, .. } => name.as_deref(),
            Self::Variable { name } => Some(name).filter(|name| !name.is_empty()).map(|name| &**name),
            Self::Address(_) => None,
        }
    }
}

impl fmt::Display for FoundPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Descriptor { set, binding, element, name } => {
                if let Some(name) = name {
                    write!(f, "`{name}` ")?;
                }
                write!(f, "(set {set}, binding {binding}")?;
                if *element != 0 { write!(f, ", element {element})") } else { f.write_str(")") }
            }
            Self::Variable { name } if name.is_empty() => f.write_str("workgroup memory"),
            Self::Variable { name } => write!(f, "workgroup variable `{name}`"),
            Self::Resource { kind, name: Some(name), .. } => write!(f, "{} `{name}`", kind.name()),
            Self::Resource { kind, name: None, number } => write!(f, "{} {number}", kind.name()),
            Self::Address(address) => write!(f, "device address {address:#x}"),
        }
    }
}

impl fmt::Display for FoundMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.place)?;
        if let Some(NamedResource { kind, name }) = &self.resource {
            write!(f, " of {} `{name}`", kind.name())?;
        }
        write!(f, ", bytes {}..{}", self.bytes.start, self.bytes.end)
    }
}
