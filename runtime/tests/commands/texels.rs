//! Copies between buffers and images, recorded in contexts and in command buffers.

use super::{context, counted};
use spelter::{Context, Error, vk};

/// Copies texels to a level and a layer of an image, and from there to another buffer.
fn there_and_back(context: &Context, recorded: bool) -> Vec<u16> {
    let texels: Vec<u16> = (0..40).collect();
    let (from, to) = (context.buffer_from(&texels).unwrap(), context.buffer_zeroed(80).unwrap());
    let image = context.image(vk::Format::R16_UINT, [10, 6, 1]).levels(2).layers(3).build().unwrap();
    if recorded {
        let commands = context.record(|commands| {
            commands.copy_buffer_to_image(&from, 20, (&image, 1, 2))?;
            commands.copy_image_to_buffer((&image, 1, 2), &to, 4)
        });
        let (stats, commands) = counted(context, || commands.unwrap());
        assert_eq!(stats.renames, 0);
        context.submit(&commands).unwrap();
    } else {
        context.copy_buffer_to_image(&from, 20, (&image, 1, 2)).unwrap();
        context.copy_image_to_buffer((&image, 1, 2), &to, 4).unwrap();
    }
    assert_eq!(context.read_image::<u16>(&image, 1, 2).unwrap(), (10..25).collect::<Vec<u16>>());
    assert_eq!(image.valid_subresources(), [(1, 2)]);
    context.read(&to).unwrap()
}

#[test]
fn texels_are_copied_in_order() {
    let context = context();
    for recorded in [false, true] {
        // A level of 5 x 3 texels.
        let wanted: Vec<u16> = [0; 2].into_iter().chain(10..25).chain([0; 23]).collect();
        assert_eq!(there_and_back(&context, recorded), wanted, "recorded: {recorded}");
    }
}

#[test]
fn copies_wait_for_each_other_and_for_renames() {
    let context = context();
    let image = context.image(vk::Format::R32_UINT, [4, 1, 1]).build().unwrap();
    let (from, to) = (context.buffer_from(&[1u32, 2, 3, 4]).unwrap(), context.buffer_zeroed(16).unwrap());
    let (stats, commands) = counted(&context, || {
        context.record(|commands| {
            commands.copy_buffer_to_image(&from, 0, (&image, 0, 0))?;
            commands.copy_image_to_buffer((&image, 0, 0), &to, 0)?;
            commands.fill_range(&from, 0..4, 9)
        })
    });
    assert_eq!(stats.barriers, 1, "the fill needs no other one");
    let commands = commands.unwrap();
    let _hold = spelter::testing::hold(&context).unwrap();
    context.submit(&commands).unwrap();
    assert!(context.invalidate_image(&image).unwrap().action.is_replaced());
    context.upload(&from, &[5u32, 6, 7, 8]).unwrap();
    context.submit(&commands).unwrap();
    assert_eq!(context.read::<u32>(&to).unwrap(), [5, 6, 7, 8]);
    assert_eq!(context.read::<u32>(&from).unwrap(), [9, 6, 7, 8]);
}

#[test]
fn an_image_of_another_size_is_an_error_of_the_submission() {
    let context = context();
    let image = context.image(vk::Format::R32_UINT, [4, 1, 1]).label("image").build().unwrap();
    let to = context.buffer_zeroed(16).unwrap();
    let commands = context.record(|commands| commands.copy_image_to_buffer((&image, 0, 0), &to, 0)).unwrap();
    context.resize_image(&image, [2, 1, 1]).unwrap();
    let error = context.submit(&commands).unwrap_err();
    assert!(matches!(&error, Error::Range(text) if text.contains("has 2x1x1 texels, and had 4x1x1")), "{error}");
    context.resize_image(&image, [4, 1, 1]).unwrap();
    context.write_image(&image, 0, 0, &[1u32, 2, 3, 4]).unwrap();
    context.submit(&commands).unwrap();
    assert_eq!(context.read::<u32>(&to).unwrap(), [1, 2, 3, 4]);
}

/// A box in several layers, from and to a buffer with rows and layers apart, in a context and in a command buffer.
fn boxes(context: &Context, recorded: bool) {
    let bytes: Vec<u16> = (0..64).collect();
    let from = context.buffer_from(&bytes).unwrap();
    let to = context.buffer(128).holding(&[0xffffu16; 64]).unwrap();
    let image = context.image(vk::Format::R16_UINT, [12, 8, 1]).levels(2).layers(4).build().unwrap();
    for layer in 0..4 {
        context.write_image(&image, 1, layer, &[1000u16; 24]).unwrap();
    }
    // 3 x 2 texels from (2, 1) on in the second and third layer of level 1; rows of 5 texels, layers of 3 rows.
    let region = image.texels(1, 1).layers(2).origin([2, 1, 0]).extent([3, 2, 1]).row_bytes(10).slice_rows(3);
    // Back as a column of each.
    let column = image.texels(1, 1).layers(2).origin([4, 0, 0]).extent([1, 4, 1]);
    if recorded {
        let commands = context.record(|commands| {
            commands.copy_buffer_to_image(&from, 4, region)?;
            commands.copy_image_to_buffer(column, &to, 2)
        });
        let commands = commands.unwrap();
        // Commands name no storage: they are recorded again.
        let _hold = spelter::testing::hold(context).unwrap();
        context.fill(&to, 0xffff_ffff).unwrap();
        context.submit(&commands).unwrap();
    } else {
        context.copy_buffer_to_image(&from, 4, region).unwrap();
        context.copy_image_to_buffer(column, &to, 2).unwrap();
    }
    for (layer, first) in [(0, None), (1, Some(2u16)), (2, Some(17)), (3, None)] {
        let mut wanted = [1000u16; 24];
        for (row, x) in (0..2u16).flat_map(|row| (0..3u16).map(move |x| (row, x))) {
            let place = usize::from(row + 1) * 6 + usize::from(x) + 2;
            wanted[place] = first.map_or(1000, |first| first + row * 5 + x);
        }
        assert_eq!(context.read_image::<u16>(&image, 1, layer).unwrap(), wanted, "layer {layer}");
    }
    let back = context.read::<u16>(&to).unwrap();
    assert_eq!(back[..10], [0xffff, 1000, 4, 9, 1000, 1000, 19, 24, 1000, 0xffff], "recorded: {recorded}");
}

#[test]
fn boxes_of_texels_are_copied_with_pitches() {
    let context = context();
    boxes(&context, false);
    boxes(&context, true);
}

#[test]
fn slices_of_a_volume_are_copied_with_pitches() {
    let context = context();
    let image = context.image(vk::Format::R32_UINT, [2, 2, 3]).build().unwrap();
    context.write_image(&image, 0, 0, &(0..12).collect::<Vec<u32>>()).unwrap();
    let to = context.buffer_zeroed(80).unwrap();
    // The last two slices without their first column, 12 bytes from row to row and 3 rows from slice to slice.
    let region = image.texels(0, 0).origin([1, 0, 1]).row_bytes(12).slice_rows(3);
    context.copy_image_to_buffer(region, &to, 4).unwrap();
    let mut wanted = [0u32; 20];
    for (place, value) in [(1, 5), (4, 7), (10, 9), (13, 11)] {
        wanted[place] = value;
    }
    assert_eq!(context.read::<u32>(&to).unwrap(), wanted);
    // The last row needs no pitch after it: 14 words are enough, 13 are not.
    let exact = context.buffer_zeroed(56).unwrap();
    context.copy_image_to_buffer(region, &exact, 4).unwrap();
    let error = context.copy_image_to_buffer(region, &context.buffer_zeroed(52).unwrap(), 4).unwrap_err();
    assert!(matches!(&error, Error::Range(text) if text.contains("bytes 4..56 of a buffer of 52 bytes")), "{error}");
}

/// A recorded box does not depend on the size of the image, as long as it is inside.
#[test]
fn a_recorded_box_needs_room_in_the_image() {
    let context = context();
    let image = context.image(vk::Format::R32_UINT, [4, 1, 1]).label("image").build().unwrap();
    let from = context.buffer_from(&[7u32]).unwrap();
    let region = image.texels(0, 0).origin([2, 0, 0]).extent([1, 1, 1]);
    let commands = context.record(|commands| commands.copy_buffer_to_image(&from, 0, region)).unwrap();
    context.resize_image(&image, [3, 1, 1]).unwrap();
    context.submit(&commands).unwrap();
    assert_eq!(context.read_image::<u32>(&image, 0, 0).unwrap()[2], 7);
    context.resize_image(&image, [2, 1, 1]).unwrap();
    let error = context.submit(&commands).unwrap_err();
    let wanted = "command 0, copy: 1 texels from 2 of 2 in x of level 0 of image `image`";
    assert!(matches!(&error, Error::Range(text) if text.contains(wanted)), "{error}");
}
