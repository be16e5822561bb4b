//! Commands that a recorder refuses, and commands that do nothing: neither leaves a trace in the command buffer, in its
//! resources or in their order.

use super::{ADD, context, counted};
use spelter::{Bind, CommandBuffer, Context, Image, Program, Recorder, vk};

/// Records a command on a buffer that nothing else names, then a fill of another buffer. `refused` is whether the
/// command is refused. The buffer is destroyed before the submission.
fn submits_without(
    refused: bool,
    command: impl Fn(&mut Recorder, &Program, [&spelter::Buffer; 2]) -> Result<(), spelter::Error>,
) {
    let context = context();
    let program = context.program_wgsl(ADD).unwrap();
    let (own, to) = (context.buffer(64).label("own").zeroed().unwrap(), context.buffer_zeroed(256).unwrap());
    let record = |commands: &mut Recorder| {
        assert_eq!(command(commands, &program, [&own, &to]).is_err(), refused);
        commands.fill(&to, 5)
    };
    let commands = context.record(record).unwrap();
    assert_eq!(commands.command_count(), 1);
    own.destroy();
    context.submit(&commands).unwrap();
    assert_eq!(context.read::<u32>(&to).unwrap(), [5; 64]);
}

#[test]
fn a_copy_of_no_bytes_names_no_buffer() {
    submits_without(false, |commands, _, [own, to]| commands.copy(own, 0, to, 0, 0));
}

#[test]
fn a_fill_of_no_bytes_names_no_buffer() {
    submits_without(false, |commands, _, [own, _]| commands.fill_range(own, 8..8, 1));
}

#[test]
fn a_dispatch_of_no_workgroups_names_no_buffer() {
    submits_without(false, |commands, program, [own, to]| {
        commands.dispatch(program).bind(0, 0, own).bind(0, 1, to).groups([1, 0, 1])
    });
}

#[test]
fn a_refused_dispatch_names_no_buffer() {
    submits_without(true, |commands, program, [own, to]| {
        commands.dispatch(program).bind(0, 0, own).bind(0, 1, to).groups([70_000, 1, 1])
    });
    submits_without(true, |commands, program, [own, _]| commands.dispatch(program).bind(0, 0, own).groups([1, 1, 1]));
}

#[test]
fn an_indirect_dispatch_of_a_misaligned_offset_names_no_buffer() {
    submits_without(true, |commands, program, [own, to]| {
        commands.dispatch(program).bind(0, 0, own).bind(0, 1, to).indirect(own, 2)
    });
}

/// An image of one texel of 4 bytes. The driver refuses copies at other offsets than multiples of 4.
fn texel(context: &Context) -> Image {
    context.image(vk::Format::R32_UINT, [1, 1, 1]).build().unwrap()
}

/// Records, `refused` times, commands that are refused on `large`, then a fill.
fn after_refusals(context: &Context, large: &spelter::Buffer, refused: usize) -> CommandBuffer {
    let program = context.program_wgsl(ADD).unwrap();
    let (step, to) = (context.buffer_from(&[1u32]).unwrap(), context.buffer_zeroed(256).unwrap());
    let image = texel(context);
    let record = |commands: &mut Recorder| {
        for _ in 0..refused {
            let dispatch = commands.dispatch(&program).bind(0, 0, &step).bind(0, 1, large);
            assert!(dispatch.indirect(&step, 0).is_err(), "12 bytes are not in it");
            let dispatch = commands.dispatch(&program).bind(0, 0, &step).bind(0, 1, large);
            assert!(dispatch.indirect(&to, 2).is_err(), "not a multiple of 4");
            // Found by the driver only, when the command has named its resources.
            assert!(commands.copy_buffer_to_image(large, 2, (&image, 0, 0)).is_err(), "not a multiple of a texel");
        }
        commands.fill(&to, 1)
    };
    context.record(record).unwrap()
}

#[test]
fn a_refused_command_keeps_no_memory() {
    let context = context();
    let large = context.buffer(1 << 22).build().unwrap();
    let commands = after_refusals(&context, &large, 3);
    let before = context.stats().objects_alive();
    drop(large);
    context.submit(&commands).unwrap().wait().unwrap();
    context.finish().unwrap();
    assert_eq!(context.stats().objects_alive(), before - 1, "the command buffer does not keep it");
}

#[test]
fn a_refused_command_orders_nothing() {
    let context = context();
    let program = context.program_wgsl(ADD).unwrap();
    let (step, to) = (context.buffer_from(&[1u32; 4]).unwrap(), context.buffer_zeroed(256).unwrap());
    let image = texel(&context);
    let record = |commands: &mut Recorder| {
        // They would have written `step`, which the next command reads.
        let refused = commands.dispatch(&program).bind(0, 0, &to).bind(0, 1, &step).indirect(&to, 2);
        assert!(refused.is_err());
        assert!(commands.copy_image_to_buffer((&image, 0, 0), &step, 2).is_err());
        commands.copy(&step, 0, &to, 0, 16)
    };
    let (stats, commands) = counted(&context, || context.record(record).unwrap());
    assert_eq!(stats.barriers, 0);
    context.submit(&commands).unwrap();
    assert_eq!(context.read::<u32>(&to).unwrap()[..5], [1, 1, 1, 1, 0]);
}

#[test]
fn what_comes_after_a_refused_command_runs_on_the_right_buffers() {
    let context = context();
    let program = context.program_wgsl(ADD).unwrap();
    let buffers: Vec<_> = (0..4).map(|_| context.buffer_zeroed(256).unwrap()).collect();
    let (step, image) = (context.buffer_from(&[2u32]).unwrap(), texel(&context));
    let record = |commands: &mut Recorder| {
        buffers.iter().try_for_each(|to| {
            // The first to name `to`, then a command that is recorded.
            assert!(commands.copy_buffer_to_image(to, 1, (&image, 0, 0)).is_err());
            commands.dispatch(&program).bind(0, 0, &step).bind(0, 1, to).groups([1, 1, 1])
        })
    };
    let commands = context.record(record).unwrap();
    context.invalidate(&buffers[2]).unwrap();
    context.fill(&buffers[2], 40).unwrap();
    context.submit(&commands).unwrap();
    let words = |at: usize| context.read_range::<u32>(&buffers[at], 0..4).unwrap()[0];
    assert_eq!([0, 1, 2, 3].map(words), [2, 2, 42, 2]);
}

#[test]
fn a_dispatch_of_no_workgroups_leaves_its_buffers_alone() {
    let context = context();
    let program = context.program_wgsl(ADD).unwrap();
    let (step, to) = (context.buffer_from(&[1u32]).unwrap(), context.buffer(256).build().unwrap());
    let hold = spelter::testing::hold(&context).unwrap();
    let set = context.descriptor_set(&program, 0).bind(0, &step).bind(1, &to).build().unwrap();
    context.dispatch(&program).bind(0, 0, &step).bind(0, 1, &to).groups([0, 1, 1]).unwrap();
    context.dispatch(&program).set(0, &set).groups([1, 1, 0]).unwrap();
    let commands = context.record(|c| c.dispatch(&program).set(0, &set).groups([1, 0, 1])).unwrap();
    context.submit(&commands).unwrap();
    assert!(!to.is_busy() && to.valid_ranges().is_empty(), "{to:?}");
    assert!(!step.is_busy(), "{step:?}");
    let stats = context.stats();
    assert_eq!((stats.dispatches, commands.command_count()), (0, 0));
    drop(hold);
    // It is checked all the same.
    let mut dispatch = context.dispatch(&program).bind(0, 0, &step);
    dispatch = dispatch.with((0, 1), Bind::uniform(&to));
    assert!(dispatch.groups([0, 1, 1]).unwrap_err().to_string().contains("is bound as a uniform buffer"));
    assert!(context.dispatch(&program).bind(0, 0, &step).groups([0, 1, 1]).is_err(), "0.1 is missing");
    let dispatch = context.dispatch(&program).bind(0, 0, &step).bind(0, 1, &to);
    assert!(dispatch.groups([0, 70_000, 1]).unwrap_err().to_string().contains("groupCountY-00387"));
    to.destroy();
    assert!(context.dispatch(&program).set(0, &set).groups([0, 1, 1]).is_err(), "destroyed");
}
