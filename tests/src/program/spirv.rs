//! A program as SPIR-V text in which `s` and the counters are phis only, `t` is a variable.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::{Block, Gather, Loop, SELECTORS, Statement, Switch, Test};

const HEAD: &str = "OpCapability Shader
OpCapability GroupNonUniform
OpCapability GroupNonUniformArithmetic
OpExtension \"SPV_KHR_maximal_reconvergence\"
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main \"main\" %index
OpExecutionMode %main LocalSize 24 1 1
OpExecutionMode %main MaximallyReconvergesKHR
OpDecorate %index BuiltIn LocalInvocationIndex
OpDecorate %words ArrayStride 4
OpDecorate %Block Block
OpMemberDecorate %Block 0 Offset 0
OpDecorate %out DescriptorSet 0
OpDecorate %out Binding 0
%void = OpTypeVoid
%bool = OpTypeBool
%u32 = OpTypeInt 32 0
%fn = OpTypeFunction %void
%fn_u32 = OpTypeFunction %u32 %u32
%words = OpTypeRuntimeArray %u32
%Block = OpTypeStruct %words
%ptr_Block = OpTypePointer StorageBuffer %Block
%ptr_word = OpTypePointer StorageBuffer %u32
%ptr_in = OpTypePointer Input %u32
%ptr_own = OpTypePointer Private %u32
%index = OpVariable %ptr_in Input
%out = OpVariable %ptr_Block StorageBuffer
%zero = OpConstantNull %u32
%t = OpVariable %ptr_own Private %zero
";

/// Words of the buffer.
const WORDS: u32 = 24;

const MAIN: &str = "%main = OpFunction %void None %fn
%entry = OpLabel
%i = OpLoad %u32 %index
%s = OpFunctionCall %u32 %program %i
%to = OpAccessChain %ptr_word %out %c0 %i
%gathered = OpLoad %u32 %t
%sum = OpIAdd %u32 %s %gathered
OpStore %to %sum
OpReturn
OpFunctionEnd
%program = OpFunction %u32 None %fn_u32
%x = OpFunctionParameter %u32
%b0 = OpLabel
";

/// A module that stores the results of 24 invocations.
pub fn write(program: &Block) -> String {
    let mut writer = Writer { constants: BTreeSet::from([0, 1, 3, SELECTORS, WORDS]), ..Writer::default() };
    if let Some(end) = writer.block(program, At { block: "b0".into(), s: "x".into() }, &Targets::default()) {
        writer.line(format!("OpReturnValue %{}", end.s));
    }
    let constants: String = writer.constants.iter().map(|c| format!("%c{c} = OpConstant %u32 {c}\n")).collect();
    format!("{HEAD}{constants}{MAIN}{}OpFunctionEnd\n", writer.text)
}

/// The current place: the block that is being written and the name of `s` there.
#[derive(Clone)]
struct At {
    block: String,
    s: String,
}

/// A block to be written later, with its incoming edges.
#[derive(Clone)]
struct Join {
    label: String,
    from: std::rc::Rc<std::cell::RefCell<Vec<At>>>,
}

/// Targets of jumps.
#[derive(Clone, Default)]
struct Targets {
    end_of_switch: Option<Join>,
    end_of_loop: Option<Join>,
    continuing: Option<Join>,
}

#[derive(Default)]
struct Writer {
    text: String,
    names: u32,
    constants: BTreeSet<u32>,
}

impl Writer {
    fn line(&mut self, line: impl AsRef<str>) {
        self.text.push_str(line.as_ref());
        self.text.push('\n');
    }

    fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    fn constant(&mut self, value: u32) -> String {
        self.constants.insert(value);
        format!("c{value}")
    }

    /// `name = Op %type a b`.
    fn binary(&mut self, op: &str, ty: &str, a: &str, b: &str) -> String {
        let name = self.name("v");
        let _ = writeln!(self.text, "%{name} = {op} %{ty} %{a} %{b}");
        name
    }

    fn join(&mut self, prefix: &str) -> Join {
        Join { label: self.name(prefix), from: Default::default() }
    }

    fn jump(&mut self, at: At, to: &Join) {
        self.line(format!("OpBranch %{}", to.label));
        to.from.borrow_mut().push(at);
    }

    /// Begins the block of a join; `s` is a phi over its incoming edges. `None` without an edge.
    fn land(&mut self, join: &Join) -> Option<At> {
        self.line(format!("%{} = OpLabel", join.label));
        let from = join.from.borrow().clone();
        if from.is_empty() {
            self.line("OpUnreachable");
            return None;
        }
        let s = self.name("s");
        let pairs: String = from.iter().map(|at| format!(" %{} %{}", at.s, at.block)).collect();
        self.line(format!("%{s} = OpPhi %u32{pairs}"));
        Some(At { block: join.label.clone(), s })
    }

    /// Writes statements; returns the place after them, unless it is unreachable.
    fn block(&mut self, block: &Block, mut at: At, targets: &Targets) -> Option<At> {
        for statement in block {
            at = match statement {
                Statement::Step(n) => {
                    let (three, n) = (self.constant(3), self.constant(*n));
                    let product = self.binary("OpIMul", "u32", &at.s, &three);
                    At { s: self.binary("OpIAdd", "u32", &product, &n), ..at }
                }
                Statement::Together(n) => {
                    let (three, n) = (self.constant(3), self.constant(*n));
                    let sum = self.name("v");
                    self.line(format!("%{sum} = OpGroupNonUniformIAdd %u32 %c3 Reduce %{}", at.s));
                    let product = self.binary("OpIMul", "u32", &at.s, &three);
                    let product = self.binary("OpIAdd", "u32", &product, &sum);
                    At { s: self.binary("OpIAdd", "u32", &product, &n), ..at }
                }
                Statement::Gather(how, n) => {
                    self.gather(*how, *n, &at.s);
                    at
                }
                Statement::If(test, then, otherwise) => self.selection(*test, [then, otherwise], at, targets)?,
                Statement::Switch(switch) => self.switch(switch, at, targets)?,
                Statement::Loop(repeated) => self.repeat(repeated, at)?,
                Statement::BreakSwitch => return self.leave(at, targets.end_of_switch.as_ref()),
                Statement::BreakLoop => return self.leave(at, targets.end_of_loop.as_ref()),
                Statement::Continue => return self.leave(at, targets.continuing.as_ref()),
                Statement::Return(n) => {
                    let n = self.constant(*n);
                    let sum = self.binary("OpIAdd", "u32", &at.s, &n);
                    self.line(format!("OpReturnValue %{sum}"));
                    return None;
                }
            };
        }
        Some(at)
    }

    fn gather(&mut self, how: Gather, n: u32, s: &str) {
        let n = self.constant(n);
        let number = self.binary("OpBitwiseXor", "u32", s, &n);
        let [together, before] = ["v", "v"].map(|prefix| self.name(prefix));
        let (group, put) = match how {
            Gather::Sum => ("IAdd %u32 %c3 Reduce", "OpIAdd"),
            Gather::Below => ("IAdd %u32 %c3 ExclusiveScan", "OpIAdd"),
            Gather::Odd => ("BitwiseXor %u32 %c3 Reduce", "OpBitwiseXor"),
        };
        self.line(format!("%{together} = OpGroupNonUniform{group} %{number}"));
        self.line(format!("%{before} = OpLoad %u32 %t"));
        let after = self.binary(put, "u32", &before, &together);
        self.line(format!("OpStore %t %{after}"));
    }

    fn leave(&mut self, at: At, to: Option<&Join>) -> Option<At> {
        self.jump(at, to.expect("pruned programs jump to what is there"));
        None
    }

    fn selection(&mut self, test: Test, sides: [&Block; 2], at: At, targets: &Targets) -> Option<At> {
        let [factor, modulus, less] = [test.factor, test.modulus, test.less].map(|n| self.constant(n));
        let product = self.binary("OpIMul", "u32", &at.s, &factor);
        let sum = self.binary("OpIAdd", "u32", &product, "x");
        let rest = self.binary("OpUMod", "u32", &sum, &modulus);
        let holds = self.binary("OpULessThan", "bool", &rest, &less);
        let end = self.join("endif");
        let labels = [self.name("then"), self.name("else")];
        self.line(format!("OpSelectionMerge %{} None", end.label));
        self.line(format!("OpBranchConditional %{holds} %{} %{}", labels[0], labels[1]));
        for (label, side) in labels.into_iter().zip(sides) {
            self.line(format!("%{label} = OpLabel"));
            if let Some(out) = self.block(side, At { block: label, s: at.s.clone() }, targets) {
                self.jump(out, &end);
            }
        }
        self.land(&end)
    }

    fn switch(&mut self, switch: &Switch, at: At, targets: &Targets) -> Option<At> {
        let selectors = self.constant(SELECTORS);
        let selector = self.binary("OpUMod", "u32", &at.s, &selectors);
        let end = self.join("endswitch");
        let cases: Vec<Join> = switch.cases.iter().map(|_| self.join("case")).collect();
        let default = cases.get(switch.default).unwrap_or(&end);
        let literals = cases.iter().enumerate().filter(|(n, _)| *n != switch.default);
        let literals: String = literals.map(|(n, case)| format!(" {n} %{}", case.label)).collect();
        self.line(format!("OpSelectionMerge %{} None", end.label));
        self.line(format!("OpSwitch %{selector} %{}{literals}", default.label));
        cases.iter().for_each(|case| case.from.borrow_mut().push(at.clone()));
        if switch.default >= cases.len() {
            end.from.borrow_mut().push(at);
        }
        let targets = Targets { end_of_switch: Some(end.clone()), ..targets.clone() };
        for (n, (body, falls)) in switch.cases.iter().enumerate() {
            let begin = self.land(&cases[n])?;
            if let Some(out) = self.block(body, begin, &targets) {
                let next = if *falls { cases.get(n + 1) } else { None };
                self.jump(out, next.unwrap_or(&end));
            }
        }
        self.land(&end)
    }

    fn repeat(&mut self, repeated: &Loop, at: At) -> Option<At> {
        let (rounds, spread) = (self.constant(repeated.rounds), self.constant(repeated.spread));
        let more = self.binary("OpUMod", "u32", "x", &spread);
        let mut limit = self.binary("OpIAdd", "u32", &rounds, &more);
        if !repeated.known {
            let words = self.name("v");
            self.line(format!("%{words} = OpArrayLength %u32 %out 0"));
            let nothing = self.binary("OpUMod", "u32", &words, &format!("c{WORDS}"));
            limit = self.binary("OpIAdd", "u32", &limit, &nothing);
        }
        let [head, i, s, next_i, next_s] = ["head", "i", "s", "i", "s"].map(|prefix| self.name(prefix));
        let (end, continuing, body) = (self.join("endloop"), self.join("continuing"), self.name("body"));
        self.line(format!("OpBranch %{head}\n%{head} = OpLabel"));
        let (before, back) = (&at.block, &continuing.label);
        self.line(format!("%{i} = OpPhi %u32 %c0 %{before} %{next_i} %{back}"));
        self.line(format!("%{s} = OpPhi %u32 %{} %{before} %{next_s} %{back}", at.s));
        let inside = self.binary("OpULessThan", "bool", &i, &limit);
        self.line(format!("OpLoopMerge %{} %{back} None", end.label));
        if repeated.tested_last {
            self.line(format!("OpBranch %{body}"));
        } else {
            self.line(format!("OpBranchConditional %{inside} %{body} %{}", end.label));
            end.from.borrow_mut().push(At { block: head.clone(), s: s.clone() });
        }
        self.line(format!("%{body} = OpLabel"));
        let begin = self.binary("OpIAdd", "u32", &s, &i);
        let targets =
            Targets { end_of_switch: None, end_of_loop: Some(end.clone()), continuing: Some(continuing.clone()) };
        if let Some(out) = self.block(&repeated.body, At { block: body, s: begin }, &targets) {
            self.jump(out, &continuing);
        }
        self.back_edge(repeated, &continuing, &end, [&head, &i, &next_i, &next_s, &limit]);
        self.land(&end)
    }

    /// The continue construct. Even if it is unreachable it must exist and have the back edge.
    fn back_edge(
        &mut self,
        repeated: &Loop,
        continuing: &Join,
        end: &Join,
        [head, i, next_i, next_s, limit]: [&str; 5],
    ) {
        let reached = !continuing.from.borrow().is_empty();
        if reached {
            let s = self.land(continuing).map_or_else(String::new, |at| at.s);
            self.line(format!("%{next_s} = OpCopyObject %u32 %{s}"));
        } else {
            self.line(format!("%{} = OpLabel\n%{next_s} = OpUndef %u32", continuing.label));
        }
        self.line(format!("%{next_i} = OpIAdd %u32 %{i} %c1"));
        if repeated.tested_last && reached {
            let again = self.binary("OpULessThan", "bool", next_i, limit);
            self.line(format!("OpBranchConditional %{again} %{head} %{}", end.label));
            end.from.borrow_mut().push(At { block: continuing.label.clone(), s: next_s.to_owned() });
        } else {
            self.line(format!("OpBranch %{head}"));
        }
    }
}
