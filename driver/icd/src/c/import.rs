//! Host memory of the program that is imported as device memory (`VK_EXT_external_memory_host`).
//!
//! # Safety
//!
//! A program that imports memory promises that it stays mapped, readable and writable until the last user of the import
//! is gone (`VkImportMemoryHostPointerInfoEXT`); the structure comes from it, by the contract of [`crate::c`].

use ash::vk;
use spelter_driver as driver;

use super::pointer::In;
use crate::error::Error;

/// `size` bytes at the structure's host pointer.
pub(crate) fn import(
    device: &driver::Device,
    info: In<'_, vk::ImportMemoryHostPointerInfoEXT<'_>>,
    size: u64,
) -> Result<driver::DeviceMemory, Error> {
    // SAFETY: by this module's contract.
    Ok(unsafe { device.import_host_memory(info.p_host_pointer.cast(), size) }?)
}
