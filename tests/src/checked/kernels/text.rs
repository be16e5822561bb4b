//! The SPIR-V text of a random kernel.

use std::collections::BTreeSet;
use std::fmt::{Display, Write as _};

use spelter_shaders::ir::{AtomicOp, Scope, Semantics, Site, SiteAction};

use super::super::operations::Rules;
use super::launch::{PLACE_BITS, PLACE_SHIFT, line};
use super::{Agents, Home, Instruction, LANES, PUSH_WORDS, Place, RandomKernel, Second, WORDS};

/// The binding of the buffer to which each invocation writes what it read.
pub(super) const OUT: u32 = 2;

/// Bits of semantics that only the Vulkan memory model has.
const MAKES: u32 = Semantics::MAKE_AVAILABLE | Semantics::MAKE_VISIBLE;

const ORDERS: u32 = 0x2 | 0x4 | 0x8 | 0x10;
const CLASSES: u32 = 0x40 | 0x100 | 0x800;

impl RandomKernel {
    /// A module with the entry point `main`. Line `n` of its debug information is instruction `n - 1`.
    pub(super) fn text(&self) -> String {
        let mut writer = Writer { kernel: self, body: String::new(), constants: BTreeSet::new(), next: 0 };
        writer.function();
        let mut text = String::new();
        writer.head(&mut text);
        text.push_str(&writer.body);
        text
    }
}

struct Writer<'k> {
    kernel: &'k RandomKernel,
    /// The function.
    body: String,
    /// The integers that it uses.
    constants: BTreeSet<u32>,
    /// The number of the next name.
    next: u32,
}

/// Appends a line.
fn push(text: &mut String, line: impl Display) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{line}");
}

impl Writer<'_> {
    /// All that comes before the function. To be called after it was written.
    fn head(&self, text: &mut String) {
        let kernel = self.kernel;
        let vulkan = kernel.rules == Rules::Vulkan;
        let used: Vec<Home> = Home::ALL.into_iter().filter(|&home| kernel.uses(home)).collect();
        let bytes = used.contains(&Home::Second) && kernel.second == Second::Bytes;
        push(text, "; Version: 1.3\nOpCapability Shader");
        if vulkan {
            push(text, "OpCapability VulkanMemoryModel\nOpCapability VulkanMemoryModelDeviceScope");
        }
        if bytes {
            push(text, "OpCapability StorageBuffer8BitAccess\nOpExtension \"SPV_KHR_8bit_storage\"");
        }
        if vulkan {
            push(text, "OpExtension \"SPV_KHR_vulkan_memory_model\"");
        }
        push(text, format_args!("OpMemoryModel Logical {}", if vulkan { "Vulkan" } else { "GLSL450" }));
        push(text, "OpEntryPoint GLCompute %main \"main\" %local %group");
        push(text, format_args!("OpExecutionMode %main LocalSize {} 1 1", kernel.size()));
        push(text, "%file = OpString \"kernel\"\nOpDecorate %local BuiltIn LocalInvocationIndex");
        push(text, "OpDecorate %group BuiltIn WorkgroupId\nOpDecorate %words ArrayStride 4");
        push(text, "OpDecorate %block Block\nOpMemberDecorate %block 0 Offset 0");
        push(text, "OpDecorate %pushed ArrayStride 4\nOpDecorate %pushblock Block");
        push(text, "OpMemberDecorate %pushblock 0 Offset 0");
        if bytes {
            push(text, "OpDecorate %bytes ArrayStride 1\nOpDecorate %byteblock Block");
            push(text, "OpMemberDecorate %byteblock 0 Offset 0");
        }
        for (name, binding) in [("out", OUT), ("first", 0), ("second", 1)] {
            let home = [Home::First, Home::Second].get(binding as usize);
            if home.is_some_and(|home| !used.contains(home)) {
                continue;
            }
            push(text, format_args!("OpDecorate %{name} DescriptorSet 0\nOpDecorate %{name} Binding {binding}"));
            if home.is_some() && kernel.second != Second::Apart {
                push(text, format_args!("OpDecorate %{name} Aliased"));
            }
            if !vulkan && kernel.coherent.get(binding as usize) == Some(&true) {
                push(text, format_args!("OpDecorate %{name} Coherent"));
            }
        }
        push(text, "%void = OpTypeVoid\n%fn = OpTypeFunction %void\n%bool = OpTypeBool\n%u32 = OpTypeInt 32 0");
        push(text, "%u32x3 = OpTypeVector %u32 3");
        for number in &self.constants {
            push(text, format_args!("%c{number} = OpConstant %u32 {number}"));
        }
        push(text, "%in_u32 = OpTypePointer Input %u32\n%in_u32x3 = OpTypePointer Input %u32x3");
        push(text, "%local = OpVariable %in_u32 Input\n%group = OpVariable %in_u32x3 Input");
        push(text, "%p_function = OpTypePointer Function %u32\n%words = OpTypeRuntimeArray %u32");
        push(text, "%block = OpTypeStruct %words\n%p_block = OpTypePointer StorageBuffer %block");
        push(text, "%p_word = OpTypePointer StorageBuffer %u32\n%out = OpVariable %p_block StorageBuffer");
        push(text, format_args!("%pushed = OpTypeArray %u32 %c{PUSH_WORDS}\n%pushblock = OpTypeStruct %pushed"));
        push(text, "%p_pushblock = OpTypePointer PushConstant %pushblock\n%p_push = OpTypePointer PushConstant %u32");
        push(text, "%push = OpVariable %p_pushblock PushConstant");
        push(text, format_args!("%array = OpTypeArray %u32 %c{WORDS}\n%p_array = OpTypePointer Workgroup %array"));
        push(text, "%p_tile = OpTypePointer Workgroup %u32");
        if bytes {
            push(text, "%u8 = OpTypeInt 8 0\n%bytes = OpTypeRuntimeArray %u8\n%byteblock = OpTypeStruct %bytes");
            push(text, "%p_byteblock = OpTypePointer StorageBuffer %byteblock");
            push(text, "%p_byte = OpTypePointer StorageBuffer %u8");
        }
        for home in used {
            let ty = match home {
                Home::Second if bytes => "%p_byteblock StorageBuffer",
                Home::First | Home::Second => "%p_block StorageBuffer",
                Home::Tile | Home::Other => "%p_array Workgroup",
            };
            push(text, format_args!("%{} = OpVariable {ty}", name(home)));
        }
    }

    fn function(&mut self) {
        let kernel = self.kernel;
        self.line("%main = OpFunction %void None %fn\n%entry = OpLabel\n%sum = OpVariable %p_function Function");
        self.line("%i = OpLoad %u32 %local\n%groups = OpLoad %u32x3 %group");
        let lanes = [LANES - 1, LANES.trailing_zeros(), kernel.shape.subgroup_size];
        let [mask, shift, each] = lanes.map(|number| self.constant(number));
        let [size, agents] = [kernel.size(), kernel.shape.invocations].map(|number| self.constant(number));
        self.line("%g = OpCompositeExtract %u32 %groups 0");
        self.line(format_args!("%lane = OpBitwiseAnd %u32 %i {mask}\n%subgroup = OpShiftRightLogical %u32 %i {shift}"));
        self.line(format_args!("%before = OpIMul %u32 %subgroup {each}\n%member = OpIAdd %u32 %before %lane"));
        self.line(format_args!("%others = OpIMul %u32 %g {agents}\n%agent = OpIAdd %u32 %others %member"));
        self.line(format_args!("%acts = OpULessThan %bool %lane {each}\n%start = OpIMul %u32 %g {size}"));
        let [bits, first] = [PLACE_BITS, PLACE_SHIFT].map(|number| self.constant(number));
        self.line(format_args!("%nibble = OpIMul %u32 %agent {bits}\n%shift = OpIAdd %u32 %nibble {first}"));
        let zero = self.constant(0);
        self.line(format_args!("OpStore %sum {zero}"));
        let mut block = "%entry".to_owned();
        for part in &kernel.parts {
            if part.rounds == 1 {
                for &site in &part.instructions {
                    block = self.instruction(site, None, block);
                }
                continue;
            }
            let [head, body, next, end] = ["head", "body", "next", "end"].map(|name| self.name(name));
            let [round, more, later] = ["round", "more", "later"].map(|name| self.name(name));
            let [zero, one, rounds] = [0, 1, part.rounds].map(|number| self.constant(number));
            self.line(format_args!("OpBranch {head}\n{head} = OpLabel"));
            self.line(format_args!("{round} = OpPhi %u32 {zero} {block} {later} {next}"));
            self.line(format_args!("{more} = OpULessThan %bool {round} {rounds}\nOpLoopMerge {end} {next} None"));
            self.line(format_args!("OpBranchConditional {more} {body} {end}\n{body} = OpLabel"));
            let mut within = body;
            for &site in &part.instructions {
                within = self.instruction(site, Some(&round), within);
            }
            self.line(format_args!("OpBranch {next}\n{next} = OpLabel\n{later} = OpIAdd %u32 {round} {one}"));
            self.line(format_args!("OpBranch {head}\n{end} = OpLabel"));
            block = end;
        }
        self.constant(PUSH_WORDS as u32);
        self.constant(WORDS);
        self.line("%total = OpLoad %u32 %sum\n%mine = OpIAdd %u32 %start %i");
        // A line after those of the instructions.
        let last = self.kernel.instructions.len() + 1;
        self.line(format_args!(
            "%to = OpAccessChain %p_word %out {zero} %mine\nOpLine %file {last} 1\nOpStore %to %total"
        ));
        self.line("OpReturn\nOpFunctionEnd");
    }

    /// Writes an instruction, under the condition that its invocation executes it. Returns the block after it.
    fn instruction(&mut self, site: Site, round: Option<&str>, block: String) -> String {
        let instruction = &self.kernel.instructions[site];
        let word = instruction.push.map(|(first, step)| self.pushed(first, step, round));
        let condition = self.condition(instruction, word.as_deref());
        let Some(condition) = condition else {
            self.operation(site, instruction, word.as_deref());
            return block;
        };
        let [then, merge] = ["then", "merge"].map(|name| self.name(name));
        self.line(format_args!("OpSelectionMerge {merge} None\nOpBranchConditional {condition} {then} {merge}"));
        self.line(format_args!("{then} = OpLabel"));
        self.operation(site, instruction, word.as_deref());
        self.line(format_args!("OpBranch {merge}\n{merge} = OpLabel"));
        merge
    }

    /// A word of push constants.
    fn pushed(&mut self, first: u32, step: u32, round: Option<&str>) -> String {
        let [zero, first, step] = [0, first, step].map(|number| self.constant(number));
        let index = match round {
            None => first,
            Some(round) => {
                let [before, index] = ["before", "index"].map(|name| self.name(name));
                self.line(format_args!("{before} = OpIMul %u32 {round} {step}"));
                self.line(format_args!("{index} = OpIAdd %u32 {before} {first}"));
                index
            }
        };
        let [pointer, word] = ["pointer", "word"].map(|name| self.name(name));
        self.line(format_args!("{pointer} = OpAccessChain %p_push %push {zero} {index}"));
        self.line(format_args!("{word} = OpLoad %u32 {pointer}"));
        word
    }

    /// Whether an invocation executes the instruction; `None` if all do.
    fn condition(&mut self, instruction: &Instruction, word: Option<&str>) -> Option<String> {
        let are_all = self.kernel.are_all_agents();
        let decided = match (instruction.agents, word) {
            (Agents::Everything, _) => return None,
            (Agents::All, _) => return (!are_all).then(|| "%acts".to_owned()),
            (Agents::One(agent), _) => {
                let [one, decided] = [self.constant(self.kernel.local_index(agent)), self.name("is")];
                self.line(format_args!("{decided} = OpIEqual %bool %i {one}"));
                return Some(decided);
            }
            (Agents::Pushed, word) => {
                let [zero, one] = [0, 1].map(|number| self.constant(number));
                let [high, bit, decided] = ["high", "bit", "is"].map(|name| self.name(name));
                let word = word.unwrap_or("%start");
                self.line(format_args!("{high} = OpShiftRightLogical %u32 {word} %agent"));
                self.line(format_args!("{bit} = OpBitwiseAnd %u32 {high} {one}"));
                self.line(format_args!("{decided} = OpINotEqual %bool {bit} {zero}"));
                decided
            }
        };
        if are_all {
            return Some(decided);
        }
        let both = self.name("both");
        self.line(format_args!("{both} = OpLogicalAnd %bool {decided} %acts"));
        Some(both)
    }

    /// The number of the element that it accesses.
    fn element(&mut self, home: Home, place: Place, word: Option<&str>) -> String {
        match place {
            Place::Element(element) => self.constant(element),
            Place::Pushed => {
                let [high, element] = ["high", "element"].map(|name| self.name(name));
                let mask = self.constant((1 << PLACE_BITS) - 1);
                let word = word.unwrap_or("%start");
                self.line(format_args!("{high} = OpShiftRightLogical %u32 {word} %shift"));
                self.line(format_args!("{element} = OpBitwiseAnd %u32 {high} {mask}"));
                element
            }
            Place::Lane { further, apart } => {
                let mut lane = "%i".to_owned();
                if further > 0 {
                    let [sum, rest] = ["sum", "rest"].map(|name| self.name(name));
                    let [further, size] = [further, self.kernel.size()].map(|number| self.constant(number));
                    self.line(format_args!("{sum} = OpIAdd %u32 %i {further}\n{rest} = OpUMod %u32 {sum} {size}"));
                    lane = rest;
                }
                if apart {
                    let own = self.name("own");
                    self.line(format_args!("{own} = OpIAdd %u32 {lane} %start"));
                    lane = own;
                }
                let [first, element] = [self.constant(self.kernel.first_of_lanes(home)), self.name("element")];
                self.line(format_args!("{element} = OpIAdd %u32 {lane} {first}"));
                element
            }
        }
    }

    /// The instruction itself, with its line.
    fn operation(&mut self, site: Site, instruction: &Instruction, word: Option<&str>) {
        let pointer = instruction.access.map(|(home, place)| {
            let element = self.element(home, place, word);
            let (pointer, zero) = (self.name("pointer"), self.constant(0));
            let chain = match home {
                Home::Second if self.kernel.second == Second::Bytes => format!("%p_byte %second {zero} {element}"),
                Home::First | Home::Second => format!("%p_word %{} {zero} {element}", name(home)),
                Home::Tile | Home::Other => format!("%p_tile %{} {element}", name(home)),
            };
            self.line(format_args!("{pointer} = OpAccessChain {chain}"));
            (pointer, self.kernel.element_bytes(home) == 1)
        });
        let value = self.constant(instruction.value);
        let mark = format!("OpLine %file {} 1", line(site));
        match (instruction.action, pointer) {
            (SiteAction::Read(access), Some((pointer, is_byte))) => {
                let operands = self.operands(access, 0x10);
                let (read, ty) = (self.name("read"), if is_byte { "%u8" } else { "%u32" });
                self.line(format_args!("{mark}\n{read} = OpLoad {ty} {pointer}{operands}\nOpNoLine"));
                let read = if is_byte { self.convert("%u32", &read) } else { read };
                self.add(&read);
            }
            (SiteAction::Write(access), Some((pointer, is_byte))) => {
                let operands = self.operands(access, 0x8);
                let value = if is_byte { self.convert("%u8", &value) } else { value };
                self.line(format_args!("{mark}\nOpStore {pointer} {value}{operands}\nOpNoLine"));
            }
            (SiteAction::Atomic { op, scope, semantics, unequal, .. }, Some((pointer, _))) => {
                let (scope, semantics, unequal) =
                    (self.scope(scope), self.semantics(semantics), self.semantics(unequal));
                if op == AtomicOp::Store {
                    self.line(format_args!("{mark}\nOpAtomicStore {pointer} {scope} {semantics} {value}\nOpNoLine"));
                    return;
                }
                let old = self.name("old");
                let operation = match op {
                    AtomicOp::Load => format!("OpAtomicLoad %u32 {pointer} {scope} {semantics}"),
                    AtomicOp::Exchange => format!("OpAtomicExchange %u32 {pointer} {scope} {semantics} {value}"),
                    AtomicOp::CompareExchange => {
                        let new = self.constant(instruction.value + 1);
                        format!("OpAtomicCompareExchange %u32 {pointer} {scope} {semantics} {unequal} {new} {value}")
                    }
                    _ => format!("OpAtomicIAdd %u32 {pointer} {scope} {semantics} {value}"),
                };
                self.line(format_args!("{mark}\n{old} = {operation}\nOpNoLine"));
                self.add(&old);
            }
            (SiteAction::Barrier { execution, memory, semantics }, _) => {
                let (execution, memory) = (self.scope(execution), self.scope(memory));
                let semantics = self.semantics(semantics);
                self.line(format_args!("{mark}\nOpControlBarrier {execution} {memory} {semantics}\nOpNoLine"));
            }
            (SiteAction::Fence { scope, semantics }, _) => {
                let (scope, semantics) = (self.scope(scope), self.semantics(semantics));
                self.line(format_args!("{mark}\nOpMemoryBarrier {scope} {semantics}\nOpNoLine"));
            }
            (_, None) => {}
        }
    }

    /// The memory operands of an access: none by the rules of GLSL450. `make` is the bit of its operation.
    fn operands(&mut self, access: spelter_shaders::ir::AccessSite, make: u32) -> String {
        if self.kernel.rules != Rules::Vulkan {
            return String::new();
        }
        let scope = access.scope.map(|scope| self.scope(scope));
        let names = [
            (access.volatile, "Volatile"),
            (scope.is_some() && make == 0x8, "MakePointerAvailable"),
            (scope.is_some() && make == 0x10, "MakePointerVisible"),
            (access.non_private, "NonPrivatePointer"),
        ];
        let names: Vec<_> = names.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name).collect();
        let scope = scope.map(|scope| format!(" {scope}")).unwrap_or_default();
        if names.is_empty() { String::new() } else { format!(" {}{scope}", names.join("|")) }
    }

    fn convert(&mut self, ty: &str, value: &str) -> String {
        let converted = self.name("converted");
        self.line(format_args!("{converted} = OpUConvert {ty} {value}"));
        converted
    }

    /// Adds what was read to the sum.
    fn add(&mut self, value: &str) {
        let [old, new] = ["old", "new"].map(|name| self.name(name));
        self.line(format_args!("{old} = OpLoad %u32 %sum\n{new} = OpIAdd %u32 {old} {value}\nOpStore %sum {new}"));
    }

    fn scope(&mut self, scope: Scope) -> String {
        self.constant(match scope {
            Scope::CrossDevice => 0,
            Scope::Device => 1,
            Scope::Workgroup => 2,
            Scope::Subgroup => 3,
            Scope::Invocation => 4,
            Scope::QueueFamily => 5,
        })
    }

    /// Semantics as a valid module has them: what takes no effect is left out.
    fn semantics(&mut self, Semantics(bits): Semantics) -> String {
        let implied = if self.kernel.rules == Rules::Vulkan { 0 } else { MAKES };
        let effective = bits & ORDERS != 0 && bits & CLASSES != 0;
        self.constant(if effective { bits & !implied } else { 0 })
    }

    fn constant(&mut self, number: u32) -> String {
        self.constants.insert(number);
        format!("%c{number}")
    }

    fn name(&mut self, word: &str) -> String {
        self.next += 1;
        format!("%{word}_{}", self.next)
    }

    fn line(&mut self, line: impl Display) {
        push(&mut self.body, line);
    }
}

fn name(home: Home) -> &'static str {
    match home {
        Home::First => "first",
        Home::Second => "second",
        Home::Tile => "tile",
        Home::Other => "other",
    }
}
