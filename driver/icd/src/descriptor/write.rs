//! Descriptor updates: writes and copies.

use std::borrow::Cow;

use ash::vk::{self, Handle};
use spelter_driver::{self as driver, host_memory};

use super::DescriptorSet;
use super::inline::Block;
use crate::buffer::{Buffer, BufferView};
use crate::c::entry::entry_points;
use crate::c::{In, Many};
use crate::device::Device;
use crate::error::{Error, require};
use crate::image::ImageView;
use crate::sampler::Sampler;
use crate::table::{Object, Ref};

entry_points! {
    PFN_vkUpdateDescriptorSets(
        device: vk::Device, descriptor_write_count: u32, p_descriptor_writes: *const vk::WriteDescriptorSet<'_>,
        descriptor_copy_count: u32, p_descriptor_copies: *const vk::CopyDescriptorSet<'_>,
    ) => update;
}

/// The contents of a write.
#[derive(Clone)]
pub(crate) enum Content<'a> {
    Images(Cow<'a, [vk::DescriptorImageInfo]>),
    Buffers(Cow<'a, [vk::DescriptorBufferInfo]>),
    Texels(Cow<'a, [vk::BufferView]>),
    /// The bytes of an inline uniform block; the array element is the offset in bytes.
    Inline(Cow<'a, [u8]>),
    /// A number of immutable samplers. The program's handles for them are ignored, and may be invalid.
    ImmutableSamplers(usize),
}

/// A write of `vkUpdateDescriptorSets`, a template or a push.
#[derive(Clone)]
pub(crate) struct Write<'a> {
    pub(crate) binding: u32,
    pub(crate) element: u32,
    pub(crate) ty: vk::DescriptorType,
    pub(crate) content: Content<'a>,
}

/// The kind of content of a descriptor type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Images,
    Buffers,
    Texels,
    Inline,
}

impl Kind {
    pub(crate) fn of(ty: vk::DescriptorType) -> Result<Self, Error> {
        use vk::DescriptorType as D;
        Ok(match ty {
            D::SAMPLER | D::COMBINED_IMAGE_SAMPLER | D::SAMPLED_IMAGE | D::STORAGE_IMAGE => Self::Images,
            D::UNIFORM_BUFFER | D::STORAGE_BUFFER | D::UNIFORM_BUFFER_DYNAMIC | D::STORAGE_BUFFER_DYNAMIC => {
                Self::Buffers
            }
            D::UNIFORM_TEXEL_BUFFER | D::STORAGE_TEXEL_BUFFER => Self::Texels,
            D::INLINE_UNIFORM_BLOCK => Self::Inline,
            _ => {
                let vuid = "VUID-VkWriteDescriptorSet-descriptorType-parameter";
                let problem = format!("there are no descriptors of type {ty:?}");
                return Err(Error::misuse("pDescriptorWrites", problem, vuid));
            }
        })
    }
}

/// Whether a write of type `ty` to the binding names immutable samplers only, which it does not change.
pub(super) fn is_immutable(set: &driver::DescriptorSet, ty: vk::DescriptorType, binding: u32) -> bool {
    ty == vk::DescriptorType::SAMPLER && set.has_immutable_samplers(binding)
}

impl<'a> Write<'a> {
    /// The contents of a write to the set.
    pub(crate) fn new(from: In<'a, vk::WriteDescriptorSet<'a>>, set: &driver::DescriptorSet) -> Result<Self, Error> {
        let content = match Kind::of(from.descriptor_type)? {
            Kind::Images if is_immutable(set, from.descriptor_type, from.dst_binding) => {
                Content::ImmutableSamplers(from.descriptor_count as usize)
            }
            Kind::Images => Content::Images(from.images().get().into()),
            Kind::Buffers => Content::Buffers(from.buffers().get().into()),
            Kind::Texels => Content::Texels(from.texel_buffers().get().into()),
            Kind::Inline => {
                let block = from.next::<vk::WriteDescriptorSetInlineUniformBlock<'_>>().ok_or_else(|| {
                    let vuid = "VUID-VkWriteDescriptorSet-descriptorType-02221";
                    Error::misuse("pDescriptorWrites", "pNext has no VkWriteDescriptorSetInlineUniformBlock", vuid)
                })?;
                Content::Inline(block.bytes().get().into())
            }
        };
        Ok(Self { binding: from.dst_binding, element: from.dst_array_element, ty: from.descriptor_type, content })
    }

    /// Writes into a set.
    pub(crate) fn apply(&self, set: &driver::DescriptorSet) -> Result<(), Error> {
        match &self.content {
            Content::Buffers(list) => self.buffers(set, list),
            Content::Images(list) => self.images(set, list),
            Content::Texels(list) => self.texels(set, list),
            Content::ImmutableSamplers(count) => {
                Ok(set.write_immutable_samplers(self.binding, self.element, *count)?)
            }
            Content::Inline(_) => {
                let vuid = "VUID-VkWriteDescriptorSet-descriptorType-00319";
                Err(Error::misuse("pDescriptorWrites", "the binding is no inline uniform block", vuid))
            }
        }
    }

    fn buffers(&self, set: &driver::DescriptorSet, list: &[vk::DescriptorBufferInfo]) -> Result<(), Error> {
        let is_null = |info: &vk::DescriptorBufferInfo| info.buffer.is_null();
        if list.iter().any(is_null) {
            return self.one_by_one(set, list, is_null, Self::buffers);
        }
        let at = "VkDescriptorBufferInfo-buffer";
        let buffers = host_memory::try_collect(list.iter().map(|info| Buffer::get(info.buffer, at)))?;
        let infos = buffers.iter().zip(list).map(|(buffer, info)| {
            let vk::DescriptorBufferInfo { offset, range, .. } = *info;
            driver::BufferInfo { buffer: &buffer.driver, offset, range }
        });
        Ok(set.write(self.binding, self.element, self.ty, &host_memory::collect(infos)?)?)
    }

    fn images(&self, set: &driver::DescriptorSet, list: &[vk::DescriptorImageInfo]) -> Result<(), Error> {
        let with_view = self.ty != vk::DescriptorType::SAMPLER;
        let is_null = |info: &vk::DescriptorImageInfo| with_view && info.image_view.is_null();
        if list.iter().any(is_null) {
            return self.one_by_one(set, list, is_null, Self::images);
        }
        let with_sampler = [vk::DescriptorType::SAMPLER, vk::DescriptorType::COMBINED_IMAGE_SAMPLER].contains(&self.ty);
        // The driver ignores the sampler if the layout's samplers are immutable.
        let objects = list.iter().map(|info| {
            let at = "VkWriteDescriptorSet-descriptorType-02996";
            let view = with_view.then(|| ImageView::get(info.image_view, at)).transpose()?;
            let seen = view.as_ref().is_none_or(|view| view.driver.is_some());
            require(seen, "pDescriptorWrites", "VUID-VkWriteDescriptorSet-descriptorType-00337", || {
                "the image is an attachment only".into()
            })?;
            Ok::<_, Error>((view, Sampler::find(info.sampler).filter(|_| with_sampler)))
        });
        let objects = host_memory::try_collect(objects)?;
        let infos = objects.iter().map(|(view, sampler)| driver::DescriptorImageInfo {
            view: view.as_ref().and_then(|view| view.driver.as_ref()),
            sampler: sampler.as_ref().map(|sampler| &sampler.driver),
        });
        Ok(set.write_images(self.binding, self.element, self.ty, &host_memory::collect(infos)?)?)
    }

    fn texels(&self, set: &driver::DescriptorSet, list: &[vk::BufferView]) -> Result<(), Error> {
        let is_null = |view: &vk::BufferView| view.is_null();
        if list.iter().any(is_null) {
            return self.one_by_one(set, list, is_null, Self::texels);
        }
        let at = "VkWriteDescriptorSet-descriptorType-02994";
        let views = host_memory::try_collect(list.iter().map(|&view| BufferView::get(view, at)))?;
        let views = host_memory::collect(views.iter().map(|view| &view.driver))?;
        Ok(set.write_texel_buffers(self.binding, self.element, self.ty, &views)?)
    }

    /// A write with null descriptors.
    fn one_by_one<T>(
        &self,
        set: &driver::DescriptorSet,
        list: &[T],
        is_null: impl Fn(&T) -> bool,
        write: impl Fn(&Self, &driver::DescriptorSet, &[T]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for (element, one) in (self.element..).zip(list) {
            if is_null(one) {
                set.write_null(self.binding, element, self.ty, 1)?;
            } else {
                // `write` gets the contents as its argument; those of the new write are not used.
                let content = Content::Inline(Cow::Borrowed(&[]));
                write(&Self { element, content, ..*self }, set, std::slice::from_ref(one))?;
            }
        }
        Ok(())
    }
}

impl DescriptorSet {
    pub(crate) fn write(&self, write: &Write<'_>) -> Result<(), Error> {
        let Content::Inline(bytes) = &write.content else { return write.apply(&self.driver) };
        let at = format!("pDescriptorWrites: binding {}", write.binding);
        let block = self.block(write.binding, &at)?;
        check_bytes(&at, block, write.element, bytes.len())?;
        block.write(write.element, bytes)
    }

    fn block(&self, binding: u32, at: &str) -> Result<&Block, Error> {
        self.inline.iter().find(|block| block.binding == binding).ok_or_else(|| {
            let vuid = "VUID-VkWriteDescriptorSet-descriptorType-00319";
            Error::misuse(at, "the binding is no inline uniform block", vuid)
        })
    }

    fn copy(&self, from: &Self, copy: &vk::CopyDescriptorSet<'_>) -> Result<(), Error> {
        let (to, of) = ([copy.dst_binding, copy.dst_array_element], [copy.src_binding, copy.src_array_element]);
        let count = copy.descriptor_count as usize;
        if !from.inline.iter().any(|block| block.binding == of[0]) {
            return Ok(self.driver.copy(to, &from.driver, of, count)?);
        }
        let at = "pDescriptorCopies";
        let (source, target) = (from.block(of[0], at)?, self.block(to[0], at)?);
        check_bytes(at, source, of[1], count)?;
        check_bytes(at, target, to[1], count)?;
        let mut bytes = host_memory::filled(0, count)?;
        source.read(of[1], &mut bytes)?;
        target.write(to[1], &bytes)
    }
}

fn check_bytes(at: &str, block: &Block, offset: u32, len: usize) -> Result<(), Error> {
    let whole = offset.is_multiple_of(4) && len.is_multiple_of(4);
    require(whole, at, "VUID-VkWriteDescriptorSet-descriptorType-02219", || {
        format!("{len} bytes at offset {offset}: not multiples of 4")
    })?;
    let fits = u64::from(offset) + len as u64 <= block.size();
    require(fits, at, "VUID-VkWriteDescriptorSet-dstArrayElement-00321", || {
        format!("{len} bytes at offset {offset}, the block has {}", block.size())
    })
}

fn update(
    _: Ref<Device>,
    write_count: u32,
    writes: Many<'_, vk::WriteDescriptorSet<'_>>,
    copy_count: u32,
    copies: Many<'_, vk::CopyDescriptorSet<'_>>,
) -> Result<(), Error> {
    for write in writes.of(write_count as usize).each() {
        let set = DescriptorSet::get(write.dst_set, "VkWriteDescriptorSet-dstSet-00320")?;
        set.write(&Write::new(write, &set.driver)?)?;
    }
    for copy in copies.of(copy_count as usize).each() {
        let from = DescriptorSet::get(copy.src_set, "VkCopyDescriptorSet-srcSet")?;
        DescriptorSet::get(copy.dst_set, "VkCopyDescriptorSet-dstSet")?.copy(&from, &copy)?;
    }
    Ok(())
}
