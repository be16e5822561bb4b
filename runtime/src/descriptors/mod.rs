//! Descriptor sets of a batch: one for each different combination of layout and buffers, made when first used.

use std::collections::HashMap;
use std::sync::Arc;

use ash::vk;
use spelter_driver::{BufferInfo, DescriptorPool, DescriptorSet, Device};

use crate::error::Error;
use crate::object::ResourceObject;
use crate::program::{BindingInfo, Program, SetLayout};

/// Sets in a pool; when it is used up the next one is made.
const SETS_IN_POOL: u32 = 32;

/// A part of a buffer in a descriptor.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub(crate) object: Arc<ResourceObject>,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// What tells one set from another: its layout, and object and range of each descriptor in the layout's order.
type Key = (u64, u32, Vec<(u64, u64, u64)>);

/// The sets of a batch, kept until it retires.
#[derive(Debug, Default)]
pub(crate) struct SetCache {
    sets: HashMap<Key, DescriptorSet>,
    pools: HashMap<(u64, u32), DescriptorPool>,
}

impl SetCache {
    /// The set number `group` of a program with these buffers, one for each descriptor in the layout's order.
    pub(crate) fn set(
        &mut self,
        device: &Device,
        program: &Program,
        group: u32,
        bound: &[Bound],
    ) -> Result<DescriptorSet, Error> {
        let ranges = bound.iter().map(|b| (b.object.id(), b.offset, b.bytes)).collect();
        let key = (program.id(), group, ranges);
        if let Some(set) = self.sets.get(&key) {
            return Ok(set.clone());
        }
        let layout = &program.sets()[group as usize];
        let set = self.allocate(device, (program.id(), group), layout)?;
        write(&set, layout, bound)?;
        self.sets.insert(key, set.clone());
        Ok(set)
    }

    fn allocate(&mut self, device: &Device, of: (u64, u32), layout: &SetLayout) -> Result<DescriptorSet, Error> {
        if let Some(pool) = self.pools.get(&of) {
            match pool.allocate(&layout.layout) {
                Err(spelter_driver::Error::OutOfPoolMemory(_)) => {}
                set => return Ok(set?),
            }
        }
        let sizes: Vec<_> = layout.bindings.iter().map(|b| (b.ty(), b.count.saturating_mul(SETS_IN_POOL))).collect();
        let pool = device.create_descriptor_pool(SETS_IN_POOL, &sizes)?;
        let set = pool.allocate(&layout.layout)?;
        self.pools.insert(of, pool);
        Ok(set)
    }
}

fn write(set: &DescriptorSet, layout: &SetLayout, bound: &[Bound]) -> Result<(), Error> {
    let mut rest = bound;
    for binding in &layout.bindings {
        let (now, later) = rest.split_at(binding.count as usize);
        for (element, bound) in (0u32..).zip(now) {
            let info = BufferInfo { buffer: bound.object.buffer(), offset: bound.offset, range: bound.bytes };
            let written = set.write(binding.binding, element, binding.ty(), &[info]);
            written.map_err(|error| refused(binding, element, error))?;
        }
        rest = later;
    }
    Ok(())
}

/// What the driver refuses, at the binding that the caller knows.
fn refused(binding: &BindingInfo, element: u32, error: spelter_driver::Error) -> Error {
    let spelter_driver::Error::Misuse(misuse) = error else { return error.into() };
    let at = if binding.count == 1 { String::new() } else { format!("element {element}: ") };
    Error::binding(binding.group, binding.binding, format!("{at}{} ({})", misuse.problem, misuse.vuid))
}

/// The Vulkan type of a kind of binding.
pub(crate) fn descriptor_type(kind: spelter_shaders::ir::BindingKind) -> vk::DescriptorType {
    match kind {
        spelter_shaders::ir::BindingKind::StorageBuffer => vk::DescriptorType::STORAGE_BUFFER,
        spelter_shaders::ir::BindingKind::UniformBuffer => vk::DescriptorType::UNIFORM_BUFFER,
        spelter_shaders::ir::BindingKind::Sampler => vk::DescriptorType::SAMPLER,
        spelter_shaders::ir::BindingKind::SampledImage => vk::DescriptorType::SAMPLED_IMAGE,
        spelter_shaders::ir::BindingKind::CombinedImageSampler => vk::DescriptorType::COMBINED_IMAGE_SAMPLER,
        spelter_shaders::ir::BindingKind::StorageImage => vk::DescriptorType::STORAGE_IMAGE,
        spelter_shaders::ir::BindingKind::UniformTexelBuffer => vk::DescriptorType::UNIFORM_TEXEL_BUFFER,
        spelter_shaders::ir::BindingKind::StorageTexelBuffer => vk::DescriptorType::STORAGE_TEXEL_BUFFER,
    }
}
