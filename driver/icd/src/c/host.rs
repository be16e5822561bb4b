//! Host pointers of copies from and to images, and the lists of image layouts in properties (`VK_EXT_host_image_copy`).
//!
//! # Safety
//!
//! By the contract of [`crate::c`], `pHostPointer` of a region points to the bytes that `memoryRowLength`,
//! `memoryImageHeight` and `imageExtent` imply; a list of layouts has room for as many as its count says.

use ash::vk;

use super::pointer::{In, Slice};

impl<'a> In<'a, vk::MemoryToImageCopyEXT<'a>> {
    /// The bytes of the region; `None` if the pointer is null. `len` is the number that its row length, image height
    /// and extent imply.
    pub(crate) fn bytes(self, len: u64) -> Option<&'a [u8]> {
        let at = self.get().p_host_pointer.cast::<u8>();
        // SAFETY: by this module's contract.
        (!at.is_null()).then(|| unsafe { Slice::new(at, len as usize) }.get())
    }
}

impl<'a> In<'a, vk::ImageToMemoryCopyEXT<'a>> {
    /// Whether the host pointer is not null.
    pub(crate) fn has_memory(self) -> bool {
        !self.get().p_host_pointer.is_null()
    }

    /// Writes bytes of the region to the host memory at byte `offset`. They end within the bytes that the region's row
    /// length, image height and extent imply.
    pub(crate) fn put(self, offset: usize, bytes: &[u8]) {
        let to = self.get().p_host_pointer.cast::<u8>().wrapping_add(offset);
        // SAFETY: by this module's contract the region's memory has these bytes, and only this call accesses it, so
        // that `bytes`, which the driver owns, does not overlap it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }
}

/// Writes the number of layouts if the list is null, else as many layouts as it has room for.
fn put_layouts(count: &mut u32, list: *mut vk::ImageLayout, layouts: &[vk::ImageLayout]) {
    if list.is_null() {
        *count = layouts.len() as u32;
        return;
    }
    let fit = layouts.len().min(*count as usize);
    *count = fit as u32;
    for (index, layout) in layouts[..fit].iter().enumerate() {
        // SAFETY: by this module's contract the list has room for the original count, and `index < fit <= count`.
        unsafe { list.wrapping_add(index).write(*layout) };
    }
}

/// Writes the layouts into both lists of a structure.
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
