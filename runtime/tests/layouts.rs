//! Layouts of blocks, and Rust types that are checked against them.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use spelter::bytemuck::NoUninit;
use spelter::{Context, Program};

const SCENE: &str = "
    struct Light { color: vec3f, kind: u32 }
    struct Scene { count: u32, at: vec3f, turn: mat3x3f, lights: array<Light> }
    struct Step { size: u32, move_by: vec3f }
    @group(0) @binding(0) var<storage, read_write> scene: Scene;
    @group(0) @binding(1) var<uniform> step: Step;
    @group(0) @binding(2) var image: texture_storage_2d<r32uint, write>;
    var<immediate> scale: vec2f;
    @compute @workgroup_size(1) fn main() {
        scene.at = step.move_by * scale.x;
        scene.lights[0].kind = scene.count;
        textureStore(image, vec2(0u), vec4(1u));
    }";

#[derive(Clone, Copy, NoUninit)]
#[bytemuck(crate = "spelter::bytemuck")]
#[repr(C)]
struct Light {
    color: [f32; 3],
    kind: u32,
}
spelter::layout!(Light { color, kind });

#[derive(Clone, Copy, NoUninit)]
#[bytemuck(crate = "spelter::bytemuck")]
#[repr(C)]
struct Scene {
    count: u32,
    _hole: [u32; 3],
    at: [f32; 3],
    _after_at: u32,
    turn: [[f32; 4]; 3],
}
spelter::layout!(Scene { count, _hole, at, _after_at, turn });

/// As a program writes it that does not know the alignment of vectors.
#[derive(Clone, Copy, NoUninit)]
#[bytemuck(crate = "spelter::bytemuck")]
#[repr(C)]
struct Step {
    size: u32,
    move_by: [f32; 3],
}
spelter::layout!(Step { size, move_by });

fn program(context: &Context) -> Program {
    context.program(SCENE).label("scene").build().unwrap()
}

#[test]
fn types_are_compared_with_blocks() {
    let context = Context::new().unwrap();
    let program = program(&context);
    let scene = program.block(0, 0).unwrap();
    // Columns of three floats are 16 bytes apart, and the shader has nothing in their fourth: so a matrix of four rows
    // is refused.
    let rule = "(rule: a Rust type for a block has each number where the shader has it)";
    assert_eq!(
        scene.check::<Scene>().unwrap_err().to_string(),
        format!(
            "binding 0.0: `Scene` has `turn[0][3]` (f32) at byte 44, the shader has no number there \
             (padding needs a name with `_`) {rule}"
        )
    );
    scene.check_elements::<Light>().unwrap();
    assert_eq!(
        scene.check_elements::<[f32; 3]>().unwrap_err().to_string(),
        format!("binding 0.0: the shader has `kind` (u32) at byte 12, `[f32; 3]` has no number there {rule}")
    );
    assert_eq!(
        program.block(0, 1).unwrap().check::<Step>().unwrap_err().to_string(),
        format!("binding 0.1: the shader has `move_by` (vec3<f32>) at byte 16, `Step` has `move_by` at byte 4 {rule}")
    );
    let push = program.push_block().unwrap();
    push.check::<[f32; 2]>().unwrap();
    assert_eq!(
        push.check::<[u32; 2]>().unwrap_err().to_string(),
        format!("push constants: the shader has vec2<f32> at byte 0, `[u32; 2]` has u32 {rule}")
    );
}

/// Long arrays are not compared element by element.
#[test]
fn long_arrays_of_other_lengths_and_types_are_refused() {
    let context = Context::new().unwrap();
    let text = "@group(0) @binding(0) var<storage, read_write> words: array<u32, 10000>;
        @group(0) @binding(1) var<storage, read_write> vectors: array<vec4f, 10000>;
        @compute @workgroup_size(1) fn main() { words[0] = u32(vectors[0].x); }";
    let program = context.program_wgsl(text).unwrap();
    let (words, vectors) = (program.block(0, 0).unwrap(), program.block(0, 1).unwrap());
    words.check::<[u32; 10_000]>().unwrap();
    vectors.check::<[[f32; 4]; 10_000]>().unwrap();
    let error = words.check::<[u32; 5_000]>().unwrap_err().to_string();
    assert!(error.contains("at byte 39996"), "{error}");
    assert!(vectors.check::<[f32; 20_000]>().is_err());
}

#[test]
fn what_has_no_layout_is_an_error() {
    let context = Context::new().unwrap();
    let program = program(&context);
    let error = |group, binding| program.block(group, binding).unwrap_err().to_string();
    assert_eq!(error(0, 2), "binding 0.2: it is a storage image, which has no layout");
    assert_eq!(error(1, 0), "binding 1.0: \"main\" of program `scene` does not use it");
    let none = context.program_wgsl("@compute @workgroup_size(1) fn main() {}").unwrap();
    assert_eq!(none.push_block().unwrap_err().to_string(), "push constants: \"main\" declares none");
    let step = program.block(0, 1).unwrap().check_elements::<u32>().unwrap_err().to_string();
    assert!(step.starts_with("binding 0.1: it does not end with an array without a size"), "{step}");
}

/// The layout is that after specialization.
#[test]
fn overrides_and_labels_are_in_layouts_and_messages() {
    let context = Context::new().unwrap();
    let text = "struct A { n: array<vec2u, 3>, last: u32 }
        @id(0) override lanes: u32;
        @group(0) @binding(0) var<storage, read_write> a: A;
        @compute @workgroup_size(lanes) fn main() { a.last = a.n[2].y; }";
    let build = || context.program(text).label("sums").file("sums.wgsl");
    let error = build().build().unwrap_err().to_string();
    assert!(error.starts_with("program `sums`: the override `lanes` has no value"), "{error}");
    assert!(error.contains("sums.wgsl:2:"), "{error}");
    let program = build().specialize(0, 4u32).build().unwrap();
    assert_eq!(program.block(0, 0).unwrap().to_string(), "A");
    program.block(0, 0).unwrap().check::<[u32; 7]>().unwrap();
    let error = context.dispatch(&program).bind(3, 0, &context.buffer_zeroed(4).unwrap()).groups([1, 1, 1]);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("\"main\" of program `sums` does not use it; it uses 0.0"), "{error}");
}

/// Each message of a dispatch has its label, or else that of the program, and has it once.
#[test]
fn messages_of_a_dispatch_have_a_label() {
    let context = Context::new().unwrap();
    let text = "@group(0) @binding(0) var<storage, read_write> to: array<u32>;
        @compute @workgroup_size(1) fn main() { to[0] = 1u; }";
    let program = context.program(text).label("sums").build().unwrap();
    let dispatch = || context.dispatch(&program);
    assert_eq!(
        dispatch().groups([1, 1, 1]).unwrap_err().to_string(),
        "binding 0.0: program `sums`: no buffer is bound to it (VUID-vkCmdDispatch-None-08114)"
    );
    let words = context.buffer(16).label("words").zeroed().unwrap();
    let error = dispatch().bind(0, 0, &words).groups([70_000, 1, 1]).unwrap_err().to_string();
    assert!(error.starts_with("vkCmdDispatch: program `sums`: 70000 workgroups above the limit"), "{error}");
    let error = dispatch().bind(0, 0, &words).indirect(&words, 8).unwrap_err().to_string();
    assert!(error.starts_with("program `sums`: bytes 8..20 of buffer `words` of 16 bytes"), "{error}");
    let error = dispatch().bind(0, 0, &words).push(&1u32).groups([1, 1, 1]).unwrap_err().to_string();
    assert!(error.starts_with("push constants: \"main\" of program `sums` declares none"), "{error}");
    let error = dispatch().bind(0, 1, &words).label("second").groups([1, 1, 1]).unwrap_err().to_string();
    assert_eq!(error.matches("dispatch `second`").count(), 2, "in each of two: {error}");
}
