//! The SPIR-V text of a random kernel: control flow, and which invocations execute what.

mod declarations;
mod operation;

use std::collections::BTreeSet;
use std::fmt::{Display, Write as _};

use spelter_shaders::ir::Site;

use super::launch::{PLACE_BITS, PLACE_SHIFT};
use super::{Agents, Home, Instruction, LANES, PUSH_WORDS, Part, Place, RandomKernel, WORDS};

/// The binding of the buffer to which each invocation writes what it read.
pub(in crate::checked::kernels) const OUT: u32 = 3;

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
                block = self.round(part, None, block);
                continue;
            }
            let [head, body, next, end] = ["head", "body", "next", "end"].map(|name| self.name(name));
            let [round, more, later] = ["round", "more", "later"].map(|name| self.name(name));
            let [zero, one, rounds] = [0, 1, part.rounds].map(|number| self.constant(number));
            self.line(format_args!("OpBranch {head}\n{head} = OpLabel"));
            self.line(format_args!("{round} = OpPhi %u32 {zero} {block} {later} {next}"));
            self.line(format_args!("{more} = OpULessThan %bool {round} {rounds}\nOpLoopMerge {end} {next} None"));
            self.line(format_args!("OpBranchConditional {more} {body} {end}\n{body} = OpLabel"));
            self.round(part, Some(&round), body);
            self.line(format_args!("OpBranch {next}\n{next} = OpLabel\n{later} = OpIAdd %u32 {round} {one}"));
            self.line(format_args!("OpBranch {head}\n{end} = OpLabel"));
            block = end;
        }
        self.constant(PUSH_WORDS as u32);
        self.constant(WORDS);
        self.end();
        self.line("OpFunctionEnd");
    }

    /// Writes the sum of what was read, and returns.
    fn end(&mut self) {
        let [total, mine, to] = ["total", "mine", "to"].map(|name| self.name(name));
        let zero = self.constant(0);
        self.line(format_args!("{total} = OpLoad %u32 %sum\n{mine} = OpIAdd %u32 %start %i"));
        // A line after those of the instructions.
        let last = self.kernel.instructions.len() + 1;
        self.line(format_args!("{to} = OpAccessChain %p_word %out {zero} {mine}"));
        self.line(format_args!("OpLine %file {last} 1\nOpStore {to} {total}\nOpReturn"));
    }

    /// Writes a round of a part. Returns the block after it.
    fn round(&mut self, part: &Part, round: Option<&str>, mut block: String) -> String {
        for &site in &part.instructions {
            block = self.instruction(site, round, block);
        }
        let Some((first, step)) = part.returns else { return block };
        let word = self.pushed(first, step, round);
        let returns = self.acts_by(&word);
        let [then, merge] = ["then", "merge"].map(|name| self.name(name));
        self.line(format_args!("OpSelectionMerge {merge} None\nOpBranchConditional {returns} {then} {merge}"));
        self.line(format_args!("{then} = OpLabel"));
        self.end();
        self.line(format_args!("{merge} = OpLabel"));
        merge
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
        match (instruction.agents, word) {
            (Agents::Everything, _) => None,
            (Agents::All, _) => (!are_all).then(|| "%acts".to_owned()),
            (Agents::One(agent), _) => {
                let [one, decided] = [self.constant(self.kernel.local_index(agent)), self.name("is")];
                self.line(format_args!("{decided} = OpIEqual %bool %i {one}"));
                Some(decided)
            }
            (Agents::Pushed, word) => Some(self.acts_by(word.unwrap_or("%start"))),
        }
    }

    /// Whether the invocation is an agent that has its bit in a word of push constants.
    fn acts_by(&mut self, word: &str) -> String {
        let [zero, one] = [0, 1].map(|number| self.constant(number));
        let [high, bit, decided] = ["high", "bit", "is"].map(|name| self.name(name));
        self.line(format_args!("{high} = OpShiftRightLogical %u32 {word} %agent"));
        self.line(format_args!("{bit} = OpBitwiseAnd %u32 {high} {one}"));
        self.line(format_args!("{decided} = OpINotEqual %bool {bit} {zero}"));
        if self.kernel.are_all_agents() {
            return decided;
        }
        let both = self.name("both");
        self.line(format_args!("{both} = OpLogicalAnd %bool {decided} %acts"));
        both
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
        Home::Texels => "texels",
        Home::Tile => "tile",
        Home::Other => "other",
    }
}
