//! Shapes of shaders whose compilation is bounded: each is made in any size.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use spelter_shaders::compile::Module;
use spelter_shaders::front::spvasm;
use spelter_shaders::ir::Kernel;

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
pub(super) struct Text {
    pub(super) declarations: String,
    pub(super) variables: String,
    pub(super) body: String,
    pub(super) functions: String,
}

/// Makes a shader of some size.
pub(super) type Shape = fn(usize) -> Text;

macro_rules! put {
    ($to:expr, $($rest:tt)*) => { writeln!($to, $($rest)*).unwrap() };
}
pub(super) use put;

impl Text {
    pub(super) fn words(&self) -> Vec<u32> {
        let Self { declarations, variables, body, functions } = self;
        let text = format!(
            "{HEAD}{declarations}%main = OpFunction %void None %unit\n%entry = OpLabel\n{variables}
            %ids = OpLoad %uvec3 %gid\n%id = OpCompositeExtract %u32 %ids 0
            %p = OpAccessChain %to_word %buffer %c0 %id\n%x = OpLoad %u32 %p\n{body}OpFunctionEnd\n{functions}"
        );
        spvasm::assemble(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    pub(super) fn kernel(&self) -> Kernel {
        let module = Module::from_spirv(&self.words()).unwrap();
        module.kernel("main", &BTreeMap::new()).unwrap()
    }
}

/// Nested loops that lanes leave in different iterations.
pub(super) fn loops(count: usize) -> Text {
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
pub(super) fn ifs(count: usize) -> Text {
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
pub(super) fn row(count: usize) -> Text {
    let mut text = Text::default();
    for at in 0..count {
        condition(&mut text.body, at);
        put!(text.body, "OpStore %p %e{at}\nOpBranch %m{at}\n%m{at} = OpLabel");
    }
    text.body += "OpReturn\n";
    text
}

/// A loop that is left, or begun anew, in many places.
pub(super) fn breaks(count: usize) -> Text {
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
pub(super) fn taken(count: usize, takers: usize) -> Text {
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
pub(super) fn cases(count: usize) -> Text {
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
pub(super) fn chosen(count: usize) -> Text {
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
pub(super) fn switches(count: usize) -> Text {
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
pub(super) fn phis(count: usize) -> Text {
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
pub(super) fn calls(count: usize) -> Text {
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
pub(super) fn fan(count: usize) -> Text {
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
pub(super) fn members(count: usize) -> Text {
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
pub(super) fn chains(count: usize) -> Text {
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
pub(super) fn variables(count: usize) -> Text {
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
pub(super) fn barriers(count: usize) -> Text {
    let mut text = Text::default();
    for at in 0..count {
        put!(text.body, "%l{at} = OpLoad %u32 %p\n%z{at} = OpIMul %u32 %l{at} %id\nOpStore %p %z{at}");
        put!(text.body, "OpControlBarrier %c2 %c2 %c264");
    }
    text.body += "OpReturn\n";
    text
}

/// Loops one after the other, each of which changes one of half as many variables.
pub(super) fn row_of_loops(count: usize) -> Text {
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
pub(super) fn live(count: usize) -> Text {
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
pub(super) fn live_over_loops(count: usize) -> Text {
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
pub(super) fn ring(count: usize) -> Text {
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

/// Loops one after the other with signed counters from one constant to another.
pub(super) fn counted(count: usize) -> Text {
    let mut text = Text::default();
    put!(text.body, "OpBranch %h0");
    for at in 0..count {
        let before = if at == 0 { "entry".to_owned() } else { format!("m{}", at - 1) };
        put!(text.body, "%h{at} = OpLabel\n%i{at} = OpPhi %u32 %c1 %{before} %n{at} %b{at}");
        put!(text.body, "OpLoopMerge %m{at} %b{at} None\nOpBranch %k{at}\n%k{at} = OpLabel");
        put!(text.body, "%q{at} = OpSLessThan %bool %i{at} %c264\nOpBranchConditional %q{at} %b{at} %m{at}");
        put!(text.body, "%b{at} = OpLabel\n%o{at} = OpLoad %u32 %p\n%s{at} = OpIAdd %u32 %o{at} %i{at}");
        put!(text.body, "OpStore %p %s{at}\n%n{at} = OpIAdd %u32 %i{at} %c1\nOpBranch %h{at}\n%m{at} = OpLabel");
        if at + 1 < count {
            put!(text.body, "OpBranch %h{}", at + 1);
        }
    }
    text.body += "OpReturn\n";
    text
}

/// A loop whose condition is conjunctions, each of two that share an operand: twice as many paths for each.
pub(super) fn conjunctions(count: usize) -> Text {
    let mut text = Text::default();
    let body = &mut text.body;
    put!(body, "OpBranch %h\n%h = OpLabel\n%i = OpPhi %u32 %c0 %entry %n %b\nOpLoopMerge %m %b None\nOpBranch %k");
    put!(body, "%k = OpLabel\n%l = OpULessThan %bool %i %c264\n%e = OpIMul %u32 %i %x");
    for at in 0..count {
        let before = if at == 0 { String::new() } else { (at - 1).to_string() };
        put!(body, "%e{at} = OpIAdd %u32 %e{before} %c3\n%f{at} = OpBitwiseXor %u32 %e{at} %i");
        put!(body, "%y{at} = OpINotEqual %bool %e{at} %c2\n%v{at} = OpINotEqual %bool %f{at} %c3");
        put!(body, "%a{at} = OpLogicalAnd %bool %l{before} %y{at}\n%c{at}_ = OpLogicalAnd %bool %l{before} %v{at}");
        put!(body, "%l{at} = OpLogicalAnd %bool %a{at} %c{at}_");
    }
    put!(body, "OpBranchConditional %l{} %b %m\n%b = OpLabel\n%n = OpIAdd %u32 %i %c1", count - 1);
    put!(body, "OpStore %p %n\nOpBranch %h\n%m = OpLabel\nOpReturn");
    text
}
