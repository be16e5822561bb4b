//! Descriptors: layouts, pools and sets.

mod flags;
mod inline;
mod push;
mod template;
mod write;

use std::collections::HashSet;
use std::sync::Arc;

use ash::vk;
use spelter_driver::{self as driver, host_memory};
use spelter_locks::Mutex;

use crate::c::entry::entry_points;
use crate::c::{EntryPoint, In, Many, Out, OutChain, OutMany, Slice};
use crate::device::Device;
use crate::error::{Error, require};
use crate::sampler::Sampler;
use crate::table::{Object, Ref, object};
use inline::{Block, InlineMemory};
pub(crate) use push::Pushed;
pub(crate) use template::Template;
pub(crate) use write::{Content, Write};

/// The chapters below this one.
pub(crate) const CHAPTERS: [&[EntryPoint]; 3] = [write::ENTRY_POINTS, template::ENTRY_POINTS, push::ENTRY_POINTS];

entry_points! {
    PFN_vkCreateDescriptorSetLayout(
        device: vk::Device, p_create_info: *const vk::DescriptorSetLayoutCreateInfo<'_>,
        p_allocator: *const vk::AllocationCallbacks<'_>, p_set_layout: *mut vk::DescriptorSetLayout,
    ) -> vk::Result => create_layout;
    PFN_vkDestroyDescriptorSetLayout(
        device: vk::Device, descriptor_set_layout: vk::DescriptorSetLayout,
        p_allocator: *const vk::AllocationCallbacks<'_>,
    ) => destroy_layout;
    PFN_vkGetDescriptorSetLayoutSupport(
        device: vk::Device, p_create_info: *const vk::DescriptorSetLayoutCreateInfo<'_>,
        p_support: *mut vk::DescriptorSetLayoutSupport<'_>,
    ) => support;
    PFN_vkCreateDescriptorPool(
        device: vk::Device, p_create_info: *const vk::DescriptorPoolCreateInfo<'_>,
        p_allocator: *const vk::AllocationCallbacks<'_>, p_descriptor_pool: *mut vk::DescriptorPool,
    ) -> vk::Result => create_pool;
    PFN_vkDestroyDescriptorPool(
        device: vk::Device, descriptor_pool: vk::DescriptorPool, p_allocator: *const vk::AllocationCallbacks<'_>,
    ) => destroy_pool;
    PFN_vkResetDescriptorPool(
        device: vk::Device, descriptor_pool: vk::DescriptorPool, flags: vk::DescriptorPoolResetFlags,
    ) -> vk::Result => reset_pool;
    PFN_vkAllocateDescriptorSets(
        device: vk::Device, p_allocate_info: *const vk::DescriptorSetAllocateInfo<'_>,
        p_descriptor_sets: *mut vk::DescriptorSet,
    ) -> vk::Result => allocate;
    PFN_vkFreeDescriptorSets(
        device: vk::Device, descriptor_pool: vk::DescriptorPool, descriptor_set_count: u32,
        p_descriptor_sets: *const vk::DescriptorSet,
    ) -> vk::Result => free;
}

/// `VkDescriptorSetLayout`.
pub(crate) struct DescriptorSetLayout {
    pub(crate) driver: driver::DescriptorSetLayout,
    /// Inline uniform blocks (binding, bytes): uniform buffers to the driver.
    inline: Vec<(u32, u32)>,
    /// The binding with a variable descriptor count.
    variable: Option<VariableCount>,
    /// Whether it is a push descriptor layout: sets exist in command buffers and not in pools.
    pub(crate) pushed: bool,
    /// Descriptor counts by binding, as in the program: bytes for inline uniform blocks.
    counts: Vec<(u32, u32)>,
}

impl DescriptorSetLayout {
    /// The number of descriptors from an element of a binding to the end of the set; 0 if there is no such binding.
    fn descriptors_from(&self, binding: u32, element: u32) -> u64 {
        let Ok(at) = self.counts.binary_search_by_key(&binding, |(number, _)| *number) else { return 0 };
        let from: u64 = self.counts[at..].iter().map(|(_, count)| u64::from(*count)).sum();
        from.saturating_sub(element.into())
    }
}

/// The variable count of a set: the elements of its last binding, or the bytes of an inline uniform block there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VariableCount {
    Elements(u32),
    Bytes(u32),
}

object!(DescriptorSetLayout: vk::DescriptorSetLayout);

/// `VkDescriptorPool`.
pub(crate) struct DescriptorPool {
    driver: driver::DescriptorPool,
    sets: Mutex<HashSet<vk::DescriptorSet>>,
    inline: Arc<Mutex<InlineMemory>>,
}

object!(DescriptorPool: vk::DescriptorPool);

/// `VkDescriptorSet`.
pub(crate) struct DescriptorSet {
    pub(crate) driver: driver::DescriptorSet,
    /// Its inline uniform blocks.
    inline: Vec<Block>,
}

object!(DescriptorSet: vk::DescriptorSet);

fn new_layout(
    device: &Device,
    info: In<'_, vk::DescriptorSetLayoutCreateInfo<'_>>,
) -> Result<DescriptorSetLayout, Error> {
    let flags = flags::of(info)?;
    let all = info.all();
    let (mut bindings, mut inline, mut owned) = (host_memory::list(all.len())?, Vec::new(), Vec::new());
    let mut variable = flags.variable.map(VariableCount::Elements);
    let mut counts = host_memory::collect(all.iter().map(|binding| (binding.binding, binding.descriptor_count)))?;
    counts.sort_unstable();
    for binding in all.each_plain() {
        let (number, ty, count) = (binding.binding, binding.descriptor_type, binding.descriptor_count);
        let sampled = [vk::DescriptorType::SAMPLER, vk::DescriptorType::COMBINED_IMAGE_SAMPLER].contains(&ty);
        if ty == vk::DescriptorType::INLINE_UNIFORM_BLOCK && count > 0 {
            check_inline(count)?;
            host_memory::reserve(&mut inline, 1)?;
            inline.push((number, count));
            bindings.push(driver::Binding { binding: number, ty: vk::DescriptorType::UNIFORM_BUFFER, count: 1 });
            if flags.variable == Some(number) {
                variable = Some(VariableCount::Bytes(number));
            }
            continue;
        }
        bindings.push(driver::Binding { binding: number, ty, count });
        if sampled && !binding.samplers().is_empty() {
            host_memory::reserve(&mut owned, 1)?;
            owned.push((number, samplers(binding.samplers())?));
        }
    }
    let owned = host_memory::collect(
        owned.iter().map(|(binding, samplers)| driver::ImmutableSamplers { binding: *binding, samplers }),
    )?;
    use vk::DescriptorSetLayoutCreateFlags as F;
    let pushed = info.flags.contains(F::PUSH_DESCRIPTOR_KHR);
    if pushed {
        push::check_layout(info)?;
    }
    let driver = device.driver.create_descriptor_set_layout_from(&driver::DescriptorSetLayoutInfo {
        bindings: &bindings,
        samplers: &owned,
        update_after_bind: info.flags.contains(F::UPDATE_AFTER_BIND_POOL),
        variable_count: matches!(variable, Some(VariableCount::Elements(_))),
        unused_while_pending: &flags.unused_while_pending,
    })?;
    Ok(DescriptorSetLayout { driver, inline, variable, pushed, counts })
}

fn check_inline(bytes: u32) -> Result<(), Error> {
    let (at, max) = ("vkCreateDescriptorSetLayout", crate::physical_device::properties::MAX_INLINE_BYTES);
    require(bytes.is_multiple_of(4), at, "VUID-VkDescriptorSetLayoutBinding-descriptorType-02209", || {
        format!("an inline uniform block of {bytes} bytes, no multiple of 4")
    })?;
    require(bytes <= max, at, "VUID-VkDescriptorSetLayoutBinding-descriptorType-08004", || {
        format!("an inline uniform block of {bytes} bytes above maxInlineUniformBlockSize {max}")
    })
}

fn samplers(handles: Slice<'_, vk::Sampler>) -> Result<Vec<driver::Sampler>, Error> {
    let at = "VkDescriptorSetLayoutBinding-descriptorType-00282";
    host_memory::try_collect(handles.iter().map(|&handle| Ok(Sampler::get(handle, at)?.driver.clone())))
}

fn create_layout(
    device: Ref<Device>,
    info: In<'_, vk::DescriptorSetLayoutCreateInfo<'_>>,
    _: *const vk::AllocationCallbacks<'_>,
    mut out: Out<'_, vk::DescriptorSetLayout>,
) -> Result<(), Error> {
    out.put(new_layout(&device, info)?.insert()?);
    Ok(())
}

fn destroy_layout(
    _: Ref<Device>,
    layout: vk::DescriptorSetLayout,
    _: *const vk::AllocationCallbacks<'_>,
) -> Result<(), Error> {
    DescriptorSetLayout::remove(layout, "vkDestroyDescriptorSetLayout-descriptorSetLayout").map(|_| ())
}

fn support(
    device: Ref<Device>,
    info: In<'_, vk::DescriptorSetLayoutCreateInfo<'_>>,
    mut out: OutChain<'_, vk::DescriptorSetLayoutSupport<'_>>,
) -> Result<(), Error> {
    let layout = new_layout(&device, info).ok();
    out.head(|all| all.supported = layout.is_some().into());
    out.fill(|variable: &mut vk::DescriptorSetVariableDescriptorCountLayoutSupport<'_>| {
        variable.max_variable_descriptor_count = match layout.and_then(|layout| layout.variable) {
            Some(VariableCount::Elements(_)) => driver::Limits::of_devices().max_per_set_descriptors,
            Some(VariableCount::Bytes(_)) => crate::physical_device::properties::MAX_INLINE_BYTES,
            None => 0,
        };
    });
    Ok(())
}

fn create_pool(
    device: Ref<Device>,
    info: In<'_, vk::DescriptorPoolCreateInfo<'_>>,
    _: *const vk::AllocationCallbacks<'_>,
    mut out: Out<'_, vk::DescriptorPool>,
) -> Result<(), Error> {
    // Compute shaders have no input attachments; inline uniform blocks are counted below.
    let other = [vk::DescriptorType::INLINE_UNIFORM_BLOCK, vk::DescriptorType::INPUT_ATTACHMENT];
    let all = info.sizes().get();
    let sizes = all.iter().filter(|size| !other.contains(&size.ty));
    let mut sizes = host_memory::collect(sizes.map(|size| (size.ty, size.descriptor_count)))?;
    let blocks = info.next::<vk::DescriptorPoolInlineUniformBlockCreateInfo<'_>>();
    let blocks = blocks.map_or(0, |blocks| blocks.max_inline_uniform_block_bindings);
    if blocks > 0 {
        sizes.push((vk::DescriptorType::UNIFORM_BUFFER, blocks));
    }
    // The pool counts the bytes of inline uniform blocks.
    let bytes = all.iter().filter(|size| size.ty == vk::DescriptorType::INLINE_UNIFORM_BLOCK);
    let bytes: u64 = bytes.map(|size| u64::from(size.descriptor_count)).sum();
    let inline = Arc::new(Mutex::new(InlineMemory::new(bytes, blocks.into())));
    let driver = device.driver.create_descriptor_pool(info.max_sets, &sizes).map_err(|error| match error {
        driver::Error::OutOfMemory => {
            let descriptors: u64 = sizes.iter().map(|(_, count)| u64::from(*count)).sum();
            let problem = format!("a pool of {} sets and {descriptors} descriptors is too large", info.max_sets);
            Error::Code(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY, problem)
        }
        error => error.into(),
    })?;
    out.put(DescriptorPool { driver, sets: Mutex::default(), inline }.insert()?);
    Ok(())
}

impl DescriptorPool {
    /// Frees the sets of a pool.
    fn clear(&self) {
        for set in self.sets.lock().drain() {
            // A set that was freed meanwhile is not found.
            let _ = DescriptorSet::remove(set, "vkResetDescriptorPool-descriptorPool");
        }
    }
}

fn destroy_pool(_: Ref<Device>, pool: vk::DescriptorPool, _: *const vk::AllocationCallbacks<'_>) -> Result<(), Error> {
    let pool = DescriptorPool::remove(pool, "vkDestroyDescriptorPool-descriptorPool")?;
    pool.inspect(|pool| pool.clear());
    Ok(())
}

fn reset_pool(_: Ref<Device>, pool: Ref<DescriptorPool>, _: vk::DescriptorPoolResetFlags) -> Result<(), Error> {
    pool.clear();
    Ok(())
}

fn allocate(
    device: Ref<Device>,
    info: In<'_, vk::DescriptorSetAllocateInfo<'_>>,
    out: OutMany<'_, vk::DescriptorSet>,
) -> Result<(), Error> {
    let layouts = info.layouts();
    let made =
        DescriptorPool::get(info.descriptor_pool, "VkDescriptorSetAllocateInfo-descriptorPool").and_then(|pool| {
            let counts = info.next::<vk::DescriptorSetVariableDescriptorCountAllocateInfo<'_>>();
            let count = |index| counts.and_then(|counts| counts.counts().get().get(index).copied()).unwrap_or(0);
            let new = |(index, &layout)| new_set(&device, &pool, layout, count(index));
            let sets = host_memory::try_collect(layouts.get().iter().enumerate().map(new))?;
            let mut known = pool.sets.lock();
            host_memory::reserve_set(&mut known, sets.len())?;
            let handles = DescriptorSet::insert_all(sets)?;
            known.extend(&handles);
            Ok(handles)
        });
    match made {
        Ok(handles) => out.put(layouts.len(), handles),
        Err(error) => {
            out.put(layouts.len(), std::iter::repeat(vk::DescriptorSet::null()));
            return Err(error);
        }
    }
    Ok(())
}

fn new_set(
    device: &Device,
    pool: &DescriptorPool,
    layout: vk::DescriptorSetLayout,
    count: u32,
) -> Result<DescriptorSet, Error> {
    let layout = DescriptorSetLayout::get(layout, "VkDescriptorSetAllocateInfo-pSetLayouts")?;
    let vuid = "VUID-VkDescriptorSetAllocateInfo-pSetLayouts-00308";
    require(!layout.pushed, "vkAllocateDescriptorSets", vuid, || "a layout for push descriptors".into())?;
    let elements = if matches!(layout.variable, Some(VariableCount::Elements(_))) { count } else { 0 };
    let driver = pool.driver.allocate_with_count(&layout.driver, elements)?;
    let bytes = |&(binding, max): &(u32, u32)| match layout.variable {
        Some(VariableCount::Bytes(of)) if of == binding => check_variable_block(count, max).map(|()| (binding, count)),
        _ => Ok((binding, max)),
    };
    let blocks = host_memory::try_collect(layout.inline.iter().map(bytes))?;
    // A block of 0 bytes uses none of the pool's memory; reads of it return 0.
    let blocks = blocks.into_iter().filter(|(_, bytes)| *bytes > 0);
    let blocks = blocks.map(|block| Block::new(device, &pool.inline, &driver, block));
    let inline = host_memory::try_collect::<_, Error>(blocks)?;
    Ok(DescriptorSet { driver, inline })
}

/// The variable size of a set's last inline uniform block, at most that of the layout.
fn check_variable_block(bytes: u32, max: u32) -> Result<(), Error> {
    let at = "vkAllocateDescriptorSets";
    let vuid = "VUID-VkDescriptorSetAllocateInfo-pSetLayouts-09380";
    require(bytes <= max, at, vuid, || format!("{bytes} bytes of an inline uniform block of {max}"))?;
    let vuid = "VUID-VkDescriptorSetLayoutBinding-descriptorType-02209";
    require(bytes.is_multiple_of(4), at, vuid, || format!("an inline uniform block of {bytes} bytes, no multiple of 4"))
}

fn free(_: Ref<Device>, pool: Ref<DescriptorPool>, count: u32, sets: Many<'_, vk::DescriptorSet>) -> Result<(), Error> {
    let mut result = Ok(());
    for &set in sets.of(count as usize).iter() {
        pool.sets.lock().remove(&set);
        let freed = DescriptorSet::remove(set, "vkFreeDescriptorSets-pDescriptorSets-00310").map(|_| ());
        result = result.and(freed);
    }
    result
}
