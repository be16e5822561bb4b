//! Descriptor sets: building, writing, dispatching and binding them.

use spelter::{Bind, BindingKind, SamplerInfo, SetBinding, vk};

use super::{Case, DEVICE, GONE, KIND, MAPPED, SLOT};

const LAYOUT: &str =
    "(rule: a set has at least one descriptor, each binding once, and no more descriptors than the device allows)";
const DECLARED: &str = "(rule: a set names resources only for the descriptors of its layout)";
const SET_KIND: &str = "(rule: a descriptor has the kind that the layout of its set declares)";
const COMPLETE: &str = "(rule: a set that is not updatable has all descriptors when it is built)";
const UPDATABLE: &str = "(rule: only a set that was built as updatable is written)";
const FITS: &str = "(VUID-vkCmdDispatch-None-08600)";

/// The layout of the program that copies, with three storage buffers more.
const WORDS: [SetBinding; 3] = [
    SetBinding { binding: 0, kind: BindingKind::UniformBuffer, count: 1 },
    SetBinding { binding: 2, kind: BindingKind::StorageBuffer, count: 1 },
    SetBinding { binding: 7, kind: BindingKind::StorageBuffer, count: 3 },
];

pub(super) const CASES: &[Case] = &[
    (
        "a set is of a group of the program",
        |s| s.context.descriptor_set(&s.copy, 1).build().map(drop),
        "a descriptor set: \"main\" has no bindings in group 1",
        LAYOUT,
    ),
    (
        "a set is of a program of the device",
        |s| s.context.descriptor_set(&s.theirs, 0).label("frame").build().map(drop),
        "descriptor set `frame`: \"main\" is a program of another context's device",
        DEVICE,
    ),
    (
        "a layout has bindings",
        |s| s.context.descriptor_set_of(&[]).build().map(drop),
        "a descriptor set: the layout has no bindings",
        LAYOUT,
    ),
    (
        "a layout has a binding once",
        |s| s.context.descriptor_set_of(&[WORDS[1], WORDS[0], WORDS[1]]).label("frame").build().map(drop),
        "descriptor set `frame`: the layout has binding 2 twice",
        LAYOUT,
    ),
    (
        "an array has elements",
        |s| s.context.descriptor_set_of(&[WORDS[1].array(0)]).build().map(drop),
        "a descriptor set: binding 2 of the layout has no elements",
        LAYOUT,
    ),
    (
        "a layout is within the limits",
        |s| s.context.descriptor_set_of(&[WORDS[0], WORDS[1].array(u32::MAX)]).build().map(drop),
        "a descriptor set: the layout has 4294967296 descriptors, at most ",
        LAYOUT,
    ),
    (
        "a set has what it names",
        |s| s.set().bind(3, &s.source).build().map(drop),
        "descriptor set `frame`, binding 3: buffer `source` of 64 bytes: its layout has no such binding; it has 0, \
         1, 2",
        DECLARED,
    ),
    (
        "an array has the element",
        |s| s.set().with_array(1, 0, [Bind::storage(&s.source), Bind::storage(&s.to)]).build().map(drop),
        "descriptor set `frame`, binding 1: buffer `to` of 64 bytes: it has 1 elements, there is no element 1",
        DECLARED,
    ),
    (
        "a descriptor has its kind",
        |s| s.set().with(1, Bind::uniform(&s.source)).build().map(drop),
        "descriptor set `frame`, binding 1: buffer `source` of 64 bytes is bound as a uniform buffer, the set takes \
         a storage buffer",
        SET_KIND,
    ),
    (
        "a sampler is no buffer in a set",
        |s| s.set().with(1, Bind::sampler(&s.context.sampler(&SamplerInfo::default())?)).build().map(drop),
        "descriptor set `frame`, binding 1: a sampler is bound as a sampler, the set takes a storage buffer",
        SET_KIND,
    ),
    (
        "a buffer is no image in a set",
        |s| s.context.descriptor_set(&s.look, 1).bind(0, &s.source).build().map(drop),
        "a descriptor set, binding 0: buffer `source` of 64 bytes is bound as a storage buffer, the set takes a \
         sampled image",
        SET_KIND,
    ),
    (
        "a set's range lies in its buffer",
        |s| s.set().bind_range(1, &s.source, 0..65).build().map(drop),
        "descriptor set `frame`, binding 1: bytes 0..65 of buffer `source` of 64 bytes",
        "(VUID-VkDescriptorBufferInfo-range-00342)",
    ),
    (
        "a set's range is aligned",
        |s| s.set().bind_range(1, &s.source, 4..64).build().map(drop),
        "descriptor set `frame`, binding 1: offset 4 of buffer `source`",
        "(VUID-VkWriteDescriptorSet-descriptorType-00328)",
    ),
    (
        "a set's buffer is as large as its block",
        |s| s.set().bind_range(0, &s.step, 16..28).build().map(drop),
        "descriptor set `frame`, binding 0: 12 bytes of buffer `step` of 64 bytes, the block needs at least 16",
        "(rule: a buffer has room for the fixed part of the block that it is bound for)",
    ),
    (
        "a set's view has the dimensions of the program",
        |s| {
            let array = s.sheet.level(0).as_type(vk::ImageViewType::TYPE_2D_ARRAY);
            s.context.descriptor_set(&s.look, 1).with(0, Bind::sampled(array)).build().map(drop)
        },
        "a descriptor set, binding 0: image `sheet` of 4x4x1 R32_UINT: the view is TYPE_2D_ARRAY, the shader takes \
         TYPE_2D",
        "(VUID-vkCmdDispatch-viewType-07752)",
    ),
    (
        "a set names nothing that is destroyed",
        |s| s.set().bind(1, &s.gone).build().map(drop),
        "descriptor set `frame`, binding 1: buffer `gone` of 64 bytes is destroyed",
        GONE,
    ),
    (
        "a set names resources of its device",
        |s| s.set().bind(1, &s.foreign).build().map(drop),
        "descriptor set `frame`, binding 1: buffer `foreign` of 64 bytes is of another context's device",
        DEVICE,
    ),
    (
        "a set is complete",
        |s| s.context.descriptor_set(&s.copy, 0).label("frame").bind(0, &s.step).bind(2, &s.to).build().map(drop),
        "descriptor set `frame`, binding 1: no storage buffer is bound to it",
        COMPLETE,
    ),
    (
        "an array of a set is complete",
        |s| {
            let set = s.context.descriptor_set_of(&WORDS).bind(0, &s.step).bind(2, &s.to);
            set.with_array(7, 0, [Bind::storage(&s.to), Bind::storage(&s.to)]).build().map(drop)
        },
        "a descriptor set, binding 7: no storage buffer is bound to its element 2",
        COMPLETE,
    ),
    (
        "only an updatable set is written",
        |s| s.set().build()?.write(1, Bind::storage(&s.to)),
        "descriptor set `frame`, binding 1: it cannot be written after it was built",
        UPDATABLE,
    ),
    (
        "a write names a binding",
        |s| s.set().updatable().build()?.write(5, Bind::storage(&s.to)),
        "descriptor set `frame`, binding 5: buffer `to` of 64 bytes: its layout has no such binding; it has 0, 1, 2",
        DECLARED,
    ),
    (
        "a write ends with the array",
        |s| {
            let set = s.context.descriptor_set_of(&WORDS).label("words").updatable().build()?;
            let result = set.write_array(7, 1, vec![Bind::storage(&s.to); 3]);
            assert_eq!(set.generation(), 0, "nothing was written");
            result
        },
        "descriptor set `words`, binding 7: buffer `to` of 64 bytes: it has 3 elements, there is no element 3",
        DECLARED,
    ),
    (
        "a write begins in the array",
        |s| {
            let set = s.context.descriptor_set_of(&WORDS).label("words").updatable().build()?;
            set.write_array(7, u32::MAX, [Bind::storage(&s.to), Bind::storage(&s.to)])
        },
        "descriptor set `words`, binding 7: buffer `to` of 64 bytes: it has 3 elements, there is no element 4294967295",
        DECLARED,
    ),
    (
        "a null descriptor of a set has its kind",
        |s| s.set().updatable().build()?.write(1, Bind::null(BindingKind::UniformBuffer)),
        "descriptor set `frame`, binding 1: a null descriptor is bound as a uniform buffer, the set takes a storage",
        SET_KIND,
    ),
    (
        "a sampler of a set is not null",
        |s| {
            let layout = [SetBinding::new(0, BindingKind::Sampler)];
            s.context.descriptor_set_of(&layout).with(0, Bind::null(BindingKind::Sampler)).build().map(drop)
        },
        "a descriptor set, binding 0: a sampler cannot be null",
        "(VUID-VkWriteDescriptorSet-descriptorType-00325)",
    ),
    (
        "a write has the kind of its descriptor",
        |s| s.set().updatable().build()?.write(0, Bind::storage(&s.to)),
        "descriptor set `frame`, binding 0: buffer `to` of 64 bytes is bound as a storage buffer, the set takes a \
         uniform buffer",
        SET_KIND,
    ),
    (
        "a write names nothing that is destroyed",
        |s| s.set().updatable().build()?.write(1, Bind::storage(&s.gone)),
        "descriptor set `frame`, binding 1: buffer `gone` of 64 bytes is destroyed",
        GONE,
    ),
    (
        "a dispatch's set is of the device",
        |s| {
            let layout = [SetBinding::new(0, BindingKind::UniformBuffer)];
            let set = s.stranger.descriptor_set_of(&layout).label("frame").updatable().build()?;
            s.context.dispatch(&s.copy).set(0, &set).groups([1, 1, 1])
        },
        "dispatch: descriptor set `frame` is of another context's device",
        DEVICE,
    ),
    (
        "a dispatch's set is for a group of the program",
        |s| s.context.dispatch(&s.copy).set(1, &s.set().build()?).groups([1, 1, 1]),
        "dispatch: descriptor set `frame` for group 1: \"main\" has no bindings there",
        "(rule: a dispatch binds only what its program declares)",
    ),
    (
        "a dispatch's set has the bindings of the program",
        |s| s.with_set(s.context.descriptor_set_of(&WORDS).label("words").updatable()),
        "binding 0.1 (source): descriptor set `words` has no such binding; it has 0, 2, 7",
        FITS,
    ),
    (
        "a dispatch's set has the kinds of the program",
        |s| {
            let layout = [WORDS[0], WORDS[1], SetBinding::new(1, BindingKind::StorageTexelBuffer)];
            s.with_set(s.context.descriptor_set_of(&layout).label("words").updatable())
        },
        "binding 0.1 (source): descriptor set `words` has a storage texel buffer there, \"main\" takes a storage buffer",
        FITS,
    ),
    (
        "a dispatch's set has the elements of the program",
        |s| {
            let text = "enable wgpu_binding_array; struct Words { w: array<u32> }
                @group(0) @binding(7) var<storage, read_write> parts: binding_array<Words, 4>;
                @compute @workgroup_size(1) fn main() { parts[3].w[0] = 1u; }";
            let program = s.context.program_wgsl(text)?;
            let set = s.context.descriptor_set_of(&WORDS).label("words").updatable().build()?;
            s.context.dispatch(&program).set(0, &set).groups([1, 1, 1])
        },
        "binding 0.7 (parts): descriptor set `words` has 3 elements there, \"main\" takes 4",
        FITS,
    ),
    (
        "a dispatch's set has what the program reads",
        |s| s.with_set(s.context.descriptor_set(&s.copy, 0).label("frame").bind(0, &s.step).updatable()),
        "binding 0.1 (source): descriptor set `frame`: no buffer is bound to it",
        "(VUID-vkCmdDispatch-None-08114)",
    ),
    (
        "a set of one layout fits the block of another program",
        |s| {
            let layout = [WORDS[0], WORDS[1], SetBinding::new(1, BindingKind::StorageBuffer)];
            let set = s.context.descriptor_set_of(&layout).label("words").bind_range(0, &s.step, 0..8);
            s.with_set(set.bind(1, &s.source).bind(2, &s.to))
        },
        "binding 0.0 (step): descriptor set `words`: 8 bytes of buffer `step` of 64 bytes, the block needs at least 16",
        "(rule: a buffer has room for the fixed part of the block that it is bound for)",
    ),
    (
        "a set's resource is destroyed later",
        |s| {
            let late = s.context.buffer(64).label("late").zeroed()?;
            let set = s.set().bind(1, &late).build()?;
            s.context.dispatch(&s.copy).set(0, &set).groups([4, 1, 1])?;
            late.destroy();
            s.context.dispatch(&s.copy).set(0, &set).groups([4, 1, 1])
        },
        "binding 0.1 (source): descriptor set `frame`: buffer `late` of 64 bytes is destroyed",
        GONE,
    ),
    (
        "a set's resource is mapped",
        |s| s.with_set(s.set().bind(1, &s.mapped)),
        "binding 0.1 (source): descriptor set `frame`: buffer `mapped` of 64 bytes is mapped",
        MAPPED,
    ),
    (
        "so with a binding of the dispatch beside",
        |s| {
            s.context.dispatch(&s.copy).set(0, &s.set().bind(1, &s.mapped).build()?).bind(0, 2, &s.to).groups([4, 1, 1])
        },
        "binding 0.1 (source): descriptor set `frame`: buffer `mapped` of 64 bytes is mapped",
        MAPPED,
    ),
    (
        "a binding beside a set has the kind of the program",
        |s| s.context.dispatch(&s.copy).set(0, &s.set().build()?).with((0, 1), Bind::uniform(&s.to)).groups([4, 1, 1]),
        "binding 0.1 (source): buffer `to` of 64 bytes is bound as a uniform buffer, \"main\" takes a storage buffer",
        KIND,
    ),
    (
        "workgroups with a set are within the limits",
        |s| s.context.dispatch(&s.copy).set(0, &s.set().build()?).groups([70_000, 1, 1]),
        "",
        "VUID-vkCmdDispatch-groupCountX-00386)",
    ),
    (
        "a set is bound to a group",
        |s| s.context.bind_set(99, &s.set().build()?),
        "group 99: groups are numbered 0 to ",
        SLOT,
    ),
    ("a set is unbound from a group", |s| s.context.unbind_set(99), "group 99: groups are numbered 0 to ", SLOT),
    (
        "a bound set is of the device",
        |s| {
            let layout = [SetBinding::new(0, BindingKind::UniformBuffer)];
            s.context.bind_set(0, &s.stranger.descriptor_set_of(&layout).label("frame").updatable().build()?)
        },
        "descriptor set `frame` is of another context's device",
        DEVICE,
    ),
];
