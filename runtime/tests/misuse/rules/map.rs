//! Mappings.

use spelter::MapFlags;

use super::{Case, DEVICE, GONE, INSIDE, MAPPED};

pub(super) const CASES: &[Case] = &[
    (
        "a dispatch uses nothing that is mapped",
        |s| s.context.dispatch(&s.copy).bind(0, 1, &s.mapped).groups([1, 1, 1]),
        "binding 0.1 (source): buffer `mapped` of 64 bytes is mapped",
        MAPPED,
    ),
    (
        "what is destroyed is not mapped",
        |s| s.map(&s.gone, MapFlags::READ),
        "map: buffer `gone` of 64 bytes is destroyed",
        GONE,
    ),
    (
        "a foreign buffer is not mapped",
        |s| s.map(&s.foreign, MapFlags::READ),
        "map: buffer `foreign` of 64 bytes is of another context's device",
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
        "(rule: a mapped range is not empty)",
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
        "(rule: a mapping that discards contents is for writing only)",
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
        "(rule: a mapping has only known flags)",
    ),
    (
        "a mapping for reading is not written",
        |s| s.map.write(0, &[1u32]),
        "write: the mapping of buffer `mapped` of 64 bytes is for MapFlags(READ)",
        "(rule: a mapping is read or written only if its flags allow it)",
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
        |s| s.context.write(&s.mapped, 28, &[1u32; 2]).map(drop),
        "write: bytes 28..36 of buffer `mapped` of 64 bytes are mapped",
        MAPPED,
    ),
];
