//! The memory of a launch: buffers with their contents, and the locations and references of the program.

use std::collections::BTreeMap;

use spelter_shaders::ir::{Binding, BindingKind, Kernel, Variable};

use super::Launch;

/// A descriptor: its binding and its element.
pub(super) type Descriptor = (Binding, u32);

/// A word that invocations share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MemoryLocation {
    /// A word of a storage buffer, by its offset in bytes.
    Buffer(Descriptor, u32),
    /// A word of a workgroup variable, and the number of its workgroup.
    Workgroup(Variable, u32, u32),
}

/// All memory.
pub(super) struct Memory {
    buffers: BTreeMap<Descriptor, Vec<u8>>,
    names: BTreeMap<Descriptor, String>,
    /// The index of a word's location, which is that of its reference as well: each word is accessed through one
    /// descriptor or variable only.
    indices: BTreeMap<MemoryLocation, u32>,
    /// Names and initial values.
    pub(super) locations: Vec<(String, i64)>,
}

impl Memory {
    /// The buffers of the options, with zeros for storage buffers of known size that no option fills.
    pub(super) fn new(kernel: &Kernel, launch: &Launch) -> Result<Self, String> {
        let (mut buffers, mut names) = (BTreeMap::new(), BTreeMap::new());
        for (binding, data) in &kernel.bindings {
            let (option, fills) = match data.kind {
                BindingKind::StorageBuffer => ("--bind", &launch.storage),
                BindingKind::UniformBuffer => ("--uniform", &launch.uniform),
                _ => return Err(format!("binding {}.{} is not a buffer", data.set, data.binding)),
            };
            for element in 0..data.count.max(1) {
                let shown = match data.count {
                    1 => format!("{}.{}", data.set, data.binding),
                    _ => format!("{}.{}[{element}]", data.set, data.binding),
                };
                let bytes = match fills.get(&(data.set, data.binding, element)) {
                    Some(bytes) => bytes.clone(),
                    None if option == "--bind" && data.element_bytes == 0 => vec![0; data.min_bytes as usize],
                    None if option == "--bind" => {
                        let hint = format!("{option} {shown}=zeros:BYTES gives its size");
                        return Err(format!("binding {shown} ends with an array whose size is unknown: {hint}"));
                    }
                    None => return Err(format!("binding {shown} has no values: use {option} {shown}=VALUE")),
                };
                let known = launch.names.iter().find(|name| (name.0, name.1) == (data.set, data.binding));
                let base = known.map_or(shown, |(.., name)| match data.count {
                    1 => name.clone(),
                    _ => format!("{name}[{element}]"),
                });
                names.insert((binding, element), base);
                buffers.insert((binding, element), bytes);
            }
        }
        Ok(Self { buffers, names, indices: BTreeMap::new(), locations: Vec::new() })
    }

    /// Bytes of a buffer; 0 for an element that an array does not have.
    pub(super) fn size(&self, descriptor: Descriptor) -> u32 {
        self.buffers.get(&descriptor).map_or(0, |bytes| bytes.len() as u32)
    }

    /// The initial value of a word; 0 beyond the end.
    pub(super) fn initial(&self, descriptor: Descriptor, offset: u32) -> u32 {
        let bytes = self.buffers.get(&descriptor).map_or(&[][..], |bytes| &bytes[..]);
        word(bytes, offset)
    }

    /// The index of a word's reference and location.
    pub(super) fn index(&mut self, kernel: &Kernel, place: MemoryLocation) -> u32 {
        if let Some(&index) = self.indices.get(&place) {
            return index;
        }
        let (name, value) = match place {
            MemoryLocation::Buffer(descriptor, offset) => {
                let data = &kernel.bindings[descriptor.0];
                let base = self.names.get(&descriptor).map_or("", String::as_str);
                let name = match (data.min_bytes, data.element_bytes) {
                    (4, 0) => base.to_owned(),
                    (0, 4) => format!("{base}[{}]", offset / 4),
                    _ => format!("{base}+{offset}"),
                };
                (name, i64::from(self.initial(descriptor, offset)))
            }
            MemoryLocation::Workgroup(variable, offset, workgroup) => {
                let data = &kernel.variables[variable];
                let base = if data.name.is_empty() { variable.to_string() } else { data.name.clone() };
                let at = if data.bytes == 4 { String::new() } else { format!("[{}]", offset / 4) };
                let of = if workgroup == 0 { String::new() } else { format!("@{workgroup}") };
                (format!("{base}{at}{of}"), 0)
            }
        };
        let index = self.locations.len() as u32;
        self.locations.push((name, value));
        self.indices.insert(place, index);
        index
    }
}

/// The word at an offset, with zeros beyond the end.
pub(super) fn word(bytes: &[u8], offset: u32) -> u32 {
    let byte = |at: u32| bytes.get(offset.saturating_add(at) as usize).copied().unwrap_or(0);
    u32::from_le_bytes([byte(0), byte(1), byte(2), byte(3)])
}
