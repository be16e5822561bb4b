//! The rules, one line for each.

use std::ops::Range;

use spelter::{Bind, ClearColor, Error, MapFlags, SamplerInfo, vk};

use crate::Stage;

/// A rule: what it says, how it is broken, and what the error begins and ends with.
pub(crate) type Case = (&'static str, fn(&Stage) -> Result<(), Error>, &'static str, &'static str);

pub(crate) const SOURCE: &str = "buffer `source` of 64 bytes";
const INSIDE: &str = "(rule: ranges lie within what they are ranges of, and do not end before they begin)";
pub(crate) const GONE: &str = "(rule: a destroyed resource is not used)";
pub(crate) const MAPPED: &str =
    "(rule: a resource is used by commands while it is mapped only if the mapping is persistent)";
const KIND: &str = "(rule: what is bound has the kind that the program declares)";
const SLOT: &str = "(rule: slots lie within the device's limits)";
const DEVICE: &str = "(rule: resources and programs are used by contexts of the device that made them)";

pub(crate) const CASES: &[Case] = &[
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
        ")",
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
    (
        "a program is of the device",
        |s| s.context.dispatch(&s.theirs).groups([1, 1, 1]),
        "dispatch: \"main\" is a program of another context's device",
        DEVICE,
    ),
    (
        "a buffer has the kind of its slot",
        |s| s.with(1, Bind::uniform(&s.source)),
        "binding 0.1: buffer `source` of 64 bytes is bound as a uniform buffer, \"main\" takes a storage buffer",
        KIND,
    ),
    (
        "an image is no buffer",
        |s| s.with(1, Bind::sampled(&s.sheet)),
        "binding 0.1: image `sheet` of 4x4x1 R32_UINT is bound as a sampler view, \"main\" takes a storage buffer",
        KIND,
    ),
    (
        "a sampler is no buffer",
        |s| s.with(1, Bind::sampler(&s.context.sampler(&SamplerInfo::default())?)),
        "binding 0.1: a sampler is bound as a sampler, \"main\" takes a storage buffer",
        KIND,
    ),
    (
        "texels are no image",
        |s| s.context.dispatch(&s.look).with((1, 0), Bind::texels(&s.source, vk::Format::R32_UINT)).groups([1, 1, 1]),
        "binding 1.0: buffer `source` of 64 bytes is bound as a sampler view, \"main\" takes a sampled image",
        KIND,
    ),
    (
        "a program is given what it takes",
        |s| s.context.dispatch(&s.copy).bind(3, 9, &s.source).groups([1, 1, 1]),
        "binding 3.9: buffer `source` of 64 bytes: \"main\" does not use it; it uses 0.0, 0.1, 0.2",
        "(rule: a dispatch is given what its program takes)",
    ),
    (
        "an element is one of the program's",
        |s| s.context.dispatch(&s.copy).bind_element(0, 1, 5, &s.source, 0..64).groups([1, 1, 1]),
        "binding 0.1: buffer `source` of 64 bytes: it has 1 elements, there is no element 5",
        "(rule: a dispatch is given what its program takes)",
    ),
    (
        "a dispatch uses nothing that is destroyed",
        |s| s.context.dispatch(&s.copy).bind(0, 1, &s.gone).groups([1, 1, 1]),
        "binding 0.1: buffer `gone` of 64 bytes is destroyed",
        GONE,
    ),
    (
        "a dispatch uses nothing that is mapped",
        |s| s.context.dispatch(&s.copy).bind(0, 1, &s.mapped).groups([1, 1, 1]),
        "binding 0.1: buffer `mapped` of 64 bytes is mapped",
        MAPPED,
    ),
    (
        "a dispatch's range lies in its buffer",
        |s| s.context.dispatch(&s.copy).bind_range(0, 1, &s.source, 0..65).groups([1, 1, 1]),
        "binding 0.1: bytes 0..65 of buffer `source` of 64 bytes",
        "(VUID-VkDescriptorBufferInfo-range-00342)",
    ),
    (
        "push constants are as many as declared",
        |s| s.context.dispatch(&s.push).groups([1, 1, 1]),
        "push constants: \"main\" declares 4 bytes, 0 were given",
        "",
    ),
    (
        "workgroups are within the limits",
        |s| s.context.dispatch(&s.copy).groups([70_000, 1, 1]),
        "",
        "VUID-vkCmdDispatch-groupCountX-00386)",
    ),
    (
        "a write lies in its buffer",
        |s| s.context.write(&s.source, 60, &[1u32; 2]),
        "write: bytes 60..68 of buffer `source` of 64 bytes",
        INSIDE,
    ),
    (
        "an upload fits",
        |s| s.context.upload(&s.source, &[1u32; 17]),
        "upload: bytes 0..68 of buffer `source` of 64 bytes",
        INSIDE,
    ),
    (
        "a read lies in its buffer",
        |s| s.context.read_range::<u32>(&s.source, 64..68).map(drop),
        "read: bytes 64..68 of buffer `source` of 64 bytes",
        INSIDE,
    ),
    (
        "a read is of whole elements",
        |s| s.context.read_range::<u32>(&s.source, 0..6).map(drop),
        "read: 6 bytes for elements of 4 bytes of buffer `source` of 64 bytes",
        "(rule: bytes are read as a whole number of elements)",
    ),
    (
        "a copy lies in its source",
        |s| s.context.copy(&s.source, 60, &s.to, 0, 8),
        "copy: bytes 60..68 of buffer `source` of 64 bytes",
        INSIDE,
    ),
    (
        "a copy lies in its target",
        |s| s.context.copy(&s.to, 0, &s.source, 60, 8),
        "copy: bytes 60..68 of buffer `source` of 64 bytes",
        INSIDE,
    ),
    (
        "a copy does not overlap itself",
        |s| s.context.copy(&s.source, 0, &s.source, 4, 8),
        "copy: bytes 0..8 to bytes 4..12 of buffer `source` of 64 bytes",
        "(rule: what is copied does not overlap what it is copied to)",
    ),
    (
        "a fill is of words",
        |s| s.context.fill_range(&s.source, 2..8, 0),
        "fill: bytes 2..8 of buffer `source` of 64 bytes",
        "begin and end are multiples of 4)",
    ),
    (
        "a fill lies in its buffer",
        |s| s.context.fill_range(&s.source, 0..68, 0),
        "fill: bytes 0..68 of buffer `source` of 64 bytes",
        INSIDE,
    ),
    (
        "what is destroyed is not written",
        |s| s.context.write(&s.gone, 0, &[1u32]),
        "write: buffer `gone` of 64 bytes is destroyed",
        GONE,
    ),
    (
        "what is destroyed is not uploaded",
        |s| s.context.upload(&s.gone, &[1u32]),
        "upload: buffer `gone` of 64 bytes is destroyed",
        GONE,
    ),
    (
        "what is destroyed is not read",
        |s| s.context.read::<u32>(&s.gone).map(drop),
        "read: buffer `gone` of 64 bytes is destroyed",
        GONE,
    ),
    (
        "what is destroyed is not copied",
        |s| s.context.copy(&s.gone, 0, &s.to, 0, 8),
        "copy: buffer `gone` of 64 bytes is destroyed",
        GONE,
    ),
    (
        "what is destroyed is not filled",
        |s| s.context.fill(&s.gone, 0),
        "fill: buffer `gone` of 64 bytes is destroyed",
        GONE,
    ),
    (
        "what is destroyed is not invalidated",
        |s| s.context.invalidate(&s.gone),
        "invalidate: buffer `gone` of 64 bytes is destroyed",
        GONE,
    ),
    (
        "what is destroyed is not mapped",
        |s| s.map(&s.gone, MapFlags::READ),
        "map: buffer `gone` of 64 bytes is destroyed",
        GONE,
    ),
    (
        "a foreign buffer is not written",
        |s| s.context.write(&s.foreign, 0, &[1u32]),
        "write: buffer `foreign` of 64 bytes is of another context's device",
        DEVICE,
    ),
    (
        "a foreign buffer is not mapped",
        |s| s.map(&s.foreign, MapFlags::READ),
        "map: buffer `foreign` of 64 bytes is of another context's device",
        DEVICE,
    ),
    (
        "a foreign buffer is not invalidated",
        |s| s.context.invalidate(&s.foreign),
        "invalidate: buffer `foreign` of 64 bytes is of another context's device",
        DEVICE,
    ),
    (
        "what is mapped is not mapped again",
        |s| s.map(&s.mapped, MapFlags::READ),
        "map: bytes 0..64 of buffer `mapped` of 64 bytes: bytes 0..32 are mapped",
        "(rule: mapped ranges do not overlap)",
    ),
    (
        "a mapping lies in its buffer",
        |s| s.context.map(s.source.slice(..65), MapFlags::READ).map(drop),
        "map: bytes 0..65 of buffer `source` of 64 bytes",
        INSIDE,
    ),
    (
        "a mapping has bytes",
        |s| s.context.map(s.source.slice(8..8), MapFlags::READ).map(drop),
        "map: no bytes of buffer `source` of 64 bytes",
        "(rule: a mapping has bytes)",
    ),
    (
        "a mapping is for something",
        |s| s.map(&s.source, MapFlags::empty()),
        "map: buffer `source` of 64 bytes with MapFlags(",
        "(rule: a mapping reads or writes)",
    ),
    (
        "a mapping that discards does not read",
        |s| s.map(&s.source, MapFlags::READ | MapFlags::WRITE | MapFlags::DISCARD_RANGE),
        "map: buffer `source` of 64 bytes with MapFlags(",
        "(rule: a mapping that discards writes, and does not read)",
    ),
    (
        "a coherent mapping is persistent",
        |s| s.map(&s.source, MapFlags::READ | MapFlags::COHERENT),
        "map: buffer `source` of 64 bytes with MapFlags(",
        "(rule: a coherent mapping is persistent)",
    ),
    (
        "a mapping has known flags",
        |s| s.map(&s.source, MapFlags::from_bits_retain(1 << 30 | 1)),
        "map: buffer `source` of 64 bytes with MapFlags(",
        "(rule: a mapping has no flags but those that there are)",
    ),
    (
        "a mapping for reading is not written",
        |s| s.map.write(0, &[1u32]),
        "write: the mapping of buffer `mapped` of 64 bytes is for MapFlags(READ)",
        "(rule: a mapping is read or written only if its flags say so)",
    ),
    (
        "a mapping is read where it is",
        |s| s.map.read::<u32>(28, 2).map(drop),
        "read: 8 bytes at 28 of 32 mapped bytes of buffer `mapped` of 64 bytes",
        INSIDE,
    ),
    (
        "what is mapped is not copied",
        |s| s.context.copy(&s.mapped, 32, &s.to, 0, 8),
        "copy: buffer `mapped` of 64 bytes is mapped",
        MAPPED,
    ),
    (
        "what is mapped is not filled",
        |s| s.context.fill(&s.mapped, 0),
        "fill: buffer `mapped` of 64 bytes is mapped",
        MAPPED,
    ),
    (
        "mapped bytes are not written",
        |s| s.context.write(&s.mapped, 28, &[1u32; 2]),
        "write: bytes 28..36 of buffer `mapped` of 64 bytes are mapped",
        MAPPED,
    ),
    (
        "a level is written as a whole",
        |s| s.context.write_image(&s.sheet, 1, 0, &[1u32; 3]),
        "write: 12 bytes for the 16 of level 1 of image `sheet` of 4x4x1 R32_UINT",
        "(rule: a level is written as a whole)",
    ),
    (
        "there is such a level",
        |s| s.context.read_image::<u32>(&s.sheet, 2, 0).map(drop),
        "read: levels 2..3 of 2 of image `sheet` of 4x4x1 R32_UINT",
        INSIDE,
    ),
    (
        "there is such a layer",
        |s| s.context.clear_image(s.sheet.all().layers(1..2), ClearColor::Uint([0; 4])),
        "clear: layers 1..2 of 1 of image `sheet` of 4x4x1 R32_UINT",
        INSIDE,
    ),
    (
        "a level is read as whole elements",
        |s| s.context.read_image::<[u8; 3]>(&s.sheet, 0, 0).map(drop),
        "read: 64 bytes for elements of 3 bytes of image `sheet` of 4x4x1 R32_UINT",
        "(rule: bytes are read as a whole number of elements)",
    ),
    (
        "a copied level is as large as the other",
        |s| s.context.copy_image((&s.sheet, 0, 0), (&s.drawn, 1, 0)),
        "copy: from level 0 of layer 0, 4x4x1 texels, of image `sheet` of 4x4x1 R32_UINT to level 1 of layer 0, 2x2x1 texels, of image `drawn` of 4x4x1 R32_UINT",
        "(rule: what is copied is as large as what it is copied to)",
    ),
    (
        "a level is not copied to itself",
        |s| s.context.copy_image((&s.sheet, 0, 0), (&s.sheet, 0, 0)),
        "copy: from level 0 of layer 0, 4x4x1 texels, of image `sheet`",
        "(rule: what is copied does not overlap what it is copied to)",
    ),
    (
        "a destroyed image is not written",
        |s| s.context.write_image(&s.lost, 0, 0, &[0u32; 16]),
        "write: image `lost` of 4x4x1 R32_UINT is destroyed",
        GONE,
    ),
    (
        "a destroyed image is not cleared",
        |s| s.context.clear_image(&s.lost, ClearColor::Uint([0; 4])),
        "clear: image `lost` of 4x4x1 R32_UINT is destroyed",
        GONE,
    ),
    (
        "a destroyed image is not invalidated",
        |s| s.context.invalidate_image(&s.lost),
        "invalidate: image `lost` of 4x4x1 R32_UINT is destroyed",
        GONE,
    ),
    (
        "a buffer has bytes",
        |s| s.context.buffer(0).label("none").build().map(drop),
        "",
        "VUID-VkBufferCreateInfo-size-00912)",
    ),
    (
        "values fit their buffer",
        |s| s.context.buffer(4).label("few").holding(&[1u32, 2]).map(drop),
        "write: bytes 0..8 of buffer `few` of 4 bytes",
        INSIDE,
    ),
    (
        "an image has texels",
        |s| s.context.image(vk::Format::R32_UINT, [0, 1, 1]).label("flat").build().map(drop),
        "",
        "-extent-00944)",
    ),
];
