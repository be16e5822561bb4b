//! Command buffers whose dispatches take descriptors from updatable sets: submissions see later writes to the sets.

use super::{ADD, context, counted};
use spelter::{Bind, Event, Recorder};

#[test]
fn a_write_to_a_set_is_seen_by_later_submissions() {
    let context = context();
    let program = context.program_wgsl(ADD).unwrap();
    let [one, ten] = [1u32, 10].map(|step| context.buffer_from(&[step]).unwrap());
    let [a, b] = [(); 2].map(|()| context.buffer_zeroed(256).unwrap());
    let set = context.descriptor_set(&program, 0).bind(0, &one).bind(1, &a).updatable().build().unwrap();
    let commands = context
        .record(|commands| {
            commands.dispatch(&program).set(0, &set).groups([1, 1, 1])?;
            // A binding of its own goes before the set's.
            commands.dispatch(&program).bind(0, 0, &ten).set(0, &set).groups([1, 1, 1])
        })
        .unwrap();
    context.submit(&commands).unwrap();
    set.write(1, Bind::storage(&b)).unwrap();
    context.record_events(true);
    let (stats, _) = counted(&context, || context.submit(&commands).unwrap());
    assert_eq!((stats.commands_rerecorded, commands.command_count()), (2, 2));
    let of_sets = Event::RecordedForSets { commands: commands.id(), count: 2 };
    assert!(context.events().contains(&of_sets));
    let (stats, _) = counted(&context, || context.submit(&commands).unwrap());
    assert_eq!((stats.commands_rerecorded, stats.commands_reused), (0, 2));
    set.write(0, Bind::storage(&ten)).unwrap();
    context.submit(&commands).unwrap();
    assert_eq!((context.read::<u32>(&a).unwrap()[0], context.read::<u32>(&b).unwrap()[0]), (11, 42));
}

#[test]
fn commands_that_use_one_buffer_after_a_write_are_in_order() {
    let context = context();
    let program = context.program_wgsl(ADD).unwrap();
    let step = context.buffer_from(&[3u32; 64]).unwrap();
    let [a, b] = [(); 2].map(|()| context.buffer_zeroed(256).unwrap());
    let set = context.descriptor_set(&program, 0).bind(0, &step).bind(1, &a).updatable().build().unwrap();
    let record = |commands: &mut Recorder| {
        commands.fill(&b, 100)?;
        commands.dispatch(&program).set(0, &set).groups([1, 1, 1])?;
        commands.copy(&b, 0, &step, 4, 252)
    };
    let (stats, commands) = counted(&context, || context.record(record).unwrap());
    assert_eq!(stats.barriers, 1, "the copy comes after the fill and after the read of `step`");
    set.write(1, Bind::storage(&b)).unwrap();
    let (stats, _) = counted(&context, || context.submit(&commands).unwrap());
    assert_eq!(stats.barriers, 2, "the dispatch comes after the fill, too");
    assert_eq!(context.read::<u32>(&b).unwrap(), [103; 64]);
    assert_eq!(context.read::<u32>(&step).unwrap()[..3], [3, 103, 103]);
}

#[test]
fn all_kinds_of_commands_are_recorded_again() {
    use spelter::{ClearColor, vk};

    let context = context();
    let program = context.program_wgsl(ADD).unwrap();
    let [one, two] = [1u32, 2].map(|step| context.buffer_from(&[step]).unwrap());
    let (to, counts) = (context.buffer_zeroed(256).unwrap(), context.buffer_from(&[1u32, 1, 1]).unwrap());
    let image = context.image(vk::Format::R32_UINT, [4, 4, 1]).layers(2).build().unwrap();
    let set = context.descriptor_set(&program, 0).bind(0, &one).bind(1, &to).updatable().build().unwrap();
    let inner = context.record(|c| c.fill_range(&to, 0..4, 50)).unwrap();
    let record = |commands: &mut Recorder| {
        commands.label("all");
        commands.timestamp("begin");
        commands.fill(&to, 1)?;
        commands.group("images", |commands| {
            commands.clear_image(image.all().layers(0..1), ClearColor::Uint([7, 0, 0, 0]))?;
            commands.copy_image((&image, 0, 0), (&image, 0, 1))?;
            commands.copy_image_to_buffer((&image, 0, 1), &to, 64)?;
            commands.copy_buffer_to_image(&to, 0, (&image, 0, 0))
        })?;
        commands.execute(&inner)?;
        commands.dispatch(&program).set(0, &set).indirect(&counts, 0)?;
        commands.copy(&to, 0, &to, 128, 8)?;
        commands.dispatch(&program).bind(0, 0, &one).bind(0, 1, &to).groups([1, 1, 1])
    };
    let commands = context.record(record).unwrap();
    for (step, sum) in [(&one, 3), (&two, 4)] {
        set.write(0, Bind::storage(step)).unwrap();
        let fence = context.submit(&commands).unwrap();
        assert_eq!(fence.timestamps().unwrap().len(), 1);
        let words = context.read::<u32>(&to).unwrap();
        assert_eq!([words[0], words[1], words[16], words[32], words[33]], [49 + sum, sum, 6 + sum, 49 + sum, sum]);
        assert_eq!(context.read_image::<u32>(&image, 0, 0).unwrap(), [1; 16]);
    }
    assert_eq!((commands.label().as_deref(), commands.command_count()), (Some("all"), 8));
}

#[test]
fn a_set_that_does_not_fit_any_more_is_an_error_of_the_submission() {
    let context = context();
    let program = context.program_wgsl(ADD).unwrap();
    let (step, to) = (context.buffer_from(&[1u32]).unwrap(), context.buffer_zeroed(256).unwrap());
    let set = context.descriptor_set(&program, 0).bind(0, &step).bind(1, &to).label("frame").updatable();
    let set = set.build().unwrap();
    let commands = context.record(|c| c.dispatch(&program).set(0, &set).groups([1, 1, 1])).unwrap();
    let outer = context.record(|c| c.execute(&commands)).unwrap();
    let late = context.buffer(4).label("late").zeroed().unwrap();
    set.write(0, Bind::storage(&late)).unwrap();
    late.destroy();
    for submitted in [&commands, &outer] {
        let error = context.submit(submitted).unwrap_err().to_string();
        assert!(error.contains("command 0, dispatch: descriptor set `frame`: buffer `late`"), "{error}");
    }
    set.write(0, Bind::storage(&step)).unwrap();
    context.submit(&outer).unwrap();
    assert_eq!(context.read::<u32>(&to).unwrap(), [1; 64]);
}

#[test]
fn threads_write_a_set_while_others_submit() {
    let context = context();
    let program = context.program_wgsl(ADD).unwrap();
    let steps: Vec<_> = (0..4).map(|_| context.buffer_from(&[1u32]).unwrap()).collect();
    let to = context.buffer_zeroed(256).unwrap();
    let set = context.descriptor_set(&program, 0).bind(0, &steps[0]).bind(1, &to).updatable().build().unwrap();
    let commands = context.record(|c| c.dispatch(&program).set(0, &set).groups([1, 1, 1])).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (sibling, commands) = (context.sibling(), &commands);
            scope.spawn(move || (0..100).for_each(|_| drop(sibling.submit(commands).unwrap())));
        }
        scope.spawn(|| (0..200).for_each(|iteration| set.write(0, Bind::storage(&steps[iteration % 4])).unwrap()));
    });
    assert_eq!(context.read::<u32>(&to).unwrap(), [200; 64]);
}
