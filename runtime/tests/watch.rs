//! What programs can see of the tracker's work: outcomes with their waits, users of objects across contexts, the log of
//! events, and the harness that chooses when a resource is in use.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::time::Duration;

use spelter::testing::{self, OpenedBy};
use spelter::{Action, BatchId, Bind, Buffer, CommandKind, Context, Event, MapFlags, Outcome, Slot, SlotKind, Waits};

const LIMIT: Duration = Duration::from_secs(30);

fn context() -> Context {
    Context::builder().workers(2).memory(64 << 20).build().unwrap()
}

#[test]
fn users_are_listed_by_context() {
    let context = context();
    let other = context.sibling();
    let (a, b) = (context.buffer_zeroed(64).unwrap(), context.buffer_zeroed(64).unwrap());
    let hold = [testing::hold(&context).unwrap(), testing::hold(&other).unwrap()];
    context.copy(&a, 0, &b, 0, 16).unwrap();
    context.flush().unwrap();
    context.copy(&a, 0, &b, 16, 16).unwrap();
    other.copy(&a, 0, &other.buffer_zeroed(64).unwrap(), 0, 16).unwrap();
    let batch = |of: &Context, serial| BatchId { context: of.id(), serial };
    let object = a.object().unwrap();
    assert_eq!((object.readers, object.writers), (vec![batch(&context, 2), batch(&other, 1)], vec![]));
    assert_eq!(b.object().unwrap().writers, [batch(&context, 2)]);
    let shown = format!("{a:?}");
    assert!(shown.contains("read by batch 2 of context 1 and batch 1 of context 2, valid [0..64]"), "{shown}");
    drop(hold);
    context.finish().unwrap();
    other.finish().unwrap();
    assert!(!a.is_busy() && format!("{a:?}").contains(", generation 0, idle, valid"), "{a:?}");
    a.destroy();
    assert_eq!(format!("{a:?}"), "Buffer(a buffer of 64 bytes: destroyed)");
}

/// The outcome of a call during which the only wait is for a held batch.
fn waiting(context: &Context, call: impl FnOnce() -> Outcome) -> Outcome {
    let hold = testing::hold(context).unwrap();
    let filler = context.buffer_zeroed(4).unwrap();
    context.fill(&filler, 1).unwrap();
    let outcome = call();
    assert_eq!(hold.opened_by(), outcome.waited().then_some(OpenedBy::Wait), "{outcome:?}");
    outcome
}

#[test]
fn a_write_that_is_too_large_to_stage_waits_for_the_users() {
    let context = context();
    // A quarter of the budget, which is an eighth of the memory, can be staged.
    let (large, copy) = (context.buffer_zeroed(12 << 20).unwrap(), context.buffer_zeroed(4).unwrap());
    let bytes = vec![1u8; (2 << 20) + 4];
    let outcome = waiting(&context, || {
        context.copy(&large, 0, &copy, 0, 4).unwrap();
        context.write(&large, 0, &bytes).unwrap()
    });
    assert_eq!((outcome.action, outcome.waits), (Action::InPlace, Waits::USERS));
    let outcome = waiting(&context, || {
        context.copy(&large, 0, &copy, 0, 4).unwrap();
        context.write(&large, 0, &bytes[4..]).unwrap()
    });
    assert_eq!((outcome.action, outcome.waits), (Action::Staged { bytes: 2 << 20 }, Waits::empty()));
}

#[test]
fn a_rename_beyond_the_budget_waits_for_the_oldest() {
    let context = context();
    let (large, copy) = (context.buffer_zeroed(6 << 20).unwrap(), context.buffer_zeroed(4).unwrap());
    let renamed = || {
        context.copy(&large, 0, &copy, 0, 4).unwrap();
        let outcome = context.invalidate(&large).unwrap();
        context.write(&large, 0, &[1u32]).unwrap();
        outcome
    };
    let hold = testing::hold(&context).unwrap();
    assert_eq!(renamed().waits, Waits::empty());
    assert!(hold.is_held());
    // What is recorded from now on is in use, however soon the first batch has run.
    let later = testing::hold(&context).unwrap();
    // Two replaced objects of 6 MiB are more than the budget of 8 MiB.
    context.record_events(true);
    let outcome = renamed();
    assert!(outcome.action.is_replaced() && outcome.waits == Waits::BUDGET, "{outcome:?}");
    assert_eq!(hold.opened_by(), Some(OpenedBy::Wait));
    assert!(later.is_held());
    let is_wait = |event: &Event| matches!(event, Event::WaitBegan { .. } | Event::Waited { .. });
    let waits: Vec<_> = context.events().into_iter().filter(is_wait).collect();
    let (why, batches) = (Waits::BUDGET, vec![BatchId { context: context.id(), serial: 1 }]);
    let resource = Some(large.id());
    assert_eq!(waits, [Event::WaitBegan { why, resource, batches }, Event::Waited { why, resource }]);
}

#[test]
fn mappings_and_reads_tell_what_they_waited_for() {
    let context = context();
    let a = context.buffer_zeroed(64).unwrap();
    let outcome = waiting(&context, || {
        context.fill(&a, 1).unwrap();
        context.map(&a, MapFlags::READ).unwrap().outcome()
    });
    assert_eq!((outcome.action, outcome.waits), (Action::InPlace, Waits::READ_BACK));
    context.record_events(true);
    let hold = testing::hold(&context).unwrap();
    context.fill(&a, 2).unwrap();
    context.read::<u32>(&a).unwrap();
    assert_eq!(hold.opened_by(), Some(OpenedBy::Wait));
    let batches = vec![BatchId { context: context.id(), serial: 2 }];
    let (why, resource) = (Waits::READ_BACK, Some(a.id()));
    let wanted = [Event::WaitBegan { why, resource, batches: batches.clone() }, Event::Submitted { batch: batches[0] }];
    assert_eq!(context.events(), [wanted.as_slice(), &[Event::Waited { why, resource }]].concat());
}

#[test]
fn a_host_that_is_far_ahead_is_throttled() {
    let context = context();
    let (a, to) = (context.buffer_zeroed(64).unwrap(), context.buffer_zeroed(64).unwrap());
    let hold = testing::hold(&context).unwrap();
    let mut staged = 0;
    while hold.is_held() {
        context.copy(&a, 0, &to, 0, 64).unwrap();
        let outcome = context.write(&a, 4, &[staged]).unwrap();
        context.flush().unwrap();
        staged += 1;
        assert!(matches!(outcome.action, Action::Staged { bytes: 4 }) && outcome.waits.is_empty());
        assert!(staged < 1000, "no call has waited");
    }
    // 256 batches in flight are allowed.
    assert_eq!((staged, context.stats().batches_throttled), (258, 1));
}

#[test]
fn held_batches_hold_what_comes_after_them_on_other_queues() {
    let context = context();
    let contexts: Vec<_> = (0..3).map(|_| context.sibling()).collect();
    let a = context.buffer_zeroed(4).unwrap();
    let hold = testing::hold(&context).unwrap();
    context.fill(&a, 1).unwrap();
    for other in &contexts {
        other.fill(&a, 2).unwrap(); // comes after the fill of `context`
        other.flush().unwrap();
        assert!(hold.is_held());
    }
    // A wait for one of them is a wait for the held batch.
    contexts[2].finish().unwrap();
    assert_eq!(hold.opened_by(), Some(OpenedBy::Wait));
    assert_eq!(context.read::<u32>(&a).unwrap(), [2]);
}

#[test]
fn commands_before_a_hold_run() {
    let context = context();
    let a = context.buffer_zeroed(4).unwrap();
    context.fill(&a, 1).unwrap();
    let hold = testing::hold(&context).unwrap();
    assert_eq!(context.read::<u32>(&a).unwrap(), [1]);
    context.fill(&a, 2).unwrap();
    let fence = context.flush().unwrap();
    assert!(!fence.wait_for(Duration::from_millis(1)).unwrap());
    assert!(hold.is_held(), "neither a wait for an earlier batch nor one with a limit opens it");
    let second = testing::hold(&context).unwrap();
    context.fill(&a, 3).unwrap();
    hold.release();
    fence.wait().unwrap();
    assert!(second.is_held());
    assert_eq!(context.read::<u32>(&a).unwrap(), [3]);
    assert_eq!(second.opened_by(), Some(OpenedBy::Wait));
}

#[test]
fn a_test_that_fails_does_not_hang() {
    let failed = std::thread::spawn(|| {
        let context = context();
        let (other, a) = (context.sibling(), context.buffer_zeroed(4).unwrap());
        let _hold = testing::hold_until_released(&context, LIMIT).unwrap();
        context.fill(&a, 1).unwrap();
        context.flush().unwrap();
        other.fill(&a, 2).unwrap();
        assert_eq!(a.generation(), 7, "the test fails here");
    });
    // Unwinding drops the hold first, then the contexts, which wait for their batches.
    assert!(failed.join().is_err());
    // In the other order the context that is dropped opens the hold.
    let mut holds = Vec::new();
    let context = context();
    let (other, a) = (context.sibling(), context.buffer_zeroed(4).unwrap());
    holds.push(testing::hold_until_released(&context, LIMIT).unwrap());
    context.fill(&a, 1).unwrap();
    other.fill(&a, 2).unwrap();
    drop(other);
    assert_eq!(holds[0].opened_by(), Some(OpenedBy::TimeLimit));
}

#[test]
fn a_blocked_call_returns_when_its_time_is_over() {
    let context = context();
    let a = context.buffer_zeroed(4).unwrap();
    let hold = testing::hold_until_released(&context, Duration::from_millis(20)).unwrap();
    context.fill(&a, 1).unwrap();
    assert_eq!(context.read::<u32>(&a).unwrap(), [1]);
    assert_eq!((hold.opened_by(), hold.waiting()), (Some(OpenedBy::TimeLimit), 0));
}

#[test]
fn two_threads_wait_and_are_counted() {
    let context = context();
    let (a, b) = (context.buffer_zeroed(4).unwrap(), context.buffer_zeroed(4).unwrap());
    let hold = testing::hold_until_released(&context, LIMIT).unwrap();
    context.fill(&a, 1).unwrap();
    context.fill(&b, 2).unwrap();
    std::thread::scope(|scope| {
        let reads = [&a, &b].map(|buffer| scope.spawn(|| context.read::<u32>(buffer).unwrap()[0]));
        while hold.waiting() < 2 {
            std::thread::yield_now();
        }
        let stats = context.stats();
        assert_eq!((stats.waits_in_progress(), stats.read_waits), (2, 0));
        // The state of objects can be asked meanwhile.
        assert_eq!(a.object().unwrap().writers.len(), 1);
        assert!(context.slot((0, 0)).is_none());
        hold.release();
        assert_eq!(reads.map(|read| read.join().unwrap()), [1, 2]);
    });
    let stats = context.stats();
    assert_eq!((stats.waits_in_progress(), stats.read_waits, stats.waits_begun), (0, 2, 2));
}

#[test]
fn counters_are_kept_by_resource_and_by_context() {
    let context = context();
    let other = context.sibling();
    let (a, b) = (context.buffer_from(&[1u32, 2]).unwrap(), context.buffer_zeroed(8).unwrap());
    context.copy(&a, 0, &b, 0, 8).unwrap();
    other.upload(&a, &[3u32, 4]).unwrap();
    context.write(&b, 4, &[1u32]).unwrap();
    let map = context.map(&a, MapFlags::READ).unwrap();
    context.invalidate(&a).unwrap();
    drop(map);
    let of = |counts: spelter::Outcomes| [counts.in_place, counts.replaced, counts.staged, counts.refused];
    assert_eq!((of(a.outcomes()), of(b.outcomes())), ([2, 1, 0, 1], [0, 0, 1, 0]));
    assert_eq!((of(context.outcomes()), of(other.outcomes())), ([2, 0, 1, 1], [0, 1, 0, 0]));
}

#[test]
fn the_log_has_the_steps_of_a_rename_in_order() {
    let context = context();
    let program = context
        .program_wgsl(
            "@group(0) @binding(0) var<storage, read_write> a: u32;
             @compute @workgroup_size(1) fn main() { a += 1u; }",
        )
        .unwrap();
    let a = context.buffer_zeroed(4).unwrap();
    context.bind((0, 0), Bind::storage(&a)).unwrap();
    context.dispatch(&program).groups([1, 1, 1]).unwrap();
    let old = a.object().unwrap().id;
    context.record_events(true);
    context.dispatch(&program).groups([1, 1, 1]).unwrap();
    context.upload(&a, &[5u32]).unwrap();
    context.dispatch(&program).groups([1, 1, 1]).unwrap();
    context.dispatch(&program).groups([1, 1, 1]).unwrap();
    context.record_events(false);
    context.dispatch(&program).groups([1, 1, 1]).unwrap();
    let (resource, new, slot) = (a.id(), a.object().unwrap().id, Slot::from((0, 0)));
    let (command, batch) = (CommandKind::Dispatch, BatchId { context: context.id(), serial: 1 });
    let barrier = || Event::Barrier { batch, command, resource: Some(resource), range: 0..4 };
    let kind = SlotKind::StorageBuffer;
    let wanted = [
        barrier(),
        Event::Replaced { resource, old, new },
        Event::Rebound { slot, kind, resource, object: Some(new) },
        Event::SetsDropped { object: old, sets: 1 },
        barrier(),
    ];
    assert_eq!(context.events(), wanted);
    assert_eq!(context.read::<u32>(&a).unwrap(), [8]);
}

/// Two contexts share a set. Each notes what its next dispatch finds; looking at the set notes nothing.
#[test]
fn the_rebinding_of_a_set_is_noted_by_each_context() {
    let context = context();
    let other = context.sibling();
    let program = context
        .program_wgsl(
            "@group(0) @binding(0) var<storage, read> a: u32;
             @group(0) @binding(3) var<storage, read_write> b: u32;
             @compute @workgroup_size(1) fn main() { b = a; }",
        )
        .unwrap();
    let (a, b) = (context.buffer_from(&[1u32]).unwrap(), context.buffer_zeroed(4).unwrap());
    let set = context.descriptor_set(&program, 0).bind(0, &a).bind(3, &b).build().unwrap();
    let dispatch = |context: &Context| context.dispatch(&program).set(0, &set).groups([1, 1, 1]);
    let events = |context: &Context| {
        let is_of_set = |event: &Event| matches!(event, Event::SetRebound { .. } | Event::SetWritten { .. });
        context.events().into_iter().filter(is_of_set).collect::<Vec<_>>()
    };
    for context in [&context, &other] {
        dispatch(context).unwrap();
        context.record_events(true);
    }
    let rebound = |binding: u32, object| {
        let (set, resource) = (set.id(), if binding == 0 { a.id() } else { b.id() });
        Event::SetRebound { set, binding, element: 0, kind: SlotKind::StorageBuffer, resource, object }
    };
    let written = |in_place| Event::SetWritten { set: set.id(), in_place };
    assert!(context.upload(&a, &[2u32]).unwrap().action.is_replaced(), "in use");
    let object = |buffer: &Buffer| Some(buffer.object().unwrap().id);
    assert_eq!(set.objects()[0].generation, 1, "the set names the new object already");
    assert_eq!(events(&context), [], "nothing needed the set yet");
    dispatch(&context).unwrap();
    // The driver's set is in use.
    assert_eq!(events(&context), [rebound(0, object(&a)), written(false)]);
    dispatch(&other).unwrap();
    assert_eq!(events(&other), [rebound(0, object(&a))], "the other context has written the driver's set");
    dispatch(&context).unwrap();
    assert_eq!(events(&context), [], "nothing has changed");
    context.finish().unwrap();
    other.finish().unwrap();
    let copy = context.buffer_zeroed(4).unwrap();
    context.copy(&b, 0, &copy, 0, 4).unwrap();
    assert!(context.invalidate(&b).unwrap().action.is_replaced(), "in use");
    // A dispatch with a binding of its own takes the rest from the set.
    context.dispatch(&program).set(0, &set).bind(0, 0, &a).groups([1, 1, 1]).unwrap();
    assert_eq!(events(&context), [rebound(3, object(&b))], "it needs no driver's set of the set");
    dispatch(&context).unwrap();
    assert_eq!(events(&context), [written(true)], "no batch used it");
    assert_eq!(context.read::<u32>(&b).unwrap(), [2]);
    a.destroy();
    dispatch(&context).unwrap_err();
    assert_eq!(events(&context), [rebound(0, None)]);
}

#[test]
fn the_nth_allocation_fails() {
    let context = context();
    let mut failures = Vec::new();
    // A buffer, the object of a rename, a staging buffer; each is attempted twice.
    for number in 1..=3 {
        let failing = testing::fail_allocations(&context, number..);
        let run = || -> Result<[Outcome; 2], spelter::Error> {
            let (a, b) = (context.buffer_from(&[1u32, 2])?, &context.buffer_zeroed(8)?);
            context.copy(&a, 0, b, 0, 8)?;
            Ok([context.invalidate(&a)?, context.write(b, 4, &[1u32])?])
        };
        failures.push(run().map(|outcomes| outcomes.map(|outcome| outcome.waits)).map_err(|error| error.to_string()));
        assert!(failing.failed() > 0);
    }
    let no_memory = Err("out of memory: a buffer of 8 bytes".to_owned());
    assert_eq!(failures[..2], [no_memory.clone(), no_memory]);
    // There is no memory for the rename, so that waits; then `b` is idle and nothing is staged.
    assert_eq!(failures[2], Ok([Waits::NO_MEMORY, Waits::empty()]));
}
