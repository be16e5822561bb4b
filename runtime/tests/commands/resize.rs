//! Respecification between the recording of commands and their submission: what is bound without an end has the new
//! size, and what does not fit any more is an error of the submission.

use spelter::{Bind, Buffer, ClearColor, Context, Error, Image, Lend, Program, Recorder, testing, vk};

use crate::commands::{ADD, context, counted};

const INSIDE: &str = "(rule: a range lies within its resource, and does not end before it begins)";

struct Stage {
    context: Context,
    add: Program,
    step: Buffer,
    to: Buffer,
    other: Buffer,
    /// The first command of each command buffer fills it.
    mark: Buffer,
    image: Image,
}

impl Stage {
    fn new() -> Self {
        let context = context();
        let buffer = |label: &str, bytes: u64| context.buffer(bytes).label(label).zeroed().unwrap();
        let image = context.image(vk::Format::R32_UINT, [4, 4, 1]).layers(7).label("image").build().unwrap();
        Self {
            add: context.program_wgsl(ADD).unwrap(),
            step: context.buffer(4).label("step").holding(&[5u32]).unwrap(),
            to: buffer("to", 128),
            other: buffer("other", 256),
            mark: buffer("mark", 4),
            image,
            context,
        }
    }
}

#[test]
fn what_is_bound_without_an_end_has_the_new_size() {
    let Stage { context, add, step, to, .. } = Stage::new();
    let set = context.descriptor_set(&add, 0).bind(0, &step).bind(1, &to).build().unwrap();
    let all = Bind::storage(to.slice(..));
    let commands = context.record(|commands| {
        commands.fill(&to, 1)?;
        commands.dispatch(&add).bind(0, 0, &step).bind(0, 1, &to).groups([16, 1, 1])?;
        commands.dispatch(&add).bind(0, 0, &step).with((0, 1), all.clone()).groups([16, 1, 1])?;
        commands.dispatch(&add).set(0, &set).groups([16, 1, 1])
    });
    let commands = commands.unwrap();
    for bytes in [128, 1024, 64, 64, 4, 2048] {
        let is_same = to.size() == bytes;
        context.finish().unwrap();
        context.resize(&to, bytes).unwrap();
        let (stats, _) = counted(&context, || context.submit(&commands).unwrap());
        assert_eq!(stats.commands_rerecorded, if is_same { 0 } else { 4 }, "{bytes} bytes");
        assert_eq!(to.valid_ranges().first(), Some(&(0..bytes)));
        assert_eq!(context.read::<u32>(&to).unwrap(), vec![16; bytes as usize / 4]);
    }
    // A batch in flight keeps the object that it was recorded with.
    let hold = testing::hold(&context).unwrap();
    context.submit(&commands).unwrap();
    assert!(context.resize(&to, 8).unwrap().action.is_replaced());
    context.submit(&commands).unwrap();
    assert!(hold.is_held(), "nothing has waited");
    hold.release();
    assert_eq!(context.read::<u32>(&to).unwrap(), [16; 2]);
}

/// The copy reads bytes that the buffer did not have when the fill was recorded.
#[test]
fn commands_recorded_before_and_after_are_in_order() {
    let Stage { context, to, other, .. } = Stage::new();
    let (stats, commands) = counted(&context, || {
        context.record(|commands| {
            commands.fill(&to, 7)?;
            context.resize(&to, 256)?;
            commands.copy(&to, 128, &other, 0, 128)
        })
    });
    assert_eq!(stats.barriers, 1);
    context.submit(&commands.unwrap()).unwrap();
    assert_eq!(context.read_range::<u32>(&other, 0..128).unwrap(), [7; 32]);
}

/// A title, what is recorded, the respecification, and the error of the submission: how it begins and how it ends.
type Case = (
    &'static str,
    fn(&Stage, &mut Recorder) -> Result<(), Error>,
    fn(&Stage) -> Result<(), Error>,
    &'static str,
    &'static str,
);

fn shrink(stage: &Stage) -> Result<(), Error> {
    stage.context.resize(&stage.to, 64).map(drop)
}

const CASES: &[Case] = &[
    (
        "a bound range",
        |s, c| c.dispatch(&s.add).bind(0, 0, &s.step).bind_range(0, 1, &s.to, 64..128).groups([1, 1, 1]),
        shrink,
        "binding 0.1: submit: a command buffer: command 1, dispatch: bytes 64..128 of buffer `to` of 64 bytes",
        "(VUID-VkDescriptorBufferInfo-offset-00340)",
    ),
    (
        "a range without an end that begins after the end",
        |s, c| {
            let rest = Bind::storage(s.to.slice(64..));
            c.dispatch(&s.add).bind(0, 0, &s.step).with((0, 1), rest).groups([1, 1, 1])
        },
        shrink,
        "binding 0.1: submit: a command buffer: command 1, dispatch: bytes 64..64 of buffer `to` of 64 bytes",
        "(VUID-VkDescriptorBufferInfo-offset-00340)",
    ),
    (
        "a buffer smaller than its block",
        |s, c| c.dispatch(&s.add).bind(0, 0, &s.step).bind(0, 1, &s.to).groups([1, 1, 1]),
        |s| s.context.resize(&s.step, 2).map(drop),
        "binding 0.0: submit: a command buffer: command 1, dispatch: 2 bytes of buffer `step` of 2 bytes, the \
         block needs at least 4",
        "(rule: a buffer has room for the fixed part of the block that it is bound for)",
    ),
    (
        "the source of a copy",
        |s, c| c.copy(&s.to, 0, &s.other, 0, 128),
        shrink,
        "submit: a command buffer: command 1, copy: bytes 0..128 of buffer `to` of 64 bytes",
        INSIDE,
    ),
    (
        "the target of a copy",
        |s, c| c.copy(&s.other, 0, &s.to, 60, 8),
        shrink,
        "submit: a command buffer: command 1, copy: bytes 60..68 of buffer `to` of 64 bytes",
        INSIDE,
    ),
    (
        "a fill",
        |s, c| c.fill_range(&s.to, 0..128, 1),
        shrink,
        "submit: a command buffer: command 1, fill: bytes 0..128 of buffer `to` of 64 bytes",
        INSIDE,
    ),
    (
        "the counts of an indirect dispatch",
        |s, c| c.dispatch(&s.add).bind(0, 0, &s.step).bind(0, 1, &s.other).indirect(&s.to, 56),
        shrink,
        "submit: a command buffer: command 1, dispatch: bytes 56..68 of buffer `to` of 64 bytes",
        INSIDE,
    ),
    (
        "a copy of images",
        |s, c| c.copy_image((&s.image, 0, 0), (&s.image, 0, 1)).and_then(|()| copy_of_another(s, c)),
        |s| s.context.resize_image(&s.image, [2, 4, 1]).map(drop),
        "submit: a command buffer: command 2, copy: from level 0 of layer 0, 2x4x1 texels, of image `image` of 2x4x1 \
         R32_UINT to level 0 of layer 0, 4x4x1 texels, of an image of 4x4x1 R32_UINT",
        "(rule: source and target of a copy have the same size)",
    ),
];

/// Copies to an image that keeps its size.
fn copy_of_another(stage: &Stage, commands: &mut Recorder) -> Result<(), Error> {
    let other = stage.context.image(vk::Format::R32_UINT, [4, 4, 1]).build()?;
    commands.copy_image((&stage.image, 0, 0), (&other, 0, 0))
}

#[test]
fn what_does_not_fit_is_an_error_of_the_submission_until_it_does() {
    for (title, record, change, begins, ends) in CASES {
        let stage = Stage::new();
        let Stage { context, to, step, mark, image, .. } = &stage;
        context.clear_image(image, ClearColor::Uint([1; 4])).unwrap();
        let commands = context.record(|commands| {
            commands.fill(mark, 1)?;
            record(&stage, commands)
        });
        let commands = commands.unwrap_or_else(|error| panic!("{title}: {error}"));
        change(&stage).unwrap();
        for _ in 0..2 {
            let error = context.submit(&commands).unwrap_err().to_string();
            assert!(error.starts_with(begins) && error.ends_with(ends), "{title}: {error}");
            assert_eq!(context.read::<u32>(mark).unwrap(), [0], "{title}: nothing ran");
        }
        // A command buffer that executes it has the same error.
        let outer = context.record(|outer| outer.execute(&commands)).unwrap();
        let error = context.submit(&outer).unwrap_err().to_string();
        assert!(error.starts_with(begins) && error.ends_with(ends), "{title}, nested: {error}");
        context.resize(to, 128).unwrap();
        context.resize(step, 4).unwrap();
        context.resize_image(image, [4, 4, 1]).unwrap();
        context.clear_image(image, ClearColor::Uint([1; 4])).unwrap();
        context.fill(to, 1).unwrap();
        context.submit(&outer).unwrap_or_else(|error| panic!("{title}: {error}"));
        assert_eq!(context.read::<u32>(mark).unwrap(), [1], "{title}");
    }
}

#[test]
fn a_view_that_is_not_possible_any_more_is_an_error() {
    let stage = Stage::new();
    let Stage { context, image, other, .. } = &stage;
    let text = "
        @group(0) @binding(0) var sky: texture_cube<u32>;
        @group(0) @binding(1) var<storage, read_write> to: vec2<u32>;
        @compute @workgroup_size(1) fn main() { to = textureDimensions(sky); }";
    let program = context.program_wgsl(text).unwrap();
    context.clear_image(image, ClearColor::Uint([1; 4])).unwrap();
    let sky = Bind::sampled(image.all().layers(0..6).as_type(vk::ImageViewType::CUBE));
    let commands =
        context.record(|c| c.dispatch(&program).with((0, 0), sky.clone()).bind(0, 1, other).groups([1, 1, 1])).unwrap();
    for (size, fits) in [([4, 4, 1], true), ([4, 2, 1], false), ([2, 2, 1], true)] {
        context.resize_image(image, size).unwrap();
        context.clear_image(image, ClearColor::Uint([1; 4])).unwrap();
        match context.submit(&commands) {
            Ok(_) => assert_eq!(context.read_range::<u32>(other, 0..8).unwrap(), size[..2]),
            Err(error) => {
                let error = error.to_string();
                let at =
                    "binding 0.0: submit: a command buffer: command 0, dispatch: image `image` of 4x2x1 R32_UINT: ";
                assert!(!fits && error.starts_with(at), "{error}");
            }
        }
        assert!(fits || context.submit(&commands).is_err());
    }
}

/// Each submission finds one size or the other, and none leaves its buffers.
#[test]
fn threads_submit_while_another_one_resizes() {
    let context = context();
    let program = context.program_wgsl(ADD).unwrap();
    // In the same block of small buffers: an access outside of a buffer would change them.
    let neighbours: Vec<_> = (0..8).map(|_| context.buffer_from(&[5u32; 64]).unwrap()).collect();
    let (step, to) = (context.buffer_from(&[1u32]).unwrap(), context.buffer_zeroed(256).unwrap());
    let whole = context.record(|commands| {
        commands.fill(&to, 1)?;
        commands.dispatch(&program).bind(0, 0, &step).bind(0, 1, &to).groups([4, 1, 1])
    });
    let part = context.record(|commands| commands.fill_range(&to, 128..256, 9));
    let (whole, part) = (whole.unwrap(), part.unwrap());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (sibling, whole, part) = (context.sibling(), whole.clone(), part.clone());
            scope.spawn(move || {
                for _ in 0..150 {
                    sibling.submit(&whole).unwrap();
                    if let Err(error) = sibling.submit(&part) {
                        let at = "submit: a command buffer: command 0, fill: bytes 128..256 of a buffer";
                        assert!(error.to_string().starts_with(at), "{error}");
                    }
                }
            });
        }
        for iteration in 0..300 {
            context.resize(&to, if iteration % 2 == 0 { 32 } else { 256 }).unwrap();
        }
    });
    for neighbour in &neighbours {
        assert_eq!(context.read::<u32>(neighbour).unwrap(), [5; 64]);
    }
    context.submit(&whole).unwrap();
    assert_eq!(context.read::<u32>(&to).unwrap(), [2; 64]);
    drop((whole, part, step, to, neighbours));
    context.finish().unwrap();
    assert_eq!(context.stats().objects_alive(), 0);
}

#[test]
fn a_lent_buffer_keeps_its_size() {
    let Stage { context, to, .. } = Stage::new();
    let loan = context.lend(&[Lend::read(&to)]).unwrap();
    let error = context.resize(&to, 64).unwrap_err().to_string();
    assert!(error.ends_with("(rule: a resource is not respecified while it is mapped)"), "{error}");
    drop(loan);
    assert!(context.resize(&to, 64).unwrap().action.is_replaced());
}
