//! Respecification, the state of objects, and the test harness.

use std::time::Duration;

use spelter::{Bind, Lend, MapFlags, testing, vk};

use super::{Case, DEVICE, GONE, INSIDE};

const RESIZED: &str = "(rule: a resource is not respecified while it is mapped)";

pub(super) const CASES: &[Case] = &[
    (
        "a destroyed buffer has no size to change",
        |s| s.context.resize(&s.gone, 8).map(drop),
        "resize: buffer `gone` of 64 bytes is destroyed",
        GONE,
    ),
    (
        "a foreign buffer is not resized",
        |s| s.context.resize(&s.foreign, 8).map(drop),
        "resize: buffer `foreign` of 64 bytes is of another context's device",
        DEVICE,
    ),
    (
        "a mapped buffer is not resized",
        |s| s.context.resize(&s.mapped, 128).map(drop),
        "resize: buffer `mapped` of 64 bytes is mapped",
        RESIZED,
    ),
    (
        "a mapped buffer is not resized, even to its size",
        |s| s.context.resize(&s.mapped, 64).map(drop),
        "resize: buffer `mapped` of 64 bytes is mapped",
        RESIZED,
    ),
    (
        "a persistently mapped buffer is not resized",
        |s| {
            let _map = s.context.map(&s.source, MapFlags::WRITE | MapFlags::PERSISTENT)?;
            s.context.resize(&s.source, 128).map(drop)
        },
        "resize: buffer `source` of 64 bytes is mapped",
        RESIZED,
    ),
    (
        "a buffer has bytes",
        |s| s.context.resize(&s.source, 0).map(drop),
        "vkCreateBuffer: `source`: ",
        "(VUID-VkBufferCreateInfo-size-00912)",
    ),
    ("a buffer is not larger than the device allows", |s| s.context.resize(&s.source, 1 << 50).map(drop), "", ""),
    (
        "a destroyed image has no size to change",
        |s| s.context.resize_image(&s.lost, [8, 8, 1]).map(drop),
        "resize: image `lost` of 4x4x1 R32_UINT is destroyed",
        GONE,
    ),
    (
        "a foreign image is not resized",
        |s| {
            let image = s.stranger.image(vk::Format::R32_UINT, [4, 4, 1]).label("theirs").build()?;
            s.context.resize_image(&image, [8, 8, 1]).map(drop)
        },
        "resize: image `theirs` of 4x4x1 R32_UINT is of another context's device",
        DEVICE,
    ),
    (
        "a lent buffer is not resized",
        |s| {
            let _loan = s.context.lend(&[Lend::read(&s.source)])?;
            s.context.resize(&s.source, 128).map(drop)
        },
        "resize: buffer `source` of 64 bytes is mapped",
        RESIZED,
    ),
    (
        "an image has texels",
        |s| s.context.resize_image(&s.sheet, [0, 4, 1]).map(drop),
        "vkCreateImage: `sheet`: ",
        "(VUID-VkImageCreateInfo-extent-00944)",
    ),
    (
        "an image has no more levels than its size has",
        |s| s.context.resize_image(&s.sheet, [1, 1, 1]).map(drop),
        "vkCreateImage: `sheet`: ",
        "(VUID-VkImageCreateInfo-mipLevels-00958)",
    ),
    (
        "a bound range lies in the buffer after a respecification",
        |s| {
            let table = s.context.buffer(64).label("table").zeroed()?;
            let bound = s.context.dispatch(&s.copy).with((0, 1), Bind::storage(table.slice(16..64)));
            s.context.resize(&table, 32)?;
            bound.groups([4, 1, 1])
        },
        "binding 0.1 (source): bytes 16..64 of buffer `table` of 32 bytes",
        "(VUID-VkDescriptorBufferInfo-range-00342)",
    ),
    (
        "a set's range lies in the buffer after a respecification",
        |s| {
            let table = s.context.buffer(64).label("table").zeroed()?;
            let set = s.set().bind_range(1, &table, 16..64).build()?;
            s.context.resize(&table, 32)?;
            s.context.dispatch(&s.copy).set(0, &set).groups([4, 1, 1])
        },
        "binding 0.1 (source): descriptor set `frame`: bytes 16..64 of buffer `table` of 32 bytes",
        "(VUID-VkDescriptorBufferInfo-range-00342)",
    ),
    (
        "a recorded range lies in the buffer after a respecification",
        |s| {
            let table = s.context.buffer(64).label("table").zeroed()?;
            let commands = s.context.record(|c| c.fill_range(&table, 16..64, 1))?;
            s.context.resize(&table, 32)?;
            s.context.submit(&commands).map(drop)
        },
        "submit: a command buffer: command 0, fill: bytes 16..64 of buffer `table` of 32 bytes",
        INSIDE,
    ),
    (
        "a destroyed buffer has no object",
        |s| s.gone.object().map(drop),
        "object: buffer `gone` of 64 bytes is destroyed",
        GONE,
    ),
    (
        "a destroyed image has no object",
        |s| s.lost.object().map(drop),
        "object: image `lost` of 4x4x1 R32_UINT is destroyed",
        GONE,
    ),
    (
        "a hold has a time limit",
        |s| testing::hold_until_released(&s.context, Duration::ZERO).map(drop),
        "a hold of 0 s",
        "(rule: a wait for held batches has a time limit above 0)",
    ),
];
