//! Command buffers that execute others.

use crate::commands::{ADD, adds, context, counted};

#[test]
fn nested_commands_run_in_their_place() {
    let context = context();
    let program = context.program_wgsl(ADD).unwrap();
    let (step, to) = (context.buffer_from(&[3u32]).unwrap(), context.buffer_zeroed(256).unwrap());
    let copies = [context.buffer(4).build().unwrap(), context.buffer(4).build().unwrap()];
    let add = adds(&context, &program, [&step, &to], 1);
    let all = context.record(|commands| {
        commands.fill(&to, 10)?;
        commands.execute(&add)?;
        commands.copy(&to, 0, &copies[0], 0, 4)?;
        commands.execute(&add)?;
        commands.execute(&add)?;
        commands.copy(&to, 0, &copies[1], 0, 4)
    });
    let all = all.unwrap();
    drop(add); // the other one keeps it
    let (stats, ()) = counted(&context, || {
        for _ in 0..3 {
            context.submit(&all).unwrap();
            assert_eq!(copies.each_ref().map(|copy| context.read::<u32>(copy).unwrap()[0]), [13, 19]);
        }
    });
    // A nested one counts once, however often it is executed.
    assert_eq!((stats.command_buffers_submitted, stats.commands_reused), (3, 3 * 4));
}

#[test]
fn a_nested_command_buffer_that_is_recorded_again_is_executed_as_it_is_then() {
    let context = context();
    let buffer = context.buffer_zeroed(4).unwrap();
    let child = context.record(|commands| commands.fill(&buffer, 1)).unwrap();
    let parent = context.record(|commands| commands.execute(&child)).unwrap();
    context.submit(&parent).unwrap();
    context.rerecord(&child, |commands| commands.fill(&buffer, 2)).unwrap();
    context.submit(&parent).unwrap();
    assert_eq!(context.read::<u32>(&buffer).unwrap(), [2]);
    // After an error the old commands stay.
    let error = context.rerecord(&child, |commands| {
        commands.fill(&buffer, 3)?;
        commands.fill_range(&buffer, 0..8, 3)
    });
    assert!(error.is_err());
    context.fill(&buffer, 0).unwrap();
    context.submit(&parent).unwrap();
    assert_eq!(context.read::<u32>(&buffer).unwrap(), [2]);
}

#[test]
fn a_rename_records_only_the_nested_commands_again_that_name_it() {
    let context = context();
    let program = context.program_wgsl(ADD).unwrap();
    let (step, to) = (context.buffer_from(&[1u32]).unwrap(), context.buffer_zeroed(256).unwrap());
    let fixed = context.buffer_from(&[10u32]).unwrap();
    let child = adds(&context, &program, [&step, &to], 5);
    let parent = context.record(|commands| {
        for _ in 0..7 {
            commands.dispatch(&program).bind(0, 0, &fixed).bind(0, 1, &to).groups([1, 1, 1])?;
        }
        commands.execute(&child)
    });
    let parent = parent.unwrap();
    context.submit(&parent).unwrap();
    let (stats, ()) = counted(&context, || {
        context.copy(&step, 0, &to, 0, 4).unwrap(); // in use
        context.upload(&step, &[2u32]).unwrap();
        context.fill(&to, 0).unwrap();
        context.submit(&parent).unwrap();
    });
    assert_eq!((stats.renames, stats.commands_rerecorded, stats.commands_reused), (1, 5, 7));
    assert_eq!(context.read::<u32>(&to).unwrap(), [80; 64]);
    // By itself it is up to date.
    let (stats, _) = counted(&context, || context.submit(&child).unwrap());
    assert_eq!((stats.commands_rerecorded, stats.commands_reused), (0, 5));
}

#[test]
fn nesting_has_limits() {
    let context = context();
    let buffer = context.buffer_zeroed(4).unwrap();
    let leaf = context.record(|commands| commands.fill(&buffer, 1)).unwrap();
    let deeper = |below: &_| context.record(|commands| commands.execute(below));
    let deepest = (0..32).try_fold(leaf.clone(), |below, _| deeper(&below)).unwrap();
    context.submit(&deepest).unwrap();
    assert_eq!(context.read::<u32>(&buffer).unwrap(), [1]);
    let error = deeper(&deepest).unwrap_err().to_string();
    assert!(error.ends_with("is nested 33 deep (rule: command buffers are nested at most 32 deep)"), "{error}");
    // A nested one may become deeper later.
    context.rerecord(&leaf, |commands| commands.execute(&deeper(&context.record(|_| Ok(()))?)?)).unwrap();
    let error = context.submit(&deepest).unwrap_err().to_string();
    assert!(error.ends_with("(rule: command buffers are nested at most 32 deep)"), "{error}");
    // Each level doubles the number of parts, and that of steps without any commands.
    for empty in [true, false] {
        let leaf = context.record(|commands| if empty { Ok(()) } else { commands.fill(&buffer, 1) }).unwrap();
        let twice = |below: &_| {
            context.record(|commands| {
                commands.execute(below)?;
                commands.execute(below)
            })
        };
        let many = (0..30).try_fold(leaf, |below, _| twice(&below)).unwrap();
        let error = context.submit(&many).unwrap_err().to_string();
        assert!(error.contains("(rule: a submission has at most 65536 parts"), "{error}");
    }
}

/// Two threads that make two command buffers execute each other: one of them gets an error.
#[test]
fn no_cycle_is_closed_by_two_threads() {
    let context = context();
    for _ in 0..50 {
        let [a, b] = [(); 2].map(|()| context.record(|_| Ok(())).unwrap());
        let results = std::thread::scope(|scope| {
            let each = [(&a, &b), (&b, &a)].map(|(parent, child)| {
                let context = context.sibling();
                scope.spawn(move || context.rerecord(parent, |commands| commands.execute(child)))
            });
            each.map(|thread| thread.join().unwrap())
        });
        assert!(results.iter().filter(|result| result.is_ok()).count() == 1, "{results:?}");
        context.submit(&a).unwrap();
        context.submit(&b).unwrap();
    }
}

/// A chain grows without limit if the last one is recorded again; it can be neither submitted nor a danger.
#[test]
fn a_long_chain_is_dropped() {
    let context = context();
    let first = context.record(|_| Ok(())).unwrap();
    let mut last = first.clone();
    for _ in 0..100_000 {
        let next = context.record(|_| Ok(())).unwrap();
        context.rerecord(&last, |commands| commands.execute(&next)).unwrap();
        last = next;
    }
    let error = context.submit(&first).unwrap_err().to_string();
    assert!(error.ends_with("is nested 33 deep (rule: command buffers are nested at most 32 deep)"), "{error}");
    let error = context.rerecord(&last, |commands| commands.execute(&first)).unwrap_err().to_string();
    assert!(error.ends_with("directly or through others)"), "{error}");
    drop((first, last));
}
