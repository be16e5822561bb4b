//! Device memory: allocations and their mappings.

use std::ffi::c_void;
use std::ops::Range;

use ash::vk::{self, MemoryPropertyFlags};
use spelter_driver as driver;
use spelter_locks::Mutex;

use crate::c::entry::entry_points;
use crate::c::import::import;
use crate::c::{In, Many, Out, OutChain};
use crate::device::Device;
use crate::error::{Error, require};
use crate::message;
use crate::physical_device::limits;
use crate::physical_device::memory_types::{self, IMPORTED};
use crate::table::{Object, Ref, object};

entry_points! {
    PFN_vkAllocateMemory(
        device: vk::Device, p_allocate_info: *const vk::MemoryAllocateInfo<'_>,
        p_allocator: *const vk::AllocationCallbacks<'_>, p_memory: *mut vk::DeviceMemory,
    ) -> vk::Result => allocate;
    PFN_vkFreeMemory(
        device: vk::Device, memory: vk::DeviceMemory, p_allocator: *const vk::AllocationCallbacks<'_>,
    ) => free;
    PFN_vkMapMemory(
        device: vk::Device, memory: vk::DeviceMemory, offset: vk::DeviceSize, size: vk::DeviceSize,
        flags: vk::MemoryMapFlags, pp_data: *mut *mut c_void,
    ) -> vk::Result => map;
    PFN_vkUnmapMemory(device: vk::Device, memory: vk::DeviceMemory) => unmap;
    PFN_vkMapMemory2KHR(
        device: vk::Device, p_memory_map_info: *const vk::MemoryMapInfoKHR<'_>, pp_data: *mut *mut c_void,
    ) -> vk::Result => map2;
    PFN_vkUnmapMemory2KHR(
        device: vk::Device, p_memory_unmap_info: *const vk::MemoryUnmapInfoKHR<'_>,
    ) -> vk::Result => unmap2;
    PFN_vkFlushMappedMemoryRanges(
        device: vk::Device, memory_range_count: u32, p_memory_ranges: *const vk::MappedMemoryRange<'_>,
    ) -> vk::Result => flush;
    PFN_vkInvalidateMappedMemoryRanges(
        device: vk::Device, memory_range_count: u32, p_memory_ranges: *const vk::MappedMemoryRange<'_>,
    ) -> vk::Result => invalidate;
    PFN_vkGetDeviceMemoryCommitment(
        device: vk::Device, memory: vk::DeviceMemory, p_committed_memory_in_bytes: *mut vk::DeviceSize,
    ) => commitment;
    PFN_vkGetDeviceMemoryOpaqueCaptureAddress(
        device: vk::Device, p_info: *const vk::DeviceMemoryOpaqueCaptureAddressInfo<'_>,
    ) -> u64 => capture_address;
    PFN_vkGetMemoryHostPointerPropertiesEXT(
        device: vk::Device, handle_type: vk::ExternalMemoryHandleTypeFlags, p_host_pointer: *const c_void,
        p_memory_host_pointer_properties: *mut vk::MemoryHostPointerPropertiesEXT<'_>,
    ) -> vk::Result => host_pointer;
}

/// `VkDeviceMemory`.
pub(crate) struct DeviceMemory {
    pub(crate) driver: driver::DeviceMemory,
    flags: MemoryPropertyFlags,
    /// The mapped bytes.
    mapped: Mutex<Option<Range<u64>>>,
}

object!(DeviceMemory: vk::DeviceMemory);

fn allocate(
    device: Ref<Device>,
    info: In<'_, vk::MemoryAllocateInfo<'_>>,
    _: *const vk::AllocationCallbacks<'_>,
    mut out: Out<'_, vk::DeviceMemory>,
) -> Result<(), Error> {
    let at = "vkAllocateMemory";
    let flags = memory_types::flags(info.memory_type_index).ok_or_else(|| {
        let problem = format!("memoryTypeIndex {} does not exist", info.memory_type_index);
        Error::misuse(at, problem, "VUID-vkAllocateMemory-pAllocateInfo-01714")
    })?;
    // Exceeding the heap is no misuse: the size may depend on the program's input.
    if info.allocation_size > device.driver.memory_heaps().iter().map(|heap| heap.size).max().unwrap_or(0) {
        return Err(driver::Error::OutOfMemory.into());
    }
    let exported = info.next::<vk::ExportMemoryAllocateInfo<'_>>();
    let exported = exported.map(|export| export.handle_types).unwrap_or_default();
    require(exported.is_empty(), at, "VUID-VkExportMemoryAllocateInfo-handleTypes-00656", || {
        format!("memory cannot be exported: {exported:?}")
    })?;
    let imported = info.next::<vk::ImportMemoryHostPointerInfoEXT<'_>>().filter(|info| !info.handle_type.is_empty());
    let driver = match imported {
        Some(imported) => {
            let of_type = "VUID-VkImportMemoryHostPointerInfoEXT-handleType-01748";
            let of_pointer = "VUID-VkImportMemoryHostPointerInfoEXT-pHostPointer-01749";
            let at = "VkImportMemoryHostPointerInfoEXT";
            check_host(imported.handle_type, imported.p_host_pointer, at, of_type, of_pointer)?;
            import(&device.driver, imported, info.allocation_size)?
        }
        None => device.driver.allocate_memory(info.allocation_size, 0)?,
    };
    memory_types::add_bytes_in_use(driver.size());
    out.put(DeviceMemory { driver, flags, mapped: Mutex::new(None) }.insert()?);
    Ok(())
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        memory_types::subtract_bytes_in_use(self.driver.size());
    }
}

fn free(_: Ref<Device>, memory: vk::DeviceMemory, _: *const vk::AllocationCallbacks<'_>) -> Result<(), Error> {
    if let Some(memory) = DeviceMemory::remove(memory, "vkFreeMemory-memory")? {
        let mapped = memory.mapped.lock().take();
        mapped.iter().for_each(|range| memory.driver.note_mapping(range.clone(), false));
    }
    Ok(())
}

fn map(
    _: Ref<Device>,
    memory: Ref<DeviceMemory>,
    offset: u64,
    size: u64,
    _: vk::MemoryMapFlags,
    mut out: Out<'_, *mut c_void>,
) -> Result<(), Error> {
    let (at, whole) = ("vkMapMemory", memory.driver.size());
    require(memory.flags.contains(MemoryPropertyFlags::HOST_VISIBLE), at, "VUID-vkMapMemory-memory-00682", || {
        "the memory's type is not HOST_VISIBLE".into()
    })?;
    require(offset < whole, at, "VUID-vkMapMemory-offset-00679", || {
        format!("offset {offset} in memory of {whole} bytes")
    })?;
    require(size > 0, at, "VUID-vkMapMemory-size-00680", || "size is 0".into())?;
    require(size == vk::WHOLE_SIZE || size <= whole - offset, at, "VUID-vkMapMemory-size-00681", || {
        format!("{size} bytes at offset {offset} in memory of {whole} bytes")
    })?;
    let mut mapped = memory.mapped.lock();
    require(mapped.is_none(), at, "VUID-vkMapMemory-memory-00678", || "the memory is already mapped".into())?;
    let range = offset..if size == vk::WHOLE_SIZE { whole } else { offset + size };
    // Under the lock of `mapped`, so that checked mode learns of mappings in the order of the calls.
    memory.driver.note_mapping(range.clone(), true);
    *mapped = Some(range);
    out.put(memory.driver.host_address().wrapping_add(offset as usize).cast());
    Ok(())
}

fn unmap(_: Ref<Device>, memory: Ref<DeviceMemory>) -> Result<(), Error> {
    let was = memory.mapped.lock().take();
    was.iter().for_each(|range| memory.driver.note_mapping(range.clone(), false));
    require(was.is_some(), "vkUnmapMemory", "VUID-vkUnmapMemory-memory-00689", || "the memory is not mapped".into())
}

fn map2(device: Ref<Device>, info: In<'_, vk::MemoryMapInfoKHR<'_>>, out: Out<'_, *mut c_void>) -> Result<(), Error> {
    let memory = DeviceMemory::get(info.memory, "VkMemoryMapInfo-memory")?;
    map(device, memory, info.offset, info.size, info.flags, out)
}

fn unmap2(device: Ref<Device>, info: In<'_, vk::MemoryUnmapInfoKHR<'_>>) -> Result<(), Error> {
    unmap(device, DeviceMemory::get(info.memory, "VkMemoryUnmapInfo-memory")?)
}

fn flush(_: Ref<Device>, count: u32, ranges: Many<'_, vk::MappedMemoryRange<'_>>) -> Result<(), Error> {
    check_ranges("vkFlushMappedMemoryRanges", &ranges.of(count as usize))
}

fn invalidate(_: Ref<Device>, count: u32, ranges: Many<'_, vk::MappedMemoryRange<'_>>) -> Result<(), Error> {
    check_ranges("vkInvalidateMappedMemoryRanges", &ranges.of(count as usize))
}

/// Host and device share the memory and its caches, so that nothing is left to flush or to invalidate: this only checks
/// valid usage. A range that is not of whole atoms is accepted, with a warning.
fn check_ranges(call: &str, ranges: &[vk::MappedMemoryRange<'_>]) -> Result<(), Error> {
    for (index, range) in ranges.iter().enumerate() {
        let at = format!("pMemoryRanges[{index}]");
        let memory = DeviceMemory::get(range.memory, "VkMappedMemoryRange-memory")?;
        let mapped = memory.mapped.lock().clone();
        let not_mapped = || Error::misuse(&at, "the memory is not mapped", "VUID-VkMappedMemoryRange-memory-00684");
        let mapped = mapped.ok_or_else(not_mapped)?;
        let (offset, size) = (range.offset, range.size);
        let (rule, fits) = match size {
            vk::WHOLE_SIZE => ("VUID-VkMappedMemoryRange-size-00686", offset <= mapped.end),
            _ => {
                let end = offset.checked_add(size);
                ("VUID-VkMappedMemoryRange-size-00685", end.is_some_and(|end| end <= mapped.end))
            }
        };
        require(offset >= mapped.start && fits, &at, rule, || {
            let size = if size == vk::WHOLE_SIZE { "VK_WHOLE_SIZE".to_owned() } else { format!("{size} bytes") };
            format!("{size} at offset {offset}, and bytes {} to {} are mapped", mapped.start, mapped.end)
        })?;
        if let Some((problem, rule)) = not_of_atoms(offset, size, mapped.end, memory.driver.size()) {
            message::remark(call, &driver::Misuse::new(at, problem, rule));
        }
    }
    Ok(())
}

/// What is wrong with a range in memory of `whole` bytes that is mapped up to `end`: it must consist of whole atoms, or
/// reach the end of the memory.
fn not_of_atoms(offset: u64, size: u64, end: u64, whole: u64) -> Option<(String, &'static str)> {
    let atom = limits::NON_COHERENT_ATOM_SIZE;
    let is_whole = |bytes: u64| bytes.is_multiple_of(atom);
    let no_multiple = format!("no multiple of nonCoherentAtomSize {atom}");
    if !is_whole(offset) {
        return Some((format!("offset {offset} is {no_multiple}"), "VUID-VkMappedMemoryRange-offset-00687"));
    }
    if size == vk::WHOLE_SIZE {
        let problem = || format!("the mapping ends at byte {end} of {whole}, {no_multiple}");
        return (!is_whole(end) && end != whole).then(|| (problem(), "VUID-VkMappedMemoryRange-size-01389"));
    }
    let problem = || format!("size {size} is {no_multiple}, and the range ends at byte {} of {whole}", offset + size);
    (!is_whole(size) && offset + size != whole).then(|| (problem(), "VUID-VkMappedMemoryRange-size-01390"))
}

fn commitment(_: Ref<Device>, memory: Ref<DeviceMemory>, mut out: Out<'_, u64>) -> Result<(), Error> {
    out.put(memory.driver.size());
    Ok(())
}

/// 0: `bufferDeviceAddressCaptureReplay` is not supported.
fn capture_address(_: Ref<Device>, _: In<'_, vk::DeviceMemoryOpaqueCaptureAddressInfo<'_>>) -> Result<u64, Error> {
    Ok(0)
}

/// Checks the valid usage of an imported host pointer.
fn check_host(
    handle_type: vk::ExternalMemoryHandleTypeFlags,
    pointer: *const c_void,
    at: &str,
    of_type: &'static str,
    of_pointer: &'static str,
) -> Result<(), Error> {
    use vk::ExternalMemoryHandleTypeFlags as H;
    let known = [H::HOST_ALLOCATION_EXT, H::HOST_MAPPED_FOREIGN_MEMORY_EXT].contains(&handle_type);
    require(known, at, of_type, || format!("handleType {handle_type:?} is not for host memory"))?;
    // Valid usage, but memory of another device may be no memory of this process at all.
    if handle_type != IMPORTED {
        let what = format!("{at}: memory of other devices ({handle_type:?}) cannot be imported");
        return Err(Error::Code(vk::Result::ERROR_INVALID_EXTERNAL_HANDLE, what));
    }
    let aligned = !pointer.is_null() && (pointer.addr() as u64).is_multiple_of(driver::Device::IMPORT_ALIGNMENT);
    require(aligned, at, of_pointer, || {
        format!("{:#x} is not a multiple of {}", pointer.addr(), driver::Device::IMPORT_ALIGNMENT)
    })
}

/// Imported host memory may have any memory type.
fn host_pointer(
    _: Ref<Device>,
    handle_type: vk::ExternalMemoryHandleTypeFlags,
    pointer: *const c_void,
    mut out: OutChain<'_, vk::MemoryHostPointerPropertiesEXT<'_>>,
) -> Result<(), Error> {
    let of_type = "VUID-vkGetMemoryHostPointerPropertiesEXT-handleType-01752";
    let of_pointer = "VUID-vkGetMemoryHostPointerPropertiesEXT-pHostPointer-01753";
    check_host(handle_type, pointer, "vkGetMemoryHostPointerPropertiesEXT", of_type, of_pointer)?;
    out.head(|all| all.memory_type_bits = memory_types::ALL);
    Ok(())
}
