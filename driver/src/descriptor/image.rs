//! Writes of image, sampler and texel buffer descriptors.

use std::any::Any;
use std::sync::Arc;

use ash::vk::{BufferUsageFlags, DescriptorType, ImageUsageFlags, ImageViewType};
use spelter_shaders::image::{Descriptor, Swizzle};

use super::layout::{is_image, is_texel_buffer};
use super::set::{DescriptorSet, Written};
use crate::error::{Error, Misuse, require};
use crate::host_memory;
use crate::resource::{BufferView, ImageView, Sampler};

/// Values of a descriptor (`VkDescriptorImageInfo`). The descriptor type selects the fields that are used.
#[derive(Clone, Copy, Debug, Default)]
pub struct DescriptorImageInfo<'a> {
    /// The sampler; an immutable sampler of the layout takes precedence.
    pub sampler: Option<&'a Sampler>,
    /// The image view.
    pub view: Option<&'a ImageView>,
}

/// The contents of an image, sampler or texel buffer descriptor.
#[derive(Clone)]
pub(crate) struct ImageWritten {
    pub(super) descriptor: Arc<Descriptor>,
    /// View type of an image; `None` for texel buffers and samplers.
    pub(super) ty: Option<ImageViewType>,
    /// Whether the sampler compares; `None` without a sampler.
    pub(super) compares: Option<bool>,
    /// Owner of the descriptor's memory.
    _keep: Option<Arc<dyn Any + Send + Sync>>,
}

impl std::fmt::Debug for ImageWritten {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.descriptor.fmt(f)
    }
}

impl ImageWritten {
    /// A sampler without an image.
    pub(super) fn sampler(sampler: &Sampler) -> Self {
        let descriptor = Descriptor { sampler: *sampler.record(), ..Descriptor::NULL };
        Self { descriptor: Arc::new(descriptor), ty: None, compares: Some(sampler.compares()), _keep: None }
    }
}

impl DescriptorSet {
    /// `vkUpdateDescriptorSets` for images and samplers, otherwise as [`DescriptorSet::write`].
    pub fn write_images(
        &self,
        binding: u32,
        element: u32,
        ty: DescriptorType,
        infos: &[DescriptorImageInfo<'_>],
    ) -> Result<(), Error> {
        let at = format!("pDescriptorWrites: binding {binding}");
        check_kind(&at, ty, is_image(ty), "images or samplers")?;
        let first = self.place(&at, binding, element, ty, infos.len())?;
        let one = |(slot, info)| Ok::<_, Error>(Written::Image(self.image(&at, ty, slot, info)?));
        let written = host_memory::try_collect((first..).zip(infos).map(one))?;
        Ok(self.put(first, written)?)
    }

    /// `vkUpdateDescriptorSets` for texel buffers, otherwise as [`DescriptorSet::write`].
    pub fn write_texel_buffers(
        &self,
        binding: u32,
        element: u32,
        ty: DescriptorType,
        views: &[&BufferView],
    ) -> Result<(), Error> {
        let at = format!("pDescriptorWrites: binding {binding}");
        check_kind(&at, ty, is_texel_buffer(ty), "texel buffers")?;
        let first = self.place(&at, binding, element, ty, views.len())?;
        let texels = host_memory::try_collect(views.iter().map(|view| Ok::<_, Error>(self.texels(&at, ty, view)?)))?;
        Ok(self.put(first, texels)?)
    }

    /// Whether writes of samplers into a binding have no effect, since the layout has immutable samplers for it
    /// ([`ImmutableSamplers`](super::ImmutableSamplers)).
    pub fn has_immutable_samplers(&self, binding: u32) -> bool {
        let entry = self.layout().entries().iter().find(|entry| entry.binding == binding);
        entry.is_some_and(|entry| {
            entry.ty == DescriptorType::SAMPLER && self.layout().immutable_at(entry.first).is_some()
        })
    }

    /// As [`DescriptorSet::write_images`] for `count` immutable samplers of the layout, which stay unchanged. Pushing
    /// immutable samplers uses it; for other sets a strict device rejects it.
    pub fn write_immutable_samplers(&self, binding: u32, element: u32, count: usize) -> Result<(), Error> {
        let at = format!("pDescriptorWrites: binding {binding}");
        let first = self.place(&at, binding, element, DescriptorType::SAMPLER, count)?;
        (first..first + count).try_for_each(|slot| self.check_immutable_sampler(&at, slot))?;
        Ok(())
    }

    /// The rule against writing a sampler where the layout has an immutable one.
    fn check_immutable_sampler(&self, at: &str, slot: usize) -> Result<(), Misuse> {
        let none = self.layout().immutable_at(slot).is_none();
        let vuid = "VUID-VkWriteDescriptorSet-descriptorType-02752";
        require(none || self.is_pushed() || !self.device().is_strict(), at, vuid, || {
            "the layout has the sampler".into()
        })
    }

    fn image(
        &self,
        at: &str,
        ty: DescriptorType,
        slot: usize,
        info: &DescriptorImageInfo<'_>,
    ) -> Result<ImageWritten, Misuse> {
        let own = self.layout().immutable_at(slot);
        let mut descriptor = Descriptor::NULL;
        let (mut ty_of_view, mut compares, mut keep) = (None, None, None);
        if matches!(ty, DescriptorType::SAMPLER | DescriptorType::COMBINED_IMAGE_SAMPLER) {
            if ty == DescriptorType::SAMPLER {
                self.check_immutable_sampler(at, slot)?;
            }
            let sampler = own.or(info.sampler).ok_or_else(|| {
                Misuse::new(at, "a descriptor without a sampler", "VUID-VkWriteDescriptorSet-descriptorType-00325")
            })?;
            require(sampler.device().is(self.device()), at, "VUID-VkDescriptorImageInfo-commonparent", || {
                "a sampler of another device".into()
            })?;
            (descriptor.sampler, compares) = (*sampler.record(), Some(sampler.compares()));
        }
        if ty != DescriptorType::SAMPLER {
            let view = info.view.ok_or_else(|| {
                Misuse::new(at, "a descriptor without an image view", "VUID-VkWriteDescriptorSet-descriptorType-02996")
            })?;
            self.check_view(at, ty, view)?;
            (descriptor.view, ty_of_view) = (*view.view(), Some(view.ty()));
            keep = Some(Arc::clone(view.allocation()) as Arc<dyn Any + Send + Sync>);
        }
        Ok(ImageWritten { descriptor: Arc::new(descriptor), ty: ty_of_view, compares, _keep: keep })
    }

    fn check_view(&self, at: &str, ty: DescriptorType, view: &ImageView) -> Result<(), Misuse> {
        require(view.image().device().is(self.device()), at, "VUID-VkDescriptorImageInfo-commonparent", || {
            "an image of another device".into()
        })?;
        let (usage, vuid) = if ty == DescriptorType::STORAGE_IMAGE {
            (ImageUsageFlags::STORAGE, "VUID-VkWriteDescriptorSet-descriptorType-00339")
        } else {
            (ImageUsageFlags::SAMPLED, "VUID-VkWriteDescriptorSet-descriptorType-00337")
        };
        let has = view.image().info().usage;
        require(has.contains(usage), at, vuid, || format!("the image's usage {has:?} lacks {usage:?}"))?;
        let plain = ty != DescriptorType::STORAGE_IMAGE || view.view().swizzle == Swizzle::IDENTITY;
        require(plain, at, "VUID-VkWriteDescriptorSet-descriptorType-00336", || {
            "a storage image through a view with other than identity swizzle".into()
        })
    }

    fn texels(&self, at: &str, ty: DescriptorType, view: &BufferView) -> Result<Written, Misuse> {
        require(view.buffer().device().is(self.device()), at, "VUID-VkWriteDescriptorSet-commonparent", || {
            "a buffer of another device".into()
        })?;
        let (usage, vuid) = if ty == DescriptorType::STORAGE_TEXEL_BUFFER {
            (BufferUsageFlags::STORAGE_TEXEL_BUFFER, "VUID-VkWriteDescriptorSet-descriptorType-08766")
        } else {
            (BufferUsageFlags::UNIFORM_TEXEL_BUFFER, "VUID-VkWriteDescriptorSet-descriptorType-08765")
        };
        let has = view.usage();
        require(has.contains(usage), at, vuid, || format!("the view's usage {has:?} lacks {usage:?}"))?;
        let descriptor = Arc::new(Descriptor { view: *view.view(), ..Descriptor::NULL });
        let keep = Arc::clone(view.allocation()) as Arc<dyn Any + Send + Sync>;
        Ok(Written::Image(ImageWritten { descriptor, ty: None, compares: None, _keep: Some(keep) }))
    }
}

fn check_kind(at: &str, ty: DescriptorType, fits: bool, kind: &str) -> Result<(), Misuse> {
    require(fits, at, "VUID-VkWriteDescriptorSet-descriptorType-parameter", || {
        format!("descriptors of type {ty:?} are not {kind}")
    })
}
