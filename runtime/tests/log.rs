//! What the log of events, the timeline, errors and counters say of barriers, waits and command buffers, and where a
//! resource is named.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::time::Duration;

use spelter::testing;
use spelter::{BatchId, Bind, CommandKind, Context, Event, NamedBy, Slot, Waits};

fn context() -> Context {
    Context::builder().workers(2).memory(64 << 20).build().unwrap()
}

#[test]
fn a_barrier_names_the_command_and_the_bytes_that_need_it() {
    let context = context();
    let (a, b) = (context.buffer_zeroed(64).unwrap(), context.buffer_zeroed(64).unwrap());
    let image = context.image(spelter::vk::Format::R32_UINT, [2, 2, 1]).levels(2).build().unwrap();
    context.record_events(true);
    context.fill_range(&a, 16..32, 1).unwrap();
    context.copy(&a, 24, &b, 0, 16).unwrap();
    context.write(&b, 8, &[5u32]).unwrap();
    context.clear_image(image.level(1), spelter::ClearColor::Uint([1; 4])).unwrap();
    context.clear_image(image.level(1), spelter::ClearColor::Uint([2; 4])).unwrap();
    let barriers: Vec<_> = context
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::Barrier { batch, command, resource, range } => Some((batch.serial, command, resource, range)),
            _ => None,
        })
        .collect();
    let wanted = [
        (1, CommandKind::Copy, Some(a.id()), 24..40),
        (1, CommandKind::Write, Some(b.id()), 8..12),
        (1, CommandKind::Clear, Some(image.id()), 1..2),
    ];
    assert_eq!(barriers, wanted);
}

#[test]
fn waits_for_all_and_for_a_fence_are_seen() {
    let context = context();
    let a = context.buffer_zeroed(64).unwrap();
    context.record_events(true);
    let batch = |serial| BatchId { context: context.id(), serial };
    let (why, resource) = (Waits::FENCE, None);
    let waits = |serial| {
        let began = Event::WaitBegan { why, resource, batches: vec![batch(serial)] };
        [Event::Submitted { batch: batch(serial) }, began, Event::Waited { why, resource }]
    };
    let _hold = testing::hold(&context).unwrap();
    context.fill(&a, 1).unwrap();
    context.finish().unwrap();
    assert_eq!(context.events(), waits(1));
    let _hold = testing::hold(&context).unwrap();
    context.fill(&a, 2).unwrap();
    let fence = context.flush().unwrap();
    assert_eq!(fence.wait_for(Duration::ZERO), Ok(false));
    fence.wait().unwrap();
    let mut wanted = waits(2).to_vec();
    wanted.extend_from_slice(&waits(2)[1..]);
    assert_eq!(context.events(), wanted, "a wait with a limit, and one without");
    fence.wait().unwrap();
    context.finish().unwrap();
    assert_eq!(context.events(), [], "they are done");
}

/// The slices of the timeline of waits, each with its name and the text of its arguments.
fn wait_slices(context: &Context) -> Vec<(String, String)> {
    let mut text = Vec::new();
    context.write_trace(&mut text).unwrap();
    let trace: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let slices = trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X");
    let named = slices.map(|slice| (slice["name"].as_str().unwrap().to_owned(), slice["args"].to_string()));
    named.filter(|(name, _)| name.starts_with("wait")).collect()
}

#[test]
fn waits_are_slices_that_name_batch_or_resource() {
    let context = Context::builder().workers(2).memory(64 << 20).trace(true).build().unwrap();
    let a = context.buffer(64).label("frame").zeroed().unwrap();
    let _hold = testing::hold(&context).unwrap();
    context.fill(&a, 1).unwrap();
    context.finish().unwrap();
    let slices = wait_slices(&context);
    let [(name, args)] = &slices[..] else { panic!("{slices:?}") };
    assert!(name == "wait: fence" && args.contains("batch 1 of context 1"), "{args}");
    let large = context.buffer(6 << 20).label("large").zeroed().unwrap();
    let _hold = testing::hold(&context).unwrap();
    for _ in 0..2 {
        context.copy(&large, 0, &a, 0, 4).unwrap();
        context.invalidate(&large).unwrap();
        context.write(&large, 0, &[1u32]).unwrap();
    }
    let slices = wait_slices(&context);
    let (name, args) = &slices[1];
    assert!(name == "wait: memory of replaced objects" && args.contains("buffer `large`"), "{slices:?}");
}

#[test]
fn command_buffers_are_in_the_log() {
    let context = context();
    let (a, b) = (context.buffer_zeroed(64).unwrap(), context.buffer_zeroed(64).unwrap());
    context.record_events(true);
    let commands = context
        .record(|commands| {
            commands.fill_range(&a, 0..32, 1)?;
            commands.copy(&a, 16, &b, 0, 32)?;
            commands.fill(&b, 3)
        })
        .unwrap();
    let recorded = |number, command, resource, range| {
        let commands = commands.id();
        Event::BarrierRecorded { commands, number, command, resource, range }
    };
    let barriers =
        [recorded(1, CommandKind::Copy, a.id(), 16..48), recorded(2, CommandKind::Fill, b.id(), 0..u64::MAX)];
    assert_eq!(context.events(), barriers);
    let outer = context.record(|outer| outer.execute(&commands)).unwrap();
    context.submit(&outer).unwrap();
    let batch = |serial| BatchId { context: context.id(), serial };
    let submitted = |commands: &spelter::CommandBuffer, serial, rerecorded| Event::CommandsSubmitted {
        commands: commands.id(),
        batch: batch(serial),
        rerecorded,
    };
    let first = [submitted(&commands, 1, 0), submitted(&outer, 1, 0), Event::Submitted { batch: batch(1) }];
    assert_eq!(context.events(), first);
    let _hold = testing::hold(&context).unwrap();
    context.submit(&commands).unwrap();
    context.invalidate(&a).unwrap(); // in use: it gets another object
    context.events();
    context.submit(&commands).unwrap();
    let object = a.object().unwrap().id;
    let again = Event::Rerecorded { commands: commands.id(), resource: a.id(), object, count: 3 };
    assert_eq!(context.events(), [again, submitted(&commands, 3, 3), Event::Submitted { batch: batch(3) }]);
}

#[test]
fn an_error_of_a_submission_names_the_command() {
    let context = context();
    let (tmp, to) = (context.buffer(64).label("tmp").zeroed().unwrap(), context.buffer_zeroed(64).unwrap());
    let commands = context
        .record(|commands| {
            commands.label("frame");
            commands.fill(&to, 1)?;
            commands.group("post", |c| c.group("blur", |c| c.copy(&tmp, 32, &to, 0, 32)))
        })
        .unwrap();
    assert_eq!(format!("{commands:?}"), "command buffer `frame` of 2 commands");
    context.resize(&tmp, 16).unwrap();
    let at = "submit: command buffer `frame`: command 1, copy in group `post/blur`";
    let error = context.submit(&commands).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{at}: bytes 32..64 of buffer `tmp` of 16 bytes")), "{error}");
    tmp.destroy();
    let error = context.submit(&commands).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{at}: buffer `tmp` of 16 bytes is destroyed")), "{error}");
}

/// A dispatch is named by its own label, apart from those of its groups; so is one that is recorded again for its set.
#[test]
fn an_error_of_a_submission_names_the_dispatch() {
    let context = context();
    let program = context
        .program_wgsl(
            "@group(0) @binding(0) var<storage, read_write> a: u32;
             @compute @workgroup_size(1) fn main() { a += 1u; }",
        )
        .unwrap();
    let [gone, kept, late] = ["gone", "kept", "late"].map(|label| context.buffer(4).label(label).zeroed().unwrap());
    let set = context.descriptor_set(&program, 0).bind(0, &kept).updatable().build().unwrap();
    let error_of = |record: &dyn Fn(&mut spelter::Recorder) -> Result<(), spelter::Error>, breaks: &dyn Fn()| {
        let commands = context.record(record).unwrap();
        breaks();
        context.submit(&commands).unwrap_err().to_string()
    };
    let error = error_of(
        &|c| c.group("frame", |c| c.dispatch(&program).label("second pass").bind(0, 0, &gone).groups([1, 1, 1])),
        &|| gone.destroy(),
    );
    let at = "command 0, dispatch `second pass` in group `frame`: buffer `gone`";
    assert!(error.starts_with(&format!("submit: a command buffer: {at}")), "{error}");
    let error = error_of(
        &|c| {
            c.dispatch(&program).label("first pass").set(0, &set).groups([1, 1, 1])?;
            c.group("frame", |c| c.fill(&kept, 1))
        },
        &|| {
            set.write(0, Bind::storage(&late)).unwrap();
            late.destroy();
        },
    );
    assert!(error.contains("submit: a command buffer: command 0, dispatch `first pass`: "), "{error}");
    assert!(error.contains("buffer `late`"), "{error}");
}

#[test]
fn what_is_submitted_is_counted_as_often_as_it_runs() {
    let context = context();
    let program = context
        .program_wgsl(
            "@group(0) @binding(0) var<storage, read_write> a: u32;
             @compute @workgroup_size(1) fn main() { a += 1u; }",
        )
        .unwrap();
    let a = context.buffer_zeroed(4).unwrap();
    let add = |commands: &mut spelter::Recorder| commands.dispatch(&program).bind(0, 0, &a).groups([1, 1, 1]);
    let inner = context.record(|c| add(c).and_then(|()| add(c))).unwrap();
    let outer = context.record(|c| (0..3).try_for_each(|_| c.execute(&inner)).and_then(|()| c.fill(&a, 5))).unwrap();
    let before = context.stats();
    assert_eq!((before.dispatches, before.dispatches_submitted), (2, 0));
    context.dispatch(&program).bind(0, 0, &a).groups([1, 1, 1]).unwrap();
    context.submit(&outer).unwrap();
    context.submit(&outer).unwrap();
    let done = context.stats().since(&before);
    assert_eq!((done.dispatches, done.transfers), (1, 0), "recorded");
    assert_eq!((done.dispatches_submitted, done.transfers_submitted, done.barriers_submitted), (13, 2, 6));
    assert_eq!(context.read::<u32>(&a).unwrap(), [5]);
}

#[test]
fn a_buffer_is_found_where_it_is_bound() {
    let context = context();
    let text = "@group(0) @binding(0) var<storage, read> source: u32;
        @group(0) @binding(1) var<storage, read_write> sum: u32;
        @compute @workgroup_size(1) fn main() { sum += source; }";
    let program = context.program_wgsl(text).unwrap();
    let (a, b) = (context.buffer_zeroed(4).unwrap(), context.buffer_zeroed(4).unwrap());
    let set = context.descriptor_set(&program, 0).bind(0, &a).bind(1, &b).label("both").build().unwrap();
    context.bind_set(0, &set).unwrap();
    context.bind((0, 0), Bind::storage(&b)).unwrap();
    // The set goes before the slot.
    let info = context.slot((0, 0)).unwrap();
    assert_eq!((info.set, info.resource, info.object), (Some(set.id()), Some(a.id()), Some(a.object().unwrap().id)));
    assert_eq!(context.slot((0, 2)), None);
    let places = |of| -> Vec<_> { context.slots_of(of).into_iter().map(|info| (info.slot, info.set)).collect() };
    assert_eq!(places(&a), [(Slot::from((0, 0)), Some(set.id()))]);
    assert_eq!(places(&b), [(Slot::from((0, 0)), None), (Slot::from((0, 1)), Some(set.id()))]);
    let commands = context
        .record(|commands| {
            commands.label("twice");
            (0..2).try_for_each(|_| commands.dispatch(&program).set(0, &set).groups([1, 1, 1]))?;
            commands.fill(&b, 0)
        })
        .unwrap();
    let by_set = |binding| NamedBy::Set { set: set.id(), label: Some("both".to_owned()), binding, element: 0 };
    let by_commands = |count| NamedBy::Commands { commands: commands.id(), label: Some("twice".to_owned()), count };
    assert_eq!((a.named_by(), b.named_by()), (vec![by_set(0), by_commands(2)], vec![by_set(1), by_commands(3)]));
    context.unbind_set(0).unwrap();
    assert_eq!((places(&a), context.slot((0, 0)).unwrap().resource), (vec![], Some(b.id())));
    drop((set.clone(), commands.clone()));
    assert_eq!(a.named_by().len(), 2, "other handles");
    drop((set, commands));
    assert_eq!((a.named_by(), b.named_by()), (vec![], vec![]));
}

#[test]
fn a_set_gives_its_objects_as_buffers_do() {
    let context = context();
    let text =
        "@group(0) @binding(0) var<storage, read_write> a: u32; @compute @workgroup_size(1) fn main() { a = 1u; }";
    let program = context.program_wgsl(text).unwrap();
    let a = context.buffer_zeroed(4).unwrap();
    let set = context.descriptor_set(&program, 0).bind(0, &a).build().unwrap();
    let named = set.objects();
    assert_eq!((named[0].resource, named[0].id), (a.id(), Some(a.object().unwrap().id)));
}
