//! `spelter run` with images and samplers: sources, samplers, pictures, arrays, mistakes.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::io::Cursor;

use crate::common::Folder;

/// Copies a sampled image to a storage image, texel by texel.
const COPY: &str = "
@group(0) @binding(0) var source: texture_2d<f32>;
@group(0) @binding(1) var to: texture_storage_2d<rgba8unorm, write>;
@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) id: vec3<u32>) { textureStore(to, id.xy, textureLoad(source, id.xy, 0)); }";

/// Samples at the middle of a line of two texels, at its left edge and beyond its right edge.
const SAMPLE: &str = "
@group(0) @binding(0) var line: texture_2d<f32>;
@group(0) @binding(1) var how: sampler;
@group(0) @binding(2) var<storage, read_write> to: array<f32>;
@compute @workgroup_size(1)
fn main() {
    to[0] = textureSampleLevel(line, how, vec2(0.5, 0.5), 0.0).r;
    to[1] = textureSampleLevel(line, how, vec2(0.0, 0.5), 0.0).r;
    to[2] = textureSampleLevel(line, how, vec2(1.3, 0.5), 0.0).r;
}";

const COMPARE: &str = "
@group(0) @binding(0) var depth: texture_depth_2d;
@group(0) @binding(1) var how: sampler_comparison;
@group(0) @binding(2) var<storage, read_write> to: array<f32>;
@compute @workgroup_size(1)
fn main() { to[0] = textureSampleCompareLevel(depth, how, vec2(0.1, 0.5), 0.5);
    to[1] = textureSampleCompareLevel(depth, how, vec2(0.9, 0.5), 0.5); }";

fn png(size: [u32; 2], color: png::ColorType, bytes: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, size[0], size[1]);
    encoder.set_color(color);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header().unwrap().write_image_data(bytes).unwrap();
    file
}

fn pixels(file: &[u8]) -> (png::OutputInfo, Vec<u8>) {
    let mut reader = png::Decoder::new(Cursor::new(file)).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    bytes.truncate(info.buffer_size());
    (info, bytes)
}

const ADD_TO_TEXEL: &str = "
OpCapability Shader
OpCapability ImageBuffer
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main \"main\"
OpExecutionMode %main LocalSize 1 1 1
OpDecorate %texels DescriptorSet 0
OpDecorate %texels Binding 0
%void = OpTypeVoid
%signature = OpTypeFunction %void
%uint = OpTypeInt 32 0
%vector = OpTypeVector %uint 4
%one = OpConstant %uint 1
%ones = OpConstantComposite %vector %one %one %one %one
%image = OpTypeImage %uint Buffer 0 0 0 2 R32ui
%pointer = OpTypePointer UniformConstant %image
%texels = OpVariable %pointer UniformConstant
%main = OpFunction %void None %signature
%label = OpLabel
%loaded = OpLoad %image %texels
%old = OpImageRead %vector %loaded %one
%new = OpIAdd %vector %old %ones
OpImageWrite %loaded %one %new
OpReturn
OpFunctionEnd
";

#[test]
fn a_picture_is_copied() {
    let folder = Folder::with("image-copy", "copy.wgsl", COPY);
    let rgba = [10, 20, 30, 255, 40, 50, 60, 128];
    folder.write("in.png", &png([2, 1], png::ColorType::Rgba, &rgba));
    let line = "run copy.wgsl --image 0.0=in.png --image 0.1=rgba8unorm:2x1 --groups 2";
    folder.good(&format!("{line} --save 0.1=out.png --save to=out.raw"));
    let other = folder.spelter(&format!("{line} --save to=out.jpg"));
    let note = "note: --save 0.1: out.jpg has the bytes of the texels; pictures are .png\n";
    assert!(other.stderr.contains(note), "{}", other.stderr);
    assert_eq!(pixels(&folder.read("out.png")).1, rgba);
    assert_eq!(folder.read("out.raw"), rgba);
    assert_eq!(folder.good(&format!("{line} --out 0.1=u8:0..4")), "0.1 u8  10 20 30 255\n");
    // Grey, RGB and sRGB-encoded formats: the codes stay.
    folder.write("grey.png", &png([2, 1], png::ColorType::Grayscale, &[7, 200]));
    let from = |source: &str| line.replace("in.png", source) + " --out 0.1=u8:0..8";
    assert_eq!(folder.good(&from("grey.png")), "0.1 u8  7 7 7 255 200 200 200 255\n");
    assert_eq!(folder.good(&from("rg32float@in.png")), "0.1 u8  10 20 0 255 40 50 0 255\n");
}

#[test]
fn patterns_levels_and_raw_texels() {
    let folder = Folder::with("image-patterns", "copy.wgsl", COPY);
    let line = |source: &str| {
        let target = "--image 0.1=rgba8unorm:2x1 --groups 2 --out 0.1=vec4<u8>";
        folder.good(&format!("run copy.wgsl --image 0.0={source} {target}"))
    };
    assert_eq!(line("r8unorm:2x1:gradient"), "0.1 vec4<u8>  (0, 0, 0, 255) (255, 0, 0, 255)\n");
    assert_eq!(line("R32_SFLOAT:2x1"), "0.1 vec4<u8>  (0, 0, 0, 255) (0, 0, 0, 255)\n");
    assert_eq!(line("rgba8unorm:4x4:levels=3:checker"), "0.1 vec4<u8>  (0, 0, 0, 255) (0, 0, 0, 255)\n");
    folder.write("texels.bin", &[1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(line("rgba8unorm:2x1:@texels.bin"), "0.1 vec4<u8>  (1, 2, 3, 4) (5, 6, 7, 8)\n");
}

#[test]
fn samplers() {
    let folder = Folder::with("image-sampler", "sample.wgsl", SAMPLE);
    let with = |words: &str| {
        let line = "run sample.wgsl --image 0.0=r32float:2x1:gradient --bind 0.2=zeros:12 --out 0.2=f32";
        folder.good(&format!("{line} --sampler 0.1={words}"))
    };
    assert_eq!(with("nearest"), "0.2 f32  1 0 1\n");
    assert_eq!(with("linear"), "0.2 f32  0.5 0 1\n");
    assert_eq!(with("nearest,repeat"), "0.2 f32  1 0 0\n");
    assert_eq!(with("nearest,border,color=transparent"), "0.2 f32  1 0 0\n");
    folder.write("compare.wgsl", COMPARE.as_bytes());
    let line = "run compare.wgsl --image depth=depth32float:2x1:gradient --bind to=zeros:8 --out to=f32 --sampler how=";
    assert_eq!(folder.good(&format!("{line}compare=less")), "0.2 (to) f32  0 1\n");
    assert_eq!(folder.good(&format!("{line}compare=greater")), "0.2 (to) f32  1 0\n");
}

#[test]
fn volumes_arrays_and_cubes() {
    let folder = Folder::new("image-shapes");
    for (name, ty, at, size) in [
        ("volume", "texture_storage_3d<r32uint, write>", "vec3(1u, 1u, 2u)", "2x2x3"),
        ("layers", "texture_storage_2d_array<r32uint, write>", "vec2(1u, 1u), 2u", "2x2x3"),
    ] {
        let text = format!(
            "@group(0) @binding(0) var to: {ty};
             @compute @workgroup_size(1) fn main() {{ textureStore(to, {at}, vec4(9u)); }}"
        );
        folder.write(&format!("{name}.wgsl"), text.as_bytes());
        let line = format!("run {name}.wgsl --image 0.0=r32uint:{size}");
        assert_eq!(folder.good(&format!("{line} --out 0.0=u32:10..12")), "0.0 u32  0 9\n");
        folder.good(&format!("{line} --save 0.0=sheet.png"));
        let (info, bytes) = pixels(&folder.read("sheet.png"));
        // The slices are below each other; 32-bit codes become 16-bit ones.
        assert_eq!((info.width, info.height, info.bit_depth), (2, 6, png::BitDepth::Sixteen));
        assert_eq!(bytes[22..], [0, 9]);
    }
    let cube = "
        @group(0) @binding(0) var sky: texture_cube<f32>;
        @group(0) @binding(1) var how: sampler;
        @group(0) @binding(2) var<storage, read_write> to: array<f32>;
        @compute @workgroup_size(1)
        fn main() { to[0] = textureSampleLevel(sky, how, vec3(0.0, 0.0, -1.0), 0.0).b; }";
    folder.write("cube.wgsl", cube.as_bytes());
    let line =
        "run cube.wgsl --image 0.0=rgba32float:4x4:gradient --sampler 0.1=nearest --bind 0.2=zeros:4 --out 0.2=f32";
    // The face of -z is the last of six.
    assert_eq!(folder.good(line), "0.2 f32  1\n");
}

#[test]
fn floats_outside_of_a_picture_are_clamped_with_a_note() {
    let text = "
        @group(0) @binding(0) var to: texture_storage_2d<r32float, write>;
        @compute @workgroup_size(1)
        fn main() { textureStore(to, vec2(0u, 0u), vec4(2.5)); textureStore(to, vec2(1u, 0u), vec4(0.5)); }";
    let folder = Folder::with("image-clamp", "clamp.wgsl", text);
    let ended = folder.spelter("run clamp.wgsl --image 0.0=r32float:2x1 --save 0.0=out.png");
    let note = "note: --save 0.0: out.png: values outside of 0 to 1 were clamped\n";
    assert_eq!((ended.status, ended.stderr.as_str()), (0, note));
    assert_eq!(pixels(&folder.read("out.png")).1, [255, 255, 128, 0]);
}

#[test]
fn mistakes() {
    let folder = Folder::with("image-mistakes", "copy.wgsl", COPY);
    folder.write("bad.png", b"not a picture");
    folder.write("small.bin", &[0; 3]);
    let to = "--image 0.1=rgba8unorm:2x1";
    for (options, message) in [
        (
            "--image 0.0=rgba8unorm:2x1",
            "binding 0.1 (to), a storage image, has no image: use --image 0.1=FILE.png or --image 0.1=FORMAT:WIDTHxHEIGHT (VUID-vkCmdDispatch-None-08114)",
        ),
        ("--image 0.0=missing.png", "--image 0.0: missing.png: No such file or directory (os error 2)"),
        ("--image 0.0=rgba8unorm:2x1x3", "--image 0.0: the shader takes a 2D image of size WIDTHxHEIGHT, not 2x1x3"),
        ("--image 0.0=rgba8unorm:4", "--image 0.0: the shader takes a 2D image of size WIDTHxHEIGHT, not 4"),
        (
            "--image 0.0=rgba8unorm:2x1:@small.bin",
            "--image 0.0: small.bin: 3 bytes, but the texels in rgba8unorm have 8",
        ),
        ("--bind 0.0=zeros:4", "--bind 0.0: it is a sampled image: use --image"),
        ("--sampler 0.0=linear", "--sampler 0.0: it is a sampled image: use --image"),
        ("--image 0.0=rgba8unorm:2x1 --image 0.0=rgba8unorm:2x1", "binding 0.0 is given twice"),
    ] {
        let to = if options.starts_with("--image 0.0=rgba8unorm:2x1") && options.len() == 26 { "" } else { to };
        assert_eq!(folder.error(&format!("run copy.wgsl {options} {to}")), message, "{options}");
    }
    for (options, part) in [
        ("--image 0.0=bad.png", "--image 0.0: bad.png: not a PNG that can be read: "),
        ("--image 0.0=rgba8uint:2x1", "(VUID-vkCmdDispatch-format-07753)"),
        ("--image 0.0=rgba8unorm:99999x1", "VUID-VkImageCreateInfo-"),
        ("--image 0.0=rgba32float:65536x65536", "--image 0.0: its 68719476736 bytes are more than"),
    ] {
        let error = folder.error(&format!("run copy.wgsl {options} {to}"));
        assert!(error.contains(part) && error.starts_with("--image 0.0: "), "{options}: {error}");
    }
    for (options, part) in [
        ("--image 0.0=rgba9unorm:2x1", "\"rgba9unorm\" is not a format"),
        ("--image 0.0=photo.jpg", "\"photo.jpg\" is not an image"),
        ("--image 0.0=rgba8unorm:0x1", "\"0x1\" is not the size of an image"),
        ("--sampler 0.0=cubic", "\"cubic\" is not a word of a sampler"),
        ("--image 0.0", "has no =: use G.B="),
    ] {
        let usage = folder.usage(&format!("run copy.wgsl {options}"));
        assert!(usage.contains(part), "{options}: {usage}");
    }
    folder.write("sample.wgsl", SAMPLE.as_bytes());
    let line = "run sample.wgsl --image 0.0=r32float:2x1 --bind 0.2=zeros:12";
    let error = folder.error(line);
    let sampler = "binding 0.1 (how), a sampler, has no sampler: use --sampler 0.1=linear,repeat, or other words (VUID-vkCmdDispatch-None-08114)";
    assert_eq!(error, sampler);
    let error = folder.error(&format!("{line} --sampler 0.1=texels,repeat"));
    assert!(error.contains("(VUID-VkSamplerCreateInfo-unnormalizedCoordinates-01075)"), "{error}");
}

/// The elements that options give are the size of an array without one; those that no option names are null.
#[test]
fn arrays_of_bindings() {
    let text = "enable wgpu_binding_array;
        struct Words { w: array<u32> }
        @group(0) @binding(0) var<storage, read> parts: binding_array<Words>;
        @group(0) @binding(1) var<storage, read_write> to: u32;
        @compute @workgroup_size(1) fn main() { to = parts[0].w[0] + parts[1].w[0]; }";
    let folder = Folder::with("image-arrays", "arrays.wgsl", text);
    let line = "run arrays.wgsl --bind to=zeros:4 --out to=u32";
    assert_eq!(folder.good(&format!("{line} --bind parts[0]=u32:40 --bind parts[1]=u32:2")), "0.1 (to) u32  42\n");
    let ended = folder.spelter(&format!("{line} --bind 0.0[2]=u32:5 --bind 0.0[1]=u32:2"));
    let note =
        "note: binding 0.0 (parts): 1 of 3 elements have no resource and are null: reads give 0, writes are dropped\n";
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("0.1 (to) u32  2\n", note));
    // One that is null on purpose needs no note.
    assert_eq!(folder.good(&format!("{line} --bind 0.0[0]=null --bind 0.0[1]=u32:2")), "0.1 (to) u32  2\n");
    let none = folder.error(line);
    assert!(none.contains("binding 0.0: the shader declares an array without a size"), "{none}");
    let none = folder.error("run arrays.wgsl --bind 0.0[0]=null --bind 0.0[1]=null --bind 0.1=null --out 0.1=u32");
    assert!(none.contains("--out 0.1: no buffer is bound to it"), "{none}");
}

/// Samplers cannot be null; images can.
#[test]
fn null_images() {
    let folder = Folder::with("image-null", "sample.wgsl", SAMPLE);
    let line = "run sample.wgsl --bind 0.2=zeros:12 --image 0.0=null --out 0.2=f32:0..1";
    assert_eq!(folder.good(&format!("{line} --sampler 0.1=linear")), "0.2 f32  0\n");
    let error = folder.error(line);
    assert!(error.starts_with("binding 0.1 (how), a sampler, has no sampler"), "{error}");
}

/// `to[i] = table[source[i]]`, with a uniform texel buffer.
#[test]
fn texel_buffers() {
    let folder = Folder::with("texel-buffers", "look.spvasm", include_str!("../../examples/look_up.spvasm"));
    let line = "run look.spvasm --bind 0.1=u32:2,0,9 --bind 0.2=zeros:12 --groups 3 --out 0.2=f32";
    let one = folder.good(&format!("{line} --texels 0.0=r8unorm:u8:0,51,255"));
    assert_eq!(one, "0.2 f32  1 0 0\n", "a texel that does not exist is 0");
    assert_eq!(folder.good(&format!("{line} --texels 0.0=r32float:f32:1.5,2,2.5")), "0.2 f32  2.5 1.5 0\n");
    assert_eq!(folder.good(&format!("{line} --texels 0.0=null")), "0.2 f32  0 0 0\n");
}

/// Adds 1 to a texel of a storage texel buffer, which is shown and saved as bytes.
#[test]
fn storage_texel_buffers() {
    let folder = Folder::with("storage-texel-buffers", "add.spvasm", ADD_TO_TEXEL);
    let shown = folder.good("run add.spvasm --texels 0.0=r32uint:u32:5,6 --out 0.0=u32 --save 0.0=texels.bin");
    assert_eq!(shown, "0.0 u32  5 7\n");
    assert_eq!(folder.read("texels.bin"), [5, 0, 0, 0, 7, 0, 0, 0]);
    let error = folder.error("run add.spvasm --texels 0.0=r32float:zeros:8");
    assert!(error.starts_with("--texels 0.0: ") && error.ends_with(')'), "{error}");
}
