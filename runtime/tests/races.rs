//! Threads that use one resource concurrently, each with its own context: no write is lost, in whatever order they run.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use spelter::{Buffer, ClearColor, Context, MapFlags, vk};

use crate::is_checked;

const SEVENS: &str = "
@group(0) @binding(0) var<storage, read_write> to: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { to[id.x] = 7u; }";

/// Bytes of half a buffer.
const HALF: u64 = 64 << 10;
const WORDS: usize = HALF as usize / 4;

/// Spins for a time that differs in each round, so that the threads meet at many places.
fn pass(round: u32) {
    let (start, time) = (Instant::now(), Duration::from_nanos(u64::from(round % 50) * 400));
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// `command` sets the second half to 7 in one context, while another context writes all valid bytes, the first half.
/// The object is in use, so that write renames; the command's bytes must not be left in the old object.
fn race(rounds: u32, command: impl Fn(&Context, &Buffer) + Sync) {
    let a = Context::builder().workers(1).build().unwrap();
    let (b, twos) = (a.sibling(), vec![2u32; WORDS]);
    for round in 0..rounds {
        let buffer = a.buffer(2 * HALF).label("shared").build().unwrap();
        // Nearly as many commands as submit a batch, which makes the race window larger.
        for _ in 0..if round % 8 == 0 { 1023 } else { 1 } {
            a.fill_range(&buffer, 0..HALF, 1).unwrap();
        }
        let start = Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                pass(round / 50);
                b.write(&buffer, 0, &twos).unwrap();
            });
            start.wait();
            pass(round);
            command(&a, &buffer);
        });
        let words = a.read::<u32>(&buffer).unwrap();
        assert!(words[..WORDS].iter().all(|word| *word == 2), "round {round}: the whole write is lost");
        assert!(words[WORDS..].iter().all(|word| *word == 7), "round {round}: the command is lost");
    }
}

#[test]
fn a_copy_is_not_lost_by_a_whole_write() {
    // A buffer of one context can be the source of another context's copy, since both are of one device.
    let source = std::sync::OnceLock::new();
    race(300, |context, buffer| {
        let source = source.get_or_init(|| context.buffer_from(&vec![7u32; WORDS]).unwrap());
        context.copy(source, 0, buffer, HALF, HALF).unwrap();
    });
}

#[test]
fn a_fill_is_not_lost_by_a_whole_write() {
    race(300, |context, buffer| context.fill_range(buffer, HALF..2 * HALF, 7).unwrap());
}

#[test]
fn a_dispatch_is_not_lost_by_a_whole_write() {
    let program = std::sync::OnceLock::new();
    race(300, |context, buffer| {
        let program = program.get_or_init(|| context.program_wgsl(SEVENS).unwrap());
        let dispatch = context.dispatch(program).bind_range(0, 0, buffer, HALF..2 * HALF);
        dispatch.groups([WORDS as u32 / 64, 1, 1]).unwrap();
    });
}

#[test]
fn a_write_is_not_lost_by_a_whole_write() {
    race(300, |context, buffer| context.write(buffer, HALF, &[7u32; WORDS]).map(drop).unwrap());
}

#[test]
fn a_clear_is_not_lost_by_an_invalidation_of_another_layer() {
    let a = Context::builder().workers(1).build().unwrap();
    let b = a.sibling();
    for round in 0..400 {
        let image = a.image(vk::Format::R32_UINT, [64, 64, 1]).layers(2).build().unwrap();
        a.write_image(&image, 0, 0, &[1u32; 64 * 64]).unwrap();
        let start = Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                b.invalidate_image(image.all().layers(0..1)).unwrap();
            });
            start.wait();
            pass(round);
            a.clear_image(image.all().layers(1..2), ClearColor::Uint([7, 0, 0, 0])).unwrap();
        });
        assert_eq!(a.read_image::<u32>(&image, 0, 1).unwrap(), [7; 64 * 64], "round {round}");
    }
}

#[test]
fn two_threads_never_map_the_same_bytes() {
    let a = Context::builder().workers(1).build().unwrap();
    let b = a.sibling();
    for round in 0..200 {
        let [buffer, other] = [(); 2].map(|()| a.buffer(1 << 20).zeroed().unwrap());
        a.copy(&buffer, 0, &other, 0, 1 << 20).unwrap();
        let (barrier, mapped) = (Barrier::new(2), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for context in [&a, &b] {
                scope.spawn(|| {
                    barrier.wait();
                    let map = context.map(&buffer, MapFlags::WRITE);
                    mapped.fetch_add(u32::from(map.is_ok()), Ordering::SeqCst);
                    barrier.wait(); // both have tried, and a mapping that succeeded still exists
                });
            }
        });
        assert_eq!(mapped.load(Ordering::SeqCst), 1, "round {round}");
    }
}

#[test]
fn no_lock_is_held_while_the_host_copies() {
    let context = Context::builder().workers(1).build().unwrap();
    let words = vec![7u32; 16 << 20];
    let buffer = context.buffer(64 << 20).build().unwrap();
    let (copies, mut most) = (AtomicU32::new(0), 0);
    // Counts begun and ended copies: the number is odd while there is a copy.
    for round in 0..20 {
        let looks = std::thread::scope(|scope| {
            scope.spawn(|| {
                copies.store(2 * round + 1, Ordering::SeqCst);
                context.write(&buffer, 0, &words).unwrap();
                copies.store(2 * round + 2, Ordering::SeqCst);
            });
            while copies.load(Ordering::SeqCst) == 2 * round {
                std::thread::yield_now();
            }
            let mut looks = 0;
            while copies.load(Ordering::SeqCst) == 2 * round + 1 {
                assert_eq!(buffer.generation(), 0);
                looks += 1;
            }
            looks
        });
        most = most.max(looks);
    }
    // A copy of 64 MiB takes long. If it held the lock there would be one look, maybe two.
    assert!(most > 100, "{most} looks during a copy");
}

#[test]
fn a_command_sees_all_of_what_the_host_copied_before() {
    let a = Context::builder().workers(1).build().unwrap();
    let b = a.sibling();
    let (buffer, seen) = (a.buffer(2 << 20).zeroed().unwrap(), a.buffer(2 << 20).build().unwrap());
    for round in 1..200u32 {
        let words = vec![round; 1 << 19];
        std::thread::scope(|scope| {
            scope.spawn(|| a.write(&buffer, 0, &words).unwrap());
            pass(round);
            b.copy(&buffer, 0, &seen, 0, 2 << 20).unwrap();
        });
        let words = b.read::<u32>(&seen).unwrap();
        assert!(words[0] == round || words[0] == round - 1, "round {round}: {}", words[0]);
        assert!(words.iter().all(|word| *word == words[0]), "round {round}: some words of the copy are older");
    }
}

/// `change` writes a number to each word of a buffer, or texel of an image, while `read` reads them: all words of a
/// read are of one change.
fn whole(change: impl Fn(&Context, u32) + Sync, read: impl Fn(&Context) -> Vec<u32>, context: &Context, rounds: u32) {
    change(context, 0);
    let (sibling, done) = (context.sibling(), AtomicU32::new(0));
    let mut seen = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (1..=rounds).for_each(|round| change(&sibling, round));
            done.store(1, Ordering::SeqCst);
        });
        while done.load(Ordering::SeqCst) == 0 {
            let words = read(context);
            assert!(words[0] >= seen, "{} after {seen}", words[0]);
            seen = words[0];
            assert!(words.iter().all(|word| *word == seen), "a read has words of two changes");
        }
    });
    assert_eq!(read(context)[0], rounds);
}

#[test]
fn what_the_host_reads_is_of_one_moment() {
    let context = Context::builder().workers(1).poison(true).build().unwrap();
    let buffer = context.buffer(64 << 10).zeroed().unwrap();
    let read = |context: &Context| context.read::<u32>(&buffer).unwrap();
    whole(|context, round| context.write(&buffer, 0, &[round; 16 << 10]).map(drop).unwrap(), read, &context, 2000);
    whole(|context, round| context.fill(&buffer, round).unwrap(), read, &context, 500);
    let image = context.image(vk::Format::R32_UINT, [128, 128, 1]).build().unwrap();
    let read = |context: &Context| context.read_image::<u32>(&image, 0, 0).unwrap();
    whole(
        |context, round| context.write_image(&image, 0, 0, &[round; 16 << 10]).map(drop).unwrap(),
        read,
        &context,
        500,
    );
}

/// The resource is in use, so each change gives it new storage: a copy reads the old storage, or the new one with all
/// bytes written.
#[test]
fn what_is_copied_is_of_one_moment() {
    let context = Context::builder().workers(1).poison(true).build().unwrap();
    let [buffer, copy, other] = [(); 3].map(|()| context.buffer(64 << 10).zeroed().unwrap());
    let read = |context: &Context| {
        context.copy(&buffer, 0, &copy, 0, 64 << 10).unwrap();
        context.read::<u32>(&copy).unwrap()
    };
    let use_it = |context: &Context| context.copy(&buffer, 0, &other, 0, 64 << 10).unwrap();
    let write = |context: &Context, round| {
        use_it(context);
        context.write(&buffer, 0, &[round; 16 << 10]).unwrap();
    };
    whole(write, read, &context, 1000);
    let upload = |context: &Context, round| {
        use_it(context);
        context.upload(&buffer, &[round; 16 << 10]).unwrap();
    };
    whole(upload, read, &context, 1000);
    let [image, copy, other] = [(); 3].map(|()| context.image(vk::Format::R32_UINT, [128, 128, 1]).build().unwrap());
    context.clear_image(&image, ClearColor::Uint([0; 4])).unwrap();
    let read = |context: &Context| {
        context.copy_image((&image, 0, 0), (&copy, 0, 0)).unwrap();
        context.read_image::<u32>(&copy, 0, 0).unwrap()
    };
    let write = |context: &Context, round| {
        context.copy_image((&image, 0, 0), (&other, 0, 0)).unwrap();
        context.write_image(&image, 0, 0, &[round; 16 << 10]).unwrap();
    };
    whole(write, read, &context, 500);
    assert!(context.stats().renames > 500, "{}", context.stats());
}

/// Bytes in several staging buffers are copied in one step as well. They are not renamed, since the rest is valid.
#[test]
fn what_is_staged_in_pieces_is_of_one_moment() {
    const BYTES: u64 = 10 << 20;
    let context = Context::builder().workers(1).memory(2 << 30).build().unwrap();
    let [buffer, copy] = [(); 2].map(|()| context.buffer(BYTES + 64).zeroed().unwrap());
    let read = |context: &Context| {
        context.copy(&buffer, 0, &copy, 0, BYTES).unwrap();
        context.read_range::<u32>(&copy, 0..BYTES).unwrap()
    };
    let other = context.buffer(64).build().unwrap();
    let write = |context: &Context, round| {
        context.copy(&buffer, BYTES, &other, 0, 64).unwrap();
        context.write(&buffer, 0, &vec![round; BYTES as usize / 4]).unwrap();
    };
    whole(write, read, &context, 40);
    assert!(context.stats().bytes_staged > 10 * BYTES, "{}", context.stats());
}

/// A host read of bytes that a kernel writes meanwhile gets each byte as the old or the new one.
#[test]
fn bytes_that_a_kernel_is_writing_are_old_or_new() {
    const FLIP: &str = "
        @group(0) @binding(0) var<storage, read_write> to: array<u32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
            for (var iteration = 0u; iteration < 2000u; iteration++) { to[id.x] = ~to[id.x]; }
        }";
    // It races, so that checked mode must not fail it.
    let builder = Context::builder().workers(1);
    let context = if is_checked() { builder.check(Default::default()) } else { builder }.build().unwrap();
    let program = context.program_wgsl(FLIP).unwrap();
    let buffer = context.buffer(4096).zeroed().unwrap();
    let map = context.map(&buffer, MapFlags::READ | MapFlags::WRITE | MapFlags::PERSISTENT).unwrap();
    let (mut looks, mut seen) = (0, [false; 2]);
    for round in 0..50 {
        context.dispatch(&program).bind(0, 0, &buffer).groups([16, 1, 1]).unwrap();
        let fence = context.flush().unwrap();
        while !fence.is_done() {
            // At each byte offset within a word, with writes over the bytes that the kernel writes.
            let bytes = map.read::<u8>(looks % 5, 4000).unwrap();
            map.write(looks % 7, &[[0u8; 3], [0xff; 3]][round % 2]).unwrap();
            for byte in bytes {
                assert!([0, 0xff].contains(&byte), "{byte:#x}");
                seen[usize::from(byte != 0)] = true;
            }
            looks += 1;
        }
        fence.wait().unwrap();
    }
    assert!(looks > 50 && seen == [true; 2], "{looks} looks, {seen:?}");
}
