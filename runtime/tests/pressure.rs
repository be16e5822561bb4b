//! Memory pressure: replaced objects stay within their budget, whichever contexts use them, and calls wait for memory
//! where they can.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]
#![expect(clippy::single_range_in_vec_init, reason = "lists of one range are meant")]

use spelter::{Buffer, Context, MapFlags, Program, Stats, vk};

/// Slow enough that a host that does not wait is far ahead.
const SLOW: &str = "
@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> to: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
    var x = source[id.x];
    for (var i = 0u; i < 10000u; i++) { x = x * 1664525u + 1013904223u; }
    to[id.x] = x;
}";

const MIB: u64 = 1 << 20;
/// The heap; an eighth of it is the budget of replaced objects.
const HEAP: u64 = 64 * MIB;
/// Bytes of each buffer that is renamed: a quarter of the budget.
const SIZE: u64 = 2 * MIB;
/// The largest number of objects of that size that exist at once: the buffer's, four that are pending, one more that a
/// retired batch still owns, and the other buffer's.
const MAX_OBJECTS: u64 = 7;

/// A context on a device with one worker and a heap of this many bytes.
fn context(heap: u64) -> Context {
    Context::builder().workers(1).memory(heap).build().unwrap()
}

struct Stage {
    context: Context,
    program: Program,
    buffer: Buffer,
    to: Buffer,
    words: Vec<u32>,
}

impl Stage {
    fn new() -> Self {
        let context = context(HEAP);
        let program = context.program_wgsl(SLOW).unwrap();
        let (buffer, to) = (context.buffer_zeroed(SIZE).unwrap(), context.buffer_zeroed(4096).unwrap());
        Self { context, program, buffer, to, words: vec![1; SIZE as usize / 4] }
    }

    /// Renames the buffer many times with `renew`, with a use in a context each time. Returns the statistics.
    fn stream(&self, uses: &Context, flush: bool, renew: impl Fn()) -> Stats {
        let before = self.context.stats();
        for iteration in 0..40 {
            renew();
            uses.dispatch(&self.program).bind(0, 0, &self.buffer).bind(0, 1, &self.to).groups([16, 1, 1]).unwrap();
            if flush {
                uses.flush().unwrap();
            }
            let alive = self.context.stats().objects_alive();
            assert!(alive <= MAX_OBJECTS, "iteration {iteration}: {alive} objects");
        }
        let stats = self.context.stats().since(&before);
        // The number of renames, and which of them waited, depends on timing. Exactly those that waited are stalls.
        assert!(stats.renames > 0, "{stats}");
        assert_eq!(stats.renames_throttled, stats.stalls_taken, "{stats}");
        assert!(stats.stalls_avoided + stats.stalls_taken <= 40, "{stats}");
        stats
    }
}

#[test]
fn uploads_stay_within_the_budget() {
    let stage = Stage::new();
    stage.stream(&stage.context, true, || stage.context.upload(&stage.buffer, &stage.words).map(drop).unwrap());
}

#[test]
fn uploads_of_what_a_sibling_uses_stay_within_the_budget() {
    let stage = Stage::new();
    let sibling = stage.context.sibling();
    stage.stream(&sibling, true, || stage.context.upload(&stage.buffer, &stage.words).map(drop).unwrap());
}

#[test]
fn uploads_of_what_a_sibling_has_not_submitted_stay_within_the_budget() {
    let stage = Stage::new();
    let sibling = stage.context.sibling();
    let stats = stage.stream(&sibling, false, || stage.context.upload(&stage.buffer, &stage.words).map(drop).unwrap());
    // Batches that are never submitted cannot retire by chance.
    assert!(stats.renames_throttled > 0, "{stats}");
}

#[test]
fn mappings_that_discard_stay_within_the_budget() {
    let stage = Stage::new();
    stage.stream(&stage.context, true, || {
        let map = stage.context.map(&stage.buffer, MapFlags::WRITE | MapFlags::DISCARD_WHOLE).unwrap();
        map.write(0, &stage.words).unwrap();
        map.unmap().unwrap();
    });
}

#[test]
fn invalidations_stay_within_the_budget() {
    for flush in [true, false] {
        let stage = Stage::new();
        stage.stream(&stage.context, flush, || {
            stage.context.invalidate(&stage.buffer).unwrap();
            stage.context.write(&stage.buffer, 0, &stage.words).unwrap();
        });
    }
}

/// A context whose heap is full except for a buffer.
fn full() -> (Context, Buffer, Vec<Buffer>) {
    let context = context(32 * MIB);
    let buffer = context.buffer(30 * MIB).label("large").zeroed().unwrap();
    let rest = fill_up(&context);
    (context, buffer, rest)
}

/// Buffers that take all remaining memory.
fn fill_up(context: &Context) -> Vec<Buffer> {
    let mut rest = Vec::new();
    for size in [MIB, 256 << 10, 64 << 10, 4 << 10, 1 << 10, 256] {
        while let Ok(buffer) = context.buffer(size).build() {
            rest.push(buffer);
        }
    }
    rest
}

#[test]
fn a_write_that_cannot_be_staged_waits() {
    let (context, buffer, _rest) = full();
    context.fill(&buffer, 5).unwrap(); // recorded: the buffer is in use
    let before = context.stats();
    context.write(&buffer, MIB, &[7u32; 64 << 10]).unwrap();
    let stats = context.stats().since(&before);
    // Nothing is staged: the batch is submitted, and waited for unless it is done by then.
    assert_eq!((stats.pressure_flushes, stats.stalls_taken + stats.stalls_avoided), (1, 1), "{stats}");
    let words = context.read::<u32>(&buffer).unwrap();
    let at = MIB as usize / 4;
    assert_eq!((words[at - 1], words[at], words[at + (64 << 10) - 1], words[at + (64 << 10)]), (5, 7, 7, 5));
}

#[test]
fn a_mapping_that_cannot_be_staged_waits() {
    let (context, buffer, _rest) = full();
    context.fill(&buffer, 5).unwrap();
    let map = context.map(buffer.slice(0..MIB), MapFlags::WRITE).unwrap();
    map.write(0, &[7u32; 4]).unwrap();
    map.unmap().unwrap();
    assert_eq!(context.read_range::<u32>(&buffer, 0..20).unwrap(), [7, 7, 7, 7, 5]);
}

/// There is no memory for another object, so discarded contents are forgotten in place.
#[test]
fn what_is_discarded_after_a_wait_is_forgotten() {
    let (context, buffer, _rest) = full();
    context.fill(&buffer, 5).unwrap(); // recorded: the buffer is in use
    let before = context.stats();
    let map = context.map(buffer.slice(16..64), MapFlags::WRITE | MapFlags::DISCARD_WHOLE).unwrap();
    assert!(buffer.valid_ranges().is_empty());
    map.write(0, &[7u32]).unwrap();
    map.unmap().unwrap();
    assert_eq!((buffer.generation(), buffer.valid_ranges()), (0, vec![16..20]));
    context.fill(&buffer, 5).unwrap();
    context.upload(&buffer, &[8u32; 2]).unwrap();
    assert_eq!((buffer.generation(), buffer.valid_ranges()), (0, vec![0..8]));
    let stats = context.stats().since(&before);
    assert_eq!((stats.renames_without_memory, stats.stalls_taken, stats.renames), (2, 2, 0), "{stats}");
    assert_eq!(context.read_range::<u32>(&buffer, 0..8).unwrap(), [8, 8]);
}

#[test]
fn more_than_all_memory_is_want_of_memory() {
    let context = context(MIB);
    for bytes in [MIB + 1, 8 * MIB] {
        let error = context.buffer(bytes).label("vast").build().unwrap_err();
        assert_eq!(error.to_string(), format!("out of memory: buffer `vast` of {bytes} bytes"));
    }
    let image = context.image(vk::Format::R32_UINT, [1024, 1024, 1]).label("wide").build().unwrap_err();
    assert_eq!(image.to_string(), "out of memory: image `wide` of 1024x1024x1 R32_UINT");
}

/// Commands take memory as well.
#[test]
fn a_host_that_is_far_ahead_waits_for_the_workers() {
    let stage = Stage::new();
    let dispatch = || {
        let dispatch = stage.context.dispatch(&stage.program).bind(0, 0, &stage.buffer).bind(0, 1, &stage.to);
        dispatch.groups([2, 1, 1]).unwrap();
    };
    for _ in 0..600 {
        dispatch();
        stage.context.flush().unwrap();
    }
    let stats = stage.context.stats();
    assert!(stats.batches_throttled > 0 && stats.batches_throttled <= 4, "{stats}");
    stage.context.finish().unwrap();
    assert_eq!(stage.context.stats().batches_submitted, 600);
}

#[test]
fn a_level_that_cannot_be_staged_is_written_after_a_wait_and_read_where_it_is() {
    let context = context(32 * MIB);
    let image = context.image(vk::Format::R32_UINT, [1024, 512, 1]).layers(2).label("sheet").build().unwrap();
    let seen = context.image(vk::Format::R32_UINT, [1024, 512, 1]).build().unwrap();
    let texels = |value: u32| -> Vec<u32> { (0..1024 * 512).map(|at| at ^ value).collect() };
    context.write_image(&image, 0, 0, &texels(1)).unwrap();
    context.write_image(&image, 0, 1, &texels(2)).unwrap();
    let _rest = fill_up(&context);
    context.copy_image((&image, 0, 0), (&seen, 0, 0)).unwrap(); // recorded: the image is in use
    let before = context.stats();
    context.write_image(&image, 0, 0, &texels(3)).unwrap();
    let stats = context.stats().since(&before);
    assert_eq!((stats.stalls_taken, stats.stalls_avoided, stats.bytes_staged), (1, 0, 0), "{stats}");
    for (image, layer, value) in [(&image, 0, 3), (&image, 1, 2), (&seen, 0, 1)] {
        assert!(context.read_image::<u32>(image, 0, layer).unwrap() == texels(value), "layer {layer} of {value}");
    }
    // A part is invalidated although there is no memory to copy the rest to.
    context.copy_image((&image, 0, 0), (&seen, 0, 0)).unwrap();
    context.invalidate_image(image.all().layers(0..1)).unwrap();
    assert_eq!((image.generation(), image.valid_subresources()), (0, vec![(0, 1)]));
    assert_eq!(context.stats().since(&before).renames_without_memory, 1);
    assert!(context.read_image::<u32>(&seen, 0, 0).unwrap() == texels(3));
}

#[test]
fn spares_go_when_memory_is_needed() {
    let stage = Stage::new();
    stage.stream(&stage.context, true, || stage.context.upload(&stage.buffer, &stage.words).map(drop).unwrap());
    stage.context.finish().unwrap();
    // All memory except that of the two buffers, in chunks, since the renamed one may lie anywhere.
    let _all: Vec<_> = (0..HEAP / SIZE - 3).map(|_| stage.context.buffer(SIZE).build().unwrap()).collect();
}

#[test]
fn one_resource_does_not_keep_all_spares() {
    let stage = Stage::new();
    let stream = |buffer: &Buffer| {
        let before = stage.context.stats();
        for _ in 0..40 {
            stage.context.upload(buffer, &stage.words).unwrap();
            stage.context.dispatch(&stage.program).bind(0, 0, buffer).bind(0, 1, &stage.to).groups([16, 1, 1]).unwrap();
            stage.context.flush().unwrap();
        }
        stage.context.finish().unwrap();
        let stats = stage.context.stats().since(&before);
        (stats.renames, stats.objects_created - stats.objects_recycled)
    };
    let other = stage.context.buffer_zeroed(SIZE).unwrap();
    for (renames, made) in [stream(&stage.buffer), stream(&other)] {
        assert!(made <= MAX_OBJECTS, "{renames} renames made {made} new storages");
    }
}

#[test]
fn a_rename_is_taken_before_a_wait() {
    let context = context(HEAP);
    let (large, to) = (context.buffer(12 * MIB).build().unwrap(), context.buffer(12 * MIB).build().unwrap());
    // Too many bytes to be staged (a quarter of the budget), too few of the buffer for a rename.
    let words = vec![1u32; 5 * MIB as usize / 8];
    context.write(&large, 0, &words).unwrap();
    context.copy(&large, 0, &to, 0, 5 * MIB / 2).unwrap();
    let before = context.stats();
    context.write(&large, 0, &words).unwrap();
    let stats = context.stats().since(&before);
    assert_eq!((stats.renames, stats.stalls_taken), (1, 0));
}

#[test]
fn memory_of_what_is_dropped_comes_back_without_another_call() {
    let context = context(HEAP);
    let sibling = context.sibling();
    for user in [&sibling, &context] {
        let buffer = context.buffer(40 * MIB).zeroed().unwrap();
        user.fill(&buffer, 7).unwrap();
        user.flush().unwrap().wait().unwrap();
        drop(buffer);
        assert_eq!(context.stats().objects_alive(), 0);
    }
    let program = context.program_wgsl(SLOW).unwrap();
    let (buffer, to) = (context.buffer(40 * MIB).zeroed().unwrap(), context.buffer_zeroed(4096).unwrap());
    sibling.dispatch(&program).bind(0, 0, &buffer).bind(0, 1, &to).groups([1, 1, 1]).unwrap();
    sibling.finish().unwrap();
    assert_eq!(sibling.cached_sets(), 1);
    buffer.destroy();
    assert_eq!((sibling.cached_sets(), context.stats().objects_alive()), (0, 1));
}
