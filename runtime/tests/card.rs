//! The project's card, clause by clause, through the public API: what a runtime exposes, what an invalidation does,
//! what the executor runs, and what people use it for.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use spelter::{Action, Bind, Context, Error, Event, SlotKind, testing, vk};

/// Doubles the words of a buffer.
const DOUBLE: &str = "
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) { if id.x < arrayLength(&data) { data[id.x] *= 2u; } }";

fn context() -> Context {
    Context::builder().workers(4).poison(true).profile(true).build().unwrap()
}

#[test]
fn it_exposes_buffers_images_descriptor_sets_and_command_buffers() -> Result<(), Error> {
    let context = context();
    let program = context.program_wgsl(
        "@group(0) @binding(0) var picture: texture_2d<u32>;
         @group(0) @binding(1) var<storage, read_write> sums: array<u32>;
         @compute @workgroup_size(1)
         fn main(@builtin(workgroup_id) id: vec3<u32>) { sums[id.x] += textureLoad(picture, id.xy, 0).r; }",
    )?;
    let (picture, sums) = (context.image(vk::Format::R32_UINT, [4, 1, 1]).build()?, context.buffer_zeroed(16)?);
    let set = context.descriptor_set(&program, 0).with(0, Bind::sampled(&picture)).bind(1, &sums).build()?;
    let commands = context.record(|commands| commands.dispatch(&program).set(0, &set).groups([4, 1, 1]))?;
    for iteration in [1u32, 10] {
        context.write_image(&picture, 0, 0, &[iteration, 2 * iteration, 3 * iteration, 4 * iteration])?;
        context.submit(&commands)?;
    }
    assert_eq!(context.read::<u32>(&sums)?, [11, 22, 33, 44]);
    Ok(())
}

/// A resource keeps its identity, and gets another object while the old one is in use.
#[test]
fn an_invalidation_replaces_the_storage_of_a_buffer_in_use() -> Result<(), Error> {
    let context = context();
    let program = context.program_wgsl(DOUBLE)?;
    let data = context.buffer_from(&[1u32, 2, 3, 4])?;
    let (id, before) = (data.id(), data.object()?.id);
    let hold = testing::hold(&context)?;
    context.dispatch(&program).bind(0, 0, &data).groups([1, 1, 1])?;
    context.flush()?;
    assert!(data.is_busy() && hold.is_held());
    let action = context.invalidate(&data)?.action;
    let after = data.object()?.id;
    assert_eq!((action, data.id()), (Action::Replaced { old: before, new: after }, id));
    assert!(hold.is_held(), "nothing waited");
    hold.release();
    context.upload(&data, &[5u32, 6, 7, 8])?;
    assert_eq!(context.read::<u32>(&data)?, [5, 6, 7, 8]);
    Ok(())
}

#[test]
fn it_rebinds_storage_buffers_sampler_views_and_image_views() -> Result<(), Error> {
    let context = context();
    let data = context.buffer_from(&[1u32; 64])?;
    let picture = context.image(vk::Format::R32_UINT, [4, 4, 1]).build()?;
    context.write_image(&picture, 0, 0, &[1u32; 16])?;
    context.bind((0, 0), Bind::storage(&data))?;
    context.bind((0, 1), Bind::sampled(&picture))?;
    context.bind((0, 2), Bind::storage_image(&picture))?;
    context.record_events(true);
    let hold = testing::hold(&context)?;
    context.fill(&data, 2)?;
    context.clear_image(&picture, spelter::ClearColor::Uint([2; 4]))?;
    context.flush()?;
    assert!(
        context.invalidate(&data)?.action.is_replaced() && context.invalidate_image(&picture)?.action.is_replaced()
    );
    drop(hold);
    let kinds: Vec<SlotKind> = context
        .events()
        .into_iter()
        .filter_map(|event| if let Event::Rebound { kind, .. } = event { Some(kind) } else { None })
        .collect();
    for kind in [SlotKind::StorageBuffer, SlotKind::SamplerView, SlotKind::StorageImage] {
        assert_eq!(kinds.iter().filter(|other| **other == kind).count(), 1, "{kinds:?}");
    }
    Ok(())
}

/// Workgroups on several workers, memory that a workgroup shares, and atomics of both scopes.
#[test]
fn a_multithreaded_executor_runs_workgroups_with_shared_memory_and_scoped_atomics() -> Result<(), Error> {
    let context = context();
    let program = context.program_wgsl(
        "@group(0) @binding(0) var<storage, read_write> total: atomic<u32>;
         @group(0) @binding(1) var<storage, read_write> sums: array<u32>;
         var<workgroup> sum: atomic<u32>;
         var<workgroup> reversed: array<u32, 64>;
         @compute @workgroup_size(64)
         fn main(@builtin(local_invocation_index) at: u32, @builtin(workgroup_id) group: vec3<u32>) {
             reversed[63u - at] = at;
             workgroupBarrier();
             atomicAdd(&sum, reversed[at] * group.x);
             workgroupBarrier();
             if at == 0u {
                 sums[group.x] = atomicLoad(&sum);
                 atomicAdd(&total, sums[group.x]);
             }
         }",
    )?;
    let (total, sums) = (context.buffer_zeroed(4)?, context.buffer_zeroed(4 * 1000)?);
    context.dispatch(&program).bind(0, 0, &total).bind(0, 1, &sums).groups([1000, 1, 1])?;
    let expected: Vec<u32> = (0..1000).map(|group| 2016 * group).collect();
    assert_eq!(context.read::<u32>(&sums)?, expected);
    assert_eq!(context.read::<u32>(&total)?, [expected.iter().sum::<u32>()]);
    Ok(())
}

#[test]
fn people_profile_the_throughput_of_dispatches() -> Result<(), Error> {
    let context = context();
    let program = context.program_wgsl(DOUBLE)?;
    let data = context.buffer_zeroed(4 << 10)?;
    for _ in 0..100 {
        context.dispatch(&program).bind(0, 0, &data).groups([16, 1, 1])?;
    }
    context.finish()?;
    let report = context.profile().unwrap();
    let time = report.programs.iter().find(|time| time.name.contains("main")).unwrap();
    assert_eq!((time.calls, time.workgroups), (100, 1600));
    assert!(time.shortest <= time.longest && time.longest <= time.elapsed);
    Ok(())
}
