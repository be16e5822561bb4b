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
    /// The buffer or image that a descriptor has a part of: in findings about one dispatch, if the program gave it a
    /// name.
    pub resource: Option<FoundResource>,
}

/// A buffer or image.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FoundResource {
    /// Which of the two.
    pub kind: ResourceKind,
    /// The name that the program gave it (`vkSetDebugUtilsObjectNameEXT`).
    pub name: Option<Arc<str>>,
    /// Its number: buffers, or images, that were created on the device before it.
    pub number: u64,
    /// Its size.
    pub bytes: u64,
    /// What it is for.
    pub role: ResourceRole,
}

/// What a buffer or image is for, as far as checked mode knows: one that a program makes anew, in each frame, has the
/// role of the one that it destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceRole {
    /// The usage flags with which it was created.
    pub usage: u32,
    /// The lowest number that no other one of its kind, usage and size had when it got memory.
    pub number: u64,
}

/// A resource of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
    Resource(FoundResource),
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

    /// Memory that is known by a descriptor, with the buffer or image that has it.
    pub(super) fn of(self, resource: Option<Self>) -> Self {
        let resource = match resource.map(|resource| resource.place) {
            Some(FoundPlace::Resource(resource)) => Some(resource),
            _ => None,
        };
        Self { resource, ..self }
    }

    /// The same if the program gave the buffer or image a name.
    pub(super) fn of_named(self, resource: Option<Self>) -> Self {
        let resource = resource.filter(|resource| resource.place.name().is_some());
        self.of(resource)
    }
}

impl FoundPlace {
    /// The name of the variable or resource, if it has one.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Descriptor { name, .. } | Self::Resource(FoundResource { name, .. }) => name.as_deref(),
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
            Self::Resource(resource) => resource.fmt(f),
            Self::Address(address) => write!(f, "device address {address:#x}"),
        }
    }
}

/// ``buffer `words` ``, or `buffer 3 (of 65,536 bytes)` without a name.
impl fmt::Display for FoundResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.name();
        match &self.name {
            Some(name) => write!(f, "{kind} `{name}`"),
            None => write!(f, "{kind} {} (of {} bytes)", self.number, in_thousands(self.bytes)),
        }
    }
}

/// A number with a comma after the thousands, the millions and so on.
fn in_thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

impl fmt::Display for FoundMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.place)?;
        if let Some(resource) = &self.resource {
            write!(f, " of {resource}")?;
        }
        write!(f, ", bytes {}..{}", self.bytes.start, self.bytes.end)
    }
}

#[cfg(test)]
mod tests {
    use super::in_thousands;

    #[test]
    fn numbers_have_commas_between_thousands() {
        let numbers = [0, 999, 1000, 65_536, 1_000_000];
        assert_eq!(numbers.map(in_thousands), ["0", "999", "1,000", "65,536", "1,000,000"]);
    }
}
