//! Command buffers as a program uses them: recorded once, submitted often, between other commands, renames and
//! destruction.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]
#![expect(clippy::single_range_in_vec_init, reason = "lists of one range are meant")]

mod follow;
mod kinds;
mod lend;
mod nesting;
mod refused;
mod resize;
mod retention;
mod texels;

use spelter::{Buffer, CommandBuffer, Context, Program, Stats};

/// Adds a word to all words of a buffer.
const ADD: &str = "
@group(0) @binding(0) var<storage, read> step: u32;
@group(0) @binding(1) var<storage, read_write> to: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) { if id.x < arrayLength(&to) { to[id.x] += step; } }";

fn context() -> Context {
    Context::builder().workers(2).poison(true).build().unwrap()
}

/// A command buffer of `count` dispatches that add `step` to `to`.
fn adds(context: &Context, program: &Program, [step, to]: [&Buffer; 2], count: usize) -> CommandBuffer {
    let groups = [(to.size() / 256).max(1) as u32, 1, 1];
    let add = |commands: &mut spelter::Recorder| {
        (0..count).try_for_each(|_| commands.dispatch(program).bind(0, 0, step).bind(0, 1, to).groups(groups))
    };
    context.record(add).unwrap()
}

/// What the counters of command buffers did meanwhile.
fn counted<T>(context: &Context, run: impl FnOnce() -> T) -> (Stats, T) {
    let before = context.stats();
    let result = run();
    (context.stats().since(&before), result)
}

#[test]
fn each_submission_runs_all_commands_in_order() {
    let context = context();
    let program = context.program_wgsl(ADD).unwrap();
    let (step, to) = (context.buffer_from(&[3u32]).unwrap(), context.buffer_zeroed(1 << 12).unwrap());
    let commands = adds(&context, &program, [&step, &to], 10);
    assert_eq!(context.read_range::<u32>(&to, 0..4).unwrap(), [0], "recording runs nothing");
    for _ in 0..20 {
        context.submit(&commands).unwrap();
    }
    assert_eq!(context.read::<u32>(&to).unwrap(), [600; 1 << 10]);
}

#[test]
fn a_recorded_dispatch_takes_its_bindings_from_a_set() {
    let context = context();
    let program = context.program_wgsl(ADD).unwrap();
    let [one, two] = [1u32, 20].map(|step| context.buffer_from(&[step]).unwrap());
    let to = context.buffer_zeroed(256).unwrap();
    let set = context.descriptor_set(&program, 0).bind(0, &one).bind(1, &to).updatable().build().unwrap();
    let commands = context
        .record(|commands| {
            commands.dispatch(&program).set(0, &set).groups([1, 1, 1])?;
            commands.dispatch(&program).bind(0, 0, &two).set(0, &set).groups([1, 1, 1])
        })
        .unwrap();
    context.submit(&commands).unwrap();
    context.upload(&one, &[5u32]).unwrap(); // in use: new storage, which the next submission finds
    context.submit(&commands).unwrap();
    assert_eq!(context.read::<u32>(&to).unwrap(), [1 + 20 + 5 + 20; 64]);
    let empty = context.descriptor_set(&program, 0).bind(0, &one).updatable().build();
    let refused = empty.and_then(|set| {
        context.record(|commands| commands.dispatch(&program).set(0, &set).groups([1, 1, 1])).map(|_| ())
    });
    assert!(refused.is_err(), "binding 1 of the set was never written");
}

#[test]
fn an_unchanged_command_buffer_is_not_recorded_again() {
    let context = context();
    let program = context.program_wgsl(ADD).unwrap();
    let (step, to) = (context.buffer_from(&[1u32]).unwrap(), context.buffer_zeroed(256).unwrap());
    let commands = adds(&context, &program, [&step, &to], 1000);
    let (stats, ()) = counted(&context, || {
        for _ in 0..5 {
            context.submit(&commands).unwrap().wait().unwrap();
        }
    });
    assert_eq!((stats.commands_reused, stats.commands_rerecorded, stats.dispatches), (5000, 0, 0));
    assert_eq!(context.read::<u32>(&to).unwrap(), [5000; 64]);
}

#[test]
fn a_rename_between_submissions_is_seen_and_costs_only_the_segments_that_name_it() {
    let context = context();
    let program = context.program_wgsl(ADD).unwrap();
    let (one, other) = (context.buffer_from(&[1u32]).unwrap(), context.buffer_from(&[1u32]).unwrap());
    let to = context.buffer_zeroed(256).unwrap();
    let commands = context
        .record(|commands| {
            for number in 0..1000 {
                let step = if number == 500 { &other } else { &one };
                commands.dispatch(&program).bind(0, 0, step).bind(0, 1, &to).groups([1, 1, 1])?;
            }
            Ok(())
        })
        .unwrap();
    context.submit(&commands).unwrap();
    let (stats, ()) = counted(&context, || {
        context.copy(&other, 0, &to, 0, 4).unwrap(); // in use
        context.upload(&other, &[101u32]).unwrap();
        context.fill(&to, 0).unwrap();
        context.submit(&commands).unwrap();
    });
    assert_eq!(stats.renames, 1);
    assert_eq!(context.read::<u32>(&to).unwrap(), [1100; 64]);
    assert_eq!(stats.commands_rerecorded + stats.commands_reused, 1000);
    // Every command needs a barrier, so segments are as short as they can be.
    assert_eq!(stats.commands_rerecorded, 64);
    let (stats, _) = counted(&context, || context.submit(&commands).unwrap());
    assert_eq!((stats.commands_rerecorded, stats.commands_reused), (0, 1000));
}

#[test]
fn commands_of_the_context_come_before_and_after_in_order() {
    let context = context();
    let program = context.program_wgsl(ADD).unwrap();
    let (step, to) = (context.buffer_from(&[5u32]).unwrap(), context.buffer_zeroed(1 << 14).unwrap());
    let copy = context.buffer(1 << 14).build().unwrap();
    let commands = adds(&context, &program, [&step, &to], 1);
    for iteration in 0..50u32 {
        context.fill(&to, iteration).unwrap();
        context.submit(&commands).unwrap();
        context.copy(&to, 0, &copy, 0, 1 << 14).unwrap();
        context.submit(&commands).unwrap();
        assert_eq!(context.read::<u32>(&copy).unwrap(), [iteration + 5; 1 << 12]);
        assert_eq!(context.read::<u32>(&to).unwrap(), [iteration + 10; 1 << 12]);
    }
}

/// The first submission writes bytes that hold no data, the next one overwrites data that an earlier command reads.
#[test]
fn barriers_do_not_rely_on_bytes_without_data() {
    let context = context();
    let (from, to) = (context.buffer(1 << 16).build().unwrap(), context.buffer(1 << 16).build().unwrap());
    let (stats, commands) = counted(&context, || {
        let commands = context.record(|commands| {
            commands.copy(&from, 0, &to, 0, 1 << 16)?;
            commands.fill(&from, 7)
        });
        commands.unwrap()
    });
    assert_eq!(stats.barriers, 1);
    assert!(from.valid_ranges().is_empty(), "nothing is written until it is submitted");
    context.submit(&commands).unwrap();
    assert_eq!((from.valid_ranges().len(), to.valid_ranges().len()), (1, 1));
    context.submit(&commands).unwrap();
    assert_eq!(context.read::<u32>(&to).unwrap(), [7; 1 << 14]);
    // What was forgotten is written again, and counts as valid again.
    context.finish().unwrap();
    context.invalidate(&from).unwrap();
    assert!(from.valid_ranges().is_empty());
    context.submit(&commands).unwrap();
    assert_eq!(from.valid_ranges(), [0..1 << 16]);
    assert_eq!(context.read::<u32>(&from).unwrap(), [7; 1 << 14]);
}

#[test]
fn commands_that_do_not_depend_on_each_other_need_no_barrier() {
    let context = context();
    let buffers: Vec<_> = (0..100).map(|_| context.buffer(64).build().unwrap()).collect();
    let (stats, commands) = counted(&context, || {
        context.record(|commands| buffers.iter().try_for_each(|buffer| commands.fill(buffer, 1))).unwrap()
    });
    assert_eq!((stats.barriers, stats.transfers, commands.command_count()), (0, 100, 100));
    context.submit(&commands).unwrap();
    for buffer in &buffers {
        assert_eq!(context.read::<u32>(buffer).unwrap(), [1; 16]);
    }
}

#[test]
fn threads_submit_one_command_buffer_from_their_own_contexts() {
    let context = context();
    let program = context.program_wgsl(ADD).unwrap();
    let (step, to) = (context.buffer_from(&[1u32]).unwrap(), context.buffer_zeroed(1 << 10).unwrap());
    let commands = adds(&context, &program, [&step, &to], 3);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (sibling, commands) = (context.sibling(), commands.clone());
            scope.spawn(move || (0..25).for_each(|_| drop(sibling.submit(&commands).unwrap())));
        }
    });
    assert_eq!(context.read::<u32>(&to).unwrap(), [300; 1 << 8]);
}

#[test]
fn threads_submit_while_another_one_renames() {
    let context = context();
    let program = context.program_wgsl(ADD).unwrap();
    let (step, to) = (context.buffer_from(&[1u32]).unwrap(), context.buffer_zeroed(1 << 10).unwrap());
    let commands = adds(&context, &program, [&step, &to], 2);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (sibling, commands) = (context.sibling(), commands.clone());
            scope.spawn(move || (0..100).for_each(|_| drop(sibling.submit(&commands).unwrap())));
        }
        let (sibling, step) = (context.sibling(), step.clone());
        scope.spawn(move || (0..200).for_each(|_| sibling.upload(&step, &[1u32]).map(drop).unwrap()));
    });
    assert_eq!(context.read::<u32>(&to).unwrap(), [400; 1 << 8]);
    drop((commands, step, to));
    context.finish().unwrap();
    assert_eq!(context.stats().objects_alive(), 0);
}

#[test]
fn an_empty_command_buffer_submits_what_was_recorded_before() {
    let context = context();
    let buffer = context.buffer_zeroed(16).unwrap();
    let empty = context.record(|_| Ok(())).unwrap();
    assert_eq!(empty.command_count(), 0);
    context.fill(&buffer, 4).unwrap();
    let fence = context.submit(&empty).unwrap();
    fence.wait().unwrap();
    assert!(fence.is_done());
    assert_eq!(context.stats().batches_submitted, 1);
    assert_eq!(context.read::<u32>(&buffer).unwrap(), [4; 4]);
}
