//! Transfers: which of them wait and which do not, with the same bytes as result.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use spelter::check::{Hazard, Rule};
use spelter::{Buffer, ClearColor, Context, Error, MapFlags, vk};

fn context() -> Context {
    Context::builder().workers(2).memory(256 << 20).poison(true).build().unwrap()
}

/// A context whose races a test looks at itself.
fn checked() -> Context {
    Context::builder().workers(2).poison(true).check(Default::default()).build().unwrap()
}

/// Writes that come after reads of undefined bytes, without a barrier, are all that races: the tracker gives undefined
/// contents no order.
fn only_reads_of_undefined_contents(context: &Context) {
    let findings = context.findings().unwrap();
    let undefined = |race: Rule| race == Rule::Race(Hazard::WriteAfterRead);
    assert!(!findings.is_empty() && findings.iter().all(|found| undefined(found.rule)), "{findings:#?}");
}

/// Makes a buffer busy by a copy of its first bytes; the target shows later what they were.
fn busy(context: &Context, buffer: &Buffer) -> Buffer {
    let copy = context.buffer(16).build().unwrap();
    context.copy(buffer, 0, &copy, 0, 16).unwrap();
    copy
}

#[test]
fn bytes_that_hold_nothing_are_written_at_once() {
    let context = context();
    let buffer = context.buffer(1 << 20).build().unwrap();
    context.write(&buffer, 0, &[1u32; 4]).unwrap();
    let copy = busy(&context, &buffer);
    let before = context.stats();
    for piece in 1..100u64 {
        context.write(&buffer, piece * 16, &[piece as u32; 4]).unwrap();
    }
    let stats = context.stats().since(&before);
    assert_eq!((stats.stalls_avoided, stats.stalls_taken, stats.barriers, stats.bytes_staged), (99, 0, 0, 0));
    assert_eq!(context.read_range::<u32>(&buffer, 99 * 16..100 * 16).unwrap(), [99; 4]);
    assert_eq!(context.read::<u32>(&copy).unwrap(), [1; 4]);
}

#[test]
fn a_part_of_what_is_in_use_is_staged() {
    let context = context();
    let buffer = context.buffer_from(&[1u32; 1024]).unwrap();
    let copy = busy(&context, &buffer);
    context.write(&buffer, 4, &[2u32]).unwrap();
    let stats = context.stats();
    assert_eq!((stats.bytes_staged, stats.renames, stats.stalls_taken, stats.batches_submitted), (4, 0, 0, 0));
    assert_eq!(context.read_range::<u32>(&buffer, 0..12).unwrap(), [1, 2, 1]);
    assert_eq!(context.read::<u32>(&copy).unwrap(), [1; 4]);
}

#[test]
fn what_is_too_large_to_stage_waits() {
    let context = Context::builder().workers(2).memory(64 << 20).build().unwrap();
    let bytes = 12 << 20;
    let buffer = context.buffer(bytes).holding(&vec![1u8; bytes as usize]).unwrap();
    let copy = busy(&context, &buffer);
    context.write(&buffer, 0, &vec![2u8; 6 << 20]).unwrap();
    let stats = context.stats();
    assert_eq!((stats.stalls_taken, stats.bytes_staged, stats.renames), (1, 0, 0));
    assert_eq!(context.read::<u32>(&copy).unwrap(), [0x0101_0101; 4]);
    assert_eq!(context.read_range::<u8>(&buffer, (6 << 20) - 1..(6 << 20) + 1).unwrap(), [2, 1]);
}

#[test]
fn streams_run_in_bounded_memory() {
    let context = Context::builder().workers(2).memory(128 << 20).build().unwrap();
    let (buffer, to) = (context.buffer(4 << 20).build().unwrap(), context.buffer(64).build().unwrap());
    let mut values = vec![0u32; 1 << 20];
    let mut most = 0;
    for frame in 0..100 {
        values.fill(frame);
        context.upload(&buffer, &values).unwrap();
        context.copy(&buffer, 4096, &to, 0, 64).unwrap();
        most = most.max(context.stats().objects_alive());
    }
    assert_eq!(context.read::<u32>(&to).unwrap(), [99; 16]);
    let stats = context.stats();
    // The budget of pending memory is 16 MiB: four objects of 4 MiB, and the current one.
    assert!(most <= 7, "{most} objects at a time");
    // A frame whose wait for the budget left the buffer idle is written in place.
    assert!((99 - stats.stalls_taken..=99).contains(&stats.renames), "{stats}");
    assert_eq!(stats.stalls_taken, stats.renames_throttled);
    assert!(stats.objects_recycled > 80, "{stats}");
}

#[test]
fn mappings_that_discard_do_not_wait() {
    let context = context();
    let buffer = context.buffer_from(&[1u32; 64]).unwrap();
    for (iteration, flags) in [MapFlags::DISCARD_WHOLE, MapFlags::DISCARD_RANGE].into_iter().enumerate() {
        let copy = busy(&context, &buffer);
        let map = context.map(&buffer, MapFlags::WRITE | flags).unwrap();
        map.write(0, &[iteration as u32 + 2; 64]).unwrap();
        map.unmap().unwrap();
        assert_eq!(context.stats().renames, iteration as u64 + 1);
        assert_eq!(context.read::<u32>(&copy).unwrap(), [iteration as u32 + 1; 4]);
    }
    let stats = context.stats();
    assert_eq!((stats.stalls_taken, context.read::<u32>(&buffer).unwrap()), (0, vec![3; 64]));
}

#[test]
fn a_mapping_for_writing_keeps_what_is_not_written() {
    let context = context();
    let buffer = context.buffer_from(&[1u32; 8]).unwrap();
    let copy = busy(&context, &buffer);
    let map = context.map(buffer.slice(4..28), MapFlags::WRITE).unwrap();
    map.write(4, &[7u32]).unwrap();
    map.write(12, &[8u32, 9]).unwrap();
    map.unmap().unwrap();
    assert_eq!(context.stats().batches_submitted, 0, "no call waited");
    assert_eq!(context.read::<u32>(&buffer).unwrap(), [1, 1, 7, 1, 8, 9, 1, 1]);
    assert_eq!(context.read::<u32>(&copy).unwrap(), [1; 4]);
}

#[test]
fn a_mapping_for_reading_waits_for_writers_only() {
    let context = context();
    let buffer = context.buffer_from(&[1u32; 4]).unwrap();
    let copy = busy(&context, &buffer);
    assert_eq!(context.map(&buffer, MapFlags::READ).unwrap().read::<u32>(0, 4).unwrap(), [1; 4]);
    assert_eq!(context.stats().read_waits, 0, "other readers do not conflict");
    assert_eq!(context.map(&copy, MapFlags::READ).unwrap().read::<u32>(0, 4).unwrap(), [1; 4]);
    assert_eq!(context.stats().read_waits, 1);
}

#[test]
fn a_persistent_mapping_stays_while_commands_use_the_buffer() {
    let context = context();
    let (buffer, copy) = (context.buffer_zeroed(64).unwrap(), context.buffer_zeroed(64).unwrap());
    let flags = MapFlags::READ | MapFlags::WRITE | MapFlags::PERSISTENT | MapFlags::COHERENT;
    let map = context.map(&buffer, flags).unwrap();
    map.write(0, &[5u32; 16]).unwrap();
    context.copy(&buffer, 0, &copy, 0, 64).unwrap();
    // The buffer keeps its object, and so the contents that the mapping shows.
    context.invalidate(&buffer).unwrap();
    assert_eq!(buffer.generation(), 0);
    context.fill(&buffer, 6).unwrap();
    context.finish().unwrap();
    assert_eq!(map.read::<u32>(0, 16).unwrap(), [6; 16]);
    assert_eq!(context.read::<u32>(&copy).unwrap(), [5; 16]);
}

#[test]
fn flags_that_contradict_each_other_are_refused() {
    let context = context();
    let buffer = context.buffer(16).label("b").zeroed().unwrap();
    for flags in [
        MapFlags::empty(),
        MapFlags::READ | MapFlags::DISCARD_RANGE,
        MapFlags::READ | MapFlags::WRITE | MapFlags::DISCARD_WHOLE,
        MapFlags::WRITE | MapFlags::COHERENT,
    ] {
        let message = context.map(&buffer, flags).unwrap_err().to_string();
        assert!(message.starts_with("map: buffer `b` of 16 bytes with MapFlags("), "{message}");
    }
    let map = context.map(buffer.slice(..8), MapFlags::READ).unwrap();
    assert!(map.write(0, &[1u32]).unwrap_err().to_string().contains("is for MapFlags(READ)"));
    assert!(map.read::<u32>(4, 2).unwrap_err().to_string().starts_with("read: 8 bytes at 4 of 8 mapped bytes"));
    assert!(context.copy(&buffer, 0, &buffer, 8, 8).unwrap_err().to_string().contains("is mapped"));
    assert!(context.write(&buffer, 0, &[1u32]).unwrap_err().to_string().contains("bytes 0..4 of buffer `b`"));
    context.write(&buffer, 8, &[1u32]).unwrap();
    drop(map);
    context.copy(&buffer, 8, &buffer, 0, 8).unwrap();
    assert_eq!(context.read::<u32>(&buffer).unwrap(), [1, 0, 1, 0]);
}

#[test]
fn barriers_are_by_byte_range() {
    let context = context();
    let (a, b) = (context.buffer_zeroed(64).unwrap(), context.buffer_zeroed(64).unwrap());
    for piece in 0..4 {
        context.copy(&a, piece * 16, &b, piece * 16, 16).unwrap();
    }
    context.fill_range(&b, 48..52, 1).unwrap(); // after the last copy only
    assert_eq!(context.stats().barriers, 1);
    context.copy(&a, 0, &b, 0, 16).unwrap(); // the barrier covered the first copy as well
    assert_eq!(context.stats().barriers, 1);
}

#[test]
fn bytes_that_hold_nothing_are_written_by_commands_without_a_barrier() {
    let context = checked();
    let source = context.buffer_from(&[7u32; 64]).unwrap();
    let (buffer, seen) = (context.buffer(256).build().unwrap(), context.buffer(256).build().unwrap());
    context.fill_range(&buffer, 0..16, 1).unwrap();
    context.copy(&buffer, 0, &seen, 0, 256).unwrap(); // reads undefined bytes as well
    assert_eq!(context.stats().barriers, 1);
    for piece in 1..16 {
        match piece % 2 {
            0 => context.copy(&source, 0, &buffer, piece * 16, 16).unwrap(),
            _ => context.fill_range(&buffer, piece * 16..(piece + 1) * 16, 7).unwrap(),
        }
    }
    assert_eq!(context.stats().barriers, 1, "no command wrote there before, and the earlier read is undefined");
    context.fill_range(&buffer, 16..32, 8).unwrap(); // written before
    assert_eq!(context.stats().barriers, 2);
    context.copy(&buffer, 0, &seen, 0, 256).unwrap();
    assert_eq!(context.stats().barriers, 3);
    let words = context.read::<u32>(&seen).unwrap();
    assert_eq!((words[0], words[4], words[8], words[63]), (1, 8, 7, 7));
    only_reads_of_undefined_contents(&context);
}

#[test]
fn levels_that_hold_nothing_are_written_without_a_barrier() {
    let context = checked();
    let image = context.image(vk::Format::R32_UINT, [4, 4, 1]).layers(3).build().unwrap();
    let other = context.image(vk::Format::R32_UINT, [4, 4, 1]).build().unwrap();
    context.copy_image((&image, 0, 1), (&other, 0, 0)).unwrap(); // undefined
    context.clear_image(image.all().layers(0..2), ClearColor::Uint([5, 0, 0, 0])).unwrap();
    assert_eq!(context.stats().barriers, 0);
    context.copy_image((&image, 0, 1), (&other, 0, 0)).unwrap();
    assert_eq!(context.stats().barriers, 1);
    context.clear_image(image.all().layers(1..3), ClearColor::Uint([6, 0, 0, 0])).unwrap();
    assert_eq!(context.stats().barriers, 2, "one of the two holds data");
    assert_eq!(context.read_image::<u32>(&other, 0, 0).unwrap(), [5; 16]);
    only_reads_of_undefined_contents(&context);
}

#[test]
fn a_fence_tells_when_it_is_done() {
    let context = context();
    let buffer = context.buffer(1 << 20).build().unwrap();
    context.fill(&buffer, 3).unwrap();
    let fence = context.flush().unwrap();
    assert!(fence.wait_for(std::time::Duration::from_secs(60)).unwrap());
    assert!(fence.is_done());
    fence.wait().unwrap();
}

#[test]
fn what_a_rule_forbids_names_the_buffer_and_the_rule() {
    let context = Context::builder().workers(1).build().unwrap();
    let buffer = context.buffer(64).label("particles").zeroed().unwrap();
    let message = |result: Result<(), Error>| result.unwrap_err().to_string();
    let of = "of buffer `particles` of 64 bytes";
    let overlap = message(context.copy(&buffer, 0, &buffer, 8, 16));
    let rule = "source and target of a copy do not overlap";
    assert_eq!(overlap, format!("copy: bytes 0..16 to bytes 8..24 {of} (rule: {rule})"));
    let unaligned = message(context.fill_range(&buffer, 2..6, 1));
    assert!(unaligned.starts_with(&format!("fill: bytes 2..6 {of} (rule: VUID-")), "{unaligned}");
    let outside = message(context.write(&buffer, 60, &[1u32; 4]).map(drop));
    assert!(outside.starts_with(&format!("write: bytes 60..76 {of} (rule: ")), "{outside}");
    let odd = message(context.read_range::<u32>(&buffer, 0..6).map(drop));
    assert!(odd.ends_with("(rule: bytes are read as a whole number of elements)"), "{odd}");
    let unknown = message(context.map(&buffer, MapFlags::from_bits_retain(1 << 20 | 1)).map(drop));
    assert!(unknown.ends_with("(rule: a mapping has only known flags)"), "{unknown}");
    let map = context.map(&buffer, MapFlags::READ | MapFlags::WRITE).unwrap();
    buffer.destroy();
    let write = message(map.write(0, &[1u32]));
    let read = message(map.read::<u32>(0, 1).map(drop));
    assert!(write.starts_with("write: buffer `particles` of 64 bytes is destroyed"), "{write}");
    assert!(read.starts_with("read: buffer `particles` of 64 bytes is destroyed"), "{read}");
}

#[test]
fn nothing_is_copied_and_filled_by_ranges_without_bytes() {
    let context = context();
    let (a, b) = (context.buffer_from(&[1u32; 4]).unwrap(), context.buffer(16).label("b").build().unwrap());
    context.copy(&a, 16, &b, 0, 0).unwrap();
    context.copy(&a, 4, &a, 4, 0).unwrap();
    context.fill_range(&b, 8..8, 7).unwrap();
    assert_eq!((b.valid_ranges().len(), context.stats().transfers), (0, 0));
    // The rules are those of every mapping.
    assert!(matches!(context.copy(&a, 17, &b, 0, 0), Err(Error::Range(_))));
    b.destroy();
    let write = context.write::<u32>(&b, 0, &[]).map(drop);
    for result in [context.copy(&a, 0, &b, 0, 0), context.fill_range(&b, 4..4, 0), write] {
        assert!(result.unwrap_err().to_string().contains("buffer `b` of 16 bytes is destroyed"));
    }
}

#[test]
fn what_is_refused_makes_nothing_valid() {
    let context = context();
    let program = context.program_wgsl(
        "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
         @group(0) @binding(1) var<storage, read_write> b: array<u32>;
         @compute @workgroup_size(1) fn main() { a[0] = 1u; b[0] = 2u; }",
    );
    let (program, a) = (program.unwrap(), context.buffer(1024).build().unwrap());
    context.write(&a, 32, &[7u32; 4]).unwrap();
    // Two ranges of one buffer; the first has valid bytes in its middle.
    let dispatch = || context.dispatch(&program).bind_range(0, 0, &a, 16..64).bind_range(0, 1, &a, 128..256);
    assert!(matches!(dispatch().groups([70_000, 1, 1]), Err(Error::Misuse(_))));
    assert_eq!(a.valid_ranges().first(), Some(&(32..48)), "{:?}", a.valid_ranges());
    assert_eq!(a.valid_ranges().len(), 1);
    dispatch().groups([1, 1, 1]).unwrap();
    assert_eq!(a.valid_ranges(), [16..64, 128..256]);
    // The driver copies only between formats of the same texel size.
    let [wide, narrow] =
        [vk::Format::R32_UINT, vk::Format::R8_UINT].map(|format| context.image(format, [4, 4, 1]).build().unwrap());
    context.clear_image(&wide, ClearColor::Uint([1; 4])).unwrap();
    assert!(matches!(context.copy_image((&wide, 0, 0), (&narrow, 0, 0)), Err(Error::Misuse(_))));
    assert!(narrow.valid_subresources().is_empty());
    // So the next write there does not wait.
    let barriers = context.stats().barriers;
    context.clear_image(&narrow, ClearColor::Uint([1; 4])).unwrap();
    assert_eq!((context.stats().barriers, narrow.valid_subresources()), (barriers, vec![(0, 0)]));
}

#[test]
fn a_level_of_an_idle_image_or_one_that_holds_nothing_is_written_where_it_is() {
    let context = context();
    let image = context.image(vk::Format::R8G8B8A8_UNORM, [5, 3, 2]).levels(2).build().unwrap();
    let texels: Vec<[u8; 4]> = (0..30).map(|at| [at, at + 1, 9, 255]).collect();
    context.write_image(&image, 0, 0, &texels).unwrap();
    let other = context.image(vk::Format::R8G8B8A8_UNORM, [5, 3, 2]).build().unwrap();
    context.copy_image((&image, 0, 0), (&other, 0, 0)).unwrap(); // in use
    context.write_image(&image, 1, 0, &[[7u8; 4]; 2]).unwrap(); // no defined data
    let stats = context.stats();
    assert_eq!((stats.bytes_staged, stats.stalls_avoided, stats.batches_submitted), (0, 1, 0));
    context.write_image(&image, 0, 0, &[[1u8; 4]; 30]).unwrap();
    let stats = context.stats();
    assert_eq!((stats.bytes_staged, stats.stalls_taken, stats.batches_submitted), (120, 0, 0));
    assert_eq!(context.read_image::<[u8; 4]>(&other, 0, 0).unwrap(), texels);
    assert_eq!(context.read_image::<[u8; 4]>(&image, 0, 0).unwrap(), [[1u8; 4]; 30]);
    assert_eq!(context.read_image::<[u8; 4]>(&image, 1, 0).unwrap(), [[7u8; 4]; 2]);
    // All of its valid data: new storage, as for buffers.
    context.copy_image((&other, 0, 0), (&image, 0, 0)).unwrap();
    let before = context.stats();
    context.write_image(&other, 0, 0, &[[2u8; 4]; 30]).unwrap();
    assert_eq!((context.stats().since(&before).renames, other.generation()), (1, 1));
    assert_eq!(context.read_image::<[u8; 4]>(&image, 0, 0).unwrap(), texels);
}

#[test]
fn poison_shows_what_a_discard_forgot_of_an_idle_buffer() {
    let context = Context::builder().workers(1).poison(true).build().unwrap();
    let buffer = context.buffer(16).holding(&[9u32; 4]).unwrap();
    context.upload(&buffer, &[1u32]).unwrap();
    assert_eq!(context.read::<u32>(&buffer).unwrap(), [1, 0xa5a5_a5a5, 0xa5a5_a5a5, 0xa5a5_a5a5]);
    let buffer = context.buffer(16).holding(&[9u32; 4]).unwrap();
    drop(context.map(buffer.slice(0..8), MapFlags::WRITE | MapFlags::DISCARD_RANGE).unwrap());
    assert_eq!(context.read::<u32>(&buffer).unwrap(), [0xa5a5_a5a5, 0xa5a5_a5a5, 9, 9]);
    let image = context.image(vk::Format::R32_UINT, [4, 4, 1]).levels(2).layers(2).build().unwrap();
    context.clear_image(&image, ClearColor::Uint([9, 0, 0, 0])).unwrap();
    context.finish().unwrap();
    context.invalidate_image(image.level(1).layers(1..)).unwrap();
    let level = |level, layer| context.read_image::<u32>(&image, level, layer).unwrap();
    assert_eq!((level(1, 1), level(1, 0)), (vec![0xa5a5_a5a5; 4], vec![9; 4]));
    assert_eq!((level(0, 0), level(0, 1)), (vec![9; 16], vec![9; 16]));
}

#[test]
fn what_the_driver_refuses_is_named_by_its_label() {
    let context = Context::builder().workers(1).memory(64 << 20).build().unwrap();
    let error = context.buffer(1 << 50).label("huge").build().unwrap_err().to_string();
    assert!(error.contains("`huge`"), "{error}");
    let _most = context.buffer(48 << 20).build().unwrap();
    let large = context.buffer(32 << 20).label("large").build().unwrap_err();
    assert_eq!(large.to_string(), "out of memory: buffer `large` of 33554432 bytes");
    assert!(matches!(large, Error::OutOfMemory(_)));
    let sheet = context.image(vk::Format::R32_UINT, [4096, 2048, 1]).label("sheet").build().unwrap_err().to_string();
    assert_eq!(sheet, "out of memory: image `sheet` of 4096x2048x1 R32_UINT");
    let program = context.program_wgsl(
        "@group(0) @binding(0) var<uniform> step: vec4<u32>;
         @group(0) @binding(1) var<storage, read_write> to: array<u32>;
         @compute @workgroup_size(1) fn main() { to[0] = step.x; }",
    );
    let (large, to) = (context.buffer(1 << 20).label("steps").zeroed().unwrap(), context.buffer_zeroed(4).unwrap());
    let error = context.dispatch(&program.unwrap()).bind(0, 0, &large).bind(0, 1, &to).groups([1, 1, 1]).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("binding 0.0 (step): buffer `steps` of 1048576 bytes: ") && text.contains("VUID-"),
        "{text}"
    );
}
