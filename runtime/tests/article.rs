//! The article that this project grew from ("Invalidation", on zink), sentence by sentence. Quotes are the article's.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]
#![expect(clippy::single_range_in_vec_init, reason = "lists of one range are meant")]

use spelter::{Bind, Buffer, Context, Program, vk};

/// Adds what is in `step` to each word.
const ADD: &str = "
@group(0) @binding(0) var<uniform> step: vec4<u32>;
@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read_write> to: array<u32>;
@compute @workgroup_size(1)
fn main(@builtin(global_invocation_id) id: vec3<u32>) { to[id.x] = source[id.x] + step.x; }";

struct Stage {
    context: Context,
    program: Program,
}

impl Stage {
    fn new() -> Self {
        let context = Context::builder().workers(2).poison(true).build().unwrap();
        let program = context.program_wgsl(ADD).unwrap();
        Self { context, program }
    }

    fn buffer(&self, words: [u32; 4]) -> Buffer {
        self.context.buffer_from(&words).unwrap()
    }

    fn bind(&self, step: &Buffer, source: &Buffer, to: &Buffer) {
        self.context.bind((0, 0), Bind::uniform(step)).unwrap();
        self.context.bind((0, 1), Bind::storage(source)).unwrap();
        self.context.bind((0, 2), Bind::storage(to)).unwrap();
    }

    fn dispatch(&self) {
        self.context.dispatch(&self.program).groups([4, 1, 1]).unwrap();
    }

    fn words(&self, buffer: &Buffer) -> Vec<u32> {
        self.context.read(buffer).unwrap()
    }
}

/// "Resource invalidation occurs when the backing buffer of a resource is wholly replaced."
/// "`A.buffer` will be replaced entirely, while `A` is still the driver resource."
#[test]
fn the_buffer_is_replaced_while_the_resource_stays() {
    let stage = Stage::new();
    let (a, copy) = (stage.buffer([1, 2, 3, 4]), stage.context.buffer_zeroed(16).unwrap());
    stage.context.copy(&a, 0, &copy, 0, 16).unwrap(); // in use: the copy is recorded and has not run
    let handle = a.clone();
    stage.context.invalidate(&a).unwrap();
    assert_eq!((a.generation(), handle.generation()), (1, 1), "one resource, another object");
    stage.context.write(&handle, 0, &[5u32, 6, 7, 8]).unwrap();
    assert_eq!(stage.words(&a), [5, 6, 7, 8]);
    assert_eq!(stage.words(&copy), [1, 2, 3, 4], "the copy reads what the buffer held when it was recorded");
}

/// "The other main case for it is replacing the data of a buffer that's in use for another operation. In such a case,
/// the backing buffer can be replaced to avoid forcing a sync in the command stream which will stall."
#[test]
fn replacing_the_data_of_a_buffer_in_use_does_not_stall() {
    let stage = Stage::new();
    let (a, sums) = (stage.buffer([0; 4]), stage.context.buffer_zeroed(16 * 8).unwrap());
    let step = stage.buffer([100, 0, 0, 0]);
    for frame in 0..8u32 {
        stage.context.upload(&a, &[frame; 4]).unwrap();
        let at = u64::from(frame) * 16;
        let dispatch = stage.context.dispatch(&stage.program).bind(0, 0, &step).bind(0, 1, &a);
        dispatch.bind_range(0, 2, &sums, at..at + 16).groups([4, 1, 1]).unwrap();
    }
    let stats = stage.context.stats();
    // Frame 0 found the buffer idle; each other frame found it in use by the previous dispatch.
    assert_eq!((stats.renames, stats.stalls_avoided, stats.stalls_taken), (7, 7, 0));
    assert_eq!(stats.batches_submitted, 0, "nothing was submitted, so nothing was waited for");
    let wanted: Vec<u32> = (0..8).flat_map(|frame| [100 + frame; 4]).collect();
    assert_eq!(stage.words(&sums), wanted);
}

/// "`struct zink_resource` objects themselves cannot be invalidated […] and instead only the inner Vulkan objects
/// themselves can be replaced." "Their lifetimes are separate, with […] `struct zink_resource_object` persisting for
/// either the lifetime of `struct zink_resource` or its command buffer usage, whichever is longer."
#[test]
fn an_object_lives_as_long_as_its_resource_or_its_batches() {
    let stage = Stage::new();
    let alive = || stage.context.stats().objects_alive();
    let (a, copy) = (stage.buffer([1, 2, 3, 4]), stage.context.buffer_zeroed(16).unwrap());
    assert_eq!(alive(), 2);
    stage.context.copy(&a, 0, &copy, 0, 16).unwrap();
    drop(a);
    assert_eq!(alive(), 2, "the batch, recorded and not run, keeps the object of a dropped resource");
    stage.context.finish().unwrap();
    assert_eq!(alive(), 1, "its last batch has retired");
    assert_eq!(stage.words(&copy), [1, 2, 3, 4]);
    stage.context.finish().unwrap();
    assert_eq!(alive(), 1, "idle, and owned by its resource");
    drop(copy);
    assert_eq!(alive(), 0);
}

/// "This conditional is used to check for an uninitialized buffer, i.e., one which contains no valid data. If a buffer
/// has no data, it's already invalidated, so there's nothing to be done here."
#[test]
fn nothing_valid_nothing_to_do() {
    let stage = Stage::new();
    let a = stage.context.buffer(16).build().unwrap();
    stage.context.invalidate(&a).unwrap();
    let stats = stage.context.stats();
    assert_eq!((stats.invalidations_empty, stats.invalidations_idle, stats.renames), (1, 0, 0));
    // Use makes no difference: what the use reads is undefined, before and after.
    let copy = stage.context.buffer(16).build().unwrap();
    stage.context.copy(&a, 0, &copy, 0, 16).unwrap();
    stage.context.invalidate(&a).unwrap();
    assert_eq!((stage.context.stats().invalidations_empty, a.generation()), (2, 0));
}

/// "Zink tracks the valid data segments of its buffers." "Invalidating means the buffer will no longer have any valid
/// data, so the range tracking can be reset here."
#[test]
fn the_range_tracking_is_reset() {
    let stage = Stage::new();
    let a = stage.context.buffer(64).build().unwrap();
    stage.context.write(&a, 8, &[1u32, 2]).unwrap();
    stage.context.write(&a, 32, &[3u32]).unwrap();
    stage.context.fill_range(&a, 16..20, 9).unwrap();
    assert_eq!(a.valid_ranges(), [8..20, 32..36]);
    stage.context.invalidate(&a).unwrap();
    assert!(a.valid_ranges().is_empty());
}

/// "If this resource isn't currently in use, unsetting the valid range is enough to invalidate it, so it can just be
/// returned right away with no extra work."
#[test]
fn idle_forget_the_contents() {
    let stage = Stage::new();
    let a = stage.buffer([1, 2, 3, 4]);
    let before = stage.context.stats();
    stage.context.invalidate(&a).unwrap();
    let stats = stage.context.stats().since(&before);
    assert_eq!((stats.invalidations_idle, stats.renames, stats.objects_created), (1, 0, 0));
    assert_eq!((a.generation(), a.valid_ranges().len()), (0, 0));
    assert_ne!(stage.words(&a), [1, 2, 3, 4], "poisoned, so that a program cannot rely on the old contents");
    // A resource whose batches have retired is idle as well.
    let (b, to) = (stage.buffer([1; 4]), stage.buffer([0; 4]));
    stage.context.copy(&b, 0, &to, 0, 16).unwrap();
    stage.context.finish().unwrap();
    stage.context.invalidate(&b).unwrap();
    assert_eq!(b.generation(), 0);
}

/// "Here's the old internal buffer object as well as a new one, created using the existing buffer as a template so that
/// it'll match." "the states are unset since this is effectively a brand new buffer."
#[test]
fn in_use_a_new_object_like_the_old_one() {
    let stage = Stage::new();
    let (a, copy) = (stage.buffer([1, 2, 3, 4]), stage.buffer([0; 4]));
    stage.context.copy(&a, 0, &copy, 0, 16).unwrap();
    stage.context.invalidate(&a).unwrap();
    assert_eq!((a.size(), a.generation()), (16, 1));
    assert!(a.valid_ranges().is_empty());
    // A new object is idle, so the next invalidation has nothing to do, and a write needs neither barrier nor wait.
    let before = stage.context.stats();
    stage.context.invalidate(&a).unwrap();
    stage.context.write(&a, 0, &[9u32; 4]).unwrap();
    let stats = stage.context.stats().since(&before);
    assert_eq!((stats.invalidations_empty, stats.renames, stats.barriers, stats.bytes_staged), (1, 0, 0, 0));
}

/// "If the slot is the one […] steps can be taken to perform additional operations necessary to successfully replace
/// the backing storage for the resource, mimicking the same steps taken when initially binding the resource to the
/// slot." SSBO: "the only change needed is to add valid range for the bound region as [it] is passed to the shader, so
/// even if it's never written to, it might be, and so it can be considered a valid region."
#[test]
fn storage_buffers_extend_the_valid_range_by_what_is_bound() {
    let stage = Stage::new();
    let a = stage.context.buffer(64).build().unwrap();
    stage.context.bind((0, 2), Bind::storage(a.slice(16..48))).unwrap();
    assert_eq!(a.valid_ranges(), [16..48], "when it is bound");
    stage.context.bind((1, 0), Bind::storage(a.slice(0..16))).unwrap();
    stage.context.fill(&a, 0).unwrap(); // in use, and all of it valid
    assert_eq!(a.valid_ranges(), [0..64]);
    stage.context.invalidate(&a).unwrap();
    assert_eq!(a.valid_ranges(), [0..48], "when it is rebound: the ranges of both slots, and nothing else");
    assert_eq!((a.generation(), stage.context.stats().rebinds_storage), (1, 2));
}

/// "Eagle-eyed readers will note that I've omitted a UBO case, and this is because there's nothing extra to be done
/// there."
#[test]
fn uniform_buffers_need_nothing_more() {
    let stage = Stage::new();
    let (step, source, to) = (stage.buffer([10, 0, 0, 0]), stage.buffer([1, 2, 3, 4]), stage.buffer([0; 4]));
    stage.bind(&step, &source, &to);
    stage.dispatch();
    stage.context.invalidate(&step).unwrap();
    let stats = stage.context.stats();
    assert_eq!((stats.rebinds_uniform, stats.rebinds()), (1, 1));
    assert!(step.valid_ranges().is_empty(), "binding as a uniform buffer makes nothing valid");
    stage.context.write(&step, 0, &[20u32, 0, 0, 0]).unwrap();
    let later = stage.buffer([0; 4]);
    stage.context.bind((0, 2), Bind::storage(&later)).unwrap();
    stage.dispatch();
    assert_eq!((stage.words(&to), stage.words(&later)), (vec![11, 12, 13, 14], vec![21, 22, 23, 24]));
}

/// "Sampler descriptors require a new `VkBufferView` be created since the previous one is no longer valid." "Images are
/// nearly identical to the sampler case, the difference being that while samplers are read-only like UBOs […], images
/// are more like SSBOs and can be written to. Thus the valid range must be set here like in the SSBO case."
#[test]
fn views_are_made_anew_and_those_that_can_write_extend_the_valid_range() {
    let stage = Stage::new();
    let a = stage.context.buffer(256).build().unwrap();
    stage.context.bind((1, 0), Bind::texels(a.slice(..64), vk::Format::R8G8B8A8_UNORM)).unwrap();
    assert!(a.valid_ranges().is_empty(), "a sampler view reads");
    stage.context.bind((1, 1), Bind::storage_texels(a.slice(64..128), vk::Format::R32_UINT)).unwrap();
    assert_eq!(a.valid_ranges(), [64..128], "an image may be written");
    stage.context.fill(&a, 0).unwrap();
    stage.context.invalidate(&a).unwrap();
    let stats = stage.context.stats();
    assert_eq!((stats.rebinds_sampler_view, stats.rebinds_image, stats.rebinds()), (1, 1, 2));
    assert_eq!(a.valid_ranges(), [64..128]);
}

/// A resource in slots of all four kinds at once, and in several slots of one kind with different ranges.
#[test]
fn a_buffer_in_all_kinds_at_once() {
    let stage = Stage::new();
    let a = stage.context.buffer_zeroed(1024).unwrap();
    for (binding, start) in [(0, 0), (1, 256), (2, 512)] {
        let slice = a.slice(start..start + 128);
        stage.context.bind((0, binding), Bind::uniform(slice)).unwrap();
        stage.context.bind((1, binding), Bind::storage(slice)).unwrap();
        stage.context.bind((2, binding), Bind::texels(slice, vk::Format::R32_SFLOAT)).unwrap();
        stage.context.bind((3, binding), Bind::storage_texels(slice, vk::Format::R32_SFLOAT)).unwrap();
    }
    let copy = stage.context.buffer(1024).build().unwrap();
    for iteration in 1..=3 {
        stage.context.fill(&a, 7).unwrap();
        stage.context.copy(&a, 0, &copy, 0, 1024).unwrap();
        stage.context.invalidate(&a).unwrap();
        let stats = stage.context.stats();
        let kinds = [stats.rebinds_uniform, stats.rebinds_storage, stats.rebinds_sampler_view, stats.rebinds_image];
        assert_eq!((kinds, a.generation()), ([3 * iteration; 4], iteration));
        assert_eq!(a.valid_ranges(), [0..128, 256..384, 512..640]);
    }
    assert_eq!(stage.words(&copy), [7; 256]);
}

/// "This only handles buffer resources, but extending it for images would likely be little to no extra work."
#[test]
fn images_are_invalidated_too() {
    let stage = Stage::new();
    let context = &stage.context;
    let image = context.image(vk::Format::R32_UINT, [4, 4, 1]).levels(2).layers(2).label("map").build().unwrap();
    context.bind((1, 0), Bind::sampled(&image)).unwrap();
    assert!(image.valid_subresources().is_empty());
    context.bind((1, 1), Bind::storage_image(image.level(1))).unwrap();
    assert_eq!(image.valid_subresources(), [(1, 0), (1, 1)], "subresources that a kernel can write count as valid");
    context.unbind((1, 1)).unwrap();
    // Idle: levels and layers are invalidated separately.
    context.invalidate_image(image.all().levels(1..2).layers(..1)).unwrap();
    assert_eq!(image.valid_subresources(), [(1, 1)]);
    context.invalidate_image(&image).unwrap();
    assert_eq!((image.valid_subresources().len(), image.generation()), (0, 0));
    // In use: a new object, and a new view.
    context.write_image(&image, 0, 1, &[5u32; 16]).unwrap();
    let copy = context.image(vk::Format::R32_UINT, [4, 4, 1]).build().unwrap();
    context.copy_image((&image, 0, 1), (&copy, 0, 0)).unwrap();
    let before = context.stats();
    context.invalidate_image(image.all().levels(..1)).unwrap(); // all valid levels
    let stats = context.stats().since(&before);
    assert_eq!((image.generation(), stats.renames, stats.rebinds_sampler_view), (1, 1, 1));
    context.write_image(&image, 0, 1, &[6u32; 16]).unwrap();
    assert_eq!(context.read_image::<u32>(&copy, 0, 0).unwrap(), [5; 16]);
    assert_eq!(context.read_image::<u32>(&image, 0, 1).unwrap(), [6; 16]);
    // In use, and the larger part holds data: the object stays, and the invalidated part holds no data any more.
    context.write_image(&image, 1, 0, &[1u32; 4]).unwrap();
    context.copy_image((&image, 0, 1), (&copy, 0, 0)).unwrap();
    context.invalidate_image(image.level(1)).unwrap();
    assert_eq!((image.generation(), image.valid_subresources()), (1, vec![(0, 1)]));
    assert_eq!(context.stats().invalidations_in_order, 1);
    assert_eq!(context.read_image::<u32>(&image, 0, 1).unwrap(), [6; 16]);
    context.finish().unwrap();
    context.invalidate_image(&image).unwrap();
    context.write_image(&image, 1, 0, &[1u32; 4]).unwrap();
    // The smaller part holds data: it is copied over, and the views are created again.
    context.write_image(&image, 0, 0, &[7u32; 16]).unwrap();
    context.copy_image((&image, 0, 0), (&copy, 0, 0)).unwrap();
    let before = context.stats();
    context.invalidate_image(image.level(0)).unwrap();
    let stats = context.stats().since(&before);
    assert_eq!((image.generation(), stats.renames, stats.rebinds_sampler_view), (2, 1, 1));
    assert_eq!(image.valid_subresources(), [(1, 0)]);
    context.write_image(&image, 0, 0, &[8u32; 16]).unwrap();
    assert_eq!(context.read_image::<u32>(&copy, 0, 0).unwrap(), [7; 16]);
    assert_eq!(context.read_image::<u32>(&image, 0, 0).unwrap(), [8; 16]);
    assert_eq!(context.read_image::<u32>(&image, 1, 0).unwrap(), [1; 4]);
}

/// "Common to many Gallium drivers is this idea of "bind history" […] the current descriptor bindings need to be
/// compared to see if there's a match." Only slots that hold the resource now are rebound, each with its own range.
#[test]
fn every_slot_that_holds_the_resource_is_rebound_and_no_other() {
    let stage = Stage::new();
    let (a, b) = (stage.context.buffer_zeroed(256).unwrap(), stage.context.buffer_zeroed(256).unwrap());
    for binding in 0..8 {
        stage.context.bind((1, binding), Bind::storage(a.slice(u64::from(binding) * 16..256))).unwrap();
        stage.context.bind((2, binding), Bind::uniform(&a)).unwrap();
        stage.context.bind((3, binding), Bind::storage(&b)).unwrap();
    }
    stage.context.bind((1, 7), Bind::storage(&b)).unwrap(); // replaces `a`: history, not a current binding
    stage.context.unbind((2, 7)).unwrap();
    stage.context.fill(&a, 1).unwrap();
    stage.context.invalidate(&a).unwrap();
    let stats = stage.context.stats();
    assert_eq!((stats.rebinds_storage, stats.rebinds_uniform, stats.rebinds()), (7, 7, 14));
    assert_eq!(stage.context.occupied_slots(), 23);
}

/// "If this resource was used in any cached descriptor sets, the references to those sets need to be invalidated so
/// that the sets won't be reused."
#[test]
fn cached_sets_that_name_the_old_object_are_dropped() {
    let stage = Stage::new();
    let (step, source, to) = (stage.buffer([1, 0, 0, 0]), stage.buffer([1, 2, 3, 4]), stage.buffer([0; 4]));
    let other = stage.buffer([5; 4]);
    stage.bind(&step, &source, &to);
    stage.dispatch();
    stage.context.bind((0, 1), Bind::storage(&other)).unwrap();
    stage.dispatch();
    assert_eq!((stage.context.cached_sets(), stage.context.stats().sets_allocated), (2, 2));
    stage.context.bind((0, 1), Bind::storage(&source)).unwrap();
    stage.dispatch();
    let stats = stage.context.stats();
    assert_eq!((stats.sets_allocated, stats.sets_reused), (2, 1), "the same state has the same set");
    stage.context.invalidate(&source).unwrap();
    let stats = stage.context.stats();
    assert_eq!((stage.context.cached_sets(), stats.sets_dropped), (1, 1), "the one with `other` stays");
    stage.context.write(&source, 0, &[7u32; 4]).unwrap();
    stage.dispatch();
    assert_eq!(stage.context.stats().sets_allocated, 3);
    assert_eq!(stage.words(&to), [8; 4]);
    drop((other, step));
}

/// Of many cached sets a rename drops only those that name the object, here and in other contexts.
#[test]
fn a_rename_drops_the_sets_that_name_the_object_and_no_others() {
    let stage = Stage::new();
    let step = stage.buffer([1, 0, 0, 0]);
    let sources: Vec<_> = (0..20).map(|_| stage.buffer([1; 4])).collect();
    let targets: Vec<_> = (0..5).map(|_| stage.buffer([0; 4])).collect();
    let other = stage.context.sibling();
    let dispatch_all = |context: &Context| {
        for (source, to) in sources.iter().flat_map(|source| targets.iter().map(move |to| (source, to))) {
            let dispatch = context.dispatch(&stage.program).bind(0, 0, &step).bind(0, 1, source);
            dispatch.bind(0, 2, to).groups([4, 1, 1]).unwrap();
        }
    };
    dispatch_all(&stage.context);
    dispatch_all(&other);
    assert_eq!((stage.context.cached_sets(), other.cached_sets()), (100, 100));
    for (count, source) in (1..).zip(&sources[..8]) {
        let before = stage.context.stats();
        stage.context.upload(source, &[2u32; 4]).unwrap();
        let stats = stage.context.stats().since(&before);
        assert_eq!((stats.renames, stats.sets_dropped), (1, 5), "one set per target");
        assert_eq!((stage.context.cached_sets(), other.cached_sets()), (100 - 5 * count, 100));
    }
    // The other context handles the event when it records the next command.
    other.fill(&targets[0], 0).unwrap();
    assert_eq!(other.cached_sets(), 60);
    let before = stage.context.stats();
    dispatch_all(&other);
    let stats = stage.context.stats().since(&before);
    assert_eq!((stats.sets_reused, stats.sets_allocated, stats.sets_dropped), (60, 40, 0));
}

/// "Finally, the old `struct zink_resource_object` is unrefed, which will ensure that it gets destroyed once its
/// current command buffer has finished executing."
#[test]
fn the_old_object_goes_when_its_batch_has_retired() {
    let stage = Stage::new();
    let (a, copy) = (stage.buffer([1, 2, 3, 4]), stage.buffer([0; 4]));
    let before = stage.context.stats().objects_alive();
    stage.context.copy(&a, 0, &copy, 0, 16).unwrap();
    stage.context.invalidate(&a).unwrap();
    assert_eq!(stage.context.stats().objects_alive(), before + 1);
    stage.context.finish().unwrap();
    assert_eq!(stage.context.stats().objects_alive(), before);
    // The next rename of the resource reuses its storage.
    stage.context.write(&a, 0, &[1u32; 4]).unwrap();
    stage.context.copy(&a, 0, &copy, 0, 16).unwrap();
    stage.context.invalidate(&a).unwrap();
    assert_eq!(stage.context.stats().objects_recycled, 1);
}

/// "if (!new_obj) { debug_printf("new backing resource alloc failed!"); return; }": in zink the contents are then lost,
/// and the next write races. Here the host waits for the old object, the statistics count it, and no data is lost.
#[test]
fn without_memory_for_a_new_object_the_old_one_is_waited_for() {
    let context = Context::builder().workers(1).memory(16 << 20).build().unwrap();
    let bytes = 9 << 20;
    let a = context.buffer(bytes).holding(&vec![1u8; bytes as usize]).unwrap();
    let copy = context.buffer(1 << 20).build().unwrap();
    context.copy(&a, 0, &copy, 0, 1 << 20).unwrap();
    context.invalidate(&a).unwrap();
    let stats = context.stats();
    assert_eq!((a.generation(), a.valid_ranges().len()), (0, 0), "waited for, and invalidated in place");
    assert_eq!((stats.renames, stats.renames_without_memory, stats.stalls_taken), (0, 1, 1));
    assert!(
        context.read::<u8>(&copy).unwrap().iter().all(|byte| *byte == 1),
        "the earlier command read the old contents"
    );
    // An upload takes the same path.
    context.write(&a, 0, &vec![3u8; bytes as usize]).unwrap();
    context.copy(&a, 0, &copy, 0, 1 << 20).unwrap();
    context.upload(&a, &vec![2u8; bytes as usize]).unwrap();
    let stats = context.stats();
    assert_eq!((a.generation(), stats.renames_without_memory, stats.stalls_taken), (0, 2, 2));
    assert!(context.read::<u8>(&a).unwrap().iter().all(|byte| *byte == 2));
    assert!(context.read::<u8>(&copy).unwrap().iter().all(|byte| *byte == 3));
}

/// A resource "in several contexts, or at several slots with different ranges": the other contexts rebind it at their
/// next dispatch.
#[test]
fn other_contexts_notice_at_their_next_dispatch() {
    let stage = Stage::new();
    let (step, source) = (stage.buffer([1, 0, 0, 0]), stage.buffer([1, 2, 3, 4]));
    let others: Vec<_> = (0..3).map(|_| stage.context.sibling()).collect();
    let targets: Vec<_> = others.iter().map(|_| stage.buffer([0; 4])).collect();
    for (other, to) in others.iter().zip(&targets) {
        other.bind((0, 0), Bind::uniform(&step)).unwrap();
        other.bind((0, 1), Bind::storage(&source)).unwrap();
        other.bind((0, 2), Bind::storage(to)).unwrap();
        other.dispatch(&stage.program).groups([4, 1, 1]).unwrap();
    }
    stage.context.upload(&source, &[10u32, 20, 30, 40]).unwrap();
    assert_eq!((source.generation(), stage.context.stats().rebinds()), (1, 0), "no other context was affected");
    others[1].dispatch(&stage.program).groups([4, 1, 1]).unwrap();
    assert_eq!(stage.context.stats().rebinds_storage, 1, "only in the context that dispatched");
    assert_eq!(stage.words(&targets[0]), [2, 3, 4, 5], "recorded before");
    assert_eq!(stage.words(&targets[1]), [11, 21, 31, 41]);
}
