//! `spelter litmus` with shaders: derived threads, verdicts, spin loops, memory models, and what is refused.

use crate::common::Folder;

/// Message passing between two workgroups, in WGSL: relaxed atomics do not order the data.
const RELAXED: &str = "
@group(0) @binding(0) var<storage, read_write> data: u32;
@group(0) @binding(1) var<storage, read_write> ready: atomic<u32>;
@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) id: vec3<u32>) {
    if id.x == 0u { data = 7u; atomicStore(&ready, 1u); }
    else if atomicLoad(&ready) == 1u { data += 1u; }
}";

/// A reduction of two values in workgroup memory; BARRIER is between the stores and the load.
const SHARED: &str = "
var<workgroup> part: array<u32, 2>;
@group(0) @binding(0) var<storage, read_write> to: array<u32, 2>;
@compute @workgroup_size(2)
fn main(@builtin(local_invocation_index) id: u32) {
    part[id] = id + 1u;
    BARRIER
    to[id] = part[1u - id];
}";

/// The waiting invocation spins until the flag is set.
const SPIN: &str = "
@group(0) @binding(0) var<storage, read_write> flag: atomic<u32>;
@group(0) @binding(1) var<storage, read_write> seen: array<u32, 2>;
@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) id: vec3<u32>) {
    if id.x == 0u { atomicStore(&flag, 3u); return; }
    var value = 0u;
    while value == 0u { value = atomicLoad(&flag); }
    seen[id.x] = value * 2u;
}";

/// Message passing with the Vulkan memory model: ORDER is the semantics of the flag.
const VULKAN: &str = "
OpCapability Shader
OpCapability VulkanMemoryModel
OpExtension \"SPV_KHR_vulkan_memory_model\"
OpExtension \"SPV_KHR_storage_buffer_storage_class\"
OpMemoryModel Logical Vulkan
OpEntryPoint GLCompute %main \"main\" %group
OpExecutionMode %main LocalSize 1 1 1
OpName %data \"data\"
OpName %flag \"flag\"
OpDecorate %group BuiltIn WorkgroupId
OpDecorate %block Block
OpMemberDecorate %block 0 Offset 0
OpDecorate %data DescriptorSet 0
OpDecorate %data Binding 0
OpDecorate %flag DescriptorSet 0
OpDecorate %flag Binding 1
%void = OpTypeVoid
%signature = OpTypeFunction %void
%bool = OpTypeBool
%uint = OpTypeInt 32 0
%vector = OpTypeVector %uint 3
%input = OpTypePointer Input %vector
%group = OpVariable %input Input
%block = OpTypeStruct %uint
%pointer = OpTypePointer StorageBuffer %block
%word = OpTypePointer StorageBuffer %uint
%data = OpVariable %pointer StorageBuffer
%flag = OpVariable %pointer StorageBuffer
%zero = OpConstant %uint 0
%one = OpConstant %uint 1
%queue_family = OpConstant %uint 5
%release = OpConstant %uint RELEASE
%acquire = OpConstant %uint ACQUIRE
%main = OpFunction %void None %signature
%entry = OpLabel
%id = OpLoad %vector %group
%x = OpCompositeExtract %uint %id 0
%first = OpIEqual %bool %x %zero
%d = OpAccessChain %word %data %zero
%f = OpAccessChain %word %flag %zero
OpSelectionMerge %end None
OpBranchConditional %first %send %receive
%send = OpLabel
OpStore %d %one NonPrivatePointer
OpAtomicStore %f %queue_family %release %one
OpBranch %end
%receive = OpLabel
%seen = OpAtomicLoad %uint %f %queue_family %acquire
%is = OpIEqual %bool %seen %one
OpSelectionMerge %done None
OpBranchConditional %is %read %done
%read = OpLabel
%value = OpLoad %uint %d NonPrivatePointer
OpBranch %done
%done = OpLabel
OpBranch %end
%end = OpLabel
OpReturn
OpFunctionEnd
";

#[test]
fn relaxed_message_passing_races() {
    let folder = Folder::with("derive-relaxed", "relaxed.wgsl", RELAXED);
    let text = folder.good("litmus relaxed.wgsl --groups 2 --explain");
    for part in [
        "relaxed.wgsl: RACY",
        "T0 (workgroup 0)\n",
        "T0:1 st data=7 av[wg]   line 6",
        "T0:2 st.atom ready=1 ",
        "T1 (workgroup 1), with branches on loaded values",
        "ordered?          no ",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let ended = folder.spelter("litmus relaxed.wgsl --groups 2 --deny-races");
    assert_eq!((ended.status, ended.stderr.as_str()), (3, "error: 1 test races (--deny-races)\n"));
    // One invocation races with none.
    assert!(folder.good("litmus relaxed.wgsl --deny-races").contains("race-free   1 execution, 0 racy"));
    let json = folder.good("litmus relaxed.wgsl --groups 2 --json");
    let test: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!((&test["races"], &test["threads"][0]), (&true.into(), &"T0 (workgroup 0)".into()));
}

#[test]
fn a_workgroup_barrier_orders_workgroup_memory() {
    let folder = Folder::new("derive-barrier");
    let with = |barrier: &str| folder.write("shared.wgsl", SHARED.replace("BARRIER", barrier).as_bytes());
    with("workgroupBarrier();");
    let text = folder.good("litmus shared.wgsl --deny-races");
    assert!(text.contains("race-free"), "{text}");
    assert!(text.contains("[to+0]=2 [to+4]=1") || text.contains("[to[0]]=2 [to[1]]=1"), "{text}");
    // The barrier of the other storage class orders nothing here.
    with("storageBarrier();");
    assert_eq!(folder.spelter("litmus shared.wgsl --deny-races").status, 3);
    with("");
    let text = folder.good("litmus shared.wgsl --repair");
    assert!(text.contains("RACY"), "{text}");
    assert!(text.contains("smallest repair: after line 6: workgroupBarrier() -> "), "{text}");
}

#[test]
fn a_repair_stands_where_all_invocations_execute_it() {
    // Only one invocation executes the store.
    let text = "
        var<workgroup> part: u32;
        @group(0) @binding(0) var<storage, read_write> to: array<u32, 4>;
        @compute @workgroup_size(4)
        fn main(@builtin(local_invocation_index) id: u32) {
            if id == 0u {
                part = 7u;
            }
            to[id] = part;
        }";
    let folder = Folder::with("derive-repair", "broadcast.wgsl", text);
    let shown = folder.good("litmus broadcast.wgsl --repair --write-repair fixed.litmus --write-test racy.litmus");
    assert!(shown.contains("smallest repair: before line 9: workgroupBarrier() -> 1 execution"), "{shown}");
    let json = folder.good("litmus broadcast.wgsl --repair --json");
    let test: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!(test["repair"]["edits"], serde_json::json!(["before line 9: workgroupBarrier()"]));
    // The two texts are read again: one races and the other does not, with the same outcome.
    assert_eq!(folder.spelter("litmus racy.litmus --deny-races").status, 3);
    let fixed = folder.good("litmus fixed.litmus --deny-races");
    assert!(fixed.contains("race-free   1 execution") && fixed.contains("exists (1 == 1): holds"), "{fixed}");
    // A loop executes its statement in all invocations equally often.
    let text = "
        var<workgroup> part: array<u32, 2>;
        @group(0) @binding(0) var<storage, read_write> to: array<u32, 2>;
        @compute @workgroup_size(2)
        fn main(@builtin(local_invocation_index) id: u32) {
            for (var i = 0u; i < 2u; i++) {
                part[id] = i;
                to[id] = part[1u - id];
            }
        }";
    folder.write("loop.wgsl", text.as_bytes());
    let shown = folder.good("litmus loop.wgsl --repair");
    assert!(
        shown.contains("after line 7: workgroupBarrier()") && shown.contains("after line 8: workgroupBarrier()"),
        "{shown}"
    );
    // Nothing in WGSL orders workgroups.
    folder.write("relaxed.wgsl", RELAXED.as_bytes());
    let shown = folder.good("litmus relaxed.wgsl --groups 2 --repair");
    assert!(shown.contains("none found: no control barriers remove the race; two dispatches do"), "{shown}");
    let write = folder.spelter("litmus relaxed.wgsl --groups 2 --write-repair x.test");
    assert_eq!((write.status, write.stderr.as_str()), (1, "error: --write-repair: no repair was found\n"));
}

#[test]
fn derived_tests_are_written_in_both_formats() {
    let folder = Folder::with("derive-write", "spin.wgsl", SPIN);
    let verdict = |name: &str| {
        let json = folder.good(&format!("litmus {name} --json"));
        let test: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
        (test["races"].clone(), test["executions"].clone())
    };
    let of = |line: &str| {
        let json = folder.good(&format!("litmus {line} --json"));
        let test: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
        (test["races"].clone(), test["executions"].clone())
    };
    assert_eq!(of("spin.wgsl --groups 2 --write-test spin.litmus"), verdict("spin.litmus"));
    folder.write("shared.wgsl", SHARED.replace("BARRIER", "workgroupBarrier();").as_bytes());
    assert_eq!(of("shared.wgsl --write-test shared.litmus"), verdict("shared.litmus"));
    // Copies of values have registers, which the other format has not.
    let error = folder.error("litmus shared.wgsl --write-test shared.test");
    let why = "the format has no stores of values that are not constants, in a program that reads";
    let expected = format!("--write-test shared.test: {why}: name the file shared.litmus, which has registers");
    assert!(error.starts_with(&expected), "{error}");
    let text = "
        var<workgroup> part: u32;
        @compute @workgroup_size(3) fn main(@builtin(local_invocation_index) id: u32) {
            if id == 0u { part = 1u; }
            workgroupBarrier();
            if id == 1u { part = 2u; }
        }";
    folder.write("writes.wgsl", text.as_bytes());
    assert_eq!(of("writes.wgsl --write-test writes.test").0, false);
    let written = String::from_utf8(folder.read("writes.test")).unwrap();
    assert_eq!(written.matches("cbar").count(), 3, "{written}");
    assert!(folder.good("litmus writes.test --deny-races").contains("no solution, as expected"));
    for (options, problem) in [
        ("shared.wgsl --write-test x.txt", "--write-test x.txt: the name must end with .test (Khronos) or .litmus"),
        ("writes.test --write-test x.test", "--write-test: the file is a test already, not a shader"),
        ("shared.wgsl spin.wgsl --write-test x.test", "--write-test takes one test, not 2"),
    ] {
        let error = folder.error(&format!("litmus {options}"));
        assert!(error.starts_with(problem), "{error}");
    }
}

#[test]
fn the_number_of_events_limits_a_launch() {
    let text = "
        @group(0) @binding(0) var<storage, read_write> data: array<u32>;
        @compute @workgroup_size(256) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            if id.x < COUNTu { data[id.x] = 1u; }
        }";
    let folder = Folder::new("derive-events");
    let with = |count: u32| folder.write("some.wgsl", text.replace("COUNT", &count.to_string()).as_bytes());
    with(2);
    let shown = folder.good("litmus some.wgsl --bind data=zeros:2K --groups 2");
    assert!(shown.contains("race-free   1 execution"), "{shown}");
    let threads = shown.lines().filter(|line| line.contains("(workgroup ")).count();
    assert_eq!(threads, 2, "invocations that do nothing are not shown: {shown}");
    with(200);
    let error = folder.error("litmus some.wgsl --bind data=zeros:2K");
    let why = "the first 129 of 256 invocations have 129 accesses and barriers, and an execution has at most 128";
    assert!(error.contains(why), "{error}");
    let error = folder.error("litmus some.wgsl --bind data=zeros:2K --groups 17");
    assert!(error.ends_with("the launch has 4352 invocations, where 1 to 4096 are possible"), "{error}");
}

#[test]
fn a_spin_loop_becomes_a_loop() {
    let folder = Folder::with("derive-spin", "spin.wgsl", SPIN);
    let text = folder.good("litmus spin.wgsl --groups 2 --deny-races");
    assert!(text.contains("race-free") && text.contains("=6"), "{text}");
}

#[test]
fn the_vulkan_model_is_taken_as_declared() {
    let folder = Folder::new("derive-vulkan");
    let with = |release: u32, acquire: u32| {
        let text = VULKAN.replace("RELEASE", &release.to_string()).replace("ACQUIRE", &acquire.to_string());
        folder.write("mp.spvasm", text.as_bytes());
        let ended = folder.spelter("litmus mp.spvasm --groups 2 --deny-races");
        assert!(ended.stdout.contains("T1:4 ld data   line 54"), "{}", ended.stdout);
        ended.status
    };
    let (uniform, available, visible) = (0x40, 0x2000, 0x4000);
    assert_eq!(with(0x4 | uniform | available, 0x2 | uniform | visible), 0);
    assert_eq!(with(0x4 | uniform, 0x2 | uniform | visible), 3, "nothing makes the data available");
    let shown = folder.good("litmus mp.spvasm --groups 2 --repair");
    assert!(shown.contains("smallest repair: Make") && shown.contains(" on line "), "{shown}");
    assert_eq!(with(0x4 | uniform | available, 0x2 | uniform), 3, "nothing makes the data visible");
    assert_eq!(with(0, 0), 3, "relaxed");
}

#[test]
fn buffers_of_glsl450_are_private_unless_coherent() {
    let folder = Folder::new("derive-glsl450");
    let text = VULKAN
        .replace("OpCapability VulkanMemoryModel\nOpExtension \"SPV_KHR_vulkan_memory_model\"\n", "")
        .replace("Logical Vulkan", "Logical GLSL450")
        .replace(" NonPrivatePointer", "")
        .replace("%queue_family = OpConstant %uint 5", "%queue_family = OpConstant %uint 1")
        .replace("RELEASE", "68")
        .replace("ACQUIRE", "66");
    folder.write("private.spvasm", text.as_bytes());
    let shown = folder.good("litmus private.spvasm --groups 2");
    assert!(shown.contains("RACY") && shown.contains("memory model GLSL450"), "{shown}");
    let coherent =
        text.replace("OpDecorate %data DescriptorSet 0", "OpDecorate %data Coherent\nOpDecorate %data DescriptorSet 0");
    folder.write("coherent.spvasm", coherent.as_bytes());
    let shown = folder.good("litmus coherent.spvasm --groups 2 --deny-races");
    assert!(shown.contains("race-free"), "{shown}");
}

#[test]
fn what_has_no_litmus_form_is_refused() {
    let folder = Folder::new("derive-refused");
    let kernel = |body: &str| {
        let text = format!(
            "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
             @group(0) @binding(1) var<storage, read_write> count: atomic<u32>;
             @compute @workgroup_size(2)
             fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
                 {body} }}"
        );
        folder.write("refused.wgsl", text.as_bytes());
    };
    let refused = |options: &str| folder.error(&format!("litmus refused.wgsl {options}"));
    let at = "refused.wgsl: line 5: no litmus test can be derived: ";
    for (body, why) in [
        ("data[data[id.x]] = 1u;", "the address of an access depends on a value that it loads"),
        ("data[0] = atomicCompareExchangeWeak(&count, 0u, 1u).old_value;", "a compare-exchange, which writes or not"),
        ("if f32(data[0]) > 1.5 { data[1] = 1u; }", "a branch depends on the result of `uint_to_float`"),
        (
            "loop { data[0] += 1u; if atomicLoad(&count) == 100000u { break; } for (var i = 0u; i < 60000u; i++) { data[1] = i; } }",
            "an invocation needs more than",
        ),
    ] {
        kernel(body);
        let message = refused("--bind data=zeros:16");
        assert!(message.starts_with(at) && message.contains(why), "{body}: {message}");
    }
    kernel("data[id.x] = 1u;");
    let message = refused("");
    assert!(
        message
            .ends_with("binding 0.0 ends with an array whose size is unknown: --bind 0.0=zeros:BYTES gives its size"),
        "{message}"
    );
    assert_eq!(refused("--bind 0.7=zeros:4"), "--bind 0.7: \"main\" does not use it");
    assert_eq!(refused("--bind 0.0=zeros:16 --bind data=zeros:4"), "binding 0.0 is given twice");
    let write = folder.spelter("litmus refused.wgsl --bind data=zeros:16 --write-repair x");
    assert_eq!(write.status, 1);
    for line in
        ["litmus refused.wgsl --groups x", "litmus refused.wgsl --subgroup-size 0", "litmus --generate --groups 2"]
    {
        assert_eq!(folder.spelter(line).status, 2, "{line}");
    }
}
