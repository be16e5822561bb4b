//! The tests of the chapter "Testing invalidation" (docs/testing-invalidation.md), which quotes each of them; the last
//! test here compares the two.

#![expect(clippy::single_range_in_vec_init, reason = "lists of one range are meant")]

use std::time::Duration;

use spelter::testing::{self, OpenedBy};
use spelter::{Action, Bind, ClearColor, Context, Error, Event, MapFlags, Slot, SlotKind, Waits, vk};

#[test]
fn the_object_is_replaced_and_the_resource_stays() -> Result<(), Error> {
    let context = Context::new()?;
    let (a, copy) = (context.buffer_from(&[1u32, 2])?, context.buffer_zeroed(8)?);
    let (id, old) = (a.id(), a.object()?.id);
    context.copy(&a, 0, &copy, 0, 8)?; // recorded: `a` is in use
    let outcome = context.invalidate(&a)?;
    assert_eq!(outcome.action, Action::Replaced { old, new: a.object()?.id });
    assert_eq!((a.id(), a.object()?.generation), (id, 1));
    assert_eq!(context.read::<u32>(&copy)?, [1, 2]); // the copy reads the old object
    Ok(())
}

#[test]
fn data_are_unset_by_a_respecification() -> Result<(), Error> {
    let context = Context::new()?;
    let a = context.buffer_from(&[1u32, 2])?;
    context.bind((0, 0), Bind::storage(&a))?;
    context.unbind((0, 0))?;
    assert_eq!(context.resize(&a, 8)?.action, Action::Forgotten); // the size that it has
    let old = a.object()?.id;
    assert_eq!(context.resize(&a, 64)?.action, Action::Replaced { old, new: a.object()?.id });
    assert_eq!((a.size(), a.valid_ranges()), (64, vec![]));
    Ok(())
}

#[test]
fn data_of_a_buffer_in_use_are_replaced_without_a_stall() -> Result<(), Error> {
    let context = Context::new()?;
    let (a, copy) = (context.buffer_from(&[1u32, 2])?, context.buffer_zeroed(8)?);
    let hold = testing::hold(&context)?;
    context.copy(&a, 0, &copy, 0, 8)?;
    context.flush()?; // submitted: it would run now, were it not held
    let outcome = context.upload(&a, &[3u32, 4])?;
    assert!(outcome.action.is_replaced() && outcome.waits.is_empty());
    assert!(hold.is_held()); // nothing has waited
    hold.release();
    assert_eq!((context.read::<u32>(&copy)?, context.read::<u32>(&a)?), (vec![1, 2], vec![3, 4]));
    Ok(())
}

#[test]
fn a_part_of_a_buffer_in_use_is_staged() -> Result<(), Error> {
    let context = Context::new()?;
    let (a, copy) = (context.buffer_from(&[1u32, 2])?, context.buffer_zeroed(8)?);
    let hold = testing::hold(&context)?;
    context.copy(&a, 0, &copy, 0, 8)?;
    assert_eq!(context.write(&a, 4, &[9u32])?.action, Action::Staged { bytes: 4 });
    let map = context.map(a.slice(..4), MapFlags::WRITE)?;
    assert_eq!(map.outcome().action, Action::Staged { bytes: 4 });
    map.unmap()?;
    assert!(hold.is_held());
    assert_eq!(context.read::<u32>(&copy)?, [1, 2]);
    Ok(())
}

#[test]
fn an_object_lives_as_long_as_its_resource_or_its_batches() -> Result<(), Error> {
    let context = Context::new()?;
    let (a, copy) = (context.buffer_from(&[1u32])?, context.buffer_zeroed(4)?);
    let hold = testing::hold(&context)?;
    context.copy(&a, 0, &copy, 0, 4)?;
    drop(a);
    assert_eq!(context.stats().objects_alive(), 2); // the batch keeps it
    hold.release();
    context.finish()?;
    assert_eq!(context.stats().objects_alive(), 1); // its last batch has retired
    Ok(())
}

#[test]
fn without_valid_data_there_is_nothing_to_do() -> Result<(), Error> {
    let context = Context::new()?;
    let (a, copy) = (context.buffer(8).build()?, context.buffer(8).build()?);
    assert_eq!(context.invalidate(&a)?.action, Action::NothingValid);
    context.copy(&a, 0, &copy, 0, 8)?;
    assert!(a.is_busy());
    assert_eq!(context.invalidate(&a)?.action, Action::NothingValid); // use makes no difference
    Ok(())
}

#[test]
fn the_valid_range_is_reset() -> Result<(), Error> {
    let context = Context::new()?;
    let a = context.buffer(64).build()?;
    context.write(&a, 8, &[1u32, 2])?;
    context.fill_range(&a, 32..40, 7)?;
    assert_eq!(a.valid_ranges(), [8..16, 32..40]);
    context.invalidate(&a)?;
    assert!(a.valid_ranges().is_empty());
    Ok(())
}

#[test]
fn an_idle_object_forgets_its_contents_and_stays() -> Result<(), Error> {
    let context = Context::builder().poison(true).build()?;
    let a = context.buffer_from(&[1u32, 2])?;
    let before = a.object()?;
    assert!(!before.is_busy());
    assert_eq!(context.invalidate(&a)?.action, Action::Forgotten);
    assert_eq!(a.object()?, before);
    assert_ne!(context.read::<u32>(&a)?, [1, 2]); // poisoned
    Ok(())
}

#[test]
fn the_new_object_is_like_the_old_one_and_has_no_users() -> Result<(), Error> {
    let context = Context::new()?;
    let (a, copy) = (context.buffer_from(&[1u32, 2])?, context.buffer_zeroed(8)?);
    context.copy(&a, 0, &copy, 0, 8)?;
    let old = a.object()?;
    assert_eq!(old.readers[0].context, context.id());
    context.invalidate(&a)?;
    let new = a.object()?;
    assert_eq!((new.bytes, new.is_busy()), (old.bytes, false));
    context.record_events(true);
    assert_eq!(context.write(&a, 0, &[3u32, 4])?.action, Action::InPlace);
    context.fill(&a, 0)?; // of an object that no command accesses: no barrier
    assert!(context.events().is_empty());
    Ok(())
}

#[test]
fn without_memory_for_a_new_object_the_call_waits_and_loses_nothing() -> Result<(), Error> {
    let context = Context::new()?;
    let (a, copy) = (context.buffer_from(&[1u32, 2])?, context.buffer_zeroed(8)?);
    let hold = testing::hold(&context)?;
    context.copy(&a, 0, &copy, 0, 8)?;
    let failing = testing::fail_allocations(&context, ..);
    let outcome = context.invalidate(&a)?;
    assert_eq!((outcome.action, outcome.waits), (Action::Forgotten, Waits::NO_MEMORY));
    assert_eq!((hold.opened_by(), failing.failed()), (Some(OpenedBy::Wait), 2));
    assert_eq!((a.generation(), context.read::<u32>(&copy)?), (0, vec![1, 2]));
    Ok(())
}

#[test]
fn each_slot_of_the_resource_is_rebound_and_no_other() -> Result<(), Error> {
    let context = Context::new()?;
    let (a, other) = (context.buffer_zeroed(64)?, context.buffer_zeroed(64)?);
    context.bind((0, 0), Bind::uniform(&a))?;
    context.bind((0, 1), Bind::storage(a.slice(16..32)))?;
    context.bind((0, 2), Bind::storage(&other))?;
    context.fill(&a, 1)?; // in use
    context.record_events(true);
    context.invalidate(&a)?;
    let rebound = context.events().into_iter().filter_map(|event| match event {
        Event::Rebound { slot, kind, resource, .. } => Some((slot, kind, resource)),
        _ => None,
    });
    let slot = |binding| Slot::from((0, binding));
    let wanted = [(slot(0), SlotKind::UniformBuffer, a.id()), (slot(1), SlotKind::StorageBuffer, a.id())];
    assert_eq!(rebound.collect::<Vec<_>>(), wanted);
    let slots = context.slots_of(&a);
    assert!(slots.iter().all(|slot| slot.object == a.object().ok().map(|object| object.id)));
    assert_eq!((slots.len(), &slots[1].ranges[..]), (2, &[16..32][..]));
    Ok(())
}

#[test]
fn storage_buffers_make_what_is_bound_valid() -> Result<(), Error> {
    let context = Context::new()?;
    let a = context.buffer(64).build()?;
    context.bind((0, 0), Bind::storage(a.slice(16..32)))?;
    context.fill(&a, 0)?;
    context.invalidate(&a)?;
    assert_eq!((a.generation(), a.valid_ranges()), (1, vec![16..32]));
    Ok(())
}

#[test]
fn sampler_views_are_made_anew() -> Result<(), Error> {
    let context = Context::new()?;
    let a = context.buffer(64).build()?;
    context.bind((0, 0), Bind::texels(&a, vk::Format::R32_UINT))?;
    context.fill(&a, 0)?;
    let before = context.stats();
    context.invalidate(&a)?;
    let done = context.stats().since(&before);
    assert_eq!((done.rebinds_sampler_view, done.views_created), (1, 1));
    assert!(a.valid_ranges().is_empty()); // shaders only read there
    Ok(())
}

#[test]
fn storage_images_are_like_sampler_views_and_storage_buffers() -> Result<(), Error> {
    let context = Context::new()?;
    let a = context.buffer(64).build()?;
    context.bind((0, 0), Bind::storage_texels(a.slice(..32), vk::Format::R32_UINT))?;
    context.fill(&a, 0)?;
    let before = context.stats();
    context.invalidate(&a)?;
    let done = context.stats().since(&before);
    assert_eq!((done.rebinds_image, done.views_created, a.valid_ranges()), (1, 1, vec![0..32]));
    Ok(())
}

#[test]
fn uniform_buffers_need_nothing_more() -> Result<(), Error> {
    let context = Context::new()?;
    let a = context.buffer(64).build()?;
    context.bind((0, 0), Bind::uniform(&a))?;
    context.fill(&a, 0)?;
    let before = context.stats();
    context.invalidate(&a)?;
    let done = context.stats().since(&before);
    assert_eq!((done.rebinds_uniform, done.views_created, a.valid_ranges().len()), (1, 0, 0));
    Ok(())
}

#[test]
fn descriptor_sets_that_name_the_old_object_are_not_reused() -> Result<(), Error> {
    let context = Context::new()?;
    let program = context.program_wgsl(
        "@group(0) @binding(0) var<storage, read_write> a: u32;
         @compute @workgroup_size(1) fn main() { a += 1u; }",
    )?;
    let a = context.buffer_zeroed(4)?;
    context.bind((0, 0), Bind::storage(&a))?;
    context.dispatch(&program).groups([1, 1, 1])?;
    let old = a.object()?.id;
    context.record_events(true);
    context.upload(&a, &[40u32])?;
    assert!(context.events().contains(&Event::SetsDropped { object: old, sets: 1 }));
    context.dispatch(&program).groups([1, 1, 1])?;
    assert_eq!((context.cached_sets(), context.read::<u32>(&a)?), (1, vec![41]));
    Ok(())
}

#[test]
fn the_old_object_goes_with_its_last_batch_and_its_storage_is_recycled() -> Result<(), Error> {
    let context = Context::new()?;
    let (a, copy) = (context.buffer_from(&[1u32])?, context.buffer_zeroed(4)?);
    let hold = testing::hold(&context)?;
    context.copy(&a, 0, &copy, 0, 4)?;
    context.upload(&a, &[2u32])?;
    assert_eq!((context.stats().objects_alive(), a.object()?.recycled), (3, false));
    hold.release();
    context.finish()?;
    assert_eq!(context.stats().objects_alive(), 2);
    context.copy(&a, 0, &copy, 0, 4)?;
    context.upload(&a, &[3u32])?;
    assert!(a.object()?.recycled);
    Ok(())
}

#[test]
fn images_are_invalidated_level_by_level() -> Result<(), Error> {
    let context = Context::new()?;
    let image = context.image(vk::Format::R32_UINT, [4, 4, 1]).levels(2).build()?;
    context.clear_image(&image, ClearColor::Uint([7; 4]))?; // in use
    // The rest is larger: to copy it would cost more than it gains.
    assert_eq!(context.invalidate_image(image.level(1))?.action, Action::ForgottenInOrder);
    assert_eq!(image.valid_subresources(), [(0, 0)]);
    assert!(context.invalidate_image(&image)?.action.is_replaced());
    Ok(())
}

#[test]
fn a_mapped_buffer_keeps_its_contents() -> Result<(), Error> {
    let context = Context::new()?;
    let a = context.buffer_from(&[1u32, 2])?;
    let map = context.map(&a, MapFlags::READ)?;
    assert_eq!(context.invalidate(&a)?.action, Action::Refused);
    assert_eq!(map.read::<u32>(0, 2)?, [1, 2]);
    Ok(())
}

#[test]
fn another_context_is_rebound_at_its_next_command() -> Result<(), Error> {
    let context = Context::new()?;
    let other = context.sibling();
    let a = context.buffer_zeroed(4)?;
    other.bind((0, 0), Bind::storage(&a))?;
    context.fill(&a, 1)?; // in use
    other.record_events(true);
    context.invalidate(&a)?;
    assert!(other.events().is_empty());
    other.fill(&a, 2)?;
    let (slot, object) = (Slot::from((0, 0)), Some(a.object()?.id));
    let rebound = Event::Rebound { slot, kind: SlotKind::StorageBuffer, resource: a.id(), object };
    assert_eq!(other.events()[0], rebound);
    Ok(())
}

#[test]
fn a_wait_in_progress_is_visible() -> Result<(), Error> {
    let limit = Duration::from_secs(20);
    let context = Context::new()?;
    let a = context.buffer_zeroed(4)?;
    let hold = testing::hold_until_released(&context, limit)?;
    context.fill(&a, 1)?;
    std::thread::scope(|scope| {
        let read = scope.spawn(|| context.read::<u32>(&a));
        assert!(hold.until_awaited(limit));
        assert_eq!(context.stats().waits_in_progress(), 1);
        hold.release();
        assert_eq!(read.join().unwrap()?, [1]);
        assert_eq!(context.stats().waits_in_progress(), 0);
        Ok(())
    })
}

/// The page has every test of this file, word by word, and no other.
#[test]
fn the_page_quotes_these_tests() {
    let (page, file) = (include_str!("../../docs/testing-invalidation.md"), include_str!("invalidation.rs"));
    let file = file.split("\n/// The page has every test").next().unwrap();
    let (_, file) = file.split_once("\n#[test]").unwrap();
    let tests: Vec<_> = file.split("\n#[test]").map(str::trim).collect();
    let blocks = page.split("```rust\n").skip(1).filter_map(|rest| rest.split_once("\n```"));
    let quoted: Vec<_> = blocks.map(|(block, _)| block.trim_start_matches("#[test]").trim()).collect();
    assert!(tests.len() > 15, "{tests:?}");
    for (test, quote) in tests.iter().zip(&quoted) {
        assert_eq!(test, quote, "the page quotes another text");
    }
    assert_eq!(tests.len(), quoted.len(), "not every test is quoted, or not every quote is a test");
}
