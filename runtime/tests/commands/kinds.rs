//! Each kind of command, timestamps and groups.

use spelter::{Bind, ClearColor, Context, Error, testing, vk};

use crate::commands::{ADD, context};

const LOOK: &str = "
@group(0) @binding(0) var source: texture_2d<u32>;
@group(0) @binding(1) var target_image: texture_storage_2d<r32uint, write>;
@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    textureStore(target_image, id.xy, textureLoad(source, id.xy, 0) + vec4(1u));
}";

const PUSH: &str = "
var<immediate> factor: u32;
@group(0) @binding(0) var<storage, read_write> to: array<u32>;
@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) { to[id.x] = to[id.x] * factor; }";

#[test]
fn dispatches_have_their_own_bindings_and_push_constants() {
    let context = context();
    let program = context.program_wgsl(PUSH).unwrap();
    let (a, b) = (context.buffer_from(&[1u32; 8]).unwrap(), context.buffer_from(&[1u32; 8]).unwrap());
    let commands = context.record(|commands| {
        for factor in [2u32, 3] {
            commands.dispatch(&program).bind(0, 0, &a).push(&factor).invocations([8, 1, 1])?;
        }
        commands.dispatch(&program).bind_range(0, 0, &b, 16..32).push(&5u32).groups([1, 1, 1])
    });
    let commands = commands.unwrap();
    // What is in the slots of the context does not matter.
    context.bind((0, 0), Bind::storage(&b)).unwrap();
    context.submit(&commands).unwrap();
    assert_eq!(context.read::<u32>(&a).unwrap(), [6; 8]);
    assert_eq!(context.read::<u32>(&b).unwrap(), [1, 1, 1, 1, 5, 5, 5, 5]);
}

#[test]
fn indirect_dispatches_read_their_counts_when_they_run() {
    let context = context();
    let program = context.program_wgsl(PUSH).unwrap();
    let data = context.buffer_from(&[1u32; 8]).unwrap();
    let counts = context.buffer_zeroed(16).unwrap();
    let commands = context.record(|commands| {
        commands.dispatch(&program).bind(0, 0, &data).push(&3u32).indirect(&counts, 4)?;
        // The next submission runs both workgroups.
        commands.fill_range(&counts, 4..8, 2)
    });
    let commands = commands.unwrap();
    context.write(&counts, 0, &[9u32, 1, 1, 1]).unwrap();
    context.submit(&commands).unwrap();
    assert_eq!(context.read::<u32>(&data).unwrap(), [3, 3, 3, 3, 1, 1, 1, 1]);
    context.submit(&commands).unwrap();
    assert_eq!(context.read::<u32>(&data).unwrap(), [9, 9, 9, 9, 3, 3, 3, 3]);
    // The buffer of the counts is a resource like any other.
    context.copy(&counts, 0, &data, 0, 4).unwrap(); // in use
    context.upload(&counts, &[0u32, 1, 1, 1]).unwrap();
    context.fill(&data, 1).unwrap();
    context.submit(&commands).unwrap();
    assert_eq!((counts.generation(), context.read::<u32>(&data).unwrap()), (1, vec![3, 3, 3, 3, 1, 1, 1, 1]));
}

#[test]
fn contexts_dispatch_indirectly_too() {
    let context = context();
    let program = context.program_wgsl(PUSH).unwrap();
    let data = context.buffer_from(&[1u32; 8]).unwrap();
    let counts = context.buffer_zeroed(12).unwrap();
    context.bind((0, 0), Bind::storage(&data)).unwrap();
    for groups in [1u32, 2, 0] {
        context.write(&counts, 0, &[groups, 1, 1]).unwrap();
        context.dispatch(&program).push(&3u32).indirect(&counts, 0).unwrap();
    }
    assert_eq!(context.read::<u32>(&data).unwrap(), [9, 9, 9, 9, 3, 3, 3, 3]);
}

#[test]
fn images_are_cleared_copied_and_dispatched_on() -> Result<(), Error> {
    let context = context();
    let program = context.program_wgsl(LOOK)?;
    let [a, b] = [(), ()].map(|()| context.image(vk::Format::R32_UINT, [4, 1, 1]).layers(2).build().unwrap());
    let flat =
        |image: &spelter::Image| Bind::storage_image(image.all().layers(0..=0).as_type(vk::ImageViewType::TYPE_2D));
    let sampled = Bind::sampled(a.all().layers(1..=1).as_type(vk::ImageViewType::TYPE_2D));
    let commands = context.record(|commands| {
        commands.clear_image(&a, ClearColor::Uint([6; 4]))?;
        commands.copy_image((&b, 0, 1), (&a, 0, 1))?;
        commands.dispatch(&program).with((0, 0), sampled.clone()).with((0, 1), flat(&b)).groups([1, 1, 1])
    })?;
    for iteration in 0..4u32 {
        context.write_image(&b, 0, 1, &[iteration, 1, 2, 3])?;
        context.submit(&commands)?;
        assert_eq!(context.read_image::<u32>(&a, 0, 0)?, [6; 4]);
        assert_eq!(context.read_image::<u32>(&b, 0, 0)?, [iteration + 1, 2, 3, 4]);
        let hold = testing::hold(&context)?;
        context.submit(&commands)?;
        assert!(context.invalidate_image(&a)?.action.is_replaced(), "in use");
        assert!(hold.is_held());
    }
    assert_eq!(a.generation(), 4);
    Ok(())
}

#[test]
fn each_submission_has_its_own_timestamps() {
    let context = context();
    let program = context.program_wgsl(ADD).unwrap();
    let (step, to) = (context.buffer_from(&[1u32]).unwrap(), context.buffer_zeroed(1 << 16).unwrap());
    let child = context.record(|commands| {
        commands.timestamp("child");
        commands.dispatch(&program).bind(0, 0, &step).bind(0, 1, &to).groups([256, 1, 1])
    });
    let child = child.unwrap();
    let commands = context.record(|commands| {
        commands.timestamp("begin");
        commands.execute(&child)?;
        commands.execute(&child)?;
        commands.timestamp("end");
        Ok(())
    });
    let commands = commands.unwrap();
    let fences: Vec<_> = (0..3).map(|_| context.submit(&commands).unwrap()).collect();
    let mut last = 0;
    for fence in fences {
        let times = fence.timestamps().unwrap();
        let labels: Vec<_> = times.iter().map(|time| &*time.label).collect();
        assert_eq!(labels, ["begin", "child", "child", "end"]);
        for time in times {
            assert!(time.nanoseconds >= last, "{last} after {time:?}");
            last = time.nanoseconds;
        }
    }
    assert_eq!(context.read::<u32>(&to).unwrap(), [6; 1 << 14]);
}

#[test]
fn groups_name_commands_in_timelines() {
    let context = Context::builder().workers(1).trace(true).build().unwrap();
    let program = context.program_wgsl(ADD).unwrap();
    let (step, to) = (context.buffer_from(&[1u32]).unwrap(), context.buffer_zeroed(1 << 12).unwrap());
    let commands = context.record(|commands| {
        commands.group("frame", |commands| {
            commands.group("clear", |commands| commands.fill(&to, 1))?;
            commands.dispatch(&program).bind(0, 0, &step).bind(0, 1, &to).groups([16, 1, 1])
        })?;
        commands.dispatch(&program).bind(0, 0, &step).bind(0, 1, &to).groups([16, 1, 1])
    });
    let commands = commands.unwrap();
    context.submit(&commands).unwrap().wait().unwrap();
    let mut text = Vec::new();
    context.write_trace(&mut text).unwrap();
    let trace: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let names: Vec<_> = trace["traceEvents"].as_array().unwrap().iter().filter_map(|e| e["name"].as_str()).collect();
    for wanted in ["frame/clear: ", "frame: main", "main"] {
        assert!(names.iter().any(|name| name.starts_with(wanted)), "no {wanted:?} in {names:?}");
    }
}

#[test]
fn a_command_that_does_nothing_is_only_checked() {
    let context = context();
    let buffer = context.buffer_zeroed(8).unwrap();
    let commands = context.record(|commands| {
        commands.copy(&buffer, 0, &buffer, 4, 0)?;
        commands.fill_range(&buffer, 4..4, 1)
    });
    assert_eq!(commands.unwrap().command_count(), 0);
    buffer.destroy();
    assert!(context.record(|commands| commands.fill_range(&buffer, 4..4, 1)).is_err());
}
