//! Buffers and buffer views.

use ash::vk::{self, TaggedStructure};
use spelter_driver as driver;

use crate::c::arrays::put_status;
use crate::c::entry::entry_points;
use crate::c::{In, Many, Out, OutChain, Slice};
use crate::device::Device;
use crate::error::{Error, require};
use crate::memory::DeviceMemory;
use crate::physical_device::memory_types::{self, IMPORTED};
use crate::table::{Object, Ref, object};

entry_points! {
    PFN_vkCreateBuffer(
        device: vk::Device, p_create_info: *const vk::BufferCreateInfo<'_>,
        p_allocator: *const vk::AllocationCallbacks<'_>, p_buffer: *mut vk::Buffer,
    ) -> vk::Result => create;
    PFN_vkDestroyBuffer(
        device: vk::Device, buffer: vk::Buffer, p_allocator: *const vk::AllocationCallbacks<'_>,
    ) => destroy;
    PFN_vkGetBufferMemoryRequirements(
        device: vk::Device, buffer: vk::Buffer, p_memory_requirements: *mut vk::MemoryRequirements,
    ) => requirements;
    PFN_vkGetBufferMemoryRequirements2(
        device: vk::Device, p_info: *const vk::BufferMemoryRequirementsInfo2<'_>,
        p_memory_requirements: *mut vk::MemoryRequirements2<'_>,
    ) => requirements2;
    PFN_vkGetDeviceBufferMemoryRequirements(
        device: vk::Device, p_info: *const vk::DeviceBufferMemoryRequirements<'_>,
        p_memory_requirements: *mut vk::MemoryRequirements2<'_>,
    ) => device_requirements;
    PFN_vkBindBufferMemory(
        device: vk::Device, buffer: vk::Buffer, memory: vk::DeviceMemory, memory_offset: vk::DeviceSize,
    ) -> vk::Result => bind;
    PFN_vkBindBufferMemory2(
        device: vk::Device, bind_info_count: u32, p_bind_infos: *const vk::BindBufferMemoryInfo<'_>,
    ) -> vk::Result => bind2;
    PFN_vkCreateBufferView(
        device: vk::Device, p_create_info: *const vk::BufferViewCreateInfo<'_>,
        p_allocator: *const vk::AllocationCallbacks<'_>, p_view: *mut vk::BufferView,
    ) -> vk::Result => create_view;
    PFN_vkDestroyBufferView(
        device: vk::Device, buffer_view: vk::BufferView, p_allocator: *const vk::AllocationCallbacks<'_>,
    ) => destroy_view;
    PFN_vkGetBufferDeviceAddress(
        device: vk::Device, p_info: *const vk::BufferDeviceAddressInfo<'_>,
    ) -> vk::DeviceAddress => address;
    PFN_vkGetBufferOpaqueCaptureAddress(
        device: vk::Device, p_info: *const vk::BufferDeviceAddressInfo<'_>,
    ) -> u64 => capture_address;
}

/// `VkBuffer`.
pub(crate) struct Buffer {
    pub(crate) driver: driver::Buffer,
}

object!(Buffer: vk::Buffer);

/// `VkBufferView`.
pub(crate) struct BufferView {
    pub(crate) driver: driver::BufferView,
}

object!(BufferView: vk::BufferView);

fn new(device: &Device, info: In<'_, vk::BufferCreateInfo<'_>>) -> Result<driver::Buffer, Error> {
    let flags = info.flags;
    require(flags.is_empty(), "vkCreateBuffer", "VUID-VkBufferCreateInfo-flags-00915", || {
        format!("flags {flags:?} need features that are not supported")
    })?;
    let external = info.next::<vk::ExternalMemoryBufferCreateInfo<'_>>();
    let external = external.map(|external| external.handle_types).unwrap_or_default();
    require(IMPORTED.contains(external), "vkCreateBuffer", "VUID-VkBufferCreateInfo-pNext-00920", || {
        format!("handleTypes {external:?}: only {IMPORTED:?} can be imported")
    })?;
    Ok(device.driver.create_buffer(info.size, wide_usage(info.next()).unwrap_or(info.usage))?)
}

/// The usage, from `VkBufferUsageFlags2CreateInfo` if it is chained: its lower 32 bits mean the same, the upper ones
/// are ignored.
fn wide_usage(wide: Option<In<'_, vk::BufferUsageFlags2CreateInfoKHR<'_>>>) -> Option<vk::BufferUsageFlags> {
    wide.map(|wide| vk::BufferUsageFlags::from_raw(wide.usage.as_raw() as u32))
}

fn create(
    device: Ref<Device>,
    info: In<'_, vk::BufferCreateInfo<'_>>,
    _: *const vk::AllocationCallbacks<'_>,
    mut out: Out<'_, vk::Buffer>,
) -> Result<(), Error> {
    out.put(Buffer { driver: new(&device, info)? }.insert()?);
    Ok(())
}

fn destroy(_: Ref<Device>, buffer: vk::Buffer, _: *const vk::AllocationCallbacks<'_>) -> Result<(), Error> {
    Buffer::remove(buffer, "vkDestroyBuffer-buffer").map(|_| ())
}

/// The memory requirements of a buffer: any memory type is suitable.
fn needs(buffer: &driver::Buffer) -> vk::MemoryRequirements {
    vk::MemoryRequirements { memory_type_bits: memory_types::ALL, ..buffer.requirements() }
}

fn requirements(_: Ref<Device>, buffer: Ref<Buffer>, mut out: Out<'_, vk::MemoryRequirements>) -> Result<(), Error> {
    out.put(needs(&buffer.driver));
    Ok(())
}

/// Fills the requirements; a dedicated allocation is never preferred.
pub(crate) fn put_requirements(out: &mut OutChain<'_, vk::MemoryRequirements2<'_>>, needs: vk::MemoryRequirements) {
    out.head(|all| all.memory_requirements = needs);
    out.fill(|dedicated: &mut vk::MemoryDedicatedRequirements<'_>| {
        (dedicated.prefers_dedicated_allocation, dedicated.requires_dedicated_allocation) = (vk::FALSE, vk::FALSE);
    });
}

fn requirements2(
    _: Ref<Device>,
    info: In<'_, vk::BufferMemoryRequirementsInfo2<'_>>,
    mut out: OutChain<'_, vk::MemoryRequirements2<'_>>,
) -> Result<(), Error> {
    put_requirements(&mut out, needs(&Buffer::get(info.buffer, "VkBufferMemoryRequirementsInfo2-buffer")?.driver));
    Ok(())
}

fn device_requirements(
    device: Ref<Device>,
    info: In<'_, vk::DeviceBufferMemoryRequirements<'_>>,
    mut out: OutChain<'_, vk::MemoryRequirements2<'_>>,
) -> Result<(), Error> {
    let at = "vkGetDeviceBufferMemoryRequirements";
    let create = info.create().ok_or_else(|| {
        Error::misuse(at, "pCreateInfo is null", "VUID-VkDeviceBufferMemoryRequirements-pCreateInfo-parameter")
    })?;
    put_requirements(&mut out, needs(&new(&device, create)?));
    Ok(())
}

fn bind(_: Ref<Device>, buffer: Ref<Buffer>, memory: Ref<DeviceMemory>, offset: u64) -> Result<(), Error> {
    Ok(buffer.driver.bind_memory(&memory.driver, offset)?)
}

fn bind2(_: Ref<Device>, count: u32, infos: Many<'_, vk::BindBufferMemoryInfo<'_>>) -> Result<(), Error> {
    bind_each(infos.of(count as usize), |info| {
        let buffer = Buffer::get(info.buffer, "VkBindBufferMemoryInfo-buffer")?;
        let memory = DeviceMemory::get(info.memory, "VkBindBufferMemoryInfo-memory")?;
        Ok(buffer.driver.bind_memory(&memory.driver, info.memory_offset)?)
    })
}

/// Binds all, also after one that fails: each has its own result, and the call returns the first error.
pub(crate) fn bind_each<T: TaggedStructure>(
    infos: Slice<'_, T>,
    bind: impl Fn(In<'_, T>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut result = Ok(());
    for info in infos.each() {
        let bound = bind(info);
        let code = bound.as_ref().map_or_else(Error::code, |()| vk::Result::SUCCESS);
        put_status(info.next(), code);
        result = result.and(bound);
    }
    result
}

fn create_view(
    device: Ref<Device>,
    info: In<'_, vk::BufferViewCreateInfo<'_>>,
    _: *const vk::AllocationCallbacks<'_>,
    mut out: Out<'_, vk::BufferView>,
) -> Result<(), Error> {
    let buffer = Buffer::get(info.buffer, "VkBufferViewCreateInfo-buffer")?;
    let driver = match wide_usage(info.next()) {
        Some(usage) => {
            let range = [info.offset, info.range];
            device.driver.create_buffer_view_for(usage, &buffer.driver, info.format, range)?
        }
        None => device.driver.create_buffer_view(&buffer.driver, info.format, info.offset, info.range)?,
    };
    out.put(BufferView { driver }.insert()?);
    Ok(())
}

fn destroy_view(_: Ref<Device>, view: vk::BufferView, _: *const vk::AllocationCallbacks<'_>) -> Result<(), Error> {
    BufferView::remove(view, "vkDestroyBufferView-bufferView").map(|_| ())
}

fn address(_: Ref<Device>, info: In<'_, vk::BufferDeviceAddressInfo<'_>>) -> Result<u64, Error> {
    Ok(Buffer::get(info.buffer, "VkBufferDeviceAddressInfo-buffer")?.driver.device_address()?)
}

/// 0: `bufferDeviceAddressCaptureReplay` is not supported.
fn capture_address(_: Ref<Device>, _: In<'_, vk::BufferDeviceAddressInfo<'_>>) -> Result<u64, Error> {
    Ok(0)
}
