//! The host's memory in copies from and to images, and lists of layouts that a caller first counts and then fetches.
//!
//! # Safety
//!
//! By the contract of [`crate::c`], `pHostPointer` of a region points to as many bytes as the region takes there, which is what
//! Vulkan says of its rows' length, its slices' height and its extent; a list of layouts has room for as many as its count says.

use ash::vk;

use super::pointer::{In, Slice};

impl<'a> In<'a, vk::MemoryToImageCopyEXT<'a>> {
    /// The bytes that the region takes, if there are any.
    pub(crate) fn bytes(self, len: u64) -> Option<&'a [u8]> {
        let at = self.get().p_host_pointer.cast::<u8>();
        // SAFETY: by this module's contract.
        (!at.is_null()).then(|| unsafe { Slice::new(at, len as usize) }.get())
    }
}

impl<'a> In<'a, vk::ImageToMemoryCopyEXT<'a>> {
    /// Whether there is memory.
    pub(crate) fn has_memory(self) -> bool {
        !self.get().p_host_pointer.is_null()
    }

    /// Puts bytes of the region into the memory, from byte `offset` on.
    pub(crate) fn put(self, offset: usize, bytes: &[u8]) {
        let to = self.get().p_host_pointer.cast::<u8>().wrapping_add(offset);
        // SAFETY: by this module's contract: the bytes lie inside of what the region takes, and are the call's to write.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }
}

/// The list's length where the caller has no list yet; else as many of the layouts as it has room for.
fn put_layouts(count: &mut u32, list: *mut vk::ImageLayout, layouts: &[vk::ImageLayout]) {
    if list.is_null() {
        *count = layouts.len() as u32;
        return;
    }
    let fit = layouts.len().min(*count as usize);
    *count = fit as u32;
    for (index, layout) in layouts[..fit].iter().enumerate() {
        // SAFETY: by this module's contract.
        unsafe { list.wrapping_add(index).write(*layout) };
    }
}

/// The layouts that images may be in while the host copies, in a structure with the two lists.
macro_rules! put_both {
    ($properties:ident, $layouts:ident) => {
        put_layouts(&mut $properties.copy_src_layout_count, $properties.p_copy_src_layouts, $layouts);
        put_layouts(&mut $properties.copy_dst_layout_count, $properties.p_copy_dst_layouts, $layouts);
    };
}

/// For `VK_EXT_host_image_copy`.
pub(crate) fn put_copy_layouts(to: &mut vk::PhysicalDeviceHostImageCopyPropertiesEXT<'_>, layouts: &[vk::ImageLayout]) {
    put_both!(to, layouts);
}

/// For Vulkan 1.4.
pub(crate) fn put_copy_layouts_1_4(
    to: &mut super::version_1_4::PhysicalDeviceVulkan14Properties<'_>,
    layouts: &[vk::ImageLayout],
) {
    put_both!(to, layouts);
}
