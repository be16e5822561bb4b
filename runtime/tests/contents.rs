//! Typed handles of buffers: what the host reads and writes, arrays after a head, numbers of 16 bits.

use spelter::bytemuck::{AnyBitPattern, NoUninit, Pod, Zeroable};
use spelter::half::f16;
use spelter::{Buffer, Context, Error, MapFlags};

spelter::layout! {
    #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
    #[bytemuck(crate = "spelter::bytemuck")]
    #[repr(C)]
    struct Ball {
        at: [f32; 3],
        kind: u32,
    }
}

/// Of the same size, and another type.
#[derive(Clone, Copy, Debug, NoUninit, AnyBitPattern)]
#[bytemuck(crate = "spelter::bytemuck")]
#[repr(C)]
struct Other {
    words: [u32; 4],
}

spelter::layout! {
    #[derive(Clone, Copy, Debug, PartialEq, NoUninit, AnyBitPattern)]
    #[bytemuck(crate = "spelter::bytemuck")]
    #[repr(C)]
    struct Head {
        count: u32,
    }
}

const BALL: Ball = Ball { at: [1.0, 2.0, 3.0], kind: 7 };
const RULE: &str = "(rule: values that the host accesses have the type of the handle; `Buffer::untyped` is a handle \
                    without one)";

#[test]
fn the_host_reads_and_writes_what_a_handle_says() -> Result<(), Error> {
    let context = Context::new()?;
    let balls = context.buffer(32).label("balls").holding(&[BALL; 2])?.typed::<Ball>();
    let refused = |result: Result<(), Error>, problem: &str| {
        let error = result.map_err(|error| error.to_string()).expect_err(problem);
        assert_eq!(error, format!("{problem} {RULE}"));
    };
    let of = "buffer `balls` of 32 bytes: it holds";
    let kind = format!("{of} `kind` (u32) of `Ball` at byte 12, not f32");
    refused(context.read::<f32>(&balls).map(drop), &format!("read: {kind}"));
    refused(context.read_into(&balls, 0, &mut [0.0f32; 4]), &format!("read: {kind}"));
    refused(context.start_read::<[f32; 4]>(&balls).map(drop), &format!("read: {kind}"));
    refused(context.write(&balls, 8, &[1.0f32; 2]).map(drop), &format!("write: {kind}"));
    let at = format!("{of} `at[0]` (f32) of `Ball` at byte 0, not u32");
    refused(context.upload(&balls, &[1u32; 8]).map(drop), &format!("upload: {at}"));
    let other = format!("{of} values of type `Ball`, not `{}`", std::any::type_name::<Other>());
    refused(context.read::<Other>(&balls).map(drop), &format!("read: {other}"));
    let inside = "buffer `balls` of 32 bytes: byte 4 is inside of a value: those of type `Ball` have 16 bytes";
    refused(context.read_range::<Ball>(&balls, 4..20).map(drop), &format!("read: {inside}"));
    let map = context.map(balls.slice(16..), MapFlags::READ | MapFlags::WRITE)?;
    refused(map.read::<f32>(0, 4).map(drop), &format!("read: {of} `kind` (u32) of `Ball` at byte 28, not f32"));
    refused(map.write(12, &[1.0f32]), &format!("write: {of} `kind` (u32) of `Ball` at byte 28, not f32"));
    map.write(12, &[9u32])?;
    assert_eq!(map.read::<f32>(0, 3)?, BALL.at);
    map.unmap()?;
    // Its type, arrays of it, its numbers where they are, bytes, and anything through a handle without a type.
    assert_eq!(context.read::<Ball>(&balls)?, [BALL, Ball { kind: 9, ..BALL }]);
    assert_eq!(context.read::<[Ball; 2]>(&balls)?[0][0], BALL);
    assert_eq!(context.read_range::<f32>(&balls, 4..12)?, [2.0, 3.0]);
    assert_eq!(context.read_range::<u32>(&balls, 28..32)?, [9]);
    assert_eq!(context.read::<u8>(&balls)?.len(), 32);
    assert_eq!(context.read::<Other>(&balls.untyped())?[1].words[3], 9);
    context.write(&balls, 16, &[BALL])?;
    Ok(())
}

/// Vectors of other crates are compared with plain numbers by their size.
#[test]
fn plain_numbers_are_accessed_as_any_type_that_fits() -> Result<(), Error> {
    let context = Context::new()?;
    let points = context.typed_buffer(&[[1.0f32, 2.0, 3.0, 4.0]; 2])?;
    assert_eq!(context.read::<Other>(&points)?.len(), 2);
    assert_eq!(context.read_range::<[f32; 2]>(&points, 8..16)?, [[3.0, 4.0]]);
    let error = context.read_range::<i32>(&points, 16..20).map_err(|error| error.to_string());
    assert_eq!(error, Err(format!("read: a buffer of 32 bytes: it holds f32 at byte 16, not i32 {RULE}")));
    let threes = context.typed_buffer(&[[0.0f32; 3]; 4])?;
    assert!(context.read::<Other>(&threes).is_err(), "16 bytes are not a number of 12");
    Ok(())
}

/// A range may begin in a number, and end in one.
#[test]
fn numbers_that_a_range_cuts_are_noticed() -> Result<(), Error> {
    let context = Context::new()?;
    let of = |bytes: u64, problem: &str| Err(format!("read: a buffer of {bytes} bytes: {problem} {RULE}"));
    fn shown<T>(result: Result<T, Error>) -> Result<(), String> {
        result.map(drop).map_err(|error| error.to_string())
    }
    let doubles = context.typed_buffer(&[1.0f64, 2.0])?;
    let there = |at: u64| of(16, &format!("it holds f64 at byte {at}, not f32"));
    assert_eq!(shown(context.read_range::<f32>(&doubles, 4..8)), there(0));
    assert_eq!(shown(context.read_range::<f32>(&doubles, 12..16)), there(8));
    assert_eq!(shown(context.read_range::<f64>(&doubles, 8..16)), Ok(()));
    let words = context.typed_buffer(&[1u64, 2])?;
    let error = shown(context.read_range::<u32>(&words, 12..16));
    assert_eq!(error, of(16, "it holds u64 at byte 8, not u32"));
    // Numbers of the right type, from a byte inside of one.
    let points = context.typed_buffer(&[[1.0f32, 2.0, 3.0, 4.0]; 2])?;
    let error = shown(context.read_range::<f32>(&points, 2..6));
    assert_eq!(error, of(32, "byte 2 is inside of a number: f32 begins at byte 0"));
    let error = shown(context.read_range::<f32>(&points, 18..26));
    assert_eq!(error, of(32, "byte 18 is inside of a number: f32 begins at byte 16"));
    let balls = context.typed_buffer(&[BALL; 2])?;
    let error = shown(context.read_range::<f32>(&balls, 22..26));
    assert_eq!(error, of(32, "byte 22 is inside of a number: `at[1]` (f32) of `Ball` begins at byte 20"));
    // The middle of a long array.
    let long = context.buffer(1 << 17).holding(&[0u8; 1 << 17])?.typed::<[f64; 1 << 13]>();
    let error = shown(context.read_range::<f32>(&long, 40004..40008));
    assert_eq!(error, of(1 << 17, "it holds f64 at byte 40000, not f32"));
    assert_eq!(shown(context.read_range::<f64>(&long, 40000..40008)), Ok(()));
    // After a head.
    let list = context.typed_buffer_with_tail(&Head { count: 1 }, &[1.0f32, 2.0])?;
    let error = shown(context.read_range::<f32>(&list, 6..10));
    assert_eq!(error, of(12, "byte 6 is inside of a value: those of type `f32` have 4 bytes"));
    Ok(())
}

#[test]
fn a_head_and_an_array_after_it_are_a_typed_buffer() -> Result<(), Error> {
    let context = Context::new()?;
    let program = context.program_wgsl(
        "struct List { count: u32, data: array<f32> }
         @group(0) @binding(0) var<storage, read_write> list: List;
         @compute @workgroup_size(1) fn main() {
             for (var i = 0u; i < list.count; i++) { list.data[i] *= 2.0; }
         }",
    )?;
    let run = |list: &Buffer| context.dispatch(&program).bind(0, 0, list).groups([1, 1, 1]);
    let list = context.typed_buffer_with_tail(&Head { count: 2 }, &[1.0f32, 2.0, 3.0])?;
    run(&list)?;
    assert_eq!(context.read_range::<Head>(&list, 0..4)?, [Head { count: 2 }]);
    assert_eq!(context.read_range::<f32>(&list, 4..16)?, [2.0, 4.0, 3.0]);
    context.write(&list, 0, &[3u32])?;
    run(&list)?;
    assert_eq!(context.read_range::<[f32; 3]>(&list, 4..16)?, [[4.0, 8.0, 6.0]]);
    let problem = |result: Result<(), Error>| result.map_err(|error| error.to_string()).expect_err("another type");
    let error = problem(context.read::<u32>(&list).map(drop));
    assert!(error.starts_with("read: a buffer of 16 bytes: it holds f32 at byte 4, not u32"), "{error}");
    // Other elements, and another place of the array.
    let error = problem(run(&context.typed_buffer_with_tail(&Head { count: 1 }, &[1u32])?));
    assert!(error.contains("the shader has f32 at byte 0, `u32` has u32"), "{error}");
    let wide = context.typed_buffer_with_tail(&[1u32, 0], &[1.0f32])?;
    assert!(problem(run(&wide)).contains("at byte 4"), "{}", problem(run(&wide)));
    let error = problem(context.dispatch(&program).bind_range(0, 0, &list, 16..16).groups([1, 1, 1]));
    assert!(!error.is_empty());
    // A block without an array.
    let single = context.program_wgsl(
        "@group(0) @binding(0) var<storage, read_write> all: array<u32>;
         @compute @workgroup_size(1) fn main() { all[0] = 1u; }",
    )?;
    let error = problem(context.dispatch(&single).bind(0, 0, &list).groups([1, 1, 1]));
    assert!(error.contains("it does not end with an array without a size after other members"), "{error}");
    Ok(())
}

#[test]
fn numbers_of_16_bits_have_a_type() -> Result<(), Error> {
    let context = Context::new()?;
    let program = context.program_wgsl(
        "enable f16;
         @group(0) @binding(0) var<storage, read_write> all: array<f16>;
         @compute @workgroup_size(1) fn main() { all[1] = all[0] * 2.0h; }",
    )?;
    let halves = context.typed_buffer(&[f16::from_f32(1.5), f16::ZERO])?;
    context.dispatch(&program).bind(0, 0, &halves).groups([1, 1, 1])?;
    assert_eq!(context.read::<f16>(&halves)?[1].to_f32(), 3.0);
    let words = context.typed_buffer(&[0u16; 2])?;
    let error = context.dispatch(&program).bind(0, 0, &words).groups([1, 1, 1]).map_err(|error| error.to_string());
    assert!(error.is_err_and(|error| error.contains("the shader has numbers of type f16, `u16` has u16")));
    Ok(())
}
