//! Descriptor sets: what they name, when driver sets are written, and that hazards, valid ranges and lifetimes are
//! those of slots.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]
#![expect(clippy::single_range_in_vec_init, reason = "lists of one range are meant")]

use spelter::{Bind, BindingKind, Buffer, ClearColor, Context, DescriptorSet, Program, SetBinding, Stats, vk};

/// Adds what is in `step` to each word.
const ADD: &str = "
@group(0) @binding(0) var<uniform> step: vec4<u32>;
@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read_write> to: array<u32>;
@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) { to[id.x] = source[id.x] + step.x; }";

/// Uses the last binding only.
const DOUBLE: &str = "
@group(0) @binding(2) var<storage, read_write> to: array<u32>;
@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) { to[id.x] *= 2u; }";

struct Stage {
    context: Context,
    add: Program,
    step: Buffer,
    source: Buffer,
    to: Buffer,
}

impl Stage {
    fn new() -> Self {
        let context = Context::builder().workers(2).poison(true).build().unwrap();
        let buffer = |word: u32| context.buffer(16).holding(&[word; 4]).unwrap();
        let (step, source, to) = (buffer(100), buffer(1), context.buffer(16).label("to").build().unwrap());
        Self { add: context.program_wgsl(ADD).unwrap(), step, source, to, context }
    }

    /// A set with the three buffers.
    fn set(&self) -> DescriptorSet {
        let set = self.context.descriptor_set(&self.add, 0).label("frame").updatable();
        set.bind(0, &self.step).bind(1, &self.source).bind(2, &self.to).build().unwrap()
    }

    fn dispatch(&self, set: &DescriptorSet) {
        self.context.dispatch(&self.add).set(0, set).groups([1, 1, 1]).unwrap();
    }

    fn words(&self, buffer: &Buffer) -> Vec<u32> {
        self.context.read(buffer).unwrap()
    }

    /// The counters of what `run` does.
    fn counted(&self, run: impl FnOnce()) -> Stats {
        let before = self.context.stats();
        run();
        self.context.stats().since(&before)
    }
}

#[test]
fn a_renamed_resource_is_used_by_the_next_dispatch() {
    let stage = Stage::new();
    let set = stage.set();
    for word in 1..8u32 {
        stage.dispatch(&set);
        // In use: it gets another object, and the dispatch before keeps the old one.
        stage.context.upload(&stage.source, &[word; 4]).unwrap();
    }
    stage.dispatch(&set);
    assert_eq!(stage.words(&stage.to), [107; 4]);
    assert_eq!(stage.source.generation(), 7);
    assert_eq!(set.objects()[1].generation, 7);
    let other = stage.context.sibling();
    other.upload(&stage.source, &[20u32; 4]).unwrap();
    stage.dispatch(&set);
    assert_eq!(stage.words(&stage.to), [120; 4], "renamed by another context");
}

#[test]
fn a_driver_set_is_written_when_a_dispatch_needs_it_and_an_object_changed() {
    let stage = Stage::new();
    let sets = |stats: Stats| (stats.sets_allocated, stats.sets_rewritten, stats.sets_dropped);
    let (set, other) = (stage.set(), stage.context.buffer(16).holding(&[5u32; 4]).unwrap());
    assert_eq!(sets(stage.context.stats()), (0, 0, 0), "no dispatch, no driver set");
    let first = stage.counted(|| (0..10).for_each(|_| stage.dispatch(&set)));
    assert_eq!(sets(first), (1, 0, 0));
    // Writes alone do nothing; the recorded batch uses the driver set, so another one takes its place.
    let busy = stage.counted(|| {
        set.write(1, Bind::storage(&other)).unwrap();
        set.write(1, Bind::storage(&stage.source)).unwrap();
        set.write(1, Bind::storage(&other)).unwrap();
    });
    assert_eq!(sets(busy), (0, 0, 0));
    assert_eq!(sets(stage.counted(|| stage.dispatch(&set))), (1, 0, 1));
    stage.context.finish().unwrap();
    // No batch uses it: it is written again.
    set.write(1, Bind::storage(&stage.source)).unwrap();
    assert_eq!(sets(stage.counted(|| stage.dispatch(&set))), (0, 1, 0));
    assert_eq!(stage.words(&stage.to), [101; 4]);
    // A resource that the set does not name, and a write of the same descriptor, change nothing.
    stage.context.copy(&other, 0, &stage.to, 0, 16).unwrap();
    let unchanged = stage.counted(|| {
        stage.context.upload(&other, &[6u32; 4]).unwrap();
        set.write(1, Bind::storage(&stage.source)).unwrap();
        stage.dispatch(&set);
    });
    assert_eq!((unchanged.renames, sets(unchanged)), (1, (0, 0, 0)));
    assert_eq!(stage.words(&stage.to), [101; 4]);
}

#[test]
fn a_dispatch_uses_what_the_set_named_when_it_was_recorded() {
    let stage = Stage::new();
    let set = stage.set();
    let (a, b) = (stage.context.buffer_zeroed(16).unwrap(), stage.context.buffer_zeroed(16).unwrap());
    for (buffer, source) in [(&a, [1u32; 4]), (&b, [2; 4]), (&a, [3; 4])] {
        let source = stage.context.buffer_from(&source).unwrap();
        set.write(1, Bind::storage(&source)).unwrap();
        set.write(2, Bind::storage(buffer)).unwrap();
        stage.dispatch(&set);
    }
    assert_eq!((stage.words(&a), stage.words(&b)), (vec![103; 4], vec![102; 4]));
    assert!(stage.context.stats().barriers >= 1, "both writes to one buffer are in order");
}

#[test]
fn generation_and_objects_follow_the_resources() {
    let stage = Stage::new();
    let set = stage.set();
    let (generation, objects) = (set.generation(), set.objects());
    assert_eq!(objects.iter().map(|named| named.binding).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!((objects[2].label.as_deref(), objects[2].generation), (Some("to"), 0));
    assert_eq!((set.generation(), set.objects()), (generation, objects.clone()), "nothing has changed");
    stage.dispatch(&set);
    stage.context.invalidate(&stage.source).unwrap();
    assert_eq!(set.generation(), generation + 1);
    assert_ne!(set.objects()[1].id, objects[1].id);
    assert_eq!(set.objects()[0], objects[0]);
    // Idle: the contents are forgotten, the object stays.
    stage.context.finish().unwrap();
    stage.context.write(&stage.source, 0, &[1u32]).unwrap();
    stage.context.invalidate(&stage.source).unwrap();
    assert_eq!(set.generation(), generation + 1);
    stage.to.destroy();
    assert_eq!((set.generation(), set.objects()[2].id), (generation + 2, None));
}

#[test]
fn a_range_without_an_end_follows_the_size_of_its_buffer() {
    let text = "
        @group(0) @binding(0) var<storage, read> source: array<u32>;
        @group(0) @binding(1) var<storage, read> rest: array<u32>;
        @group(0) @binding(2) var<storage, read_write> to: vec2<u32>;
        @compute @workgroup_size(1) fn main() { to = vec2(arrayLength(&source), arrayLength(&rest)); }";
    let context = Context::builder().workers(2).poison(true).build().unwrap();
    let program = context.program_wgsl(text).unwrap();
    let (source, to) = (context.buffer_zeroed(64).unwrap(), context.buffer_zeroed(8).unwrap());
    let set = context.descriptor_set(&program, 0).bind(0, &source).with(1, Bind::storage(source.slice(16..)));
    let set = set.bind(2, &to).build().unwrap();
    let other = context.sibling();
    other.bind_set(0, &set).unwrap();
    let lengths = |context: &Context| {
        context.dispatch(&program).set(0, &set).groups([1, 1, 1]).unwrap();
        context.dispatch(&program).set(0, &set).groups([1, 1, 1]).unwrap();
        context.read::<u32>(&to).unwrap()
    };
    assert_eq!(lengths(&context), [16, 12]);
    for (iteration, (bytes, words)) in (1..).zip([(256, [64, 60]), (48, [12, 8]), (1 << 20, [1 << 18, (1 << 18) - 4])])
    {
        let generation = set.generation();
        context.resize(&source, bytes).unwrap();
        // Both descriptors name the new object.
        assert_eq!((set.generation(), set.objects()[0].generation), (generation + 2, iteration));
        assert_eq!((lengths(&context), lengths(&other)), (words.to_vec(), words.to_vec()));
    }
}

#[test]
fn a_range_that_does_not_fit_any_more_is_an_error_until_it_does() {
    let stage = Stage::new();
    let table = stage.context.buffer(64).label("table").holding(&[7u32; 16]).unwrap();
    let set = stage.context.descriptor_set(&stage.add, 0).label("frame").updatable();
    let set = set.bind(0, &stage.step).bind_range(1, &table, 32..64).bind(2, &stage.to).build().unwrap();
    stage.dispatch(&set);
    assert_eq!(stage.words(&stage.to), [107; 4]);
    stage.context.resize(&table, 48).unwrap();
    assert_eq!(set.objects()[1].id, None);
    let generation = set.generation();
    let wanted = "binding 0.1 (source): descriptor set `frame`: bytes 32..64 of buffer `table` of 48 bytes \
                  (VUID-VkDescriptorBufferInfo-range-00342)";
    for context in [&stage.context, &stage.context.sibling()] {
        let dispatch = || context.dispatch(&stage.add).set(0, &set);
        assert_eq!(dispatch().groups([1, 1, 1]).unwrap_err().to_string(), wanted);
        assert_eq!(dispatch().bind(0, 0, &stage.step).groups([1, 1, 1]).unwrap_err().to_string(), wanted);
        let recorded = context.record(|commands| commands.dispatch(&stage.add).set(0, &set).groups([1, 1, 1]));
        assert_eq!(recorded.unwrap_err().to_string(), wanted);
        // What the dispatch binds itself goes before.
        dispatch().bind(0, 1, &stage.source).groups([1, 1, 1]).unwrap();
        assert_eq!(stage.words(&stage.to), [101; 4]);
    }
    // Another size that is too small changes nothing for the set.
    stage.context.resize(&table, 16).unwrap();
    assert_eq!((set.generation(), set.objects()[1].id), (generation, None));
    stage.context.resize(&table, 128).unwrap();
    stage.context.fill(&table, 9).unwrap();
    stage.dispatch(&set);
    assert_eq!(stage.words(&stage.to), [109; 4]);
    // A set that is written names the part of the new size.
    stage.context.resize(&table, 16).unwrap();
    stage.context.fill(&table, 3).unwrap();
    set.write(1, Bind::storage(&table)).unwrap();
    stage.dispatch(&set);
    assert_eq!(stage.words(&stage.to), [103; 4]);
    // A resource is still destroyed when it was too small before.
    stage.context.resize(&table, 32).unwrap();
    set.write(1, Bind::storage(table.slice(16..))).unwrap();
    stage.context.resize(&table, 16).unwrap();
    assert_eq!(set.objects()[1].id, None);
    table.destroy();
    let error = stage.context.dispatch(&stage.add).set(0, &set).groups([1, 1, 1]).unwrap_err().to_string();
    assert!(
        error.starts_with("binding 0.1 (source): descriptor set `frame`: buffer `table` of 16 bytes is destroyed"),
        "{error}"
    );
}

#[test]
fn what_a_dispatch_may_write_is_valid_from_then_on() {
    let stage = Stage::new();
    let set = stage.set();
    stage.context.bind_set(0, &set).unwrap();
    assert!(stage.to.valid_ranges().is_empty(), "no dispatch uses it");
    stage.context.dispatch(&stage.add).groups([1, 1, 1]).unwrap();
    assert_eq!(stage.to.valid_ranges(), [0..16]);
    // In use and renamed, or idle and forgotten: the next dispatch makes the bytes valid again, repeated or not.
    for finish in [false, true, true, false] {
        if finish {
            stage.context.finish().unwrap();
        }
        stage.context.invalidate(&stage.to).unwrap();
        assert!(stage.to.valid_ranges().is_empty());
        stage.context.dispatch(&stage.add).groups([1, 1, 1]).unwrap();
        assert_eq!(stage.to.valid_ranges(), [0..16]);
    }
    assert_eq!(stage.words(&stage.to), [101; 4]);
    // A refused dispatch leaves no trace.
    stage.context.invalidate(&stage.to).unwrap();
    assert!(stage.context.dispatch(&stage.add).groups([70_000, 1, 1]).is_err());
    assert!(stage.to.valid_ranges().is_empty());
    stage.context.dispatch(&stage.add).groups([1, 1, 1]).unwrap();
    assert_eq!((stage.to.valid_ranges(), stage.words(&stage.to)), (vec![0..16], vec![101; 4]));
}

#[test]
fn hazards_between_sets_slots_and_transfers_get_barriers() {
    let stage = Stage::new();
    let (set, context) = (stage.set(), &stage.context);
    let double = context.program_wgsl(DOUBLE).unwrap();
    stage.dispatch(&set);
    let barriers = stage.counted(|| {
        // Reads what the set's dispatch writes: through a slot, in a copy, and through another program's set.
        context.bind((0, 2), Bind::storage(&stage.to)).unwrap();
        context.dispatch(&double).groups([1, 1, 1]).unwrap();
        context.copy(&stage.to, 0, &stage.source, 0, 16).unwrap();
        stage.dispatch(&set);
        context.dispatch(&double).set(0, &set).groups([1, 1, 1]).unwrap();
    });
    assert_eq!(barriers.barriers, 4);
    assert_eq!(stage.words(&stage.to), [(202 + 100) * 2; 4]);
    // Dispatches that only read the same buffers overlap.
    let [a, b] = [(); 2].map(|()| context.buffer(16).build().unwrap());
    let sets = [&a, &b].map(|to| {
        let set = context.descriptor_set(&stage.add, 0);
        set.bind(0, &stage.step).bind(1, &stage.source).bind(2, to).build().unwrap()
    });
    let none = stage.counted(|| sets.iter().for_each(|set| stage.dispatch(set)));
    assert_eq!(none.barriers, 0);
    let one = stage.counted(|| sets.iter().for_each(|set| stage.dispatch(set)));
    assert_eq!(one.barriers, 1, "both are written again");
    assert_eq!(stage.words(&a), stage.words(&b));
}

#[test]
fn a_set_serves_programs_of_several_layouts_and_groups() {
    let context = Context::new().unwrap();
    let kinds = [BindingKind::UniformBuffer, BindingKind::StorageBuffer, BindingKind::StorageBuffer];
    let layout: Vec<_> = (0..).zip(kinds).map(|(binding, kind)| SetBinding::new(binding, kind)).collect();
    let (step, to) = (context.buffer_from(&[7u32; 4]).unwrap(), context.buffer_zeroed(16).unwrap());
    let set = context.descriptor_set_of(&layout).bind(0, &step).bind(1, &step).bind(2, &to).build().unwrap();
    let [add, double, moved] = [ADD, DOUBLE, &DOUBLE.replace("group(0)", "group(3)").replace("*= 2", "+= 1")]
        .map(|text| context.program_wgsl(text).unwrap());
    for _ in 0..3 {
        context.dispatch(&add).set(0, &set).groups([1, 1, 1]).unwrap();
        context.dispatch(&double).set(0, &set).groups([1, 1, 1]).unwrap();
        context.dispatch(&moved).set(3, &set).groups([1, 1, 1]).unwrap();
    }
    assert_eq!(context.read::<u32>(&to).unwrap(), [29; 4]);
    assert_eq!(context.stats().sets_allocated, 2, "one for each layout");
}

#[test]
fn bindings_of_the_dispatch_go_before_its_set_then_that_of_the_context_then_slots() {
    let stage = Stage::new();
    let context = &stage.context;
    let buffer = |word: u32| context.buffer_from(&[word; 4]).unwrap();
    let of = |word| {
        let set = context.descriptor_set(&stage.add, 0).bind(0, &stage.step);
        set.bind(1, &buffer(word)).bind(2, &stage.to).build().unwrap()
    };
    let result = |expected: u32| {
        assert_eq!(stage.words(&stage.to), [100 + expected; 4]);
    };
    context.bind((0, 0), Bind::uniform(&stage.step)).unwrap();
    context.bind((0, 1), Bind::storage(&buffer(2))).unwrap();
    context.bind((0, 2), Bind::storage(&stage.to)).unwrap();
    context.dispatch(&stage.add).groups([1, 1, 1]).unwrap();
    result(2);
    context.bind_set(0, &of(3)).unwrap();
    context.dispatch(&stage.add).groups([1, 1, 1]).unwrap();
    result(3);
    context.dispatch(&stage.add).set(0, &of(4)).groups([1, 1, 1]).unwrap();
    result(4);
    context.dispatch(&stage.add).set(0, &of(4)).bind(0, 1, &buffer(5)).groups([1, 1, 1]).unwrap();
    result(5);
    context.dispatch(&stage.add).bind(0, 1, &buffer(6)).groups([1, 1, 1]).unwrap();
    result(6);
    context.unbind_set(0).unwrap();
    context.dispatch(&stage.add).groups([1, 1, 1]).unwrap();
    result(2);
}

#[test]
fn one_group_from_a_set_and_one_from_slots() {
    let text = "
        @group(0) @binding(0) var<storage, read> source: array<u32>;
        @group(1) @binding(0) var<storage, read_write> to: array<u32>;
        @compute @workgroup_size(4)
        fn main(@builtin(global_invocation_id) id: vec3<u32>) { to[id.x] += source[id.x]; }";
    let context = Context::builder().workers(1).poison(true).build().unwrap();
    let program = context.program_wgsl(text).unwrap();
    let [a, b] = [1u32, 10].map(|word| context.buffer_from(&[word; 4]).unwrap());
    let to = context.buffer_zeroed(16).unwrap();
    let set = context.descriptor_set(&program, 1).bind(0, &to).build().unwrap();
    let dispatch = || context.dispatch(&program).set(1, &set).groups([1, 1, 1]);
    assert!(dispatch().unwrap_err().to_string().starts_with("binding 0.0 (source): no buffer is bound to it"));
    for source in [&a, &b, &b] {
        context.bind((0, 0), Bind::storage(source)).unwrap();
        dispatch().unwrap();
        dispatch().unwrap();
    }
    context.upload(&b, &[100u32; 4]).unwrap();
    dispatch().unwrap();
    assert_eq!(context.read::<u32>(&to).unwrap(), [142; 4]);
}

#[test]
fn images_samplers_and_arrays_in_a_set() {
    let text = "
        enable wgpu_binding_array;
        @group(0) @binding(0) var parts: binding_array<texture_2d<u32>, 2>;
        @group(0) @binding(1) var drawn: texture_storage_2d<r32uint, write>;
        @compute @workgroup_size(1)
        fn main() {
            let sum = textureLoad(parts[0], vec2(0u), 0) + textureLoad(parts[1], vec2(0u), 0);
            textureStore(drawn, vec2(0u), sum);
        }";
    let context = Context::builder().workers(1).poison(true).build().unwrap();
    let program = context.program_wgsl(text).unwrap();
    let image = |word: u32| {
        let image = context.image(vk::Format::R32_UINT, [2, 2, 1]).levels(2).build().unwrap();
        context.clear_image(&image, ClearColor::Uint([word; 4])).unwrap();
        image
    };
    let (a, b, drawn) = (image(1), image(20), image(0));
    let parts = || [&a, &b].map(|image| Bind::sampled(image.level(0)));
    let set = context.descriptor_set(&program, 0).with_array(0, 0, parts());
    let set = set.with(1, Bind::storage_image(drawn.level(0))).updatable().build().unwrap();
    let drawn_word = || {
        context.dispatch(&program).set(0, &set).groups([1, 1, 1]).unwrap();
        context.read_image::<u32>(&drawn, 0, 0).unwrap()[0]
    };
    assert_eq!(drawn_word(), 21);
    set.write_array(0, 0, [Bind::sampled(b.level(1)), Bind::sampled(b.level(0))]).unwrap();
    assert_eq!(drawn_word(), 40);
    let generation = set.generation();
    set.write_array(0, 0, [Bind::sampled(b.level(1)), Bind::sampled(b.level(0))]).unwrap();
    assert_eq!(set.generation(), generation, "the same again");
    context.dispatch(&program).set(0, &set).groups([1, 1, 1]).unwrap();
    context.clear_image(&b, ClearColor::Uint([3; 4])).unwrap();
    context.invalidate_image(&drawn).unwrap();
    assert_eq!((drawn_word(), drawn.generation()), (6, 1));
}

#[test]
fn no_object_outlives_its_resource_and_batches_for_a_set() {
    let stage = Stage::new();
    let alive = || stage.context.stats().objects_alive();
    let set = stage.set();
    let before = alive();
    let large = stage.context.buffer(1 << 20).zeroed().unwrap();
    set.write(1, Bind::storage(&large)).unwrap();
    stage.dispatch(&set);
    stage.context.finish().unwrap();
    // The set keeps a resource whose handles are dropped.
    drop(large);
    assert_eq!(alive(), before + 1);
    set.write(1, Bind::storage(&stage.source)).unwrap();
    assert_eq!(alive(), before, "dropped with the write, though no dispatch looked");
    // A destroyed resource is released at once, although the set still names it.
    let gone = stage.context.buffer(1 << 20).zeroed().unwrap();
    set.write(1, Bind::storage(&gone)).unwrap();
    stage.dispatch(&set);
    stage.context.finish().unwrap();
    gone.destroy();
    assert_eq!(alive(), before);
    drop((set, stage.context.buffer(16).build().unwrap()));
    assert_eq!(alive(), before);
}

#[test]
fn a_set_without_handles_lives_as_long_as_it_is_bound() {
    let stage = Stage::new();
    let context = &stage.context;
    let data = context.buffer_from(&[1u32; 4]).unwrap();
    let double = context.program_wgsl(DOUBLE).unwrap();
    context.bind_set(0, &context.descriptor_set(&double, 0).bind(2, &data).build().unwrap()).unwrap();
    context.dispatch(&double).groups([1, 1, 1]).unwrap();
    context.dispatch(&double).groups([1, 1, 1]).unwrap();
    assert_eq!(stage.words(&data), [4; 4]);
    let before = context.stats().objects_alive();
    drop(data);
    assert_eq!(context.stats().objects_alive(), before);
    context.unbind_set(0).unwrap();
    context.finish().unwrap();
    assert_eq!(context.stats().objects_alive(), before - 1);
}

/// Two contexts dispatch one set, while a third thread writes it and renames what it names: each dispatch finds all
/// descriptors of one version.
#[test]
fn threads_share_and_rewrite_a_set() {
    let context = Context::builder().workers(2).poison(true).build().unwrap();
    // Both elements are written in one call, so that their sum is 1000 at any time.
    let text = "
        enable wgpu_binding_array; struct Words { w: array<u32> }
        @group(0) @binding(0) var<storage, read> parts: binding_array<Words, 2>;
        @group(0) @binding(1) var<storage, read> both: array<u32>;
        @group(1) @binding(0) var<storage, read_write> to: array<u32>;
        @compute @workgroup_size(64)
        fn main(@builtin(local_invocation_index) i: u32) { to[i] = parts[0].w[i] + parts[1].w[i] + both[i]; }";
    let program = context.program_wgsl(text).unwrap();
    let both = context.buffer_from(&[0u32; 64]).unwrap();
    let buffers: Vec<_> =
        (0..8u32).map(|word| [word, 1000 - word].map(|word| context.buffer_from(&[word; 64]).unwrap())).collect();
    let parts = |at: usize| [0, 1].map(|part: usize| Bind::storage(&buffers[at][part]));
    let set = context.descriptor_set(&program, 0).with_array(0, 0, parts(0)).bind(1, &both).updatable();
    let set = set.build().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (context, set, program) = (context.sibling(), set.clone(), &program);
            scope.spawn(move || {
                for iteration in 0..400 {
                    let to = context.buffer(256).build().unwrap();
                    context.dispatch(program).set(0, &set).bind(1, 0, &to).groups([1, 1, 1]).unwrap();
                    if iteration % 7 == 0 {
                        let words = context.read::<u32>(&to).unwrap();
                        let is_one_version = |word: u32| word == words[0] && word.is_multiple_of(1000);
                        assert!(words.iter().all(|word| is_one_version(*word)), "{words:?}");
                    }
                }
            });
        }
        for iteration in 0..400usize {
            set.write_array(0, 0, parts(iteration % 8)).unwrap();
            context.upload(&both, &[iteration as u32 % 3 * 1000; 64]).unwrap();
        }
    });
    assert!(context.stats().sets_allocated + context.stats().sets_rewritten > 2);
    drop((set, buffers, both));
    context.finish().unwrap();
    assert_eq!(context.stats().objects_alive(), 0);
}
