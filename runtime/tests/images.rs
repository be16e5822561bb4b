//! Images: bytes that are written are read back from their level and layer, in order with other commands, and errors
//! name the image.

use proptest::prelude::*;
use spelter::{Bind, ClearColor, Context, Error, SamplerInfo, vk};

use crate::is_checked;

fn message<T>(result: Result<T, Error>) -> String {
    result.err().map(|error| error.to_string()).unwrap_or_default()
}

/// The shader of the texel-buffer example: `to[i] = table[source[i]]`.
const LOOK_UP: &str = include_str!("../examples/look_up.spvasm");

const COPY: &str = "
@group(0) @binding(0) var before: texture_2d<u32>;
@group(0) @binding(1) var after: texture_storage_2d<r32uint, write>;
@compute @workgroup_size(4, 4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if any(id.xy >= textureDimensions(before)) { return; }
    textureStore(after, id.xy, textureLoad(before, id.xy, 0) + vec4(1u));
}";

#[test]
fn kernels_see_the_texels_of_the_current_object_of_an_image() {
    let context = Context::builder().workers(2).poison(true).build().unwrap();
    let program = context.program_wgsl(COPY).unwrap();
    let make = |label| context.image(vk::Format::R32_UINT, [4, 4, 1]).label(label).build().unwrap();
    let (from, to) = (make("from"), [make("first"), make("second"), make("third")]);
    context.bind((0, 0), Bind::sampled(&from)).unwrap();
    for (iteration, to) in (0u32..).zip(&to) {
        // From the second iteration on the image is in use.
        context.invalidate_image(&from).unwrap();
        context.write_image(&from, 0, 0, &[10 * iteration; 16]).unwrap();
        context.bind((0, 1), Bind::storage_image(to)).unwrap();
        context.dispatch(&program).invocations([4, 4, 1]).unwrap();
    }
    assert_eq!((from.generation(), context.stats().rebinds_sampler_view), (2, 2));
    for (iteration, to) in (0u32..).zip(&to) {
        assert_eq!(context.read_image::<u32>(to, 0, 0).unwrap(), [10 * iteration + 1; 16]);
    }
    // The image is replaced while it is bound: later commands use the new object.
    context.invalidate_image(&to[2]).unwrap();
    context.dispatch(&program).invocations([4, 4, 1]).unwrap();
    assert_eq!(context.read_image::<u32>(&to[2], 0, 0).unwrap(), [21; 16]);
    context.bind((0, 1), Bind::sampled(&to[0])).unwrap();
    let wrong = message(context.dispatch(&program).groups([1, 1, 1]));
    let problem = "is bound as a sampler view, \"main\" takes a storage image";
    assert!(wrong.starts_with(&format!("binding 0.1 (after): image `first` of 4x4x1 R32_UINT {problem}")), "{wrong}");
}

#[test]
fn kernels_see_the_texels_of_the_current_object_of_a_buffer() {
    let context = Context::builder().workers(2).poison(true).build().unwrap();
    let words = spelter_shaders::front::spvasm::assemble(LOOK_UP).unwrap();
    let program = context.program_spirv(&words).unwrap();
    // The first 16 bytes are outside the view.
    let bytes = |last: [u8; 4]| [[9; 16].as_slice(), &last].concat();
    let table = context.buffer(20).holding(&bytes([0, 51, 102, 255])).unwrap();
    let indices = context.buffer_from(&[3u32, 1, 2, 0, 4]).unwrap();
    let (first, second) = (context.buffer_zeroed(20).unwrap(), context.buffer_zeroed(20).unwrap());
    let dispatch = |to| {
        context.bind((0, 2), Bind::storage(to)).unwrap();
        context.dispatch(&program).groups([5, 1, 1]).unwrap();
    };
    context.bind((0, 0), Bind::texels(table.slice(16..), vk::Format::R8_UNORM)).unwrap();
    context.bind((0, 1), Bind::storage(&indices)).unwrap();
    dispatch(&first);
    context.upload(&table, &bytes([255, 204, 153, 0])).unwrap();
    dispatch(&second);
    assert_eq!((table.generation(), context.stats().rebinds_sampler_view), (1, 1));
    assert_eq!(context.read::<f32>(&first).unwrap(), [1.0, 0.2, 0.4, 0.0, 0.0]);
    assert_eq!(context.read::<f32>(&second).unwrap(), [0.0, 0.8, 0.6, 1.0, 0.0]);
}

#[test]
fn a_small_part_of_an_image_in_use_is_forgotten_in_order() {
    let context = Context::builder().workers(2).poison(true).build().unwrap();
    let make = |size| context.image(vk::Format::R32_UINT, [size, size, 1]);
    let (image, small) = (make(4).levels(3).build().unwrap(), make(2).build().unwrap());
    context.clear_image(&image, ClearColor::Uint([6; 4])).unwrap();
    context.clear_image(image.level(1), ClearColor::Uint([1; 4])).unwrap();
    context.copy_image((&image, 1, 0), (&small, 0, 0)).unwrap();
    let before = context.stats();
    context.invalidate_image(image.level(1)).unwrap();
    let stats = context.stats().since(&before);
    assert_eq!((image.generation(), stats.invalidations_in_order, stats.renames, stats.stalls_taken), (0, 1, 0, 0));
    assert_eq!(image.valid_subresources(), [(0, 0), (2, 0)]);
    // The next write is ordered after the earlier use, without a wait.
    let barriers = context.stats().barriers;
    context.clear_image(image.level(1), ClearColor::Uint([2; 4])).unwrap();
    let stats = context.stats().since(&before);
    assert_eq!((context.stats().barriers, stats.batches_submitted, stats.stalls_taken), (barriers + 1, 0, 0));
    assert_eq!(context.read_image::<u32>(&small, 0, 0).unwrap(), [1; 4]);
    assert_eq!(context.read_image::<u32>(&image, 1, 0).unwrap(), [2; 4]);
    // The poison is written in order as well.
    context.copy_image((&image, 1, 0), (&small, 0, 0)).unwrap();
    context.invalidate_image(image.level(1)).unwrap();
    context.finish().unwrap();
    assert_ne!(context.read_image::<u32>(&image, 1, 0).unwrap(), [2; 4]);
    assert_eq!(context.read_image::<u32>(&small, 0, 0).unwrap(), [2; 4]);
    // Parts that earlier calls invalidated count when the sizes are compared.
    context.clear_image(&image, ClearColor::Uint([3; 4])).unwrap();
    context.invalidate_image(image.level(2)).unwrap();
    context.invalidate_image(image.level(0)).unwrap();
    assert_eq!((image.generation(), image.valid_subresources()), (1, vec![(1, 0)]));
    assert_eq!(context.read_image::<u32>(&image, 1, 0).unwrap(), [3; 4]);
    assert_eq!(context.read_image::<u32>(&image, 0, 0).unwrap(), [0xa5a5_a5a5; 16]);
}

#[test]
fn views_are_kept_by_their_object_and_go_with_it() {
    let context = Context::builder().workers(1).build().unwrap();
    let program = context.program_wgsl(COPY).unwrap();
    let make = |label| context.image(vk::Format::R32_UINT, [4, 4, 1]).layers(2).label(label).build().unwrap();
    let (a, b) = (make("a"), make("b"));
    context.clear_image(&a, ClearColor::Uint([1; 4])).unwrap();
    for iteration in 0..40u32 {
        let (from, to) = (a.all().layers(iteration % 2..=iteration % 2), b.all().layers(..1));
        let (from, to) = (from.as_type(vk::ImageViewType::TYPE_2D), to.as_type(vk::ImageViewType::TYPE_2D));
        let dispatch = context.dispatch(&program).with((0, 0), Bind::sampled(from));
        dispatch.with((0, 1), Bind::storage_image(to)).invocations([4, 4, 1]).unwrap();
    }
    assert_eq!((context.stats().views_created, context.stats().sets_allocated), (3, 2));
    context.invalidate_image(&a).unwrap(); // in use: a new object
    let from = a.all().layers(..1).as_type(vk::ImageViewType::TYPE_2D);
    context.bind((0, 0), Bind::sampled(from)).unwrap();
    assert_eq!((a.generation(), context.stats().views_created), (1, 4));
    // More parts than cached views: the views are created again, correctly.
    let table = context.buffer_from(&[5u32; 4096]).unwrap();
    for iteration in 0..200u64 {
        let start = iteration % 50 * 64;
        context.bind((1, 0), Bind::texels(table.slice(start..start + 64), vk::Format::R32_UINT)).unwrap();
    }
    assert!(context.stats().views_created > 4 + 50);
}

#[test]
fn what_a_dispatch_does_is_known_of_each_layer() {
    let context = Context::builder().workers(1).build().unwrap();
    let text = "
        @group(0) @binding(0) var nearest: sampler;
        @group(0) @binding(1) var<storage, read_write> to: array<f32>;
        @group(0) @binding(2) var sheets: texture_2d_array<f32>;
        @compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            to[id.x] = textureSampleLevel(sheets, nearest, vec2(0.5), id.x, 0.0).x;
        }";
    let program = context.program_wgsl(text).unwrap();
    let image = context.image(vk::Format::R32_SFLOAT, [4, 4, 1]).levels(2).layers(2).build().unwrap();
    context.clear_image(&image, ClearColor::Float([1.0; 4])).unwrap();
    let targets = [context.buffer_zeroed(8).unwrap(), context.buffer_zeroed(8).unwrap()];
    context.bind((0, 0), Bind::sampler(&context.sampler(&SamplerInfo::default()).unwrap())).unwrap();
    // Two layers of one level: the image descriptor has two ranges, the sampler has none.
    context.bind((0, 2), Bind::sampled(image.level(1))).unwrap();
    for (iteration, to) in (0u32..).zip(&targets) {
        context.bind((0, 1), Bind::storage(to)).unwrap();
        context.dispatch(&program).groups([2, 1, 1]).unwrap();
        let before = context.stats().barriers;
        context.clear_image(image.level(1).layers(1 - iteration..=1 - iteration), ClearColor::Float([2.0; 4])).unwrap();
        assert_eq!(context.stats().barriers, before + 1, "the previous dispatch reads layer {}", 1 - iteration);
    }
    assert_eq!(context.read::<f32>(&targets[0]).unwrap(), [1.0, 1.0]);
    assert_eq!(context.read::<f32>(&targets[1]).unwrap(), [1.0, 2.0]);
}

/// A step on two images of 2 levels and 2 layers.
#[derive(Clone, Copy, Debug)]
enum Step {
    Write {
        image: usize,
        level: u32,
        layer: u32,
        value: u32,
    },
    Clear {
        image: usize,
        level: u32,
        value: u32,
    },
    Copy {
        from: usize,
        to: usize,
        level: u32,
        layers: [u32; 2],
    },
    Invalidate {
        image: usize,
    },
    InvalidateLevel {
        image: usize,
        level: u32,
    },
    /// Binds one level of one layer of an image, where each dispatch of the context adds to its texels.
    Bind {
        image: usize,
        level: u32,
        layer: u32,
    },
    Dispatch {
        value: u32,
    },
    Flush,
    Read {
        image: usize,
        level: u32,
        layer: u32,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let (image, level, layer) = (0..2usize, 0..2u32, 0..2u32);
    prop_oneof![
        3 => (image.clone(), level.clone(), layer.clone(), any::<u32>())
            .prop_map(|(image, level, layer, value)| Step::Write { image, level, layer, value }),
        1 => (image.clone(), level.clone(), any::<u32>())
            .prop_map(|(image, level, value)| Step::Clear { image, level, value }),
        3 => (image.clone(), image.clone(), level.clone(), [layer.clone(), layer.clone()])
            .prop_map(|(from, to, level, layers)| Step::Copy { from, to, level, layers }),
        2 => image.clone().prop_map(|image| Step::Invalidate { image }),
        2 => (image.clone(), level.clone()).prop_map(|(image, level)| Step::InvalidateLevel { image, level }),
        2 => (image.clone(), level.clone(), layer.clone())
            .prop_map(|(image, level, layer)| Step::Bind { image, level, layer }),
        4 => any::<u32>().prop_map(|value| Step::Dispatch { value }),
        1 => Just(Step::Flush),
        2 => (image, level, layer).prop_map(|(image, level, layer)| Step::Read { image, level, layer }),
    ]
}

/// Texel `at` of a level that was written with a value.
fn texel(value: u32, at: usize) -> u32 {
    value.wrapping_add(at as u32)
}

/// Adds a number to each texel of a level.
const ADD_TO_TEXELS: &str = "
@group(0) @binding(0) var texels: texture_storage_2d<r32uint, read_write>;
@group(0) @binding(1) var<storage, read> step: u32;
@compute @workgroup_size(1)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if all(id.xy < textureDimensions(texels)) {
        textureStore(texels, id.xy, textureLoad(texels, id.xy) + vec4<u32>(step));
    }
}";

/// The number of cases, unless the environment sets it.
const CASES: u32 = 96;

fn cases() -> u32 {
    if std::env::var_os("PROPTEST_CASES").is_some() { ProptestConfig::default().cases } else { CASES }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases()) })]

    /// Compares two contexts with the same steps on plain arrays, where an undefined texel may have any value.
    #[test]
    fn texels_are_where_they_were_put(steps in proptest::collection::vec((any::<bool>(), step()), 1..80)) {
        let first = Context::builder().workers(2).memory(64 << 20).poison(true).build().unwrap();
        let contexts = [first.sibling(), first.sibling()];
        let make = || first.image(vk::Format::R32_UINT, [6, 3, 1]).levels(2).layers(2).build().unwrap();
        let images = [make(), make()];
        let count = |level: u32| if level == 0 { 18 } else { 3 };
        let add = first.program_wgsl(ADD_TO_TEXELS).unwrap();
        let mut bound = [None; 2];
        // By image, level, layer.
        let mut model = vec![vec![vec![None::<Vec<u32>>; 2]; 2]; 2];
        for (second, step) in steps {
            let context = &contexts[usize::from(second)];
            match step {
                Step::Write { image, level, layer, value } => {
                    let texels: Vec<u32> = (0..count(level)).map(|at| texel(value, at)).collect();
                    context.write_image(&images[image], level, layer, &texels).unwrap();
                    model[image][level as usize][layer as usize] = Some(texels);
                }
                Step::Clear { image, level, value } => {
                    context.clear_image(images[image].level(level), ClearColor::Uint([value; 4])).unwrap();
                    model[image][level as usize].fill(Some(vec![value; count(level)]));
                }
                Step::Copy { from, level, layers, .. }
                    if is_checked() && model[from][level as usize][layers[0] as usize].is_none() => {}
                Step::Copy { from, to, level, layers } => if from != to {
                    context.copy_image((&images[from], level, layers[0]), (&images[to], level, layers[1])).unwrap();
                    model[to][level as usize][layers[1] as usize] = model[from][level as usize][layers[0] as usize].clone();
                },
                Step::Invalidate { image } => {
                    context.invalidate_image(&images[image]).unwrap();
                    model[image].iter_mut().flatten().for_each(|layer| *layer = None);
                }
                Step::InvalidateLevel { image, level } => {
                    context.invalidate_image(images[image].level(level)).unwrap();
                    model[image][level as usize].fill(None);
                }
                Step::Bind { image, level, layer } => {
                    let part = images[image].level(level).layers(layer..=layer).as_type(vk::ImageViewType::TYPE_2D);
                    context.bind((0, 0), Bind::storage_image(part)).unwrap();
                    bound[usize::from(second)] = Some((image, level as usize, layer as usize));
                }
                Step::Dispatch { .. } if is_checked() && bound[usize::from(second)].is_none_or(|at| {
                    let (image, level, layer) = at;
                    model[image][level][layer].is_none()
                }) => {}
                Step::Dispatch { value } => if let Some((image, level, layer)) = bound[usize::from(second)] {
                    let step = first.buffer_from(&[value]).unwrap();
                    context.dispatch(&add).bind(0, 1, &step).groups([6, 3, 1]).unwrap();
                    for texel in model[image][level][layer].iter_mut().flatten() {
                        *texel = texel.wrapping_add(value);
                    }
                },
                Step::Flush => drop(context.flush().unwrap()),
                Step::Read { image, level, layer }
                    if is_checked() && model[image][level as usize][layer as usize].is_none() => {}
                Step::Read { image, level, layer } => {
                    let got = context.read_image::<u32>(&images[image], level, layer).unwrap();
                    if let Some(wanted) = &model[image][level as usize][layer as usize] {
                        prop_assert_eq!(&got, wanted);
                    }
                }
            }
        }
        drop((images, contexts, add));
        prop_assert_eq!(first.stats().objects_alive(), 0);
    }
}

#[test]
fn volumes_and_formats() {
    let context = Context::new().unwrap();
    let volume = context.image(vk::Format::R8G8B8A8_UNORM, [3, 2, 2]).build().unwrap();
    let texels: Vec<[u8; 4]> = (0..12).map(|at| [at, at + 1, at + 2, 255]).collect();
    context.write_image(&volume, 0, 0, &texels).unwrap();
    assert_eq!(context.read_image::<[u8; 4]>(&volume, 0, 0).unwrap(), texels);
    let floats = context.image(vk::Format::R32G32B32A32_SFLOAT, [2, 1, 1]).build().unwrap();
    context.clear_image(&floats, ClearColor::Float([0.5, 1.0, -2.0, 0.0])).unwrap();
    assert_eq!(context.read_image::<[f32; 4]>(&floats, 0, 0).unwrap(), [[0.5, 1.0, -2.0, 0.0]; 2]);
}

#[test]
fn what_does_not_fit_is_named() {
    let context = Context::new().unwrap();
    let image = context.image(vk::Format::R32_UINT, [4, 4, 1]).levels(3).label("map").build().unwrap();
    let of = "image `map` of 4x4x1 R32_UINT";
    let inside = "(rule: a range lies within its resource, and does not end before it begins)";
    assert_eq!(message(context.read_image::<u32>(&image, 3, 0)), format!("read: levels 3..4 of 3 of {of} {inside}"));
    assert_eq!(message(context.read_image::<u32>(&image, 0, 1)), format!("read: layers 1..2 of 1 of {of} {inside}"));
    let few = message(context.write_image(&image, 1, 0, &[1u32; 3]));
    assert_eq!(few, format!("write: 12 bytes for the 16 of level 1 of {of} (rule: a level is written as a whole)"));
    let wide = context.image(vk::Format::R32_UINT, [8, 4, 1]).label("wide").build().unwrap();
    assert_eq!(
        message(context.copy_image((&image, 0, 0), (&wide, 0, 0))),
        format!(
            "copy: from level 0 of layer 0, 4x4x1 texels, of {of} to level 0 of layer 0, 8x4x1 texels, of image `wide` of \
             8x4x1 R32_UINT (rule: source and target of a copy have the same size)"
        )
    );
    let same = message(context.copy_image((&image, 0, 0), (&image, 0, 0)));
    assert!(same.ends_with("(rule: source and target of a copy do not overlap)"), "{same}");
    let beyond = message(context.bind((0, 0), Bind::sampled(image.all().levels(2..5))));
    assert_eq!(beyond, format!("binding 0.0: levels 2..5 of 3 of {of} (rule: views lie within their images)"));
    let cube = message(context.bind((0, 0), Bind::sampled(image.all().as_type(vk::ImageViewType::CUBE))));
    assert!(cube.starts_with(&format!("binding 0.0: {of}: ")), "{cube}");
    let huge = message(context.bind((0, 0), Bind::sampled(image.all().layers(0..u32::MAX))));
    assert!(huge.contains("layers 0..4294967295 of 1"), "{huge}");
    image.destroy();
    let gone = message(context.write_image(&image, 0, 0, &[1u32; 16]));
    assert_eq!(gone, format!("write: {of} is destroyed (rule: a destroyed resource is not used)"));
    assert!(matches!(context.image(vk::Format::R32_UINT, [0, 1, 1]).build(), Err(Error::Misuse(_))));
    assert!(matches!(context.image(vk::Format::UNDEFINED, [1, 1, 1]).build(), Err(Error::Misuse(_))));
}
