//! Layouts and bind groups: descriptor sets that are written once.

use spelter_driver::vk::DescriptorType;
use spelter_driver::{
    Binding, BufferInfo, DescriptorImageInfo, DescriptorSet, DescriptorSetLayout, Device, Error, PushRange,
};
use wgpu_hal::{BindGroupDescriptor, BindGroupEntry, BufferBinding, DeviceError};
use wgpu_types::{BindGroupLayoutEntry, BindingType, BufferBindingType};

use crate::buffer::{Buffer, bound};
use crate::error::{computes_only, device_error};
use crate::hal::Never;
use crate::texture::{Sampler, TextureView};

/// The layout of a bind group. A handle.
#[derive(Clone, Debug)]
pub struct BindGroupLayout {
    raw: DescriptorSetLayout,
    /// By binding number.
    types: Vec<(u32, DescriptorType)>,
}

/// A bind group. A handle.
#[derive(Clone, Debug)]
pub struct BindGroup(pub(crate) DescriptorSet);

/// The layout of a pipeline. A handle.
#[derive(Clone, Debug)]
pub struct PipelineLayout {
    pub(crate) raw: spelter_driver::PipelineLayout,
    /// Whether its pipelines may have immediates.
    pub(crate) has_immediates: bool,
}

/// Bytes of immediates, in all layouts, so that what is bound or set with one layout stays valid for the others
/// (Vulkan, "Pipeline Layout Compatibility").
pub(crate) const IMMEDIATES: PushRange = PushRange { offset: 0, size: 256 };

impl BindGroupLayout {
    pub(crate) fn new(device: &Device, entries: &[BindGroupLayoutEntry]) -> Result<Self, DeviceError> {
        let one = |entry: &BindGroupLayoutEntry| {
            let count = entry.count.map_or(1, u32::from);
            Ok(Binding { binding: entry.binding, ty: descriptor_type(&entry.ty)?, count })
        };
        let bindings = entries.iter().map(one).collect::<Result<Vec<_>, DeviceError>>()?;
        let raw = device.create_descriptor_set_layout(&bindings).map_err(device_error)?;
        let mut types: Vec<_> = bindings.iter().map(|binding| (binding.binding, binding.ty)).collect();
        types.sort_unstable_by_key(|(binding, _)| *binding);
        Ok(Self { raw, types })
    }

    fn descriptor_type(&self, binding: u32) -> Option<DescriptorType> {
        let at = self.types.binary_search_by_key(&binding, |(number, _)| *number).ok()?;
        Some(self.types[at].1)
    }
}

fn descriptor_type(ty: &BindingType) -> Result<DescriptorType, DeviceError> {
    Ok(match *ty {
        BindingType::Buffer { ty: BufferBindingType::Uniform, has_dynamic_offset: false, .. } => {
            DescriptorType::UNIFORM_BUFFER
        }
        BindingType::Buffer { ty: BufferBindingType::Uniform, has_dynamic_offset: true, .. } => {
            DescriptorType::UNIFORM_BUFFER_DYNAMIC
        }
        BindingType::Buffer { ty: BufferBindingType::Storage { .. }, has_dynamic_offset: false, .. } => {
            DescriptorType::STORAGE_BUFFER
        }
        BindingType::Buffer { ty: BufferBindingType::Storage { .. }, has_dynamic_offset: true, .. } => {
            DescriptorType::STORAGE_BUFFER_DYNAMIC
        }
        BindingType::Sampler(_) => DescriptorType::SAMPLER,
        BindingType::Texture { .. } => DescriptorType::SAMPLED_IMAGE,
        BindingType::StorageTexture { .. } => DescriptorType::STORAGE_IMAGE,
        BindingType::AccelerationStructure { .. } => {
            return Err(computes_only("a binding of an acceleration structure"));
        }
        BindingType::ExternalTexture => return Err(computes_only("a binding of an external texture")),
    })
}

impl PipelineLayout {
    /// `None` is a group without bindings.
    pub(crate) fn new(
        device: &Device,
        groups: &[Option<&BindGroupLayout>],
        has_immediates: bool,
    ) -> Result<Self, Error> {
        let empty = device.create_descriptor_set_layout(&[])?;
        let groups: Vec<_> = groups.iter().map(|group| group.map_or(&empty, |group| &group.raw)).collect();
        Ok(Self { raw: device.create_pipeline_layout(&groups, &[IMMEDIATES])?, has_immediates })
    }
}

type GroupDescriptor<'a> = BindGroupDescriptor<'a, BindGroupLayout, Buffer, Sampler, TextureView, Never>;

impl BindGroup {
    /// Elements of arrays that the descriptor does not have stay empty: shaders read 0 there.
    pub(crate) fn new(descriptor: &GroupDescriptor<'_>) -> Result<Self, DeviceError> {
        // A set without a pool: it is written once, and freed with its last handle.
        let set = DescriptorSet::pushed(&descriptor.layout.raw).map_err(device_error)?;
        for entry in descriptor.entries {
            let ty = descriptor.layout.descriptor_type(entry.binding).ok_or_else(|| lacks(entry))?;
            write(&set, entry, ty, descriptor)?;
        }
        Ok(Self(set))
    }
}

fn write(
    set: &DescriptorSet,
    entry: &BindGroupEntry,
    ty: DescriptorType,
    from: &GroupDescriptor<'_>,
) -> Result<(), DeviceError> {
    let range = entry.resource_index as usize..(entry.resource_index as usize).saturating_add(entry.count as usize);
    match ty {
        DescriptorType::SAMPLER => {
            let samplers = from.samplers.get(range).ok_or_else(|| lacks(entry))?;
            let infos: Vec<_> =
                samplers.iter().map(|sampler| DescriptorImageInfo { sampler: Some(&sampler.0), view: None }).collect();
            set.write_images(entry.binding, 0, ty, &infos)
        }
        DescriptorType::SAMPLED_IMAGE | DescriptorType::STORAGE_IMAGE => {
            let views = from.textures.get(range).ok_or_else(|| lacks(entry))?;
            let infos: Vec<_> =
                views.iter().map(|bound| DescriptorImageInfo { sampler: None, view: Some(&bound.view.raw) }).collect();
            set.write_images(entry.binding, 0, ty, &infos)
        }
        _ => {
            let bindings = from.buffers.get(range).ok_or_else(|| lacks(entry))?;
            let buffers: Vec<_> = bindings.iter().map_while(|binding| Some((bound(binding)?, binding))).collect();
            if buffers.len() < bindings.len() {
                return Err(lacks(entry));
            }
            let info = |(buffer, binding): &'_ (Buffer, &BufferBinding<'_, Buffer>)| -> (u64, u64) {
                let rest = buffer.raw.size().saturating_sub(binding.offset);
                // A number for the rest of the buffer, too: with `VK_WHOLE_SIZE`, Vulkan permits no dynamic offset.
                (binding.offset, binding.size.map_or(rest, u64::from))
            };
            let ranges: Vec<_> = buffers.iter().map(info).collect();
            let infos: Vec<_> = buffers
                .iter()
                .zip(ranges)
                .map(|((buffer, _), (offset, range))| BufferInfo { buffer: &buffer.raw, offset, range })
                .collect();
            set.write(entry.binding, 0, ty, &infos)
        }
    }
    .map_err(device_error)
}

/// A promise of wgpu-hal's interface that wgpu-core does not break.
fn lacks(entry: &BindGroupEntry) -> DeviceError {
    let problem = format!("binding {} of a bind group has no resource", entry.binding);
    device_error(Error::Misuse(spelter_driver::Misuse::new(
        "pDescriptorWrites",
        problem,
        "VUID-VkWriteDescriptorSet-dstBinding-00316",
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_binding_has_its_descriptor() {
        let buffer = |ty, has_dynamic_offset| BindingType::Buffer { ty, has_dynamic_offset, min_binding_size: None };
        let storage = BufferBindingType::Storage { read_only: false };
        assert_eq!(descriptor_type(&buffer(storage, true)), Ok(DescriptorType::STORAGE_BUFFER_DYNAMIC));
        assert_eq!(descriptor_type(&BindingType::ExternalTexture), Err(DeviceError::Unexpected));
    }
}
