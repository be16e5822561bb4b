//! Layouts of blocks, and Rust types that are checked against them.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use spelter::bytemuck::NoUninit;
use spelter::{Buffer, Context, DataLayout, Program};

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
        format!(
            "binding 0.0: the shader has `kind` (u32) at byte 12, `[f32; 3]` has no number there; \
             elements of the shader's array are 16 bytes apart, `[f32; 3]` has 12 bytes {rule}"
        )
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
        "binding 0.0 (to): program `sums`: no buffer is bound to it (VUID-vkCmdDispatch-None-08114)"
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

/// The kernel reads `Step`, as push constants and as a uniform buffer, and an array of points.
const STEPS: &str = "
    struct Step { size: u32, move_by: vec3f }
    @group(0) @binding(0) var<uniform> step: Step;
    @group(0) @binding(1) var<storage, read_write> points: array<vec3f>;
    var<immediate> push: Step;
    @compute @workgroup_size(1) fn main() {
        for (var i = 0u; i < arrayLength(&points); i++) {
            points[i] += step.move_by * f32(step.size) + push.move_by * f32(push.size);
        }
    }";

spelter::layout! {
    #[derive(Clone, Copy, NoUninit)]
    #[bytemuck(crate = "spelter::bytemuck")]
    #[repr(C)]
    struct AlignedStep {
        size: u32,
        _hole: [u32; 3],
        move_by: [f32; 3],
        _end: u32,
    }
}

const STEP: Step = Step { size: 2, move_by: [1.0, 2.0, 3.0] };
const ALIGNED: AlignedStep = AlignedStep { size: 2, _hole: [0; 3], move_by: [1.0, 2.0, 3.0], _end: 0 };
const RULE: &str = "(rule: a Rust type for a block has each number where the shader has it)";

fn moved_by_byte_16() -> String {
    format!("the shader has `move_by` (vec3<f32>) at byte 16, `Step` has `move_by` at byte 4 {RULE}")
}

/// A value of a known layout is checked where it is bound or pushed, without a call for it.
#[test]
fn typed_buffers_and_push_constants_are_checked_by_dispatches() {
    let context = Context::new().unwrap();
    let program = context.program_wgsl(STEPS).unwrap();
    let aligned = context.typed_buffer(&[ALIGNED]).unwrap();
    let points = context.typed_buffer(&[[0.0f32; 4]; 2]).unwrap();
    let close = context.buffer(32).label("step").holding(&[STEP; 2]).unwrap().typed::<Step>();
    let vectors = points.untyped();
    let dispatch = |step: &Buffer, points: &Buffer| context.dispatch(&program).bind(0, 0, step).bind(0, 1, points);

    let error = dispatch(&close, &vectors).push_typed(&ALIGNED).groups([1, 1, 1]).unwrap_err().to_string();
    assert_eq!(error, format!("binding 0.0 (step): buffer `step` of 32 bytes: {}", moved_by_byte_16()));
    let error = dispatch(&aligned, &vectors).push_typed(&STEP).groups([1, 1, 1]).unwrap_err().to_string();
    assert_eq!(error, format!("push constants: {}", moved_by_byte_16()));
    // The stride of an array is a part of the layout.
    let packed = context.typed_buffer(&[[0.0f32; 3]; 4]).unwrap();
    let error = dispatch(&aligned, &packed).push_typed(&ALIGNED).groups([1, 1, 1]).unwrap_err().to_string();
    let strides = "elements of the shader's array are 16 bytes apart, `[f32; 3]` has 12 bytes";
    assert_eq!(error, format!("binding 0.1 (points): a buffer of 48 bytes: {strides} {RULE}"));
    let list = context.program_wgsl(
        "struct Step { size: u32, move_by: vec3f }
         @group(0) @binding(0) var<storage, read_write> steps: array<Step>;
         @compute @workgroup_size(1) fn main() { steps[1].size += 1u; }",
    );
    let error = context.dispatch(&list.unwrap()).bind(0, 0, &close).groups([1, 1, 1]).unwrap_err().to_string();
    assert_eq!(
        error,
        format!(
            "binding 0.0 (steps): buffer `step` of 32 bytes: the shader has `move_by` (vec3<f32>) at byte 16, `Step` has \
             `move_by` at byte 4; elements of the shader's array are 32 bytes apart, `Step` has 16 bytes {RULE}"
        )
    );
    // All of them at once.
    let error = dispatch(&close, &packed).push_typed(&STEP).groups([1, 1, 1]).unwrap_err().to_string();
    assert!(error.starts_with("several errors:") && error.matches(RULE).count() == 3, "{error}");

    // The same bytes without a type are not compared, and the right type is accepted.
    dispatch(&aligned, &vectors).push_typed(&ALIGNED).groups([1, 1, 1]).unwrap();
    dispatch(&close.untyped(), &vectors).push(&ALIGNED).groups([1, 1, 1]).unwrap();
    let moved = context.read_range::<f32>(&points, 0..12).unwrap();
    assert_eq!(moved, [6.0, 14.0, 22.0], "4, 8, 12, then 2, 4, 6 and the bytes from 16 on as a vector");
}

/// However the handle gets to the dispatch.
#[test]
fn slots_sets_and_command_buffers_check_types() {
    let context = Context::new().unwrap();
    let program = context.program_wgsl(STEPS).unwrap();
    let (good, bad) = (context.typed_buffer(&[ALIGNED]).unwrap(), context.typed_buffer(&[STEP; 2]).unwrap());
    let points = context.buffer_zeroed(32).unwrap();
    let run = || context.dispatch(&program).push_typed(&ALIGNED).groups([1, 1, 1]);
    let refused = |result: Result<(), spelter::Error>| {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(&moved_by_byte_16()), "{error}");
    };
    context.bind((0, 1), spelter::Bind::storage(&points)).unwrap();
    for _ in 0..2 {
        // Another handle of a buffer that is bound already is looked at again.
        context.bind((0, 0), spelter::Bind::uniform(&bad.untyped())).unwrap();
        run().unwrap();
        context.bind((0, 0), spelter::Bind::uniform(&bad)).unwrap();
        refused(run());
        context.bind((0, 0), spelter::Bind::uniform(&good)).unwrap();
        run().unwrap();
    }
    let set_of = |step| context.descriptor_set(&program, 0).bind(0, step).bind(1, &points).build().unwrap();
    let (good_set, bad_set) = (set_of(&good), set_of(&bad));
    context.dispatch(&program).set(0, &good_set).push_typed(&ALIGNED).groups([1, 1, 1]).unwrap();
    refused(context.dispatch(&program).set(0, &bad_set).push_typed(&ALIGNED).groups([1, 1, 1]));
    context.bind_set(0, &bad_set).unwrap();
    refused(run());
    context.bind_set(0, &good_set).unwrap();
    run().unwrap();
    let record = |step| {
        context.record(|commands| {
            let dispatch = commands.dispatch(&program).bind(0, 0, step).bind(0, 1, &points);
            dispatch.push_typed(&ALIGNED).groups([1, 1, 1])
        })
    };
    context.submit(&record(&good).unwrap()).unwrap();
    refused(record(&bad).map(drop));
    // A set of a command buffer that is written later is looked at when it is submitted.
    let later = context.descriptor_set(&program, 0).bind(0, &good).bind(1, &points).updatable().build().unwrap();
    let commands =
        context.record(|commands| commands.dispatch(&program).set(0, &later).push(&ALIGNED).groups([1, 1, 1]));
    let commands = commands.unwrap();
    later.write(0, spelter::Bind::uniform(&bad)).unwrap();
    refused(context.submit(&commands).map(drop));
}

/// Blocks of all shapes take the types that fit them: one value, arrays, flat numbers, a head before an array.
#[test]
fn types_fit_blocks_of_all_shapes() {
    let context = Context::new().unwrap();
    let block = |declaration: &str, index: &str| {
        let text = format!(
            "struct Light {{ color: vec3f, kind: u32 }}
             struct List {{ count: u32, lights: array<Light> }}
             struct Four {{ all: array<Light, 4> }}
             @group(0) @binding(0) var<storage, read_write> it: {declaration};
             @group(0) @binding(1) var<storage, read_write> to: u32;
             @compute @workgroup_size(1) fn main() {{ to = u32(it{index}); }}"
        );
        context.program_wgsl(&text).unwrap()
    };
    let to = context.buffer_zeroed(4).unwrap();
    let runs = |program: &Program, buffer: &Buffer| {
        context
            .dispatch(program)
            .bind(0, 0, buffer)
            .bind(0, 1, &to)
            .groups([1, 1, 1])
            .map_err(|error| error.to_string())
    };
    let light = Light { color: [1.0; 3], kind: 7 };
    let lights = context.typed_buffer(&[light; 8]).unwrap();
    for (declaration, index) in
        [("Light", ".kind"), ("array<Light>", "[1].kind"), ("array<Light, 4>", "[1].kind"), ("Four", ".all[1].kind")]
    {
        assert_eq!(runs(&block(declaration, index), &lights), Ok(()), "{declaration}");
    }
    let floats = context.typed_buffer(&[0.0f32; 32]).unwrap();
    for (declaration, index) in [("array<f32>", "[0]"), ("array<vec4f, 2>", "[1].x"), ("mat4x4f", "[1].x")] {
        assert_eq!(runs(&block(declaration, index), &floats), Ok(()), "{declaration}");
        assert_eq!(runs(&block(declaration, index), &floats.typed::<[f32; 4]>()), Ok(()), "{declaration}");
        let ints = floats.typed::<i32>();
        let error = runs(&block(declaration, index), &ints).unwrap_err();
        assert!(error.contains("the shader has numbers of type f32, `i32` has i32"), "{error}");
    }
    // Elements of three floats are no vectors of four.
    let threes = floats.typed::<[f32; 3]>();
    let error = runs(&block("array<vec4f>", "[0].x"), &threes).unwrap_err();
    assert!(error.contains("elements of the shader's array are 16 bytes apart, `[f32; 3]` has 12 bytes"), "{error}");
    // Three floats have a hole after them, which a plain list of floats does not have.
    let error = runs(&block("array<vec3f>", "[0].x"), &floats).unwrap_err();
    assert!(error.contains("elements of the shader's array are 16 bytes apart, `f32` has 4 bytes"), "{error}");
    // What comes before an array without a size.
    #[derive(Clone, Copy, NoUninit)]
    #[bytemuck(crate = "spelter::bytemuck")]
    #[repr(C)]
    struct Head {
        count: u32,
        _hole: [u32; 3],
    }
    spelter::layout!(Head { count, _hole });
    assert_eq!(runs(&block("List", ".count"), &lights.typed::<Head>()), Ok(()));
    let error = runs(&block("List", ".count"), &lights).unwrap_err();
    assert!(error.contains("the shader has `count` (u32) at byte 0, `Light` has f32"), "{error}");
    // A part begins with a whole value.
    let list = block("array<Light>", "[0].kind");
    let part = |start: u64| {
        let dispatch = context.dispatch(&list).bind_range(0, 0, &lights.typed::<[Light; 2]>(), start..128);
        dispatch.bind(0, 1, &to).groups([1, 1, 1]).map_err(|error| error.to_string())
    };
    let error = part(16).unwrap_err();
    assert!(error.contains("bytes 16..128 begin inside of a"), "{error}");
}

/// Fields of one type in another order have numbers at all places of the shader's: their names tell.
#[test]
fn swapped_fields_are_refused() {
    spelter::layout! {
        #[derive(Clone, Copy, NoUninit)]
        #[bytemuck(crate = "spelter::bytemuck")]
        #[repr(C)]
        struct Ball {
            radius: f32,
            at: [f32; 3],
        }
    }
    spelter::layout! {
        #[derive(Clone, Copy, NoUninit)]
        #[bytemuck(crate = "spelter::bytemuck")]
        #[repr(C)]
        struct Pair {
            count: u32,
            _hole: [u32; 3],
            ball: Ball,
        }
    }
    spelter::layout! {
        #[derive(Clone, Copy, NoUninit)]
        #[bytemuck(crate = "spelter::bytemuck")]
        #[repr(C)]
        struct Named {
            center: [f32; 3],
            size: f32,
        }
    }
    let context = Context::new().unwrap();
    let to = context.buffer_zeroed(4).unwrap();
    let program = |declaration: &str, index: &str| {
        let text = format!(
            "struct Ball {{ at: vec3f, radius: f32 }}
             struct Pair {{ count: u32, ball: Ball }}
             struct Two {{ first: Ball, second: Ball }}
             @group(0) @binding(0) var<storage> it: {declaration};
             @group(0) @binding(1) var<storage, read_write> to: f32;
             @compute @workgroup_size(1) fn main() {{ to = it{index}.radius; }}"
        );
        context.program_wgsl(&text).unwrap()
    };
    let runs = |program: &Program, buffer: &Buffer| {
        let run = context.dispatch(program).bind(0, 0, buffer).bind(0, 1, &to).groups([1, 1, 1]);
        run.map_err(|error| error.to_string())
    };
    let problem = "`radius` is at byte 12 in the shader's `Ball` and at byte 0 in `Ball`";
    let ball = Ball { radius: 0.5, at: [1.0, 2.0, 3.0] };
    let balls = context.typed_buffer(&[ball; 4]).unwrap();
    let named = context.typed_buffer(&[Named { center: [1.0, 2.0, 3.0], size: 0.5 }; 4]).unwrap();
    for (declaration, index) in [("Ball", ""), ("Two", ".second"), ("array<Ball>", "[1]"), ("array<Ball, 4>", "[1]")] {
        let program = program(declaration, index);
        for buffer in [&balls, &balls.typed::<[Ball; 2]>()] {
            let error = runs(&program, buffer).unwrap_err();
            assert!(error.contains(problem), "{declaration}: {error}");
        }
        // Other names are free, and flat numbers have none.
        assert_eq!(runs(&program, &named), Ok(()), "{declaration}");
        assert_eq!(runs(&program, &balls.typed::<f32>()), Ok(()), "{declaration}");
    }
    assert!(program("Ball", "").block(0, 0).unwrap().check::<Ball>().unwrap_err().to_string().contains(problem));
    // Within another structure.
    let pairs = context.typed_buffer(&[Pair { count: 1, _hole: [0; 3], ball }]).unwrap();
    for (declaration, index) in [("Pair", ".ball"), ("array<Pair>", "[0].ball")] {
        let error = runs(&program(declaration, index), &pairs).unwrap_err();
        assert!(error.contains(problem), "{declaration}: {error}");
    }
    // Push constants.
    let text = "struct Ball { at: vec3f, radius: f32 }
        var<immediate> ball: Ball;
        @group(0) @binding(0) var<storage, read_write> to: f32;
        @compute @workgroup_size(1) fn main() { to = ball.radius; }";
    let push = context.program_wgsl(text).unwrap();
    let error = context.dispatch(&push).bind(0, 0, &to).push_typed(&ball).groups([1, 1, 1]).unwrap_err().to_string();
    assert!(error.starts_with(&format!("push constants: {problem}")), "{error}");
}

/// Push constants of several calls are compared by their bytes.
#[test]
fn parts_of_push_constants_have_types() {
    let context = Context::new().unwrap();
    let program = context
        .program_wgsl(
            "struct Push { a: u32, b: f32, c: vec2f }
             var<immediate> push: Push;
             @group(0) @binding(0) var<storage, read_write> to: array<f32>;
             @compute @workgroup_size(1) fn main() { to[0] = f32(push.a) + push.b + push.c.x + push.c.y; }",
        )
        .unwrap();
    let to = context.buffer_zeroed(4).unwrap();
    let dispatch = || context.dispatch(&program).bind(0, 0, &to);
    dispatch().push_typed(&1u32).push(&2.0f32).push_typed(&[3.0f32, 4.0]).groups([1, 1, 1]).unwrap();
    assert_eq!(context.read::<f32>(&to).unwrap(), [10.0]);
    let error = dispatch().push(&1u32).push_typed(&2u32).push_typed(&[3.0f32; 2]).groups([1, 1, 1]).unwrap_err();
    assert_eq!(error.to_string(), format!("push constants: the shader has `b` (f32) at byte 4, `u32` has u32 {RULE}"));
    let error = dispatch().push_typed(&1u32).groups([1, 1, 1]).unwrap_err().to_string();
    assert!(error.contains("the shader has `b` (f32) at byte 4, `u32` has no number there"), "{error}");
}

/// A part that is a member of the block has the names of the member, whatever names the block has.
#[test]
fn parts_of_push_constants_are_members_as_a_whole() {
    spelter::layout! {
        #[derive(Clone, Copy, NoUninit)]
        #[bytemuck(crate = "spelter::bytemuck")]
        #[repr(C)]
        struct More {
            scale: f32,
        }
    }
    spelter::layout! {
        #[derive(Clone, Copy, NoUninit)]
        #[bytemuck(crate = "spelter::bytemuck")]
        #[repr(C)]
        struct Swapped {
            size: f32,
            mass: f32,
        }
    }
    let context = Context::new().unwrap();
    let to = context.buffer_zeroed(4).unwrap();
    let program = |members: &str, value: &str| {
        let text = format!(
            "struct More {{ scale: f32 }}
             struct Ball {{ mass: f32, size: f32 }}
             struct Push {{ {members} }}
             var<immediate> push: Push;
             @group(0) @binding(0) var<storage, read_write> to: f32;
             @compute @workgroup_size(1) fn main() {{ to = {value}; }}"
        );
        context.program_wgsl(&text).unwrap()
    };
    let more = program("scale: f32, more: More", "push.scale + push.more.scale");
    let dispatch = context.dispatch(&more).bind(0, 0, &to);
    dispatch.push_typed(&1.0f32).push_typed(&More { scale: 2.0 }).groups([1, 1, 1]).unwrap();
    assert_eq!(context.read::<f32>(&to).unwrap(), [3.0]);
    let ball = program("size: f32, ball: Ball", "push.size + push.ball.size");
    let dispatch = context.dispatch(&ball).bind(0, 0, &to).push_typed(&1.0f32);
    let error = dispatch.push_typed(&Swapped { size: 1.0, mass: 2.0 }).groups([1, 1, 1]).unwrap_err().to_string();
    assert!(error.contains("`size` is at byte 4 in the shader's `Ball` and at byte 0 in `Swapped`"), "{error}");
}

/// Names of variables, types and members, offsets and strides, by binding.
#[test]
fn bindings_have_names_and_layouts() {
    let context = Context::new().unwrap();
    let program = program(&context);
    let infos = program.bindings();
    let shown: Vec<_> = infos.iter().map(|info| (&*info.name, info.layout.as_ref().map(ToString::to_string))).collect();
    let of = |layout: &str| Some(layout.to_owned());
    assert_eq!(shown, [("scene", of("Scene")), ("step", of("Step")), ("image", None)]);
    let Some(DataLayout::Struct { members, .. }) = &infos[0].layout else { panic!("{infos:?}") };
    let members: Vec<_> = members.iter().map(|member| (&*member.name, member.offset)).collect();
    assert_eq!(members, [("count", 0), ("at", 16), ("turn", 32), ("lights", 80)]);
    let layout = infos[0].layout.as_ref().unwrap();
    let Some((80, DataLayout::Array { element, stride: 16, count: None })) = layout.tail() else {
        panic!("{layout:?}")
    };
    assert_eq!(element.to_string(), "Light");
    assert_eq!(layout, program.block(0, 0).unwrap().layout());
    // An entry point has the variables that it uses, of several at a binding its own.
    let text = "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @group(0) @binding(0) var<storage, read_write> b: vec4f;
        @compute @workgroup_size(1) fn first() { a[0] = 1u; }
        @compute @workgroup_size(1) fn second() { b.x = 1.0; }";
    for (entry, name, layout) in [("first", "a", "array<u32>"), ("second", "b", "vec4<f32>")] {
        let program = context.program(text).entry(entry).build().unwrap();
        let info = &program.bindings()[0];
        assert_eq!((&*info.name, info.layout.as_ref().unwrap().to_string()), (name, layout.to_owned()));
    }
}
