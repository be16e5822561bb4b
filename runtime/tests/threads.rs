//! Several contexts on several threads: shared resources stay correct, no thread hangs, and no object is left.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::sync::Barrier;

use spelter::check::{Hazard, Rule};
use spelter::{Bind, Context};

const ADD: &str = "
@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> to: array<u32>;
@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < min(arrayLength(&source), arrayLength(&to)) { to[id.x] += source[id.x]; }
}";

const LOOK: &str = "
@group(0) @binding(0) var<uniform> look: vec4<u32>;
@group(0) @binding(1) var<storage, read_write> to: array<u32>;
@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3<u32>) { to[id.x] = look.x; }";

const THREADS: u32 = 4;

/// Reads of undefined bytes race with the write that defines them, whichever comes first; no two writes do.
fn only_reads_of_undefined_bytes(context: &Context) {
    let findings = context.findings().unwrap();
    let expected = |rule| matches!(rule, Rule::Race(Hazard::WriteAfterRead | Hazard::ReadAfterWrite));
    assert!(findings.iter().all(|found| expected(found.rule)), "{findings:#?}");
}

#[test]
fn threads_add_to_one_buffer() {
    let context = Context::builder().workers(2).poison(true).build().unwrap();
    let add = context.program_wgsl(ADD).unwrap();
    let sum = context.buffer(64).label("sum").zeroed().unwrap();
    std::thread::scope(|scope| {
        for thread in 1..=THREADS {
            let (context, add, sum) = (context.sibling(), add.clone(), sum.clone());
            scope.spawn(move || {
                let own = context.buffer(64).build().unwrap();
                context.bind((0, 0), Bind::storage(&own)).unwrap();
                context.bind((0, 1), Bind::storage(&sum)).unwrap();
                for iteration in 0..200u32 {
                    context.upload(&own, &[thread; 16]).unwrap();
                    context.dispatch(&add).groups([1, 1, 1]).unwrap();
                    if iteration % 17 == thread {
                        context.flush().unwrap();
                    }
                }
            });
        }
    });
    // Dispatches of all threads run in some order: none is lost, although all of them read and write the same words.
    let wanted = 200 * (1..=THREADS).sum::<u32>();
    assert_eq!(context.read::<u32>(&sum).unwrap(), [wanted; 16]);
    drop(sum);
    assert_eq!(context.stats().objects_alive(), 0);
}

#[test]
fn a_buffer_is_handed_from_thread_to_thread() {
    let context = Context::builder().workers(2).poison(true).build().unwrap();
    let add = context.program_wgsl(ADD).unwrap();
    let (ball, one) = (context.buffer(64).zeroed().unwrap(), context.buffer_from(&[1u32; 16]).unwrap());
    let barriers: Vec<_> = (0..THREADS).map(|_| Barrier::new(THREADS as usize)).collect();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (context, add, ball, one, barriers) = (context.sibling(), &add, &ball, &one, &barriers);
            scope.spawn(move || {
                for round in 0..25u32 {
                    for writer in 0..THREADS {
                        if writer == thread {
                            let before = round * THREADS + writer;
                            match round % 3 {
                                0 => context.dispatch(add).bind(0, 0, one).bind(0, 1, ball).groups([1, 1, 1]).unwrap(),
                                // The upload replaces the object that slots and batches of another context name.
                                1 => context.upload(ball, &[before + 1; 16]).map(drop).unwrap(),
                                _ => {
                                    assert_eq!(context.read::<u32>(ball).unwrap(), [before; 16]);
                                    context.fill(ball, before + 1).unwrap();
                                }
                            }
                        }
                        barriers[writer as usize].wait();
                    }
                }
            });
        }
    });
    assert_eq!(context.read::<u32>(&ball).unwrap(), [25 * THREADS; 16]);
}

#[test]
fn handles_come_and_go_on_all_threads() {
    let context = Context::builder().workers(2).memory(64 << 20).poison(true).build().unwrap();
    let add = context.program_wgsl(ADD).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (home, add) = (context.clone(), add.clone());
            scope.spawn(move || {
                for iteration in 0..40u32 {
                    let context = if iteration % 2 == 0 { home.sibling() } else { home.clone() };
                    let (a, b) = (context.buffer(64).build().unwrap(), context.buffer(64).zeroed().unwrap());
                    let value = thread * 1000 + iteration;
                    context.write(&a, 0, &[value; 16]).unwrap();
                    context.dispatch(&add).bind(0, 0, &a).bind(0, 1, &b).groups([1, 1, 1]).unwrap();
                    context.invalidate(&a).unwrap();
                    drop(a);
                    let other = home.sibling();
                    drop(context);
                    assert_eq!(other.read::<u32>(&b).unwrap(), [value; 16]);
                }
            });
        }
    });
    context.finish().unwrap();
    assert_eq!(context.stats().objects_alive(), 0);
}

#[test]
fn handles_may_cross_threads() {
    fn send_and_sync<T: Send + Sync>() {}
    send_and_sync::<Context>();
    send_and_sync::<spelter::Buffer>();
    send_and_sync::<spelter::Image>();
    send_and_sync::<spelter::Program>();
    send_and_sync::<spelter::Fence>();
    send_and_sync::<spelter::Mapped>();
    send_and_sync::<spelter::Error>();
}

#[test]
fn contexts_on_different_queues_are_ordered_without_the_host() {
    let context = Context::builder().workers(2).poison(true).build().unwrap();
    let add = context.program_wgsl(ADD).unwrap();
    let (ball, one) = (context.buffer(64).zeroed().unwrap(), context.buffer_from(&[1u32; 16]).unwrap());
    let others: Vec<Context> = (0..3).map(|_| context.sibling()).collect();
    let before = context.stats();
    for _ in 0..100 {
        for context in &others {
            context.dispatch(&add).bind(0, 0, &one).bind(0, 1, &ball).groups([1, 1, 1]).unwrap();
        }
    }
    let after = context.stats();
    // Each hand-over except the first makes the queue wait for the two writers before it, unless they have retired.
    assert!(after.context_waits <= 600);
    assert_eq!((after.read_waits, after.stalls_taken), (before.read_waits, before.stalls_taken));
    assert_eq!(context.read::<u32>(&ball).unwrap(), [300; 16]);
}

#[test]
fn writes_to_undefined_bytes_wait_for_no_context() {
    // Its reads of undefined bytes race.
    let context = Context::builder().workers(2).poison(true).check(Default::default()).build().unwrap();
    let add = context.program_wgsl(ADD).unwrap();
    let (reader, writer) = (context.sibling(), context.sibling());
    let (source, sum) = (context.buffer(64).label("source").build().unwrap(), context.buffer(64).zeroed().unwrap());
    // The contents of `source` are undefined: the dispatch only reads it, and no slot that kernels can write has it.
    let read = || reader.dispatch(&add).bind(0, 0, &source).bind(0, 1, &sum).groups([1, 1, 1]).unwrap();
    read();
    assert!(source.valid_ranges().is_empty());
    let before = context.stats();
    writer.fill(&source, 5).unwrap();
    let stats = context.stats().since(&before);
    assert_eq!((stats.context_waits, stats.batches_submitted), (0, 1), "submitted, without a wait");
    reader.fill(&sum, 1).unwrap();
    read();
    assert_eq!(context.read::<u32>(&sum).unwrap(), [6; 16]);
    only_reads_of_undefined_bytes(&context);
}

#[test]
fn a_dispatch_that_is_repeated_sees_what_was_written_where_nothing_was_before() {
    // Its reads of undefined bytes race.
    let context = Context::builder().workers(2).poison(true).check(Default::default()).build().unwrap();
    let look = context.program_wgsl(LOOK).unwrap();
    for round in 0..50u32 {
        let (reader, writer) = (context.sibling(), context.sibling());
        let (texels, to) = (context.buffer(64).build().unwrap(), context.buffer(64).zeroed().unwrap());
        // As a uniform buffer it is only read, so none of its bytes is valid.
        reader.bind((0, 0), Bind::uniform(&texels)).unwrap();
        reader.bind((0, 1), Bind::storage(&to)).unwrap();
        let dispatch = || reader.dispatch(&look).groups([1, 1, 1]).unwrap();
        dispatch();
        dispatch(); // repeats without a test of its objects
        assert!(texels.valid_ranges().is_empty());
        writer.fill(&texels, round).unwrap();
        dispatch(); // must test its objects again
        assert_eq!(context.read::<u32>(&to).unwrap(), [round; 16], "round {round}");
    }
    only_reads_of_undefined_bytes(&context);
}

#[test]
fn a_wait_for_a_buffer_ends_however_busy_other_threads_keep_it() {
    let context = Context::builder().workers(2).memory(32 << 20).build().unwrap();
    let add = context.program_wgsl(ADD).unwrap();
    // Too large for a second object of the same size, and for staging half of it.
    let (buffer, to) = (context.buffer(20 << 20).zeroed().unwrap(), context.buffer(64).zeroed().unwrap());
    let (half, done) = (vec![7u32; 10 << 18], std::sync::atomic::AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let context = context.sibling();
                while !done.load(std::sync::atomic::Ordering::SeqCst) {
                    context.dispatch(&add).bind(0, 0, &buffer).bind(0, 1, &to).groups([1, 1, 1]).unwrap();
                    context.flush().unwrap();
                }
            });
        }
        for iteration in 0..10u32 {
            let result = match iteration % 3 {
                0 => context.write(&buffer, 0, &half),
                1 => context.upload(&buffer, &half),
                _ => context.invalidate(&buffer),
            };
            result.unwrap();
        }
        context.write(&buffer, 0, &half).unwrap();
        done.store(true, std::sync::atomic::Ordering::SeqCst);
    });
    assert_eq!(context.read_range::<u32>(&buffer, 0..64).unwrap(), [7; 16]);
    assert_eq!(buffer.generation(), 0);
    drop((buffer, to));
    assert_eq!(context.stats().objects_alive(), 0);
}
