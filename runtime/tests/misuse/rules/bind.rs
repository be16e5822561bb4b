//! Binding to slots.

use std::ops::Range;

use spelter::{Bind, BindingKind, vk};

use super::{Case, DEVICE, GONE, SLOT};

pub(super) const CASES: &[Case] = &[
    (
        "a range lies in its buffer",
        |s| s.bind((0, 1), Bind::storage(s.source.slice(..80))),
        "binding 0.1: bytes 0..80 of buffer `source` of 64 bytes",
        "(VUID-VkDescriptorBufferInfo-range-00342)",
    ),
    (
        "a range has bytes",
        |s| s.bind((0, 1), Bind::storage(s.source.slice(16..16))),
        "binding 0.1: bytes 16..16 of buffer `source` of 64 bytes",
        "(VUID-VkDescriptorBufferInfo-range-00341)",
    ),
    (
        "a range begins before it ends",
        |s| s.bind((0, 1), Bind::uniform(s.source.slice(Range { start: 32, end: 16 }))),
        "binding 0.1: bytes 32..16 of buffer `source` of 64 bytes",
        "(VUID-VkDescriptorBufferInfo-range-00341)",
    ),
    (
        "a range begins in its buffer",
        |s| s.bind((0, 1), Bind::storage(s.source.slice(128..))),
        "binding 0.1: bytes 128..64 of buffer `source` of 64 bytes",
        "(VUID-VkDescriptorBufferInfo-offset-00340)",
    ),
    (
        "a range of texels begins in its buffer",
        |s| s.bind((0, 1), Bind::texels(s.source.slice(128..), vk::Format::R32_UINT)),
        "binding 0.1: bytes 128..64 of buffer `source` of 64 bytes",
        "(VUID-VkBufferViewCreateInfo-offset-00925)",
    ),
    (
        "a range of texels has bytes",
        |s| s.bind((0, 1), Bind::texels(s.source.slice(16..16), vk::Format::R32_UINT)),
        "binding 0.1: bytes 16..16 of buffer `source` of 64 bytes",
        "(VUID-VkBufferViewCreateInfo-range-00928)",
    ),
    (
        "a storage range is aligned",
        |s| s.bind((0, 1), Bind::storage(s.source.slice(4..))),
        "binding 0.1: offset 4 of buffer `source`",
        "(VUID-VkWriteDescriptorSet-descriptorType-00328)",
    ),
    (
        "a uniform range is aligned",
        |s| s.bind((0, 0), Bind::uniform(s.step.slice(8..))),
        "binding 0.0: offset 8 of buffer `step`",
        "(VUID-VkWriteDescriptorSet-descriptorType-00327)",
    ),
    (
        "texels are aligned",
        |s| s.bind((0, 1), Bind::texels(s.source.slice(4..), vk::Format::R32_UINT)),
        "binding 0.1: buffer `source` of 64 bytes: ",
        "(VUID-VkBufferViewCreateInfo-offset-02749)",
    ),
    (
        "texels have a format",
        |s| s.bind((0, 1), Bind::texels(&s.source, vk::Format::UNDEFINED)),
        "binding 0.1: buffer `source` of 64 bytes: ",
        ")",
    ),
    (
        "a range of texels lies in its buffer",
        |s| s.bind((0, 1), Bind::storage_texels(s.source.slice(..68), vk::Format::R32_UINT)),
        "binding 0.1: bytes 0..68 of buffer `source` of 64 bytes",
        "(VUID-VkBufferViewCreateInfo-offset-00931)",
    ),
    (
        "a group is a group",
        |s| s.bind((99, 0), Bind::storage(&s.source)),
        "binding 99.0: buffer `source` of 64 bytes: groups are numbered 0 to ",
        SLOT,
    ),
    (
        "an element is an element",
        |s| s.bind((0, 1, u32::MAX), Bind::storage(&s.source)),
        "binding 0.1: buffer `source` of 64 bytes: there are at most ",
        SLOT,
    ),
    (
        "a sampler is not null",
        |s| s.bind((0, 1), Bind::null(BindingKind::Sampler)),
        "binding 0.1: a sampler cannot be null",
        "(VUID-VkWriteDescriptorSet-descriptorType-00325)",
    ),
    (
        "a null descriptor has the kind that the program declares",
        |s| s.with(1, Bind::null(BindingKind::UniformBuffer)),
        "binding 0.1 (source): a null descriptor is bound as a uniform buffer, \"main\" takes a storage buffer",
        ")",
    ),
    ("an empty slot is a slot", |s| s.context.unbind((99, 0)), "binding 99.0: groups are numbered 0 to ", SLOT),
    (
        "levels are levels of the image",
        |s| s.bind((1, 0), Bind::sampled(s.sheet.all().levels(1..4))),
        "binding 1.0: levels 1..4 of 2 of image `sheet` of 4x4x1 R32_UINT",
        "(rule: views lie within their images)",
    ),
    (
        "layers are layers of the image",
        |s| s.bind((1, 0), Bind::sampled(s.sheet.all().layers(1..2))),
        "binding 1.0: layers 1..2 of 1 of image `sheet` of 4x4x1 R32_UINT",
        "(rule: views lie within their images)",
    ),
    (
        "a view has a type that fits",
        |s| s.bind((1, 0), Bind::sampled(s.sheet.all().as_type(vk::ImageViewType::CUBE))),
        "binding 1.0: image `sheet` of 4x4x1 R32_UINT: ",
        ")",
    ),
    (
        "what is destroyed is not bound",
        |s| s.bind((0, 1), Bind::storage(&s.gone)),
        "binding 0.1: buffer `gone` of 64 bytes is destroyed",
        GONE,
    ),
    (
        "a destroyed image is not bound",
        |s| s.bind((1, 0), Bind::sampled(&s.lost)),
        "binding 1.0: image `lost` of 4x4x1 R32_UINT is destroyed",
        GONE,
    ),
    (
        "what is bound is of the device",
        |s| s.bind((0, 1), Bind::storage(&s.foreign)),
        "binding 0.1: buffer `foreign` of 64 bytes is of another context's device",
        DEVICE,
    ),
];
