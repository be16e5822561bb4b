//! Compilation has a bound: work grows with the size of what is compiled, also for shaders that were made to be hard.
//!
//! Each shape is compiled in a size and in twice that. Work is counted in blocks, instructions, block arguments and
//! live values that passes look at, so the ratio is the same on every machine.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use spelter_shaders::back::x86::{self, Isa};
use spelter_shaders::compile::{self, Backend, Module};
use spelter_shaders::front::spvasm;
use spelter_shaders::ir::Kernel;
use spelter_shaders::{simd, work};

const HEAD: &str = "
    OpCapability Shader
    OpMemoryModel Logical GLSL450
    OpEntryPoint GLCompute %main \"main\" %gid
    OpExecutionMode %main LocalSize 64 1 1
    OpDecorate %gid BuiltIn GlobalInvocationId
    OpDecorate %array ArrayStride 4
    OpDecorate %block Block
    OpMemberDecorate %block 0 Offset 0
    OpDecorate %buffer DescriptorSet 0
    OpDecorate %buffer Binding 0
    %void = OpTypeVoid
    %bool = OpTypeBool
    %u32 = OpTypeInt 32 0
    %uvec3 = OpTypeVector %u32 3
    %to_input = OpTypePointer Input %uvec3
    %gid = OpVariable %to_input Input
    %array = OpTypeRuntimeArray %u32
    %block = OpTypeStruct %array
    %to_block = OpTypePointer StorageBuffer %block
    %to_word = OpTypePointer StorageBuffer %u32
    %buffer = OpVariable %to_block StorageBuffer
    %to_local = OpTypePointer Function %u32
    %unit = OpTypeFunction %void
    %step = OpTypeFunction %u32 %u32
    %c0 = OpConstant %u32 0
    %c1 = OpConstant %u32 1
    %c2 = OpConstant %u32 2
    %c3 = OpConstant %u32 3
    %c264 = OpConstant %u32 264
";

/// A module: declarations, local variables, the body of `main` and other functions.
#[derive(Default)]
struct Text {
    declarations: String,
    variables: String,
    body: String,
    functions: String,
}

/// Makes a shader of some size.
type Shape = fn(usize) -> Text;

macro_rules! put {
    ($to:expr, $($rest:tt)*) => { writeln!($to, $($rest)*).unwrap() };
}

impl Text {
    fn words(&self) -> Vec<u32> {
        let Self { declarations, variables, body, functions } = self;
        let text = format!(
            "{HEAD}{declarations}%main = OpFunction %void None %unit\n%entry = OpLabel\n{variables}
            %ids = OpLoad %uvec3 %gid\n%id = OpCompositeExtract %u32 %ids 0
            %p = OpAccessChain %to_word %buffer %c0 %id\n%x = OpLoad %u32 %p\n{body}OpFunctionEnd\n{functions}"
        );
        spvasm::assemble(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    fn kernel(&self) -> Kernel {
        let module = Module::from_spirv(&self.words()).unwrap();
        module.kernel("main", &BTreeMap::new()).unwrap()
    }
}

/// Nested loops that lanes leave in different iterations.
fn loops(count: usize) -> Text {
    let mut text = Text::default();
    let body = &mut text.body;
    put!(body, "OpBranch %h0");
    for at in 0..count {
        let before = if at == 0 { "entry".to_owned() } else { format!("b{}", at - 1) };
        put!(body, "%h{at} = OpLabel\n%i{at} = OpPhi %u32 %c0 %{before} %n{at} %t{at}");
        put!(body, "OpLoopMerge %m{at} %t{at} None\nOpBranch %k{at}\n%k{at} = OpLabel");
        put!(body, "%q{at} = OpULessThan %bool %i{at} %x\nOpBranchConditional %q{at} %b{at} %m{at}\n%b{at} = OpLabel");
        if at + 1 < count {
            put!(body, "OpBranch %h{}", at + 1);
        }
    }
    put!(body, "%old = OpLoad %u32 %p\n%new = OpIAdd %u32 %old %c1\nOpStore %p %new\nOpBranch %t{}", count - 1);
    for at in (0..count).rev() {
        put!(body, "%t{at} = OpLabel\n%n{at} = OpIAdd %u32 %i{at} %c1\nOpBranch %h{at}\n%m{at} = OpLabel");
        put!(body, "{}", if at == 0 { "OpReturn".to_owned() } else { format!("OpBranch %t{}", at - 1) });
    }
    text
}

/// What selections begin with: a condition of their own.
fn condition(body: &mut String, at: usize) {
    let before = if at == 0 { "x".to_owned() } else { format!("e{}", at - 1) };
    put!(body, "%e{at} = OpIMul %u32 %{before} %c3\n%q{at} = OpUGreaterThan %bool %e{at} %c3");
    put!(body, "OpSelectionMerge %m{at} None\nOpBranchConditional %q{at} %b{at} %m{at}\n%b{at} = OpLabel");
}

/// Selections in selections.
fn ifs(count: usize) -> Text {
    let mut text = Text::default();
    for at in 0..count {
        condition(&mut text.body, at);
        put!(text.body, "OpStore %p %e{at}");
    }
    put!(text.body, "OpBranch %m{}", count - 1);
    for at in (0..count).rev() {
        put!(text.body, "%m{at} = OpLabel");
        put!(text.body, "{}", if at == 0 { "OpReturn".to_owned() } else { format!("OpBranch %m{}", at - 1) });
    }
    text
}

/// Selections one after the other.
fn row(count: usize) -> Text {
    let mut text = Text::default();
    for at in 0..count {
        condition(&mut text.body, at);
        put!(text.body, "OpStore %p %e{at}\nOpBranch %m{at}\n%m{at} = OpLabel");
    }
    text.body += "OpReturn\n";
    text
}

/// A loop that is left, or begun anew, in many places.
fn breaks(count: usize) -> Text {
    let mut text = Text::default();
    text.body += "OpBranch %h\n%h = OpLabel\n%i = OpPhi %u32 %c0 %entry %n %t\nOpLoopMerge %m %t None\nOpBranch %k\n%k = OpLabel\n";
    for at in 0..count {
        condition(&mut text.body, at);
        put!(text.body, "OpStore %p %e{at}\nOpBranch %{}\n%m{at} = OpLabel", if at % 2 == 0 { "m" } else { "t" });
    }
    text.body += "OpBranch %t\n%t = OpLabel\n%n = OpIAdd %u32 %i %c1\nOpBranch %h\n%m = OpLabel\nOpReturn\n";
    text
}

/// A loop that is left in many places, with many values that `takers` of those take along.
fn taken(count: usize, takers: usize) -> Text {
    let mut text = Text::default();
    let body = &mut text.body;
    put!(body, "OpBranch %h\n%h = OpLabel\n%i = OpPhi %u32 %c0 %entry %n %t\n%old = OpLoad %u32 %p");
    put!(body, "%go = OpULessThan %bool %i %x\nOpLoopMerge %m %t None\nOpBranchConditional %go %k %m\n%k = OpLabel");
    put!(body, "%w = OpBitwiseXor %u32 %old %i");
    (0..count).for_each(|at| {
        let before = if at == 0 { "w".to_owned() } else { format!("v{}", at - 1) };
        put!(body, "%v{at} = OpIMul %u32 %{before} %w");
    });
    for at in 0..count + takers {
        let before = if at == 0 { "w".to_owned() } else { format!("e{}", at - 1) };
        put!(body, "%s{at} = OpIMul %u32 %{before} %c3\n%e{at} = OpIAdd %u32 %s{at} %id");
        put!(body, "%q{at} = OpIEqual %bool %e{at} %c264\nOpSelectionMerge %m{at} None");
        put!(body, "OpBranchConditional %q{at} %b{at} %m{at}\n%b{at} = OpLabel\n%g{at} = OpIMul %u32 %e{at} %s{at}");
        put!(body, "%a{at} = OpAtomicIAdd %u32 %p %c1 %c0 %g{at}");
        if at >= count {
            (0..count).for_each(|value| put!(body, "%a{at}_{value} = OpAtomicIAdd %u32 %p %c1 %c0 %v{value}"));
        }
        put!(body, "OpReturn\n%m{at} = OpLabel");
    }
    put!(body, "OpBranch %t\n%t = OpLabel\n%n = OpIAdd %u32 %i %c1\nOpBranch %h\n%m = OpLabel\nOpReturn");
    text
}

/// A switch with many cases, each of which does something.
fn cases(count: usize) -> Text {
    let mut text = Text::default();
    let pairs: String = (0..count).map(|at| format!(" {at} %s{at}")).collect();
    put!(text.body, "OpSelectionMerge %m None\nOpSwitch %x %m{pairs}");
    for at in 0..count {
        put!(text.body, "%s{at} = OpLabel\n%l{at} = OpLoad %u32 %p\n%a{at} = OpIMul %u32 %l{at} %id");
        put!(text.body, "OpStore %p %a{at}\nOpBranch %m");
    }
    text.body += "%m = OpLabel\nOpReturn\n";
    text
}

/// A switch with many cases, of which each only chooses a value.
fn chosen(count: usize) -> Text {
    let mut text = Text::default();
    let pairs: String = (0..count).map(|at| format!(" {at} %s{at}")).collect();
    put!(text.body, "OpSelectionMerge %m None\nOpSwitch %x %d{pairs}\n%d = OpLabel\nOpBranch %m");
    for at in 0..count {
        put!(text.declarations, "%k{at} = OpConstant %u32 {}", at + 10);
        put!(text.body, "%s{at} = OpLabel\nOpBranch %m");
    }
    let incoming: String = (0..count).map(|at| format!(" %k{at} %s{at}")).collect();
    put!(text.body, "%m = OpLabel\n%r = OpPhi %u32 %c0 %d{incoming}\nOpStore %p %r\nOpReturn");
    text
}

/// Switches in switches.
fn switches(count: usize) -> Text {
    let mut text = Text::default();
    for at in 0..count {
        let before = if at == 0 { "x".to_owned() } else { format!("e{}", at - 1) };
        put!(text.body, "%e{at} = OpIMul %u32 %{before} %c3\nOpSelectionMerge %m{at} None");
        put!(text.body, "OpSwitch %e{at} %m{at} 1 %a{at} 2 %b{at}\n%a{at} = OpLabel\nOpStore %p %e{at}");
        put!(text.body, "OpBranch %m{at}\n%b{at} = OpLabel");
    }
    put!(text.body, "OpBranch %m{}", count - 1);
    for at in (0..count).rev() {
        put!(text.body, "%m{at} = OpLabel");
        put!(text.body, "{}", if at == 0 { "OpReturn".to_owned() } else { format!("OpBranch %m{}", at - 1) });
    }
    text
}

/// Values that come together in one block.
fn phis(count: usize) -> Text {
    let mut text = Text::default();
    text.body +=
        "%q = OpUGreaterThan %bool %x %c3\nOpSelectionMerge %m None\nOpBranchConditional %q %b %o\n%b = OpLabel\n";
    let chain = |body: &mut String, name: &str, op: &str| {
        for at in 0..count {
            let before = if at == 0 { "x".to_owned() } else { format!("{name}{}", at - 1) };
            put!(body, "%{name}{at} = {op} %u32 %{before} %id");
        }
    };
    chain(&mut text.body, "y", "OpIMul");
    text.body += "OpStore %p %x\nOpBranch %m\n%o = OpLabel\n";
    chain(&mut text.body, "v", "OpIAdd");
    text.body += "OpBranch %m\n%m = OpLabel\n";
    for at in 0..count {
        put!(text.body, "%r{at} = OpPhi %u32 %y{at} %b %v{at} %o");
    }
    for at in 0..count {
        let before = if at == 0 { "c0".to_owned() } else { format!("s{}", at - 1) };
        put!(text.body, "%s{at} = OpBitwiseXor %u32 %{before} %r{at}");
    }
    put!(text.body, "OpStore %p %s{}\nOpReturn", count - 1);
    text
}

/// Calls of one function, which returns early.
fn calls(count: usize) -> Text {
    let mut text = Text::default();
    for at in 0..count {
        let before = if at == 0 { "x".to_owned() } else { format!("a{}", at - 1) };
        put!(text.body, "%a{at} = OpFunctionCall %u32 %f %{before}");
    }
    put!(text.body, "OpStore %p %a{}\nOpReturn", count - 1);
    text.functions += "%f = OpFunction %u32 None %step\n%fa = OpFunctionParameter %u32\n%fl = OpLabel\n\
        %fr = OpIMul %u32 %fa %c3\n%fq = OpUGreaterThan %bool %fr %c3\nOpSelectionMerge %fm None\n\
        OpBranchConditional %fq %fb %fm\n%fb = OpLabel\nOpReturnValue %fa\n%fm = OpLabel\nOpReturnValue %fr\n\
        OpFunctionEnd\n";
    text
}

/// Calls of as many functions.
fn fan(count: usize) -> Text {
    let mut text = Text::default();
    for at in 0..count {
        let before = if at == 0 { "x".to_owned() } else { format!("a{}", at - 1) };
        put!(text.body, "%a{at} = OpFunctionCall %u32 %f{at} %{before}");
        put!(text.functions, "%f{at} = OpFunction %u32 None %step\n%fa{at} = OpFunctionParameter %u32");
        put!(text.functions, "%fl{at} = OpLabel\n%fr{at} = OpIMul %u32 %fa{at} %c3");
        put!(text.functions, "OpReturnValue %fr{at}\nOpFunctionEnd");
    }
    put!(text.body, "OpStore %p %a{}\nOpReturn", count - 1);
    text
}

/// A structure of many members that is copied as a whole.
fn members(count: usize) -> Text {
    let mut text = Text::default();
    put!(text.declarations, "%big = OpTypeStruct{}", " %u32".repeat(count));
    text.declarations += "%to_big = OpTypePointer Function %big\n";
    text.variables += "%from = OpVariable %to_big Function\n%into = OpVariable %to_big Function\n";
    for at in 0..count {
        put!(text.declarations, "%k{at} = OpConstant %u32 {at}");
        put!(
            text.body,
            "%w{at} = OpIMul %u32 %x %k{at}\n%g{at} = OpAccessChain %to_local %from %k{at}\nOpStore %g{at} %w{at}"
        );
    }
    text.body += "%all = OpLoad %big %from\nOpStore %into %all\n%again = OpLoad %big %into\n";
    for at in 0..count {
        let before = if at == 0 { "c0".to_owned() } else { format!("s{}", at - 1) };
        put!(text.body, "%r{at} = OpCompositeExtract %u32 %again {at}\n%s{at} = OpBitwiseXor %u32 %{before} %r{at}");
    }
    put!(text.body, "OpStore %p %s{}\nOpReturn", count - 1);
    text
}

/// Access chains into one local array, by indices that are not known.
fn chains(count: usize) -> Text {
    let mut text = Text::default();
    text.declarations +=
        "%c64 = OpConstant %u32 64\n%row = OpTypeArray %u32 %c64\n%to_row = OpTypePointer Function %row\n";
    text.variables += "%from = OpVariable %to_row Function\n";
    for at in 0..count {
        let before = if at == 0 { "x".to_owned() } else { format!("r{}", at - 1) };
        put!(text.body, "%g{at} = OpAccessChain %to_local %from %{before}\n%l{at} = OpLoad %u32 %g{at}");
        put!(
            text.body,
            "%r{at} = OpIAdd %u32 %l{at} %id\n%o{at} = OpAccessChain %to_local %from %r{at}\nOpStore %o{at} %id"
        );
    }
    put!(text.body, "OpStore %p %r{}\nOpReturn", count - 1);
    text
}

/// Variables that are written here and there, and read at the end.
fn variables(count: usize) -> Text {
    let mut text = row(count);
    text.body.truncate(text.body.len() - "OpReturn\n".len());
    for at in 0..count {
        put!(text.variables, "%var{at} = OpVariable %to_local Function");
        text.body = text
            .body
            .replace(&format!("OpStore %p %e{at}\n"), &format!("OpStore %p %e{at}\nOpStore %var{at} %e{at}\n"));
    }
    for at in 0..count {
        let before = if at == 0 { "c0".to_owned() } else { format!("s{}", at - 1) };
        put!(text.body, "%r{at} = OpLoad %u32 %var{at}\n%s{at} = OpIAdd %u32 %{before} %r{at}");
    }
    put!(text.body, "OpStore %p %s{}\nOpReturn", count - 1);
    text
}

/// Barriers, with values that live over them.
fn barriers(count: usize) -> Text {
    let mut text = Text::default();
    for at in 0..count {
        put!(text.body, "%l{at} = OpLoad %u32 %p\n%z{at} = OpIMul %u32 %l{at} %id\nOpStore %p %z{at}");
        put!(text.body, "OpControlBarrier %c2 %c2 %c264");
    }
    text.body += "OpReturn\n";
    text
}

/// Loops one after the other, each of which changes one of half as many variables.
fn row_of_loops(count: usize) -> Text {
    let mut text = Text::default();
    let variables = count.div_ceil(2);
    for at in 0..variables {
        put!(text.variables, "%var{at} = OpVariable %to_local Function");
        put!(text.body, "OpStore %var{at} %x");
    }
    text.body += "OpBranch %h0\n";
    for at in 0..count {
        let before = if at == 0 { "entry".to_owned() } else { format!("m{}", at - 1) };
        put!(text.body, "%h{at} = OpLabel\n%i{at} = OpPhi %u32 %c0 %{before} %n{at} %t{at}");
        put!(text.body, "OpLoopMerge %m{at} %t{at} None\nOpBranch %k{at}\n%k{at} = OpLabel");
        put!(
            text.body,
            "%q{at} = OpULessThan %bool %i{at} %x\nOpBranchConditional %q{at} %t{at} %m{at}\n%t{at} = OpLabel"
        );
        put!(text.body, "%n{at} = OpIAdd %u32 %i{at} %c1\n%r{at} = OpLoad %u32 %var{}", at % variables);
        put!(text.body, "%s{at} = OpIAdd %u32 %r{at} %n{at}\nOpStore %var{} %s{at}\nOpBranch %h{at}", at % variables);
        put!(text.body, "%m{at} = OpLabel");
        if at + 1 < count {
            put!(text.body, "OpBranch %h{}", at + 1);
        }
    }
    for at in 0..variables {
        put!(text.body, "%f{at} = OpLoad %u32 %var{at}\nOpStore %p %f{at}");
    }
    text.body += "OpReturn\n";
    text
}

/// The start of a chain of products: as many values, none of which can be computed from the others in one instruction.
fn products(body: &mut String, count: usize) {
    for at in 0..count {
        let before = if at == 0 { "x".to_owned() } else { format!("v{}", at - 1) };
        put!(body, "%v{at} = OpIMul %u32 %{before} %id");
    }
}

/// The end of it: each of the values is used.
fn uses(body: &mut String, count: usize, of: &str) {
    for at in 0..count {
        let before = if at == 0 { "x".to_owned() } else { format!("z{}", at - 1) };
        put!(body, "%z{at} = OpIMul %u32 %{before} %{of}{at}");
    }
    put!(body, "OpStore %p %z{}\nOpReturn", count - 1);
}

/// Values that are live over as many selections.
fn live(count: usize) -> Text {
    let mut text = Text::default();
    let body = &mut text.body;
    products(body, count);
    for at in 0..count {
        put!(body, "%q{at} = OpUGreaterThan %bool %v{at} %c264\nOpSelectionMerge %m{at} None");
        put!(body, "OpBranchConditional %q{at} %b{at} %m{at}\n%b{at} = OpLabel\nOpStore %p %v{}", (at * 7 + 1) % count);
        put!(body, "OpBranch %m{at}\n%m{at} = OpLabel");
    }
    uses(body, count, "v");
    text
}

/// Values that are live over as many loops.
fn live_over_loops(count: usize) -> Text {
    let mut text = Text::default();
    let body = &mut text.body;
    products(body, count);
    put!(body, "OpBranch %h0");
    for at in 0..count {
        let before = if at == 0 { "entry".to_owned() } else { format!("m{}", at - 1) };
        put!(body, "%h{at} = OpLabel\n%i{at} = OpPhi %u32 %c0 %{before} %n{at} %t{at}");
        put!(body, "OpLoopMerge %m{at} %t{at} None\nOpBranch %g{at}\n%g{at} = OpLabel");
        put!(body, "%q{at} = OpULessThan %bool %i{at} %v{at}\nOpBranchConditional %q{at} %t{at} %m{at}");
        put!(body, "%t{at} = OpLabel\n%n{at} = OpIAdd %u32 %i{at} %c1\nOpStore %p %v{}", (at * 7 + 1) % count);
        put!(body, "OpBranch %h{at}\n%m{at} = OpLabel");
        if at + 1 < count {
            put!(body, "OpBranch %h{}", at + 1);
        }
    }
    uses(body, count, "v");
    text
}

/// A loop whose values move on by one place in each iteration: what is known of one reaches all others, one by one.
fn ring(count: usize) -> Text {
    let mut text = Text::default();
    let Text { declarations, body, .. } = &mut text;
    put!(body, "OpBranch %h\n%h = OpLabel\n%i = OpPhi %u32 %c0 %entry %n %t");
    for at in 0..count {
        put!(declarations, "%k{at} = OpConstant %u32 {}", at + 5);
        put!(body, "%r{at} = OpPhi %u32 %k{at} %entry %r{} %t", (at + 1) % count);
    }
    put!(body, "OpLoopMerge %m %t None\nOpBranch %k\n%k = OpLabel\n%q = OpULessThan %bool %i %x");
    put!(body, "OpBranchConditional %q %t %m\n%t = OpLabel\n%n = OpIAdd %u32 %i %c1\nOpStore %p %r0");
    put!(body, "OpBranch %h\n%m = OpLabel");
    uses(body, count, "r");
    text
}

/// What was counted from the kernel as it was read to machine code, and how much of it after the SIMD form.
fn work_to_machine_code(text: &Text, isa: Isa) -> [u64; 2] {
    let lowered = compile::lower_for(&text.kernel(), isa, |_, _| {}).unwrap();
    let wide = compile::widen(&lowered, isa).unwrap();
    simd::verify(&wide).unwrap();
    let before = wide.work.done();
    x86::compile(&wide, isa).unwrap();
    [wide.work.done(), wide.work.done() - before]
}

/// What was counted from the kernel as it was read to the SIMD form that is proven.
fn work_of(text: &Text) -> u64 {
    work_and_size_of(text)[0]
}

/// The work, and how many instructions and values the SIMD form has.
fn work_and_size_of(text: &Text) -> [u64; 2] {
    let lowered = compile::lower_for(&text.kernel(), Isa::Avx512, |_, _| {}).unwrap();
    let wide = compile::widen(&lowered, Isa::Avx512).unwrap();
    simd::verify(&wide).unwrap();
    [wide.work.done(), (wide.insts.len() + wide.values.len()) as u64]
}

#[test]
fn twice_the_size_is_about_twice_the_work() {
    let shapes: [(&str, Shape, usize); 16] = [
        ("ifs", ifs, 256),
        ("row", row, 256),
        ("row of loops", row_of_loops, 128),
        ("cases", cases, 256),
        ("chosen", chosen, 512),
        ("switches", switches, 128),
        ("phis", phis, 512),
        ("calls", calls, 128),
        ("fan", fan, 128),
        ("members", members, 256),
        ("chains", chains, 256),
        ("variables", variables, 128),
        ("barriers", barriers, 128),
        ("breaks", breaks, 256),
        ("values that one exit takes", |count| taken(count, 1), 256),
        ("values that two exits take", |count| taken(count, 2), 256),
    ];
    let mut report = String::new();
    let mut grows = false;
    for (name, shape, size) in shapes {
        let [once, twice] = [size, 2 * size].map(|size| work_and_size_of(&shape(size)));
        for (what, once, twice) in [("steps", once[0], twice[0]), ("instructions and values", once[1], twice[1])] {
            let ratio = twice as f64 / once as f64;
            grows |= ratio > 2.2;
            put!(report, "{name}: {once} {what} for {size}, {twice} for twice that: {ratio:.2}");
        }
    }
    assert!(!grows, "{report}");
}

/// The lists of blocks that loops have grow with the square of the nest: no faster, and a nest as deep as SPIR-V allows
/// is compiled.
#[test]
fn a_nest_twice_as_deep_is_at_most_four_times_the_work() {
    let [once, twice] = [64, 128].map(|size| work_of(&loops(size)));
    assert!(twice < 4 * once, "{once}, {twice}");
    let deepest = work_of(&loops(1023));
    assert!(deepest < work::MAX_WORK / 4, "{deepest}");
}

#[test]
fn a_switch_of_ten_thousand_cases_into_one_phi_is_taken() {
    let kernel = chosen(10_000).kernel();
    assert!(compile::lower_for(&kernel, Isa::Avx2, |_, _| {}).is_ok());
}

/// A loop's arguments are looked at one by one, and not all again whenever one of them changes.
#[test]
fn a_ring_of_phis_twice_as_long_is_twice_the_work() {
    for isa in Isa::ALL {
        let [once, twice] = [256, 512].map(|count| work_to_machine_code(&ring(count), isa)[0]);
        assert!(10 * twice < 22 * once, "{}: {once}, {twice}", isa.name());
    }
    let long = compile::compile(&ring(2000).kernel(), Backend::best());
    assert_eq!(long.fallback, None);
}

/// Register allocation looks at each live value in each block: work counts that.
#[test]
fn values_that_are_live_over_many_blocks_are_work() {
    let shapes: [(&str, Shape); 2] = [("selections", live), ("loops", live_over_loops)];
    for (name, shape) in shapes {
        for isa in Isa::ALL {
            let [once, twice] = [128, 256].map(|count| work_to_machine_code(&shape(count), isa));
            let at = format!("{name}, {}: {once:?}, {twice:?}", isa.name());
            // At least two blocks for each selection or loop, with all values live.
            assert!(once[1] > 2 * 128 * 128 && twice[1] > 2 * 256 * 256, "{at}");
            assert!(twice[0] < 4 * once[0], "{at}");
        }
    }
}

#[test]
fn what_takes_too_long_is_interpreted_with_a_note() {
    let compiled = compile::compile(&live(6000).kernel(), Backend::best());
    assert_eq!(compiled.backend, Backend::Interpreter);
    let reason = compiled.fallback.unwrap();
    assert_eq!(reason, format!("compiling it takes more than {} steps", work::MAX_WORK));
}

/// Wherever it is cancelled, compilation ends with the interpreter.
#[test]
fn what_is_cancelled_is_interpreted() {
    let questions = |limit: usize| {
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        let mut kernel = breaks(40).kernel();
        kernel.work = work::Work::cancelled_by(move || counter.fetch_add(1, Ordering::Relaxed) >= limit);
        (compile::compile(&kernel, Backend::best()), asked.load(Ordering::Relaxed))
    };
    let (compiled, all) = questions(usize::MAX);
    assert_eq!((compiled.backend, compiled.fallback), (Backend::best(), None));
    assert!(all > 8, "{all}");
    for limit in 0..all {
        let (compiled, _) = questions(limit);
        assert_eq!(compiled.fallback.as_deref(), Some("compiling it was cancelled"), "after {limit} of {all}");
        assert_eq!(compiled.backend, Backend::Interpreter);
    }
}

#[test]
fn passes_stop_with_a_spent_budget_and_other_compilations_have_their_own() {
    let kernel = loops(8).kernel();
    let lowered = compile::lower_for(&kernel, Isa::Avx2, |_, _| {}).unwrap();
    lowered.work.visit(work::MAX_WORK as usize);
    let error = compile::widen(&lowered, Isa::Avx2).unwrap_err();
    assert!(error.to_string().contains("takes more than"), "{error}");
    assert!(compile::lower_for(&kernel, Isa::Avx2, |_, _| {}).is_ok());
    assert!(compile::compile(&kernel, Backend::best()).fallback.is_none());
}

#[test]
fn the_host_is_asked_for_memory_before_it_is_needed() {
    let Backend::X86(isa) = Backend::best() else { panic!("no machine code on this machine") };
    let asked = |kernel: &Kernel| {
        let asked = std::cell::RefCell::new(Vec::new());
        compile::compile_within(kernel, Backend::best(), |bytes| {
            asked.borrow_mut().push(bytes);
            Ok(())
        });
        asked.into_inner()
    };
    // For the kernel as it is read, and for its SIMD form.
    let [once, twice] = [100, 200].map(|count| asked(&breaks(count).kernel()));
    assert_eq!([once.len(), twice.len()], [2, 2]);
    assert!(once.iter().zip(&twice).all(|(once, twice)| twice > once), "{once:?}, {twice:?}");
    for refused in 0..once.len() {
        let count = std::cell::Cell::new(0);
        let compiled = compile::compile_within(&breaks(100).kernel(), Backend::X86(isa), |_| {
            let number = count.replace(count.get() + 1);
            if number == refused { Err("no room".to_owned()) } else { Ok(()) }
        });
        assert_eq!((compiled.backend, compiled.fallback.as_deref()), (Backend::Interpreter, Some("no room")));
    }
}

/// What lanes bring back from an inner loop with a barrier is not what the outer one had before it: no short way leads
/// past the loop.
#[test]
fn a_barrier_in_an_inner_loop_is_on_the_way_up() {
    let source = "
        @group(0) @binding(0) var<storage, read_write> data: array<u32>;
        var<workgroup> words: array<u32, 64>;
        @compute @workgroup_size(64)
        fn main(@builtin(local_invocation_index) l: u32) {
            words[l] = data[l];
            for (var k = 2u; k < 65u; k = k + l) {
                for (var j = k >> 1u; j != 0u; j >>= 1u) {
                    if (l ^ j) > l { words[l ^ j] += k; }
                    workgroupBarrier();
                }
            }
            data[l] = words[l];
        }";
    let kernel = Module::from_wgsl(source).unwrap().kernel("main", &BTreeMap::new()).unwrap();
    for isa in Isa::ALL {
        let lowered = compile::lower_for(&kernel, isa, |_, _| {}).unwrap();
        let wide = compile::widen(&lowered, isa).unwrap();
        simd::verify(&wide).unwrap_or_else(|error| panic!("{error}\n{wide}"));
    }
}

/// Whether the masks of a loop's exit edges are subsets of each other is proven in steps that grow with the kernel.
#[test]
fn the_masks_of_many_exit_edges_of_a_loop_are_proven_to_be_right() {
    for count in [30, 60, 240] {
        let breaks = "if bitcast<f32>(old) >= mine { break; }\n".repeat(count);
        let source = format!(
            "@group(0) @binding(0) var<storage, read_write> data: array<atomic<u32>, 2>;
            @compute @workgroup_size(64)
            fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
                let mine = f32((id.x * 37u) % 128u) * 0.5;
                var old = atomicLoad(&data[0]);
                loop {{
                    {breaks}
                    let outcome = atomicCompareExchangeWeak(&data[0], old, bitcast<u32>(mine));
                    if outcome.exchanged {{ break; }}
                    old = outcome.old_value;
                }}
                atomicAdd(&data[1], 1u);
            }}"
        );
        let kernel = Module::from_wgsl(&source).unwrap().kernel("main", &BTreeMap::new()).unwrap();
        for isa in [Isa::Avx512, Isa::Avx2] {
            let lowered = compile::lower_for(&kernel, isa, |_, _| {}).unwrap();
            let wide = compile::widen(&lowered, isa).unwrap();
            simd::verify(&wide).unwrap_or_else(|error| panic!("{count} on {}: {error}", isa.name()));
        }
    }
}

#[test]
fn universal_limits_name_the_word_and_the_limit() {
    let refused = |text: Text, wanted: &str| {
        let error = Module::from_spirv(&text.words()).unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}");
        assert!(error.word.is_some_and(|word| word > 5), "{error}");
    };
    refused(loops(1024), "control flow nests deeper than 1023, SPIR-V's universal limit");
    assert!(Module::from_spirv(&loops(1023).words()).is_ok());
    // A row is no nest.
    assert!(Module::from_spirv(&row(3000).words()).is_ok());
    refused(chosen(16_384), "OpSwitch: 16384 pairs of literal and label, SPIR-V's universal limit is 16383");
    let mut text = row(1);
    put!(text.declarations, "%large = OpTypeStruct{}", " %u32".repeat(16_384));
    refused(text, "OpTypeStruct: 16384 members");
    let mut text = row(1);
    put!(text.declarations, "%many = OpTypeFunction %void{}", " %u32".repeat(256));
    refused(text, "OpTypeFunction: 256 parameters");
}
