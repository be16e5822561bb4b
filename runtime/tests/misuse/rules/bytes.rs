//! Buffers and transfers of bytes.

use super::{Case, DEVICE, GONE, INSIDE, MAPPED};

pub(super) const CASES: &[Case] = &[
    (
        "a write lies in its buffer",
        |s| s.context.write(&s.source, 60, &[1u32; 2]).map(drop),
        "write: bytes 60..68 of buffer `source` of 64 bytes",
        INSIDE,
    ),
    (
        "an upload fits",
        |s| s.context.upload(&s.source, &[1u32; 17]).map(drop),
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
        "a read through a typed handle is of its type",
        |s| s.context.read::<f32>(&s.source.typed::<u32>()).map(drop),
        "read: buffer `source` of 64 bytes: it holds u32 at byte 0, not f32",
        "(rule: values that the host accesses have the type of the handle; `Buffer::untyped` is a handle without one)",
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
        "(rule: source and target of a copy do not overlap)",
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
        |s| s.context.write(&s.gone, 0, &[1u32]).map(drop),
        "write: buffer `gone` of 64 bytes is destroyed",
        GONE,
    ),
    (
        "what is destroyed is not uploaded",
        |s| s.context.upload(&s.gone, &[1u32]).map(drop),
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
        |s| s.context.invalidate(&s.gone).map(drop),
        "invalidate: buffer `gone` of 64 bytes is destroyed",
        GONE,
    ),
    (
        "a slice lies in the buffer that it is read from",
        |s| s.context.read_into(&s.source, 60, &mut [0u32; 2]),
        "read: bytes 60..68 of buffer `source` of 64 bytes",
        INSIDE,
    ),
    (
        "a destroyed buffer is not read into a slice",
        |s| s.context.read_into(&s.gone, 0, &mut [0u32; 2]),
        "read: buffer `gone` of 64 bytes is destroyed",
        GONE,
    ),
    (
        "a read that is started lies in its buffer",
        |s| s.context.start_read::<u32>(s.source.slice(60..68)).map(drop),
        "read: bytes 60..68 of buffer `source` of 64 bytes",
        INSIDE,
    ),
    (
        "a read that is started has whole elements",
        |s| s.context.start_read::<u64>(s.source.slice(..12)).map(drop),
        "read: 12 bytes for elements of 8 bytes of buffer `source` of 64 bytes",
        "(rule: bytes are read as a whole number of elements)",
    ),
    (
        "a mapped buffer is not copied for the host",
        |s| s.context.start_read::<u32>(&s.mapped).map(drop),
        "read: buffer `mapped` of 64 bytes is mapped",
        MAPPED,
    ),
    (
        "a destroyed buffer is not copied for the host",
        |s| s.context.start_read::<u32>(&s.gone).map(drop),
        "read: buffer `gone` of 64 bytes is destroyed",
        GONE,
    ),
    (
        "a foreign buffer is not copied for the host",
        |s| s.context.start_read::<u32>(&s.foreign).map(drop),
        "read: buffer `foreign` of 64 bytes is of another context's device",
        DEVICE,
    ),
    (
        "a slice has a place for each value",
        |s| s.context.start_read::<u32>(&s.source)?.finish_into(&mut [0u32; 3]),
        "read: a slice of 3 values for 16 values",
        "(rule: a slice that is read into has one place for each value)",
    ),
    (
        "a foreign buffer is not written",
        |s| s.context.write(&s.foreign, 0, &[1u32]).map(drop),
        "write: buffer `foreign` of 64 bytes is of another context's device",
        DEVICE,
    ),
    (
        "a foreign buffer is not invalidated",
        |s| s.context.invalidate(&s.foreign).map(drop),
        "invalidate: buffer `foreign` of 64 bytes is of another context's device",
        DEVICE,
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
];
