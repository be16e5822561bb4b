//! Respecification with another size: every slot and cached set names the new object, recorded commands the old one,
//! and calls of other threads that were checked against the old size are checked again.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]
#![expect(clippy::single_range_in_vec_init, reason = "lists of one range are meant")]

use std::sync::atomic::{AtomicBool, Ordering};

use spelter::{Action, Bind, Buffer, ClearColor, Context, Error, MapFlags, Program, Waits, testing, vk};

/// Writes the number of words that it finds bound.
const LENGTH: &str = "
@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> to: u32;
@compute @workgroup_size(1) fn main() { to = arrayLength(&source); }";

struct Stage {
    context: Context,
    program: Program,
    to: Buffer,
}

impl Stage {
    fn new() -> Self {
        let context = Context::builder().workers(2).memory(64 << 20).poison(true).build().unwrap();
        let (program, to) = (context.program_wgsl(LENGTH).unwrap(), context.buffer_zeroed(4).unwrap());
        context.bind((0, 1), Bind::storage(&to)).unwrap();
        Self { context, program, to }
    }

    fn length(&self, context: &Context) -> Result<u32, Error> {
        context.dispatch(&self.program).bind(0, 1, &self.to).groups([1, 1, 1])?;
        Ok(context.read::<u32>(&self.to)?[0])
    }
}

#[test]
fn slots_without_an_end_have_the_new_size_in_every_context() {
    let stage = Stage::new();
    let (context, other) = (&stage.context, stage.context.sibling());
    let buffer = context.buffer_zeroed(64).unwrap();
    for user in [context, &other] {
        user.bind((0, 0), Bind::storage(&buffer)).unwrap();
        user.bind((1, 0), Bind::storage(buffer.slice(16..))).unwrap();
        user.bind((1, 1), Bind::uniform(buffer.slice(..32))).unwrap();
        assert_eq!(stage.length(user).unwrap(), 16);
    }
    for (bytes, words) in [(256, 64), (48, 12), (1 << 20, 1 << 18)] {
        let outcome = context.resize(&buffer, bytes).unwrap();
        assert!(outcome.action.is_replaced());
        assert_eq!(buffer.size(), bytes);
        for user in [context, &other] {
            assert_eq!(stage.length(user).unwrap(), words);
            let ranges: Vec<_> = user.slots_of(&buffer).into_iter().flat_map(|slot| slot.ranges).collect();
            assert_eq!(ranges, [0..bytes, 16..bytes, 0..32]);
        }
    }
    assert_eq!((buffer.generation(), context.stats().resizes), (3, 3));
}

#[test]
fn a_range_that_does_not_fit_is_an_error_until_it_does() {
    let stage = Stage::new();
    let buffer = stage.context.buffer(64).label("table").zeroed().unwrap();
    stage.context.bind((0, 0), Bind::storage(buffer.slice(16..64))).unwrap();
    assert_eq!(stage.length(&stage.context).unwrap(), 12);
    stage.context.resize(&buffer, 32).unwrap();
    assert_eq!(stage.context.slot((0, 0)).unwrap().object, None);
    for _ in 0..2 {
        let error = stage.length(&stage.context).unwrap_err().to_string();
        let wanted = "bytes 16..64 of buffer `table` of 32 bytes (VUID-VkDescriptorBufferInfo-range-00342)";
        assert_eq!(error, format!("binding 0.0 (source): {wanted}"));
    }
    assert!(buffer.valid_ranges().is_empty(), "nothing is bound where kernels can write");
    stage.context.resize(&buffer, 80).unwrap();
    assert_eq!(stage.length(&stage.context).unwrap(), 12);
    // A range without an end that would begin after the end.
    stage.context.bind((0, 0), Bind::storage(buffer.slice(48..))).unwrap();
    stage.context.resize(&buffer, 16).unwrap();
    let error = stage.length(&stage.context).unwrap_err().to_string();
    assert!(error.starts_with("binding 0.0 (source): bytes 48..16 of buffer `table` of 16 bytes"), "{error}");
    buffer.destroy();
    let error = stage.length(&stage.context).unwrap_err().to_string();
    assert!(error.starts_with("binding 0.0 (source): buffer `table` of 16 bytes is destroyed"), "{error}");
}

#[test]
fn commands_in_flight_use_the_old_object() {
    let stage = Stage::new();
    let context = &stage.context;
    let (buffer, copy) = (context.buffer_from(&[7u32; 16]).unwrap(), context.buffer_zeroed(64).unwrap());
    let hold = testing::hold(context).unwrap();
    context.copy(&buffer, 0, &copy, 0, 64).unwrap();
    context.flush().unwrap();
    let outcome = context.resize(&buffer, 8).unwrap();
    assert!(outcome.action.is_replaced() && !outcome.waited());
    assert_eq!(context.upload(&buffer, &[1u32, 2]).unwrap().action, Action::InPlace);
    assert!(hold.is_held());
    hold.release();
    assert_eq!((context.read::<u32>(&copy).unwrap(), context.read::<u32>(&buffer).unwrap()), (vec![7; 16], vec![1, 2]));
}

#[test]
fn sets_that_name_the_old_object_are_dropped_and_its_storage_freed() {
    let stage = Stage::new();
    let buffer = stage.context.buffer_zeroed(4 << 20).unwrap();
    stage.context.bind((0, 0), Bind::storage(&buffer)).unwrap();
    let (mut sizes, before) = ([1u64 << 20, 6 << 20].into_iter().cycle(), stage.context.stats());
    // More bytes in sum than the device has: storage of another size is not kept for later.
    for _ in 0..40 {
        stage.context.resize(&buffer, sizes.next().unwrap()).unwrap();
        stage.length(&stage.context).unwrap();
    }
    let done = stage.context.stats().since(&before);
    assert_eq!((done.resizes, done.objects_recycled, done.pressure_flushes), (40, 0, 0));
    assert_eq!((stage.context.cached_sets(), done.sets_dropped), (1, 39));
    assert_eq!(stage.context.stats().objects_alive(), 2);
}

#[test]
fn the_size_that_it_has_is_an_invalidation() {
    let stage = Stage::new();
    let buffer = stage.context.buffer_from(&[1u32, 2]).unwrap();
    assert_eq!(stage.context.resize(&buffer, 8).unwrap().action, Action::Forgotten);
    assert_eq!(stage.context.resize(&buffer, 8).unwrap().action, Action::NothingValid);
    stage.context.fill(&buffer, 1).unwrap();
    assert!(stage.context.resize(&buffer, 8).unwrap().action.is_replaced());
    assert_eq!((stage.context.stats().resizes, buffer.outcomes().replaced), (0, 1));
}

#[test]
fn without_memory_nothing_has_changed() {
    let stage = Stage::new();
    let context = &stage.context;
    let buffer = context.buffer(8).label("table").holding(&[1u32, 2]).unwrap();
    let before = buffer.object().unwrap();
    let failing = testing::fail_allocations(context, ..);
    let error = context.resize(&buffer, 256).unwrap_err().to_string();
    assert_eq!(error, "out of memory: buffer `table` of 256 bytes");
    drop(failing);
    assert_eq!((buffer.size(), buffer.object().unwrap(), buffer.valid_ranges()), (8, before, vec![0..8]));
    assert_eq!(context.read::<u32>(&buffer).unwrap(), [1, 2]);
    // The second attempt succeeds, after a wait for all batches.
    let hold = testing::hold(context).unwrap();
    context.fill(&buffer, 3).unwrap();
    let failing = testing::fail_allocations(context, 1..=1);
    let outcome = context.resize(&buffer, 256).unwrap();
    assert_eq!((outcome.waits, failing.failed(), buffer.size()), (Waits::PRESSURE, 1, 256));
    assert!(!hold.is_held());
}

#[test]
fn images_get_another_extent_and_their_views_are_made_anew() {
    let stage = Stage::new();
    let context = &stage.context;
    let look = context
        .program_wgsl(
            "@group(0) @binding(0) var sheet: texture_2d<u32>;
             @group(0) @binding(1) var<storage, read_write> to: vec2<u32>;
             @compute @workgroup_size(1) fn main() { to = textureDimensions(sheet); }",
        )
        .unwrap();
    let image = context.image(vk::Format::R32_UINT, [4, 4, 1]).levels(2).label("sheet").build().unwrap();
    let same = image.clone();
    let to = context.buffer_zeroed(8).unwrap();
    context.bind((0, 0), Bind::sampled(&image)).unwrap();
    context.bind((0, 1), Bind::storage(&to)).unwrap();
    for [width, height] in [[8, 2], [2, 16], [4, 4]] {
        context.dispatch(&look).groups([1, 1, 1]).unwrap(); // the image is in use
        assert!(context.resize_image(&image, [width, height, 1]).unwrap().action.is_replaced());
        assert_eq!((same.level_size(0), same.valid_subresources().len()), ([width, height, 1], 0));
        context.dispatch(&look).groups([1, 1, 1]).unwrap();
        assert_eq!(context.read::<u32>(&to).unwrap(), [width, height]);
        context.clear_image(&image, ClearColor::Uint([width; 4])).unwrap();
        assert_eq!(context.read_image::<u32>(&image, 0, 0).unwrap(), vec![width; (width * height) as usize]);
        assert_eq!(context.read_image::<u32>(&image, 1, 0).unwrap().len(), (width * height / 4) as usize);
    }
    // An image of one texel has one level.
    let before = image.object().unwrap();
    let error = context.resize_image(&image, [1, 1, 1]).unwrap_err().to_string();
    assert!(error.contains("`sheet`") && error.contains("VUID-VkImageCreateInfo-mipLevels-00958"), "{error}");
    assert_eq!((image.object().unwrap().id, image.level_size(0)), (before.id, [4, 4, 1]));
}

#[test]
fn a_cube_that_is_not_square_any_more_is_an_error_in_its_slot() {
    let stage = Stage::new();
    let context = &stage.context;
    let sky = context.image(vk::Format::R8G8B8A8_UNORM, [8, 8, 1]).layers(6).label("sky").build().unwrap();
    context.bind((0, 0), Bind::sampled(sky.all().as_type(vk::ImageViewType::CUBE))).unwrap();
    context.resize_image(&sky, [8, 4, 1]).unwrap();
    assert_eq!(context.slot((0, 0)).unwrap().object, None);
    context.resize_image(&sky, [4, 4, 1]).unwrap();
    assert_eq!(context.slot((0, 0)).unwrap().object, Some(sky.object().unwrap().id));
}

#[test]
fn a_mapping_keeps_the_size() {
    let stage = Stage::new();
    let buffer = stage.context.buffer(64).label("table").zeroed().unwrap();
    for flags in [MapFlags::READ, MapFlags::WRITE | MapFlags::PERSISTENT] {
        let map = stage.context.map(&buffer, flags).unwrap();
        let error = stage.context.resize(&buffer, 8).unwrap_err().to_string();
        let rule = "a resource is not respecified while it is mapped";
        assert_eq!(error, format!("resize: buffer `table` of 64 bytes is mapped (rule: {rule})"));
        map.unmap().unwrap();
    }
    stage.context.resize(&buffer, 8).unwrap();
}

/// Host accesses and commands of threads that do not know of each other: each finds one size or the other.
#[test]
fn sizes_change_while_other_threads_use_the_buffer() {
    let context = Context::builder().workers(2).memory(64 << 20).build().unwrap();
    // Neighbours in the same block of small buffers: an access outside of a buffer would change them.
    let neighbours: Vec<_> = (0..8).map(|_| context.buffer_from(&[5u32; 64]).unwrap()).collect();
    let (buffer, copy) = (context.buffer_from(&[5u32; 64]).unwrap(), context.buffer_zeroed(256).unwrap());
    let image = context.image(vk::Format::R32_UINT, [8, 8, 1]).build().unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for iteration in 0..200 {
                match context.resize(&buffer, if iteration % 2 == 0 { 32 } else { 256 }) {
                    Ok(_) => {}
                    // Another thread has it mapped.
                    Err(error) => assert!(error.to_string().ends_with("it is mapped)"), "{error}"),
                }
                context.resize_image(&image, if iteration % 2 == 0 { [2, 3, 1] } else { [8, 8, 1] }).unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        for user in [context.sibling(), context.sibling()] {
            let (buffer, copy, image, done) = (&buffer, &copy, &image, &done);
            scope.spawn(move || {
                let allowed = |error: Error| match error {
                    Error::Range(_) | Error::Binding { .. } => {}
                    // The driver's check, or a mapping of the other thread.
                    Error::Misuse(_) | Error::Resource(_) => {}
                    other => panic!("{other}"),
                };
                user.bind((0, 0), Bind::storage(buffer)).unwrap();
                for _ in (0..100_000).take_while(|_| !done.load(Ordering::Relaxed)) {
                    user.write(buffer, 0, &[5u32; 64]).map(drop).unwrap_or_else(allowed);
                    user.write(buffer, 128, &[5u32; 32]).map(drop).unwrap_or_else(allowed);
                    user.fill_range(buffer, 0..256, 5).unwrap_or_else(allowed);
                    user.copy(buffer, 128, copy, 0, 128).unwrap_or_else(allowed);
                    user.read_range::<u32>(buffer, 128..256).map(drop).unwrap_or_else(allowed);
                    user.map(buffer.slice(64..256), MapFlags::WRITE)
                        .and_then(|map| map.write(0, &[5u32; 48]))
                        .unwrap_or_else(allowed);
                    user.write_image(image, 0, 0, &[5u32; 64]).map(drop).unwrap_or_else(allowed);
                    let texels = user.read_image::<u32>(image, 0, 0).unwrap().len();
                    assert!([6, 64].contains(&texels), "{texels} texels");
                }
                user.finish().unwrap();
            });
        }
    });
    for neighbour in &neighbours {
        assert_eq!(context.read::<u32>(neighbour).unwrap(), [5; 64]);
    }
    assert!([32, 256].contains(&buffer.size()));
}
