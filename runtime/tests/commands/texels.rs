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
