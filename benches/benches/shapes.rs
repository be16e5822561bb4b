//! Forms of memory access: two-dimensional workgroups, partial elements, guards, sub-words and large frames, each as a
//! ratio to contiguous rows of the same bytes in the same run: 1 means as fast as rows. Then the costs of access
//! patterns, in contiguous rows, beside those of gathers or scatters of the same words: the numbers of
//! `vectorize/access/cost.rs`.
//!
//! `cargo bench -p spelter-benches --bench shapes -- 8x8` runs some. On one processor (`taskset -c 0`) the costs are
//! steadier: with several workers a good part of the time is that of waking them.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench that cannot run should say so, and prints its table"
)]

use std::fmt::Write;
use std::time::Duration;

use criterion::Criterion;
use spelter::{Backend, Buffer, Context, Program};
use spelter_benches::engine::{Engine, engines};
use spelter_benches::measure::Stopwatch;
use spelter_shaders::front::spvasm;

/// Words of each buffer: an image of 512 x 512, which fits the caches.
const WORDS: u32 = 1 << 18;
const SIDE: u32 = 512;

/// Values that are live together in the kernel with a large frame.
const ALIVE: u32 = 400;

/// A form of access that is compared with rows.
struct Shape {
    name: &'static str,
    text: String,
    /// Whether the text is SPIR-V rather than WGSL.
    is_spirv: bool,
    groups: [u32; 3],
    /// Bytes that are read or written, including gaps between elements.
    bytes: u32,
}

fn wgsl(name: &'static str, groups: [u32; 3], words: u32, text: impl Into<String>) -> Shape {
    let text = format!("struct Push {{ width: u32, count: u32 }}\nvar<immediate> push: Push;\n{}", text.into());
    Shape { name, text, is_spirv: false, groups, bytes: 4 * words }
}

/// A kernel with one invocation per element `i` of an array, and the words of an element.
fn row(name: &'static str, element: &str, words: u32, body: &str) -> Shape {
    let count = WORDS / words;
    let text = format!(
        "struct Two {{ p: vec4<f32>, v: vec4<f32> }}
         @group(0) @binding(0) var<storage, read> source: array<{element}>;
         @group(0) @binding(1) var<storage, read_write> result: array<{element}>;
         @compute @workgroup_size(256) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
             let i = id.x;
             {body}
         }}"
    );
    wgsl(name, [count / 256, 1, 1], 2 * count * words, text)
}

/// A kernel with one invocation per word of an image; `at` is the word's index.
fn picture(name: &'static str, [x, y]: [u32; 2], body: &str) -> Shape {
    let text = format!(
        "@group(0) @binding(0) var<storage, read> source: array<f32>;
         @group(0) @binding(1) var<storage, read_write> result: array<f32>;
         @compute @workgroup_size({x}, {y}) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
             let width = push.width;
             let at = id.y * width + id.x;
             {body}
         }}"
    );
    wgsl(name, [SIDE / x, SIDE / y, 1], 2 * WORDS, text)
}

/// Rows that are all loaded before the first is used: the registers hold a tenth of them.
fn large_frame() -> Shape {
    let count = WORDS / ALIVE / 256 * 256;
    let mut text = String::from(
        "@group(0) @binding(0) var<storage, read> source: array<f32>;
         @group(0) @binding(1) var<storage, read_write> result: array<f32>;
         @compute @workgroup_size(256) fn main(@builtin(global_invocation_id) id: vec3<u32>) {\n",
    );
    (0..ALIVE).for_each(|row| writeln!(text, "let x{row} = source[id.x + {}u];", row * count).unwrap());
    text += "var sum = 0.0;\n";
    (0..ALIVE).rev().for_each(|row| writeln!(text, "sum = sum * 0.5 + x{row};").unwrap());
    text += "result[id.x] = sum;\n}";
    wgsl("large frame", [count / 256, 1, 1], count * (ALIVE + 1), text)
}

fn shapes() -> Vec<Shape> {
    let copy = "result[at] = source[at] * 2.0 + 1.0;";
    let stencil = "result[at] = 0.5 * source[at]
        + 0.125 * (source[at - 1u] + source[at + 1u] + source[at - width] + source[at + width]);";
    let vectors = |name, [x, y]: [u32; 2]| {
        let side = SIDE / 2;
        let text = format!(
            "@group(0) @binding(0) var<storage, read> source: array<vec4<f32>>;
             @group(0) @binding(1) var<storage, read_write> result: array<vec4<f32>>;
             @compute @workgroup_size({x}, {y}) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
                 let at = id.y * (push.width / 2u) + id.x;
                 result[at] = source[at] * 2.0 + 1.0;
             }}"
        );
        wgsl(name, [side / x, side / y, 1], 2 * WORDS, text)
    };
    vec![
        picture("8x8", [8, 8], copy),
        picture("4x4", [4, 4], copy),
        picture("16x4", [16, 4], copy),
        picture("8x8 stencil", [8, 8], stencil),
        picture("16x16 stencil", [16, 16], stencil),
        vectors("8x8 vec4", [8, 8]),
        vectors("4x4 vec4", [4, 4]),
        row("guarded", "f32", 1, "if i >= push.count { return; } result[i] = source[i] * 2.0 + 1.0;"),
        row("vec2", "vec2<f32>", 2, "result[i] = source[i] * 2.0 + 1.0;"),
        row("vec4", "vec4<f32>", 4, "result[i] = source[i] * 2.0 + 1.0;"),
        row("vec3", "vec3<f32>", 4, "result[i] = source[i] * 2.0 + 1.0;"),
        row("vec3 guarded", "vec3<f32>", 4, "if i >= push.count { return; } result[i] = source[i] * 2.0 + 1.0;"),
        row(
            "a[3 * i + c]",
            "f32",
            3,
            "if i >= push.count { return; }
             let x = source[3u * i]; let y = source[3u * i + 1u]; let z = source[3u * i + 2u];
             result[3u * i] = z; result[3u * i + 1u] = y * 2.0; result[3u * i + 2u] = x;",
        ),
        row("struct, one member", "Two", 8, "if i >= push.count { return; } result[i].p = source[i].p * 2.0 + 1.0;"),
        row(
            "struct, a step",
            "Two",
            8,
            "if i >= push.count { return; } result[i].p = source[i].p + source[i].v * 0.01; result[i].v = source[i].v * 0.99;",
        ),
        Shape {
            name: "rgb8",
            text: include_str!("../kernels/rgb8.spvasm").into(),
            is_spirv: true,
            groups: [WORDS * 4 / 3 / 256, 1, 1],
            bytes: WORDS * 4 / 3 / 256 * 256 * 6,
        },
        {
            let text = "@group(0) @binding(0) var<storage, read> source: array<vec3<f16>>;
                 @group(0) @binding(1) var<storage, read_write> result: array<vec3<f16>>;
                 @compute @workgroup_size(256) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
                     if id.x < push.count { result[id.x] = source[id.x] * 2.0h; }
                 }";
            let shape = wgsl("f16vec3", [WORDS / 2 / 256, 1, 1], 2 * WORDS, text);
            Shape { text: format!("enable f16;\n{}", shape.text), ..shape }
        },
        large_frame(),
    ]
}

/// Invocations of a pattern's kernel: their words are within the buffers.
const INVOCATIONS: u32 = WORDS / 8;

/// Accesses of each invocation in a pattern's kernel: what else it does counts for little beside them.
const ACCESSES: u32 = 8;

/// Zeros that the analysis cannot see.
const HIDDEN: [&str; 2] = ["(push.count ^ 262144u)", "(push.width ^ 512u)"];

/// Two kernels that access the same words: one with a pattern that is recognised, one with an access for each lane.
fn choice(name: &'static str, [x, y]: [u32; 2], element: &str, bodies: [String; 2]) -> [Shape; 2] {
    let groups = if y == 1 { [INVOCATIONS / x, 1, 1] } else { [SIDE / x, INVOCATIONS / SIDE / y, 1] };
    bodies.map(|body| {
        let head = if body.contains("value") { "let value = source[0];" } else { "" };
        let text = format!(
            "struct Three {{ a: u32, b: u32, c: u32 }}
             struct Eight {{ a: vec4<u32>, b: vec4<u32> }}
             @group(0) @binding(0) var<storage, read> source: array<{element}>;
             @group(0) @binding(1) var<storage, read_write> result: array<u32>;
             @compute @workgroup_size({x}, {y})
             fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>,
                     @builtin(local_invocation_index) local: u32) {{
                 let x = id.x;
                 let y = id.y;
                 let width = push.width;
                 let i = (group.y * (width / {x}u) + group.x) * {size}u + local;
                 var sum = 0u;
                 {head}
                 for (var access = 0u; access < {ACCESSES}u; access++) {{
                     let more = 16u * access;
                     {body}
                 }}
                 if sum > 0u {{ result[i] = sum; }}
             }}",
            size = x * y,
        );
        wgsl(name, groups, INVOCATIONS * ACCESSES, text)
    })
}

/// Loads or stores at an index that lanes compute from `i` or the position `x`, `y`; and the same with the index hidden
/// from the analysis.
fn pattern(name: &'static str, size: [u32; 2], index: &str, is_store: bool) -> [Shape; 2] {
    let body = |index: &str| match is_store {
        true => format!("result[{index} + more] = value;"),
        false => format!("sum += source[{index} + more];"),
    };
    choice(name, size, "u32", [body(&format!("({index})")), body(&format!("(({index}) ^ {})", HIDDEN[0]))])
}

/// Loads of some words of elements, together and each on its own: `AT` is the index of the element.
fn element(name: &'static str, element: &str, words: &[&str]) -> [Shape; 2] {
    let bodies = [false, true].map(|hides| {
        let words = words.iter().zip(HIDDEN.into_iter().cycle()).map(|(word, zero)| {
            let index = if hides { format!("((i ^ {zero}) + more)") } else { "(i + more)".into() };
            word.replace("AT", &index)
        });
        format!("sum += {};", words.collect::<Vec<_>>().join(" + "))
    });
    choice(name, [256, 1], element, bodies)
}

/// Two words at a distance, gathered together and each on its own.
fn adjacent(name: &'static str, distance: u32) -> [Shape; 2] {
    let [zero, other] = HIDDEN;
    let together = format!("let at = ((5u * i) ^ {zero}) + more; sum += source[at] + source[at + {distance}u];");
    let alone =
        format!("sum += source[((5u * i) ^ {zero}) + more] + source[((5u * i + {distance}u) ^ {other}) + more];");
    choice(name, [256, 1], "u32", [together, alone])
}

/// A kernel without accesses in its loop: what a dispatch costs.
fn nothing(name: &'static str, body: &str) -> [Shape; 2] {
    choice(name, [256, 1], "u32", [body.into(), body.into()])
}

/// Before the loads and before the stores a kernel without any, and then contiguous ones: zero and the unit of the
/// costs.
fn patterns() -> Vec<[Shape; 2]> {
    let line = [256, 1];
    vec![
        nothing("no load", "sum = value;"),
        pattern("load a[i]", line, "i", false),
        pattern("load a[i / 2]", line, "i / 2u", false),
        pattern("load a[2 * i]", line, "2u * i", false),
        pattern("load a[3 * i]", line, "3u * i", false),
        pattern("load a[4 * i]", line, "4u * i", false),
        pattern("load a[5 * i]", line, "5u * i", false),
        pattern("load a[7 * i]", line, "7u * i", false),
        pattern("load 8x8", [8, 8], "y * width + x", false),
        pattern("load 4x4", [4, 4], "y * width + x", false),
        element("2 of 2 words", "vec2<u32>", &["source[AT].x", "source[AT].y"]),
        element("3 of 3 words", "Three", &["source[AT].a", "source[AT].b", "source[AT].c"]),
        element("4 of 4 words", "vec4<u32>", &["source[AT].x", "source[AT].y", "source[AT].z", "source[AT].w"]),
        element("1 of 3 words", "Three", &["source[AT].a"]),
        element("1 of 4 words", "vec4<u32>", &["source[AT].x"]),
        element("2 of 4 words", "vec4<u32>", &["source[AT].x", "source[AT].y"]),
        element("1 of 8 words", "Eight", &["source[AT].a.x"]),
        element("2 of 8 words", "Eight", &["source[AT].a.x", "source[AT].a.y"]),
        adjacent("2 adjacent words", 1),
        adjacent("2 of 4 adjacent words", 3),
        nothing("no store", "sum = select(0u, 1u, value == 5u);"),
        pattern("store a[i]", line, "i", true),
        pattern("store a[i ^ 1]", line, "i + 1u - 2u * (local & 1u)", true),
        pattern("store a[2 * i]", line, "2u * i", true),
        pattern("store a[3 * i]", line, "3u * i", true),
        pattern("store a[4 * i]", line, "4u * i", true),
        pattern("store a[7 * i]", line, "7u * i", true),
        pattern("store 8x8", [8, 8], "y * width + x", true),
        pattern("store 4x4", [4, 4], "y * width + x", true),
    ]
}

/// A kernel with its buffers.
struct Work<'a> {
    context: &'a Context,
    program: Program,
    buffers: [Buffer; 2],
    groups: [u32; 3],
}

impl<'a> Work<'a> {
    fn new(context: &'a Context, shape: &Shape) -> Self {
        let program = if shape.is_spirv {
            context.program_spirv(&spvasm::assemble(&shape.text).unwrap()).unwrap()
        } else {
            context.program_wgsl(&shape.text).unwrap()
        };
        // Ordinary values, whether read as floats, halves or bytes.
        let words: Vec<u32> = (0..WORDS).map(|word| 0x3c00_3c00 + word % 7 * 0x0010_0010).collect();
        let buffers = [context.buffer_from(&words).unwrap(), context.buffer_from(&vec![0_u32; words.len()]).unwrap()];
        Self { context, program, buffers, groups: shape.groups }
    }

    fn run(&self) {
        let [source, result] = &self.buffers;
        let dispatch = self.context.dispatch(&self.program).bind(0, 0, source).bind(0, 1, result);
        let dispatch = if self.program_has_push() { dispatch.push(&[SIDE, WORDS]) } else { dispatch };
        dispatch.groups(self.groups).unwrap();
        self.context.finish().unwrap();
    }

    fn program_has_push(&self) -> bool {
        self.program.push_bytes() > 0
    }

    fn result(&self) -> Vec<u32> {
        self.run();
        self.context.read(&self.buffers[1]).unwrap()
    }
}

/// Seconds of the fastest run, unless criterion's filter excludes it.
fn measure(criterion: &mut Criterion, engine: &Engine, shape: &Shape, name: &str) -> Option<f64> {
    let (mut work, mut watch) = (None, Stopwatch::default());
    criterion.benchmark_group("shapes").bench_function(format!("{name}/{}", engine.name), |bencher| {
        let work = work.get_or_insert_with(|| {
            let interpreter = Context::builder().backend(Backend::Interpreter).build().unwrap();
            let work = Work::new(&engine.context, shape);
            assert_eq!(work.result(), Work::new(&interpreter, shape).result(), "{}", shape.name);
            work
        });
        bencher.iter_custom(|runs| watch.time(runs, || work.run()));
    });
    watch.seconds()
}

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(300))
        .sample_size(10)
        .without_plots()
        .configure_from_args();
    let engines = engines().unwrap();
    let mut lines = Vec::new();
    for shape in shapes() {
        // The same number of bytes, half of them read.
        let count = shape.bytes / 8 / 256 * 256;
        let rows = row("rows", "f32", 1, "result[i] = source[i] * 2.0 + 1.0;");
        let rows = Shape { groups: [count / 256, 1, 1], ..rows };
        let mut line = String::new();
        for engine in &engines {
            let Some(seconds) = measure(&mut criterion, engine, &shape, shape.name) else { continue };
            let Some(plain) = measure(&mut criterion, engine, &rows, &format!("{}, as rows", shape.name)) else {
                continue;
            };
            let gigabytes = f64::from(shape.bytes) / seconds / 1e9;
            write!(line, "  {:>7} {:5.2} {gigabytes:6.1} GB/s", engine.name, plain / seconds).unwrap();
        }
        if !line.is_empty() {
            lines.push(format!("{:20}{line}", shape.name));
        }
    }
    let mut choices = Vec::new();
    // By engine, the time without accesses, and what contiguous ones add to it.
    let mut zeros: Vec<Option<f64>> = vec![None; engines.len()];
    let mut units: Vec<Option<f64>> = vec![None; engines.len()];
    for [shape, lane_by_lane] in patterns() {
        let mut line = String::new();
        for (engine, (zero, unit)) in engines.iter().zip(zeros.iter_mut().zip(&mut units)) {
            let Some(seconds) = measure(&mut criterion, engine, &shape, shape.name) else { continue };
            if shape.name.starts_with("no ") {
                *zero = Some(seconds);
                continue;
            }
            if shape.name.ends_with("a[i]") {
                *unit = zero.map(|zero| seconds - zero);
            }
            let name = format!("{}, lane by lane", shape.name);
            let Some(apart) = measure(&mut criterion, engine, &lane_by_lane, &name) else { continue };
            let in_rows = |seconds: f64| match (*zero, *unit) {
                (Some(zero), Some(unit)) => format!("{:5.1}", (seconds - zero) / unit),
                _ => "    ?".into(),
            };
            write!(line, "  {:>7} {} of {}", engine.name, in_rows(seconds), in_rows(apart)).unwrap();
        }
        if !line.is_empty() {
            choices.push(format!("{:24}{line}", shape.name));
        }
    }
    criterion.final_summary();
    println!("\nSpeed as a part of that of plain rows of the same bytes, best runs.\n{}", lines.join("\n"));
    println!(
        "\nCost in contiguous rows: of the pattern, and of gathers or scatters of the same words.\n{}",
        choices.join("\n")
    );
}
