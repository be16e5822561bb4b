//! Buffer views: a range of a buffer as texels.

use std::sync::Arc;

use ash::vk::{self, BufferUsageFlags, FormatFeatureFlags};
use spelter_shaders::image::View;

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
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    buffer: Buffer,
    usage: BufferUsageFlags,
    view: View,
    allocation: Arc<Allocation>,
}

impl BufferView {
    pub(crate) fn new(
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
            format!("offset {offset} is no multiple of {alignment}")
        })?;
        let usage = usage.map_or(Ok(buffer.usage()), |usage| check_usage(buffer, usage))?;
        let known = check_format(usage, format)?;
        let texel = u64::from(known.bytes());
        let most = u64::from(limits.max_texel_buffer_elements);
        if range != vk::WHOLE_SIZE {
            require(range > 0, AT, "VUID-VkBufferViewCreateInfo-range-00928", || "range is 0".into())?;
            require(range.is_multiple_of(texel), AT, "VUID-VkBufferViewCreateInfo-range-00929", || {
                format!("range {range} is no multiple of the texels' {texel} bytes")
            })?;
            require(range / texel <= most, AT, "VUID-VkBufferViewCreateInfo-range-00930", || {
                format!("{} texels above the limit {most}", range / texel)
            })?;
            require(range <= size - offset, AT, "VUID-VkBufferViewCreateInfo-offset-00931", || {
                format!("range {range} at offset {offset} in a buffer of {size} bytes")
            })?;
        } else {
            let texels = (size - offset) / texel;
            require(texels <= most, AT, "VUID-VkBufferViewCreateInfo-range-04059", || {
                format!("{texels} texels above the limit {most}")
            })?;
        }
        let storage = buffer.storage().ok_or_else(|| {
            Misuse::new(AT, "the buffer has no memory bound", "VUID-VkBufferViewCreateInfo-buffer-00935")
        })?;
        let range = range.min(size - offset) / texel * texel;
        let view = View::of_buffer(storage.slice.slice(offset, range), known, limits.max_texel_buffer_elements);
        let allocation = Arc::clone(&storage.allocation);
        Ok(Self { inner: Arc::new(Inner { buffer: buffer.clone(), usage, view, allocation }) })
    }

    /// The buffer.
    pub fn buffer(&self) -> &Buffer {
        &self.inner.buffer
    }

    /// What the view may be used for: what the buffer may, if its maker said no less.
    pub(crate) fn usage(&self) -> BufferUsageFlags {
        self.inner.usage
    }

    pub(crate) fn view(&self) -> &View {
        &self.inner.view
    }

    pub(crate) fn allocation(&self) -> &Arc<Allocation> {
        &self.inner.allocation
    }
}

const TEXELS: BufferUsageFlags = BufferUsageFlags::from_raw(
    BufferUsageFlags::UNIFORM_TEXEL_BUFFER.as_raw() | BufferUsageFlags::STORAGE_TEXEL_BUFFER.as_raw(),
);

/// A view's own usage, which is a part of its buffer's (`VkBufferUsageFlags2CreateInfo`).
fn check_usage(buffer: &Buffer, usage: BufferUsageFlags) -> Result<BufferUsageFlags, Misuse> {
    require(TEXELS.contains(usage), AT, "VUID-VkBufferViewCreateInfo-pNext-08780", || {
        format!("the view's usage {usage:?} is not one of texels")
    })?;
    require(buffer.usage().contains(usage), AT, "VUID-VkBufferViewCreateInfo-pNext-08781", || {
        format!("the view's usage {usage:?} is no part of the buffer's {:?}", buffer.usage())
    })?;
    Ok(usage)
}

/// The format, if the view's usage is one that the format has.
fn check_format(usage: BufferUsageFlags, format: vk::Format) -> Result<spelter_shaders::image::Format, Misuse> {
    require(usage.intersects(TEXELS), AT, "VUID-VkBufferViewCreateInfo-buffer-00932", || {
        format!("the buffer's usage {usage:?} has no texel buffers")
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
        let problem = format!("there are no texel buffers of format {format:?}");
        Misuse::new(AT, problem, "VUID-VkBufferViewCreateInfo-format-08778")
    })
}
