//! The runtime's public interface: results in order without explicit barriers, and errors that name place and rule.

use std::time::Duration;

use spelter::{Bind, BindingKind, Context, Error, Schedule, Source};

use crate::is_checked;

const ADD: &str = "
@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> to: array<u32>;
@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&to) { to[id.x] += source[id.x]; }
}";

const PUSH: &str = "
struct Push { a: u32, b: f32 }
var<immediate> push: Push;
@group(2) @binding(5) var<uniform> offset: vec2<u32>;
@group(0) @binding(0) var<storage, read_write> to: array<u32>;
@compute @workgroup_size(1)
fn main() { to[0] = push.a + u32(push.b) + offset.y; }";

const TWO_BUFFERS: &str = "
OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main \"main\"
OpExecutionMode %main LocalSize 1 1 1
OpDecorate %array ArrayStride 4
OpDecorate %block BufferBlock
OpMemberDecorate %block 0 Offset 0
OpDecorate %buffers DescriptorSet 0
OpDecorate %buffers Binding 0
%void = OpTypeVoid
%signature = OpTypeFunction %void
%uint = OpTypeInt 32 0
%zero = OpConstant %uint 0
%one = OpConstant %uint 1
%two = OpConstant %uint 2
%answer = OpConstant %uint 42
%array = OpTypeRuntimeArray %uint
%block = OpTypeStruct %array
%blocks = OpTypeArray %block %two
%pointer = OpTypePointer Uniform %blocks
%element = OpTypePointer Uniform %uint
%buffers = OpVariable %pointer Uniform
%main = OpFunction %void None %signature
%label = OpLabel
%to = OpAccessChain %element %buffers %one %zero %zero
OpStore %to %answer
OpReturn
OpFunctionEnd
";

fn message<T>(result: Result<T, Error>) -> String {
    result.err().map(|e| e.to_string()).unwrap_or_default()
}

#[test]
fn dispatches_that_depend_on_each_other_run_in_order() {
    let context = Context::builder().workers(2).build().unwrap();
    let add = context.program_wgsl(ADD).unwrap();
    let (a, b) = (context.buffer_from(&[1u32; 64]).unwrap(), context.buffer_from(&[0u32; 64]).unwrap());
    // A Fibonacci sequence: each dispatch reads what the previous one wrote. More dispatches than one batch holds.
    for _ in 0..700 {
        context.dispatch(&add).bind(0, 0, &a).bind(0, 1, &b).invocations([64, 1, 1]).unwrap();
        context.dispatch(&add).bind(0, 0, &b).bind(0, 1, &a).invocations([64, 1, 1]).unwrap();
    }
    let (mut x, mut y) = (1u32, 0u32);
    for _ in 0..700 {
        y = y.wrapping_add(x);
        x = x.wrapping_add(y);
    }
    assert_eq!(context.read::<u32>(&a).unwrap(), [x; 64]);
    assert_eq!(context.read::<u32>(&b).unwrap(), [y; 64]);
}

#[test]
fn transfers_keep_their_place_among_dispatches() {
    let context = Context::new().unwrap();
    let add = context.program_wgsl(ADD).unwrap();
    let (one, sum) = (context.buffer_from(&[1u32; 8]).unwrap(), context.buffer_zeroed(32).unwrap());
    let copy = context.buffer_zeroed(32).unwrap();
    let dispatch = || context.dispatch(&add).bind(0, 0, &one).bind(0, 1, &sum).groups([2, 1, 1]).unwrap();
    context.fill(&sum, 10).unwrap();
    dispatch();
    context.copy(&sum, 0, &copy, 0, 32).unwrap();
    dispatch();
    context.write(&one, 0, &[100u32]).unwrap();
    dispatch();
    assert_eq!(context.read::<u32>(&copy).unwrap(), [11; 8]);
    assert_eq!(context.read::<u32>(&sum).unwrap(), [112, 13, 13, 13, 13, 13, 13, 13]);
}

#[test]
fn uniforms_ranges_and_push_constants() {
    let context = Context::new().unwrap();
    let program = context.program_wgsl(PUSH).unwrap();
    assert_eq!((program.push_bytes(), program.bindings().len()), (8, 2));
    let offset = context.buffer_from(&[0u32, 0, 0, 0, 5, 600, 0, 0]).unwrap();
    let to = context.buffer_zeroed(4).unwrap();
    let dispatch = context.dispatch(&program).bind(0, 0, &to).bind_range(2, 5, &offset, 16..32);
    dispatch.push(&30u32).push(&4.0f32).groups([1, 1, 1]).unwrap();
    assert_eq!(context.read::<u32>(&to).unwrap(), [634]);
}

#[test]
fn specialization_and_entry_points() {
    let context = Context::new().unwrap();
    let text = "@id(7) override n: u32 = 1u;
        @group(0) @binding(0) var<storage, read_write> to: array<u32>;
        @compute @workgroup_size(1) fn small() { to[0] = n; }
        @compute @workgroup_size(1) fn large() { to[0] = n * 100u; }";
    let program = context.program(text).entry("large").specialize(7, 3u32).build().unwrap();
    let to = context.buffer_zeroed(4).unwrap();
    context.dispatch(&program).bind(0, 0, &to).groups([1, 1, 1]).unwrap();
    assert_eq!(context.read::<u32>(&to).unwrap(), [300]);
    assert_eq!(program.specialization_constants()[0].to_string(), "7 (n: u32)");
    let set = |value: spelter::Constant| message(context.program(text).entry("small").specialize(7, value).build());
    assert_eq!(set(1.5.into()), "specialization constant 7 (n: u32) cannot be 1.5: write an integer, such as 3");
    assert_eq!(set((-1).into()), "specialization constant 7 (n: u32) cannot be -1: it is from 0 to 4294967295");
    assert_eq!(set(true.into()), "specialization constant 7 (n: u32) cannot be true: write a number of type u32");
    assert_eq!(message(context.program_wgsl(text)), "several entry points: name one of small, large");
}

#[test]
fn bindings_that_do_not_fit() {
    let context = Context::new().unwrap();
    let add = context.program_wgsl(ADD).unwrap();
    let buffer = context.buffer_zeroed(32).unwrap();
    let stranger = Context::new().unwrap().buffer_zeroed(32).unwrap();
    let dispatch = || context.dispatch(&add).bind(0, 0, &buffer);
    assert_eq!(
        message(dispatch().groups([1, 1, 1])),
        "binding 0.1 (to): no buffer is bound to it (VUID-vkCmdDispatch-None-08114)"
    );
    let unknown = dispatch().bind(0, 1, &buffer).bind(3, 9, &buffer).groups([1, 1, 1]);
    let rule = "(rule: a dispatch binds only what its program declares)";
    let uses = "a buffer of 32 bytes: \"main\" does not use it; it uses 0.0, 0.1";
    assert_eq!(message(unknown), format!("binding 3.9: {uses} {rule}"));
    let other = dispatch().bind(0, 1, &stranger).groups([1, 1, 1]);
    let rule = "(rule: resources and programs are used only by contexts of the device that made them)";
    assert_eq!(message(other), format!("binding 0.1 (to): a buffer of 32 bytes is of another context's device {rule}"));
    let beyond = dispatch().bind_range(0, 1, &buffer, 16..48).groups([1, 1, 1]);
    let rule = "(VUID-VkDescriptorBufferInfo-range-00342)";
    assert_eq!(message(beyond), format!("binding 0.1 (to): bytes 16..48 of a buffer of 32 bytes {rule}"));
    let empty = dispatch().bind_range(0, 1, &buffer, 16..16).groups([1, 1, 1]);
    let rule = "(VUID-VkDescriptorBufferInfo-range-00341)";
    assert_eq!(message(empty), format!("binding 0.1 (to): bytes 16..16 of a buffer of 32 bytes {rule}"));
    let askew = dispatch().bind_range(0, 1, &buffer, 4..8).groups([1, 1, 1]);
    let rule = "(VUID-VkWriteDescriptorSet-descriptorType-00328)";
    assert_eq!(message(askew), format!("binding 0.1 (to): offset 4 is no multiple of 16 {rule}"));
}

#[test]
fn a_bad_element_of_an_array_of_buffers_is_named() {
    let context = Context::new().unwrap();
    let program = context.program_spirv(&spelter_shaders::front::spvasm::assemble(TWO_BUFFERS).unwrap()).unwrap();
    let buffer = context.buffer_zeroed(32).unwrap();
    let dispatch = || context.dispatch(&program).bind(0, 0, &buffer);
    let askew = dispatch().bind_element(0, 0, 1, &buffer, 4..8).groups([1, 1, 1]);
    let rule = "(VUID-VkWriteDescriptorSet-descriptorType-00328)";
    assert_eq!(message(askew), format!("binding 0.0: element 1: offset 4 is no multiple of 16 {rule}"));
    dispatch().bind_element(0, 0, 1, &buffer, 16..32).groups([1, 1, 1]).unwrap();
    assert_eq!(context.read::<u32>(&buffer).unwrap(), [0, 0, 0, 0, 42, 0, 0, 0]);
}

#[test]
fn push_constants_may_end_with_padding() {
    let context = Context::new().unwrap();
    let to = context.buffer_zeroed(4).unwrap();
    // Type, member, accepted and rejected numbers of words: a struct of one scalar has no trailing padding.
    for (ty, sum, accepted, rejected) in [
        ("u32", "n", &[1][..], &[0, 2, 3, 4, 5][..]),
        ("vec2u", "n.x", &[2], &[1, 3, 4]),
        ("vec3u", "n.x", &[3, 4], &[2, 5, 8]),
        ("Five", "n.a.x", &[5, 6, 8], &[4, 7, 9]),
        // Padded to 64 bytes, as if a member had the alignment of a `dvec4`.
        ("Nine", "n.a.x", &[9, 10, 12, 16], &[8, 11, 13, 17]),
    ] {
        let text = format!(
            "struct Five {{ a: vec4u, b: u32 }}
            struct Nine {{ a: vec4u, b: vec4u, c: u32 }}
            var<immediate> n: {ty};
            @group(0) @binding(0) var<storage, read_write> to: array<u32>;
            @compute @workgroup_size(1) fn main() {{ to[0] = {sum}; }}"
        );
        let program = context.program_wgsl(&text).unwrap();
        let bytes = program.push_bytes();
        let with = |words: usize| {
            (0..words).fold(context.dispatch(&program).bind(0, 0, &to), |d, word| d.push(&(7 + word as u32)))
        };
        for &words in accepted {
            with(words).groups([1, 1, 1]).unwrap();
            assert_eq!(context.read::<u32>(&to).unwrap(), [7]);
        }
        for &words in rejected {
            let given = words * 4;
            let reported = message(with(words).groups([1, 1, 1]));
            let declared = format!("push constants: \"main\" declares bytes 0..{bytes}, {given} bytes were given");
            let missing = format!(", bytes {given}..{bytes} are missing (VUID-vkCmdDispatch-maintenance4-08602)");
            let rule = if given < bytes as usize { &missing } else { " (VUID-vkCmdPushConstants-offset-01795)" };
            assert_eq!(reported, format!("{declared}{rule}"), "{ty}");
        }
    }
}

#[test]
fn dispatches_that_do_not_fit_leave_the_batch_as_it_was() {
    let context = Context::new().unwrap();
    let add = context.program_wgsl(ADD).unwrap();
    let (one, sum) = (context.buffer_from(&[1u32; 4]).unwrap(), context.buffer_zeroed(16).unwrap());
    let dispatch = || context.dispatch(&add).bind(0, 0, &one).bind(0, 1, &sum);
    dispatch().groups([1, 1, 1]).unwrap();
    assert!(message(dispatch().groups([1, 1, 70_000])).contains("VUID-vkCmdDispatch-groupCountZ-00388"));
    assert!(message(dispatch().push(&1u32).groups([1, 1, 1])).starts_with("push constants: "));
    dispatch().groups([0, 1, 1]).unwrap();
    dispatch().groups([1, 1, 1]).unwrap();
    assert_eq!(context.read::<u32>(&sum).unwrap(), [2; 4]);
}

#[test]
fn ranges_that_do_not_fit() {
    let context = Context::new().unwrap();
    let buffer = context.buffer_from(&[1u8, 2, 3, 4, 5, 6]).unwrap();
    assert!(matches!(context.read::<u32>(&buffer), Err(Error::Range(_))));
    assert!(matches!(context.read_range::<u8>(&buffer, 5..7), Err(Error::Range(_))));
    assert!(matches!(context.write(&buffer, 4, &[1u32]), Err(Error::Range(_))));
    assert!(matches!(context.write(&buffer, u64::MAX, &[1u32]), Err(Error::Range(_))));
    assert!(matches!(context.copy(&buffer, 4, &buffer, 0, 4), Err(Error::Range(_))));
    assert!(matches!(context.buffer_from::<u32>(&[]), Err(Error::Misuse(_))));
    assert_eq!(context.read::<u8>(&buffer).unwrap(), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn bad_shaders_are_errors() {
    let context = Context::new().unwrap();
    assert!(matches!(context.program_wgsl("fn main( {"), Err(Error::Shader(_))));
    assert!(matches!(context.program(Source::Spirv(&[1, 2, 3])).build(), Err(Error::Shader(_))));
    let hint = "the shader has no compute entry point (in WGSL, a function with `@compute @workgroup_size(…)`)";
    assert_eq!(message(context.program_wgsl("fn f() {}")), hint);
}

#[test]
fn a_lost_context_says_so_and_others_go_on() {
    let lost = Context::builder().workers(1).time_limit(Duration::from_millis(100)).build().unwrap();
    let text = "@group(0) @binding(0) var<storage, read_write> to: array<u32>;
        @compute @workgroup_size(1) fn main() { while to[0] == 0u { to[1] += 1u; } }";
    let program = lost.program_wgsl(text).unwrap();
    let to = lost.buffer_zeroed(8).unwrap();
    lost.dispatch(&program).bind(0, 0, &to).groups([1, 1, 1]).unwrap();
    let limit = "kernel `main` ran longer than the time limit of 100ms, which `ContextBuilder::time_limit` sets";
    let Err(Error::DeviceLost(why)) = lost.finish() else { panic!("not lost") };
    // Checked code does not tell which loop it is.
    let place = if is_checked() { "a loop" } else { "a loop at wgsl:2:" };
    assert!(why.starts_with(&format!("{limit}: {place}")), "{why}");
    assert!(why.ends_with(" did not end in invocation (0, 0, 0)"), "{why}");
    assert!(matches!(lost.read::<u32>(&to), Err(Error::DeviceLost(_))));
    // The labels of a dispatch and of its program are in the reason.
    let labelled = Context::builder().workers(1).time_limit(Duration::from_millis(100)).build().unwrap();
    let (waits, flag) = (labelled.program(text).label("waits").build().unwrap(), labelled.buffer_zeroed(8).unwrap());
    labelled.dispatch(&waits).label("second pass").bind(0, 0, &flag).groups([1, 1, 1]).unwrap();
    let Err(Error::DeviceLost(why)) = labelled.finish() else { panic!("not lost") };
    assert!(why.starts_with("kernel `second pass: waits` ran longer than the time limit of 100ms"), "{why}");
    // Commands that are recorded now never run, so reads must fail.
    let late = lost.buffer_zeroed(8).unwrap();
    lost.dispatch(&program).bind(0, 0, &late).groups([1, 1, 1]).unwrap();
    assert!(matches!(lost.read::<u32>(&late), Err(Error::DeviceLost(_))));
    assert!(matches!(lost.read::<u32>(&late), Err(Error::DeviceLost(_))));
    lost.dispatch(&program).bind(0, 0, &late).groups([1, 1, 1]).unwrap();
    assert!(matches!(lost.flush(), Err(Error::DeviceLost(_))));
    // The 1,025th command submits the batch of 1,024, so that call fails.
    let dispatch = |_| lost.dispatch(&program).bind(0, 0, &late).groups([1, 1, 1]);
    let results: Vec<_> = (0..1025).map(dispatch).collect();
    assert!(results[..1024].iter().all(Result::is_ok));
    assert!(matches!(results[1024], Err(Error::DeviceLost(_))), "{:?}", results[1024]);
    let other = Context::new().unwrap();
    let add = other.program_wgsl(ADD).unwrap();
    let sum = other.buffer_from(&[3u32]).unwrap();
    other.dispatch(&add).bind(0, 0, &sum).bind(0, 1, &sum).groups([1, 1, 1]).unwrap();
    assert_eq!(other.read::<u32>(&sum).unwrap(), [6]);
}

#[test]
fn one_context_on_several_threads() {
    let context = Context::new().unwrap();
    let add = context.program_wgsl(ADD).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let (context, add) = (context.clone(), add.clone());
            scope.spawn(move || {
                let (from, to) = (context.buffer_from(&[thread; 16]).unwrap(), context.buffer_zeroed(64).unwrap());
                for iteration in 1..=20 {
                    context.dispatch(&add).bind(0, 0, &from).bind(0, 1, &to).groups([4, 1, 1]).unwrap();
                    assert_eq!(context.read::<u32>(&to).unwrap(), [thread * iteration; 16]);
                }
            });
        }
    });
}

/// Adds `step` to each word, after a long loop.
const SLOW: &str = "
@group(0) @binding(0) var<storage, read> step: array<u32>;
@group(0) @binding(1) var<storage, read_write> to: array<u32>;
@compute @workgroup_size(1)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var word = to[id.x];
    for (var i = 0u; i < step[1]; i++) { word = word * 3u + i; }
    to[id.x] = word * step[2] + step[0];
}";

#[test]
fn after_a_refused_dispatch_the_next_one_has_what_is_in_the_slots() {
    let context = Context::builder().workers(2).build().unwrap();
    let program = context.program_wgsl(SLOW).unwrap();
    let [step, other] = [[1u32, 0, 1], [100, 0, 1]].map(|words| context.buffer_from(&words).unwrap());
    let [to, aside] = [0u32; 2].map(|word| context.buffer_from(&[word; 4]).unwrap());
    context.bind((0, 0), Bind::storage(&step)).unwrap();
    context.bind((0, 1), Bind::storage(&to)).unwrap();
    let dispatch = || context.dispatch(&program).groups([4, 1, 1]).unwrap();
    for round in 1..4 {
        dispatch();
        context.dispatch(&program).bind(0, 0, &other).bind(0, 1, &aside).groups([70_000, 1, 1]).unwrap_err();
        dispatch();
        context.copy(&to, 0, &aside, 0, 400).unwrap_err();
        dispatch();
        assert_eq!(context.read::<u32>(&to).unwrap(), [3 * round; 4]);
        assert_eq!(context.read::<u32>(&aside).unwrap(), [0; 4]);
    }
}

#[test]
fn a_fence_of_what_is_done_does_not_wait_for_what_comes_later() {
    let context = Context::builder().workers(2).build().unwrap();
    let program = context.program_wgsl(SLOW).unwrap();
    let step = context.buffer_from(&[1u32, 400_000_000, 0]).unwrap();
    let to = context.buffer_from(&[0u32; 4]).unwrap();
    let done = context.flush().unwrap();
    done.wait().unwrap();
    context.dispatch(&program).bind(0, 0, &step).bind(0, 1, &to).groups([4, 1, 1]).unwrap();
    let later = context.flush().unwrap();
    assert!(done.is_done() && done.wait_for(Duration::ZERO).unwrap());
    later.wait().unwrap();
    assert_eq!(context.read::<u32>(&to).unwrap(), [1; 4]);
}

#[test]
fn a_group_beyond_the_limit_is_reported_with_its_line() {
    let text = "@group(0) @binding(0) var<storage, read_write> to: u32;
        @group(99) @binding(3) var<storage, read> other: u32;
        @compute @workgroup_size(1) fn main() { to = other; }";
    let error = Context::new().unwrap().program_wgsl(text).unwrap_err().to_string();
    assert!(error.contains("binding 99.3: groups are numbered 0 to ") && error.contains(" at wgsl:2:"), "{error}");
}

#[test]
fn panics_of_the_front_end_and_hostile_constants_are_errors() {
    let context = Context::new().unwrap();
    let immediates = "var<immediate> p: array<vec4<u32>, 600>; @compute @workgroup_size(1) fn main() { let a = p[1]; }";
    assert!(context.program_wgsl(immediates).unwrap_err().to_string().contains("immediates of 9600 bytes"));
    let links: String = (1..26).map(|i| format!("const k{i} = array(k{}, k{});\n", i - 1, i - 1)).collect();
    let doubled =
        format!("const k0 = array(1u, 2u);\n{links}@compute @workgroup_size(1) fn main() {{ let a = k25[0]; }}");
    assert!(context.program_wgsl(&doubled).unwrap_err().to_string().contains("more than 2097152 parts"));
    let remainder = "@id(0) override n: u32 = 7u; @group(0) @binding(0) var<storage, read_write> to: u32;
        @compute @workgroup_size(1) fn main() { var v: u64 = u64(n) % 4lu; to = u32(v); }";
    let program = context.program_wgsl(remainder).unwrap();
    let to = context.buffer_zeroed(4).unwrap();
    context.dispatch(&program).bind(0, 0, &to).groups([1, 1, 1]).unwrap();
    assert_eq!(context.read::<u32>(&to).unwrap(), [3]);
}

#[test]
fn sizes_beyond_every_device_are_reported_with_their_numbers() {
    for workers in [1025, 20_000, 1_000_000_000, usize::MAX] {
        let error = Context::builder().workers(workers).build().err().map(|error| error.to_string());
        assert_eq!(error, Some(format!("`workers` is {workers}: at most 1024")));
        let options = spelter_driver::DeviceOptions { workers, ..Default::default() };
        let error = spelter_driver::Device::new(options).err().map(|error| error.to_string());
        assert_eq!(error, Some(format!("a device of {workers} workers: at most 1024")));
    }
    let text = "@group(0) @binding(0) var<storage, read_write> b: array<u32>;
        @compute @workgroup_size(1024) fn main(@builtin(local_invocation_index) i: u32) {
            var kept: array<u32, 131072>;
            kept[b[i]] = i;
            b[i] = kept[b[i + 1]];
        }";
    let context = Context::builder().workers(1).build().unwrap();
    let error = context.program_wgsl(text).unwrap_err().to_string();
    let private = "the program \"main\": private memory, 524288 bytes for each of the 1024 invocations of a workgroup: \
                   536870912 bytes above the limit 268435456";
    assert_eq!(error, format!("out of memory: {private}"));
    let error = context.program(text).label("hoard").build().unwrap_err().to_string();
    assert_eq!(error, format!("out of memory: program `hoard`: {private}"));
}

/// Null descriptors of an array, in slots, in a dispatch and in a set: reads give 0, writes and atomics do nothing.
#[test]
fn null_descriptors() {
    let context = Context::new().unwrap();
    let program = context
        .program_wgsl(
            "enable wgpu_binding_array;
             struct Words { w: array<atomic<u32>> }
             @group(0) @binding(0) var<storage, read_write> parts: binding_array<Words, 3>;
             @group(0) @binding(1) var<storage, read_write> out: array<u32>;
             @compute @workgroup_size(3) fn main(@builtin(local_invocation_index) i: u32) {
                 let old = atomicAdd(&parts[i].w[1], 5u);
                 out[i] = 100u * arrayLength(&parts[i].w) + 10u * old + atomicLoad(&parts[i].w[1]);
             }",
        )
        .unwrap();
    let (words, out) = (context.buffer_from(&[1u32, 2]).unwrap(), context.buffer_zeroed(12).unwrap());
    let null = || Bind::null(BindingKind::StorageBuffer);
    context.bind((0, 0, 0), null()).unwrap();
    context.bind((0, 0, 1), Bind::storage(&words)).unwrap();
    context.bind((0, 0, 2), null()).unwrap();
    context.bind((0, 1), Bind::storage(&out)).unwrap();
    assert_eq!(context.slot((0, 0, 2)).map(|slot| (slot.resource, slot.object)), Some((None, None)));
    context.dispatch(&program).groups([1, 1, 1]).unwrap();
    assert_eq!(context.read::<u32>(&out).unwrap(), [0, 227, 0]);
    // The other way round, for one dispatch.
    let dispatch = context.dispatch(&program).with((0, 0, 0), Bind::storage(&words)).with((0, 0, 1), null());
    dispatch.groups([1, 1, 1]).unwrap();
    assert_eq!(context.read::<u32>(&out).unwrap(), [282, 0, 0]);
    let set = context.descriptor_set(&program, 0).with_array(0, 0, [null(), null(), Bind::storage(&words)]);
    let set = set.bind(1, &out).updatable().build().unwrap();
    assert_eq!(set.objects().len(), 2, "null descriptors have no object");
    context.dispatch(&program).set(0, &set).groups([1, 1, 1]).unwrap();
    assert_eq!(context.read::<u32>(&out).unwrap(), [0, 0, 337]);
    set.write(1, null()).unwrap();
    let commands = context.record(|c| c.dispatch(&program).set(0, &set).groups([1, 1, 1])).unwrap();
    context.submit(&commands).unwrap();
    assert_eq!(context.read::<u32>(&out).unwrap(), [0, 0, 337], "nothing was written");
    assert_eq!(context.read::<u32>(&words).unwrap(), [1, 22]);
}

/// The order of a device whose builder chooses none.
#[test]
#[ignore = "`the_environment_chooses_the_order` runs it with the variable"]
fn order_of_the_environment() {
    let of = |builder: spelter::ContextBuilder| builder.build().map(|context| context.device().schedule());
    println!("order: {}", of(Context::builder()).map_or_else(|error| error.to_string(), |order| order.to_string()));
    assert_eq!(of(Context::builder().schedule(Schedule::Reverse)).unwrap(), Schedule::Reverse);
    assert_eq!(of(Context::builder().checked_by_environment(false)).unwrap(), Schedule::Ascending);
}

#[test]
fn the_environment_chooses_the_order() {
    for (value, order) in [
        ("", "ascending"),
        ("random:7", "random:7"),
        ("down", "SPELTER_SCHEDULE: a schedule is `ascending`, `reverse` or `random:SEED`"),
    ] {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "context::order_of_the_environment", "--nocapture"]);
        let output = command.env("SPELTER_SCHEDULE", value).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains(&format!("order: {order}")), "{value}: {output:?}");
    }
}
