//! Buffer views: a range of a buffer as texels.

use std::sync::Arc;

use ash::vk::{self, BufferUsageFlags, FormatFeatureFlags};
use spelter_shaders::image::TexelView;

use super::Buffer;
use super::format::{format_of, properties};
use crate::device::Device;
use crate::error::{Error, Misuse, require};
use crate::limits::Limits;
use crate::memory::Allocation;

const AT: &str = "vkCreateBufferView";

/// A texel buffer (`VkBufferView`). A handle; it keeps the buffer alive.
#[derive(Clone, Debug)]
pub struct BufferView {
    inner: Arc<BufferViewInner>,
}

#[derive(Debug)]
struct BufferViewInner {
    buffer: Buffer,
    usage: BufferUsageFlags,
    view: TexelView,
    allocation: Arc<Allocation>,
}

impl Device {
    /// `vkCreateBufferView`: `range` bytes of a buffer from `offset`, as texels; [`vk::WHOLE_SIZE`] for all bytes to
    /// the end.
    pub fn create_buffer_view(
        &self,
        buffer: &Buffer,
        format: vk::Format,
        offset: u64,
        range: u64,
    ) -> Result<BufferView, Error> {
        BufferView::new(self, buffer, format, offset, range, None)
    }

    /// The same, for a view whose usage is a subset of its buffer's (`VkBufferUsageFlags2CreateInfo`).
    pub fn create_buffer_view_for(
        &self,
        usage: BufferUsageFlags,
        buffer: &Buffer,
        format: vk::Format,
        [offset, range]: [u64; 2],
    ) -> Result<BufferView, Error> {
        BufferView::new(self, buffer, format, offset, range, Some(usage))
    }
}

impl BufferView {
    fn new(
        device: &Device,
        buffer: &Buffer,
        format: vk::Format,
        offset: u64,
        range: u64,
        usage: Option<BufferUsageFlags>,
    ) -> Result<Self, Error> {
        let limits = Limits::DEVICE;
        require(buffer.device().is(device), AT, "VUID-VkBufferViewCreateInfo-buffer-parameter", || {
            "a buffer of another device".into()
        })?;
        let size = buffer.size();
        require(offset < size, AT, "VUID-VkBufferViewCreateInfo-offset-00925", || {
            format!("offset {offset} in a buffer of {size} bytes")
        })?;
        let alignment = limits.min_texel_buffer_offset_alignment;
        require(offset.is_multiple_of(alignment), AT, "VUID-VkBufferViewCreateInfo-offset-02749", || {
            format!("offset {offset} is not a multiple of {alignment}")
        })?;
        let usage = usage.map_or(Ok(buffer.usage()), |usage| check_usage(buffer, usage))?;
        let known = check_format(usage, format)?;
        let texel = u64::from(known.bytes());
        let max = u64::from(limits.max_texel_buffer_elements);
        if range != vk::WHOLE_SIZE {
            require(range > 0, AT, "VUID-VkBufferViewCreateInfo-range-00928", || "range is 0".into())?;
            require(range.is_multiple_of(texel), AT, "VUID-VkBufferViewCreateInfo-range-00929", || {
                format!("range {range} is not a multiple of the texels' {texel} bytes")
            })?;
            require(range / texel <= max, AT, "VUID-VkBufferViewCreateInfo-range-00930", || {
                format!("{} texels above the limit {max}", range / texel)
            })?;
            require(range <= size - offset, AT, "VUID-VkBufferViewCreateInfo-offset-00931", || {
                format!("range {range} at offset {offset} in a buffer of {size} bytes")
            })?;
        } else {
            let texels = (size - offset) / texel;
            require(texels <= max, AT, "VUID-VkBufferViewCreateInfo-range-04059", || {
                format!("{texels} texels above the limit {max}")
            })?;
        }
        let storage = buffer.storage().ok_or_else(|| {
            Misuse::new(AT, "the buffer has no memory bound", "VUID-VkBufferViewCreateInfo-buffer-00935")
        })?;
        let range = range.min(size - offset) / texel * texel;
        let view = TexelView::of_buffer(storage.slice.slice(offset, range), known, limits.max_texel_buffer_elements);
        let allocation = Arc::clone(&storage.allocation);
        Ok(Self { inner: Arc::new(BufferViewInner { buffer: buffer.clone(), usage, view, allocation }) })
    }

    /// The buffer.
    pub fn buffer(&self) -> &Buffer {
        &self.inner.buffer
    }

    /// Permitted uses: the buffer's, unless a subset was given at creation.
    pub(crate) fn usage(&self) -> BufferUsageFlags {
        self.inner.usage
    }

    pub(crate) fn view(&self) -> &TexelView {
        &self.inner.view
    }

    pub(crate) fn allocation(&self) -> &Arc<Allocation> {
        &self.inner.allocation
    }
}

const TEXELS: BufferUsageFlags = BufferUsageFlags::from_raw(
    BufferUsageFlags::UNIFORM_TEXEL_BUFFER.as_raw() | BufferUsageFlags::STORAGE_TEXEL_BUFFER.as_raw(),
);

/// Checks the view's own usage, which must be a subset of its buffer's (`VkBufferUsageFlags2CreateInfo`).
fn check_usage(buffer: &Buffer, usage: BufferUsageFlags) -> Result<BufferUsageFlags, Misuse> {
    require(TEXELS.contains(usage), AT, "VUID-VkBufferViewCreateInfo-pNext-08780", || {
        format!("the view's usage {usage:?} has bits that are not for texel buffers")
    })?;
    require(buffer.usage().contains(usage), AT, "VUID-VkBufferViewCreateInfo-pNext-08781", || {
        format!("the view's usage {usage:?} is not a subset of the buffer's usage {:?}", buffer.usage())
    })?;
    Ok(usage)
}

/// The format, if it supports the view's usage.
fn check_format(usage: BufferUsageFlags, format: vk::Format) -> Result<spelter_shaders::image::Format, Misuse> {
    require(usage.intersects(TEXELS), AT, "VUID-VkBufferViewCreateInfo-buffer-00932", || {
        format!("usage {usage:?}, the buffer's or the view's own, has no bit for texel buffers")
    })?;
    let has = properties(format).buffer;
    for (wanted, feature, vuid) in [
        (
            BufferUsageFlags::UNIFORM_TEXEL_BUFFER,
            FormatFeatureFlags::UNIFORM_TEXEL_BUFFER,
            "VUID-VkBufferViewCreateInfo-format-08778",
        ),
        (
            BufferUsageFlags::STORAGE_TEXEL_BUFFER,
            FormatFeatureFlags::STORAGE_TEXEL_BUFFER,
            "VUID-VkBufferViewCreateInfo-format-08779",
        ),
    ] {
        require(!usage.contains(wanted) || has.contains(feature), AT, vuid, || {
            format!("the view's usage has {wanted:?}, format {format:?} lacks {feature:?}")
        })?;
    }
    format_of(format).ok_or_else(|| {
        let problem = format!("texel buffers of format {format:?} are not supported");
        Misuse::new(AT, problem, "VUID-VkBufferViewCreateInfo-format-08778")
    })
}
