//! `spelter run`: the effect of each option.

use crate::common::Folder;

const DOUBLE: &str = "
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&data) { data[id.x] *= 2u; }
}";

const SCALE: &str = "
struct Push { factor: f32, shift: f32 }
var<immediate> push: Push;
@group(0) @binding(0) var<storage, read> source: array<f32>;
@group(1) @binding(2) var<storage, read_write> to: array<f32>;
@compute @workgroup_size(2)
fn main(@builtin(global_invocation_id) id: vec3<u32>) { to[id.x] = source[id.x] * push.factor + push.shift; }";

const UNIFORM: &str = "
@group(0) @binding(0) var<uniform> addend: vec4<i32>;
@group(0) @binding(1) var<storage, read_write> to: array<i32>;
@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) id: vec3<u32>) { to[id.x] += addend[id.x]; }";

const WHERE: &str = "
@group(0) @binding(0) var<storage, read_write> seen: array<u32>;
@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(num_workgroups) n: vec3<u32>) {
    seen[id.x + n.x * (id.y + n.y * id.z)] = id.x + 10u * id.y + 100u * id.z;
}";

const ENTRIES: &str = "
@group(0) @binding(0) var<storage, read_write> to: array<u32>;
@compute @workgroup_size(1) fn one() { to[0] = 1u; }
@compute @workgroup_size(1) fn two() { to[0] = 2u; }";

const CONSTANTS: &str = "
@id(0) override a: u32 = 1u;
@id(1) override b: i32 = 1;
@id(2) override c: f32 = 1.0;
@id(3) override d: bool = false;
@group(0) @binding(0) var<storage, read_write> to: array<f32>;
@compute @workgroup_size(1)
fn main() { to[0] = f32(a); to[1] = f32(b); to[2] = c; to[3] = select(0.0, 1.0, d); }";

const ASSEMBLY: &str = "
OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main \"main\"
OpExecutionMode %main LocalSize 1 1 1
OpDecorate %array ArrayStride 4
OpDecorate %block BufferBlock
OpMemberDecorate %block 0 Offset 0
OpDecorate %buffer DescriptorSet 0
OpDecorate %buffer Binding 3
%void = OpTypeVoid
%signature = OpTypeFunction %void
%uint = OpTypeInt 32 0
%array = OpTypeRuntimeArray %uint
%block = OpTypeStruct %array
%pointer = OpTypePointer Uniform %block
%element = OpTypePointer Uniform %uint
%buffer = OpVariable %pointer Uniform
%zero = OpConstant %uint 0
%answer = OpConstant %uint 42
%main = OpFunction %void None %signature
%label = OpLabel
%to = OpAccessChain %element %buffer %zero %zero
OpStore %to %answer
OpReturn
OpFunctionEnd
";

#[test]
fn values_in_and_out() {
    let folder = Folder::with("values", "double.wgsl", DOUBLE);
    assert_eq!(folder.good("run double.wgsl --bind 0.0=u32:1,2,0x10 --out 0.0=u32"), "0.0 u32  2 4 32\n");
    assert_eq!(folder.good("run double.wgsl --bind 0.0=i32:-1,5 --out 0.0=i32:0..1"), "0.0 i32  -2\n");
    assert_eq!(folder.good("run double.wgsl --bind 0.0=i32:0x10,0XFFFFFFFF --out 0.0=i32"), "0.0 i32  32 -2\n");
}

#[test]
fn values_of_every_size() {
    let folder = Folder::with("sizes", "double.wgsl", DOUBLE);
    for (given, shown) in [
        ("u8:1,2,3,4", "0.0 u8  2 4 6 8\n"),
        ("i16:1,-2", "0.0 i16  2 -4\n"),
        ("u64:0x100000001", "0.0 u64  8589934594\n"),
        ("i64:5", "0.0 i64  10\n"),
    ] {
        let ty = given.split(':').next().unwrap();
        assert_eq!(folder.good(&format!("run double.wgsl --bind 0.0={given} --out 0.0={ty}")), shown);
    }
    let wide = DOUBLE.replace("array<u32>", "array<f64>").replace("*= 2u", "*= f64(2.0)");
    folder.write("wide.wgsl", wide.as_bytes());
    assert_eq!(folder.good("run wide.wgsl --bind 0.0=f64:0.1,-3 --out 0.0=f64"), "0.0 f64  0.2 -6\n");
    let halves = DOUBLE.replace("array<u32>", "array<f16>").replace("*= 2u", "*= 2.0h");
    folder.write("halves.wgsl", format!("enable f16, subgroups;{halves}").as_bytes());
    let shown = folder.json("run halves.wgsl --bind 0.0=f16:range:4 --out 0.0=f16:1..4 --json");
    assert_eq!(shown["outputs"][0]["values"], serde_json::json!([2.0, 4.0, 6.0]));
    let ended = folder.spelter("run double.wgsl --bind 0.0=u32:1 --out 0.0=f64");
    let note = "note: --out 0.0: the last 4 of 4 bytes are not a whole element and not shown\n";
    assert_eq!((ended.status, ended.stderr.as_str()), (0, note));
}

#[test]
fn the_example_of_the_help_prints_what_it_says() {
    // The README's kernel has more invocations in a workgroup.
    let folder = Folder::with("example", "double.wgsl", &DOUBLE.replace("workgroup_size(4)", "workgroup_size(64)"));
    let help = folder.good("run --help");
    let line = help.lines().find_map(|line| line.trim().strip_prefix("spelter run ")).unwrap();
    assert!(help.contains(&folder.good(&format!("run {line}"))), "{help}");
}

#[test]
fn a_run_that_shows_nothing_says_so() {
    let folder = Folder::with("nothing", "double.wgsl", DOUBLE);
    let ended = folder.spelter("run double.wgsl --bind 0.0=u32:1,2,3");
    let note = "note: the kernel ran; --out, --save, --time or --json show what it did\n";
    assert_eq!((ended.status, ended.stdout.as_str(), ended.stderr.as_str()), (0, "", note));
    folder.json("run double.wgsl --bind 0.0=u32:1,2,3 --json");
    let ended = folder.spelter("run double.wgsl --groups 0 --bind 0.0=u32:1,2,3");
    assert_eq!((ended.status, ended.stderr.as_str()), (0, "note: no invocation ran: --groups has a 0\n"));
    // What did not run was not checked.
    let ended = folder.spelter("run double.wgsl --groups 0 --bind 0.0=u32:1,2,3 --check");
    assert_eq!(ended.status, 67, "{}", ended.stderr);
}

/// One workgroup runs by default, which may be fewer invocations than the values that are shown.
#[test]
fn values_beyond_the_default_workgroup_are_reported() {
    let folder = Folder::with("beyond", "double.wgsl", DOUBLE);
    let line = "run double.wgsl --bind 0.0=u32:range:6 --out 0.0=u32";
    let ended = folder.spelter(line);
    let note = "--out 0.0: elements up to 6, but only one workgroup of 4 invocations ran: --groups starts more";
    let shown = "0.0 u32  0 2 4 6 4 5\n";
    assert_eq!((ended.status, ended.stdout.as_str(), ended.stderr), (0, shown, format!("note: {note}\n")));
    let ended = folder.spelter(&format!("{line} --json"));
    let json: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&json["notes"], ended.stderr), (&serde_json::json!([note]), format!("note: {note}\n")));
    // `--groups` is given, or all values that are shown are computed.
    assert_eq!(folder.good(&format!("{line} --groups 1")), shown);
    assert_eq!(folder.good(&format!("{line} --groups 2")), "0.0 u32  0 2 4 6 8 10\n");
    assert_eq!(folder.good(&format!("{line}:0..4")), "0.0 u32  0 2 4 6\n");
    assert_eq!(folder.json(&format!("{line} --groups 2 --json"))["notes"], serde_json::json!([]));
}

/// The example of docs/running.md.
#[test]
fn a_missing_barrier_shows_in_another_order() {
    let page = include_str!("../../../docs/running.md");
    let (_, text) = page.split_once("$ cat shift.wgsl\n").unwrap();
    let (kernel, commands) = text.split_once("$ ").unwrap();
    let folder = Folder::with("order", "shift.wgsl", kernel);
    for command in commands.split_once("```").unwrap().0.split("$ ") {
        let (line, shown) = command.split_once('\n').unwrap();
        for backend in ["", " --backend interpreter"] {
            let line = format!("{}{backend}", line.trim_start_matches("spelter "));
            assert_eq!(folder.good(&line), shown, "{line}");
        }
    }
    let line = "run shift.wgsl --bind 0.0=zeros:256 --out 0.0=u32:16..64 --schedule random:";
    let shown: Vec<_> = (0..4).map(|seed| folder.good(&format!("{line}{seed}"))).collect();
    assert_eq!(folder.good(&format!("{line}3")), shown[3], "the same seed gives the same order");
    assert!(shown.iter().any(|other| *other != shown[0]), "{shown:?}");
}

#[test]
fn trailing_bytes_of_a_buffer_are_reported() {
    let folder = Folder::with("rest", "double.wgsl", DOUBLE);
    folder.write("in.bin", &[1, 0, 0, 0, 9, 9]);
    let ended = folder.spelter("run double.wgsl --bind 0.0=@in.bin --out 0.0=u32");
    let note = "note: --out 0.0: the last 2 of 6 bytes are not a whole element and not shown\n";
    assert_eq!((ended.status, ended.stdout.as_str(), ended.stderr.as_str()), (0, "0.0 u32  2\n", note));
    assert_eq!(folder.good("run double.wgsl --bind 0.0=@in.bin --out 0.0=u32:0..1"), "0.0 u32  2\n");
}

#[test]
fn a_byte_order_mark_and_an_extension_in_capitals() {
    let folder = Folder::with("capitals", "DOUBLE.WGSL", &format!("\u{feff}{DOUBLE}"));
    assert_eq!(folder.good("run DOUBLE.WGSL --bind 0.0=u32:3 --out 0.0=u32"), "0.0 u32  6\n");
}

#[test]
fn long_lists_come_in_rows() {
    let folder = Folder::with("rows", "double.wgsl", DOUBLE);
    let shown = folder.good("run double.wgsl --bind 0.0=u32:range:12 --groups 3 --out 0.0=u32:1..11");
    assert_eq!(shown, "0.0 u32\n[1]   2  4  6  8 10 12 14 16\n[9]  18 20\n");
}

#[test]
fn push_constants_are_joined() {
    let folder = Folder::with("push", "scale.wgsl", SCALE);
    let line = "run scale.wgsl --bind 0.0=f32:1,2.5 --bind 1.2=zeros:8 --push f32:2 --push f32:0.5 --out 1.2=f32";
    assert_eq!(folder.good(line), "1.2 f32  2.5 5.5\n");
    assert_eq!(folder.good(&line.replace("--push f32:2 --push f32:0.5", "--push f32:-1,0")), "1.2 f32  -1 -2.5\n");
    let (many, few) = ("(VUID-vkCmdPushConstants-offset-01795)", "(VUID-vkCmdDispatch-maintenance4-08602)");
    for (more, given) in [
        ("0.5,0,0", format!("16 bytes were given {many}")),
        ("0.5,0,0,0", format!("20 bytes were given {many}")),
        ("", format!("4 bytes were given, bytes 4..8 are missing {few}")),
    ] {
        let wrong = line.replace(" --push f32:0.5", "").replace("--push f32:2", &format!("--push f32:2,{more}"));
        let message = folder.error(wrong.replace("2, ", "2 ").as_str());
        assert_eq!(message, format!("--push: \"main\" declares bytes 0..8, {given}"));
    }
}

#[test]
fn uniform_buffers() {
    let folder = Folder::with("uniform", "add.wgsl", UNIFORM);
    let line = "run add.wgsl --uniform 0.0=i32:1,-2,3,4 --bind 0.1=i32:range:3 --groups 3 --out 0.1=i32";
    assert_eq!(folder.good(line), "0.1 i32  1 -1 5\n");
}

#[test]
fn groups_in_three_directions() {
    let folder = Folder::with("groups", "where.wgsl", WHERE);
    let line = "run where.wgsl --bind 0.0=zeros:32 --groups 2,2,2 --out 0.0=u32";
    assert_eq!(folder.good(line), "0.0 u32  0 1 10 11 100 101 110 111\n");
    let none = folder.spelter("run where.wgsl --bind 0.0=u32:7 --groups 0,5 --out 0.0=u32");
    let note = "note: no invocation ran: --groups has a 0\n";
    assert_eq!((none.status, none.stdout.as_str(), none.stderr.as_str()), (0, "0.0 u32  7\n", note));
}

#[test]
fn entry_points() {
    let folder = Folder::with("entries", "entries.wgsl", ENTRIES);
    let line = "run entries.wgsl --bind 0.0=zeros:4 --out 0.0=u32";
    assert_eq!(folder.good(&format!("{line} --entry two")), "0.0 u32  2\n");
    assert_eq!(folder.error(line), "entries.wgsl: several entry points: name one of one, two with --entry");
    let unknown = folder.error(&format!("{line} --entry three"));
    assert_eq!(unknown, "entries.wgsl: no entry point \"three\"; the shader has one, two");
}

#[test]
fn specialization_constants() {
    let folder = Folder::with("constants", "constants.wgsl", CONSTANTS);
    let line = "run constants.wgsl --bind 0.0=zeros:16 --out 0.0=f32";
    assert_eq!(folder.good(line), "0.0 f32  1 1 1 0\n");
    let set = "--spec 0=3 --spec 1=-1 --spec 2=1.5 --spec 3=true";
    assert_eq!(folder.good(&format!("{line} {set}")), "0.0 f32  3 -1 1.5 1\n");
    let unknown = folder.error(&format!("{line} --spec 9=1"));
    assert!(
        unknown.contains(
            "specialization constant 9: the shader has no constant with this id; it has 0 (a: u32), 1 (b: i32)"
        ),
        "{unknown}"
    );
    let float = folder.error(&format!("{line} --spec 2=2"));
    assert_eq!(float, "constants.wgsl: specialization constant 2 (c: f32) cannot be 2: write 2.0");
    let unsigned = folder.error(&format!("{line} --spec 0=1.5"));
    assert_eq!(
        unsigned,
        "constants.wgsl: specialization constant 0 (a: u32) cannot be 1.5: write an integer, such as 3"
    );
    assert_eq!(folder.error(&format!("{line} --spec 0=1 --spec 1=2 --spec 0=3")), "--spec 0 is given twice");
}

/// An override without `@id` has only its name; one with an id has both.
#[test]
fn constants_are_set_by_name() {
    let text = "
        override a: u32 = 1u; @id(4) override b: i32 = 2; override size: u32;
        @group(0) @binding(0) var<storage, read_write> to: array<i32>;
        @compute @workgroup_size(size) fn main(@builtin(local_invocation_index) i: u32) { to[i] = i32(a) + b; }";
    let folder = Folder::with("constant-names", "names.wgsl", text);
    let line = "run names.wgsl --bind 0.0=zeros:12 --out 0.0=i32";
    assert_eq!(folder.good(&format!("{line} --spec size=3 --spec a=40 --spec b=2")), "0.0 i32  42 42 42\n");
    assert_eq!(folder.good(&format!("{line} --spec size=1 --spec 4=-1")), "0.0 i32  0 0 0\n");
    let missing = folder.error(line);
    assert!(missing.contains("the override `size` has no value: set it by its name"), "{missing}");
    for (options, message) in [
        (
            "--spec c=1",
            "specialization constant c: the shader has no constant with this name; it has a (u32), 4 (b: i32), size (u32)",
        ),
        ("--spec a=1.5", "specialization constant a (u32) cannot be 1.5: write an integer"),
        ("--spec 4=1 --spec b=1", "specialization constant 4 (b: i32) is set twice, by its id and by its name"),
    ] {
        let error = folder.error(&format!("{line} --spec size=1 {options}"));
        assert!(error.contains(message), "{error}");
    }
    // `compile` and `reflect` take them as well.
    assert_eq!(folder.good("reflect names.wgsl --spec size=5").lines().next(), Some("main: workgroup 5x1x1"));
    assert!(folder.good("reflect names.wgsl --spec size=5").contains("specialization constant a (u32)\n"));
    let unknown = folder.error("compile names.wgsl --spec c=1");
    assert!(unknown.starts_with("--spec c: the shader has no such specialization constant"), "{unknown}");
}

#[test]
fn spirv_as_text_and_as_words_in_either_byte_order() {
    let folder = Folder::with("spirv", "answer.spvasm", ASSEMBLY);
    let options = "--bind 0.3=zeros:4 --out 0.3=u32";
    assert_eq!(folder.good(&format!("run answer.spvasm {options}")), "0.3 u32  42\n");
    let words = spelter_shaders::front::spvasm::assemble(ASSEMBLY).unwrap();
    folder.write("little.spv", &words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>());
    folder.write("big.spv", &words.iter().flat_map(|w| w.to_be_bytes()).collect::<Vec<_>>());
    assert_eq!(folder.good(&format!("run little.spv {options}")), "0.3 u32  42\n");
    assert_eq!(folder.good(&format!("run big.spv {options}")), "0.3 u32  42\n");
}

#[test]
fn an_element_of_an_array_of_buffers_is_shown_as_one() {
    let array = ASSEMBLY
        .replace(
            "%pointer = OpTypePointer Uniform %block",
            "%two = OpConstant %uint 2\n%blocks = OpTypeArray %block %two\n%pointer = OpTypePointer Uniform %blocks",
        )
        .replace("%buffer %zero %zero", "%buffer %zero %zero %zero");
    let folder = Folder::with("array", "array.spvasm", &array);
    let line = "run array.spvasm --bind 0.3[0]=zeros:4 --bind 0.3[1]=u32:7 --out 0.3[0]=u32 --out 0.3[1]=u32";
    assert_eq!(folder.good(line), "0.3[0] u32  42\n0.3[1] u32  7\n");
    let output = &folder.json(&format!("{line} --json"))["outputs"][1];
    assert_eq!((&output["set"], &output["binding"], &output["element"]), (&0.into(), &3.into(), &1.into()), "{output}");
}

#[test]
fn files_in_and_out() {
    let folder = Folder::with("files", "double.wgsl", DOUBLE);
    folder.write("in.bin", &[1, 0, 0, 0, 0, 1, 0, 0]);
    folder.good("run double.wgsl --bind 0.0=@in.bin --save 0.0=out.bin");
    assert_eq!(folder.read("out.bin"), [2, 0, 0, 0, 0, 2, 0, 0]);
}

#[test]
fn random_values_are_the_same_for_the_same_seed() {
    let folder = Folder::with("random", "double.wgsl", DOUBLE);
    let line = |seed| format!("run double.wgsl --bind 0.0=u32:random:4:{seed} --out 0.0=u32");
    assert_eq!(folder.good(&line(1)), folder.good(&line(1)));
    assert_ne!(folder.good(&line(1)), folder.good(&line(2)));
}

#[test]
fn repeats_go_on_from_what_was_written() {
    let folder = Folder::with("repeat", "double.wgsl", DOUBLE);
    let line = "run double.wgsl --bind 0.0=u32:1 --repeat 3 --workers 1 --out 0.0=u32";
    assert_eq!(folder.good(line), "0.0 u32  8\n");
    let timed = folder.good(&format!("{line} --time"));
    for word in ["warm-up", "median", "best", "spread", "invocations/s"] {
        assert!(timed.contains(word), "{timed}");
    }
    let once = folder.good("run double.wgsl --bind 0.0=u32:1 --time");
    assert!(once.contains("median") && !once.contains("invocations/s") && !once.contains("warm-up"), "{once}");
}

#[test]
fn json() {
    let folder = Folder::with("json", "scale.wgsl", SCALE);
    let line =
        "run scale.wgsl --bind 0.0=f32:1,2 --bind 1.2=zeros:8 --push f32:inf,0.1 --out 1.2=f32 --out 0.0=f32:1..2";
    let shown = folder.json(&format!("{line} --json --repeat 2 --workers 1"));
    let outputs = serde_json::json!([
        { "set": 1, "binding": 2, "element": null, "name": "to", "type": "f32", "first": 0, "values": ["inf", "inf"] },
        { "set": 0, "binding": 0, "element": null, "name": "source", "type": "f32", "first": 1, "values": [2.0] },
    ]);
    assert_eq!(shown["outputs"], outputs);
    assert_eq!((&shown["entry"], &shown["workers"]), (&"main".into(), &1.into()));
    // The first of two runs is a warm-up: the other one alone is measured.
    let times = &shown["times"];
    assert_eq!((&times["repeats"], &times["spread"]), (&2.into(), &serde_json::Value::Null));
    assert!(
        times["warm_up_seconds"].as_f64() > Some(0.0) && times["median_seconds"] == times["best_seconds"],
        "{times}"
    );
    assert!(shown["times"]["invocations_per_second"].as_f64() > Some(0.0));
}

#[test]
fn a_timeline_has_a_track_for_each_context_queue_and_worker() {
    let folder = Folder::with("trace", "double.wgsl", DOUBLE);
    let run = "run double.wgsl --bind 0.0=u32:range:64 --groups 16 --repeat 3 --workers 2 --trace t.json --json";
    let report = folder.json(run);
    assert_eq!((report["stats"]["dispatches"].as_u64(), report["stats"]["barriers"].as_u64()), (Some(3), Some(0)));
    let trace: serde_json::Value = serde_json::from_slice(&folder.read("t.json")).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let named = |name: &str| events.iter().filter(|event| event["name"] == name).collect::<Vec<_>>();
    let processes: Vec<_> = named("process_name").iter().map(|event| event["args"]["name"].as_str().unwrap()).collect();
    assert_eq!(processes, ["host", "queues", "workers"]);
    let tracks: Vec<_> = named("thread_name").iter().map(|event| event["args"]["name"].as_str().unwrap()).collect();
    assert!(tracks.contains(&"context 1") && tracks.contains(&"queue 0"), "{tracks:?}");
    let (dispatches, chunks): (Vec<_>, Vec<_>) =
        named("main").into_iter().partition(|event| event["cat"] == "dispatch");
    assert!(dispatches.len() == 3 && dispatches.iter().all(|event| event["pid"] == 2), "{dispatches:?}");
    let units: u64 = chunks.iter().map(|event| event["args"]["units"].as_u64().unwrap()).sum();
    assert_eq!(units, 3 * 16, "every workgroup of every run is on some worker's track");
    assert!(chunks.iter().all(|event| event["pid"] == 3 && event["dur"].as_f64().unwrap() >= 0.0));
    // Batches were recorded before they ran, and each batch of the queue encloses the kernels that ran in it.
    let span = |event: &serde_json::Value| {
        let start = event["ts"].as_f64().unwrap();
        (start, start + event["dur"].as_f64().unwrap())
    };
    let batches: Vec<_> = events.iter().filter(|event| event["pid"] == 2 && event["ph"] == "X").map(span).collect();
    for kernel in named("main") {
        let (start, end) = span(kernel);
        assert!(batches.iter().any(|batch| batch.0 <= start && end <= batch.1), "{kernel} in {batches:?}");
    }
}

/// A buffer without room for an element of its array is allowed, but usually a mistake, so it is reported.
#[test]
fn a_buffer_without_room_for_an_element_is_reported() {
    let text = "
        struct Block { head: u32, items: array<vec4<u32>> }
        @group(0) @binding(0) var<storage, read_write> to: array<u32>;
        @group(0) @binding(1) var<storage, read> source: Block;
        @compute @workgroup_size(1) fn main() { to[0] = arrayLength(&source.items) + source.head; }";
    let folder = Folder::with("no-room", "room.wgsl", text);
    let run =
        |bytes| folder.spelter(&format!("run room.wgsl --bind 0.0=zeros:4 --bind 0.1=zeros:{bytes} --out 0.0=u32"));
    let small = run(28);
    assert_eq!((small.status, small.stdout.as_str()), (0, "0.0 u32  0\n"));
    let note =
        "note: 0.1: 28 bytes have no room for one element, of 16 bytes after the first 16 bytes: the array is empty";
    assert_eq!(small.stderr.trim_end(), note);
    let enough = run(32);
    assert_eq!((enough.stdout.as_str(), enough.stderr.as_str()), ("0.0 u32  1\n", ""));
}

#[test]
fn a_buffer_can_have_two_bindings() {
    let text = "@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> to: array<u32>;
@compute @workgroup_size(4) fn main(@builtin(local_invocation_index) l: u32) {
  if l < 2u { to[2u + l] = source[l]; }
}";
    let folder = Folder::with("two-bindings", "copy.wgsl", text);
    // In either order of the options.
    for binds in ["--bind 0.0=u32:1,2,3,4 --bind 0.1=0.0", "--bind 0.1=0.0 --bind 0.0=u32:1,2,3,4"] {
        let line = format!("run copy.wgsl {binds} --out 0.0=u32 --out 0.1=u32");
        assert_eq!(folder.good(&line), "0.0 u32  1 2 1 2\n0.1 u32  1 2 1 2\n");
    }
    for other in ["0.1", "0.2"] {
        let message = folder.error(&format!("run copy.wgsl --bind 0.0=zeros:16 --bind 0.1={other}"));
        assert_eq!(message, format!("--bind 0.1: no option gives binding {other} contents"));
    }
    assert!(folder.usage("run copy.wgsl --bind 0.0=1.5x").contains("1.5x"));
    assert!(folder.error("bench copy.wgsl --bind 0.1=0.0").contains("only `spelter run` binds a buffer twice"));
}
