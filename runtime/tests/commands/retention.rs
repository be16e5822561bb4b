//! What a command buffer keeps: its resources, but no storage that they have lost.

use crate::commands::{ADD, adds, context, counted};

#[test]
fn resources_live_as_long_as_a_command_buffer_names_them() {
    let context = context();
    let program = context.program_wgsl(ADD).unwrap();
    let (step, to) = (context.buffer_from(&[2u32]).unwrap(), context.buffer_zeroed(256).unwrap());
    let commands = adds(&context, &program, [&step, &to], 1);
    drop(step);
    context.submit(&commands).unwrap();
    assert_eq!(context.read::<u32>(&to).unwrap(), [2; 64]);
    drop(to);
    context.submit(&commands).unwrap();
    assert_eq!(context.stats().objects_alive(), 2);
    drop(commands);
    context.finish().unwrap();
    assert_eq!(context.stats().objects_alive(), 0);
}

#[test]
fn a_destroyed_resource_is_freed_at_once_and_the_submission_names_it() {
    let context = context();
    let program = context.program_wgsl(ADD).unwrap();
    let step = context.buffer(4).label("step").zeroed().unwrap();
    let to = context.buffer_zeroed(256).unwrap();
    let commands = adds(&context, &program, [&step, &to], 1);
    context.submit(&commands).unwrap().wait().unwrap();
    step.destroy();
    assert_eq!(context.stats().objects_alive(), 1, "the command buffer keeps no storage of a destroyed buffer");
    let error = context.submit(&commands).unwrap_err().to_string();
    let at = "submit: a command buffer: command 0, dispatch";
    assert_eq!(error, format!("{at}: buffer `step` of 4 bytes is destroyed (rule: a destroyed resource is not used)"));
    assert_eq!(context.read::<u32>(&to).unwrap(), [0; 64]);
}

#[test]
fn command_buffers_that_wait_keep_no_replaced_storage() {
    let context = context();
    let program = context.program_wgsl(ADD).unwrap();
    let (step, to) = (context.buffer_from(&[1u32]).unwrap(), context.buffer_zeroed(256).unwrap());
    // Each is submitted once, then waits.
    let all: Vec<_> = (0..20)
        .map(|iteration: u32| {
            let commands = adds(&context, &program, [&step, &to], 2);
            context.submit(&commands).unwrap();
            context.copy(&step, 0, &to, 0, 4).unwrap(); // in use
            context.upload(&step, &[iteration]).unwrap();
            commands
        })
        .collect();
    assert_eq!(context.stats().renames, 20);
    context.finish().unwrap();
    assert_eq!(context.stats().objects_alive(), 2);
    // All of them find the present storage.
    context.fill(&to, 0).unwrap();
    let (stats, ()) = counted(&context, || all.iter().for_each(|commands| drop(context.submit(commands).unwrap())));
    assert_eq!((stats.commands_rerecorded, stats.commands_reused), (40, 0));
    assert_eq!(context.read::<u32>(&to).unwrap(), [20 * 2 * 19; 64]);
}

/// Replaced storage that only command buffers could keep must not fill the memory, nor make renames wait.
#[test]
fn a_stream_of_renames_reuses_storage() {
    let context = context();
    let program = context.program_wgsl(ADD).unwrap();
    let (step, to) = (context.buffer_from(&[1u32; 1 << 12]).unwrap(), context.buffer_zeroed(256).unwrap());
    let commands = adds(&context, &program, [&step, &to], 4);
    let (stats, ()) = counted(&context, || {
        for _ in 0..300 {
            context.upload(&step, &[1u32; 1 << 12]).unwrap();
            context.submit(&commands).unwrap();
        }
    });
    assert_eq!(context.read::<u32>(&to).unwrap(), [1200; 64]);
    assert_eq!(stats.commands_rerecorded, stats.renames * 4);
    context.finish().unwrap();
    assert_eq!(context.stats().objects_alive(), 2);
}

#[test]
fn a_resource_that_is_renamed_while_it_is_recorded_is_found() {
    let context = context();
    let program = context.program_wgsl(ADD).unwrap();
    let (step, to) = (context.buffer_from(&[1u32]).unwrap(), context.buffer_zeroed(256).unwrap());
    let commands = context
        .record(|commands| {
            for value in [1u32, 10, 100] {
                context.copy(&step, 0, &to, 0, 4)?; // in use
                context.upload(&step, &[value])?;
                commands.dispatch(&program).bind(0, 0, &step).bind(0, 1, &to).groups([1, 1, 1])?;
            }
            Ok(())
        })
        .unwrap();
    context.fill(&to, 0).unwrap();
    context.submit(&commands).unwrap();
    assert_eq!((step.generation(), context.read::<u32>(&to).unwrap()), (3, vec![300; 64]));
    context.finish().unwrap();
    assert_eq!(context.stats().objects_alive(), 2);
}

#[test]
fn a_mapping_forbids_the_submission_until_it_ends() {
    let context = context();
    let program = context.program_wgsl(ADD).unwrap();
    let step = context.buffer(4).label("step").holding(&[4u32]).unwrap();
    let to = context.buffer_zeroed(256).unwrap();
    let commands = adds(&context, &program, [&step, &to], 1);
    let map = context.map(&step, spelter::MapFlags::READ).unwrap();
    let error = context.submit(&commands).unwrap_err().to_string();
    assert!(
        error.starts_with("submit: a command buffer: command 0, dispatch: buffer `step` of 4 bytes is mapped (rule: "),
        "{error}"
    );
    map.unmap().unwrap();
    context.submit(&commands).unwrap();
    assert_eq!(context.read::<u32>(&to).unwrap(), [4; 64]);
}

#[test]
fn a_submission_and_a_destruction_by_two_threads_leave_no_storage() {
    let context = context();
    let program = context.program_wgsl(ADD).unwrap();
    let to = context.buffer_zeroed(256).unwrap();
    for _ in 0..200 {
        let (step, other) = (context.buffer_from(&[0u32]).unwrap(), context.buffer_from(&[0u32]).unwrap());
        let commands = adds(&context, &program, [&step, &to], 1);
        // The submission records again.
        let both = context.record(|recorder| {
            recorder.copy(&step, 0, &other, 0, 4)?;
            recorder.execute(&commands)
        });
        let both = both.unwrap();
        context.submit(&both).unwrap();
        context.upload(&step, &[0u32]).unwrap();
        std::thread::scope(|scope| {
            let (sibling, both) = (context.sibling(), both.clone());
            scope.spawn(move || while sibling.submit(&both).is_ok() {});
            [&step, &other].into_iter().for_each(spelter::Buffer::destroy);
        });
        context.finish().unwrap();
        assert_eq!(context.stats().objects_alive(), 1, "the command buffers keep storage of destroyed buffers");
    }
}
