//! Random programs of structured control flow, with their semantics in Rust, with which every front end and engine
//! must agree.
//!
//! A program transforms `s`, initially the invocation's index, into another number. Each step and each branch
//! influences it, and so does the set of invocations that are together. It also accumulates subgroup operations in
//! `t`, on which no branch depends. [`run`] implements the semantics, [`spirv`] writes a program as SPIR-V with phis,
//! [`wgsl`] as WGSL with variables.

mod lockstep;
pub mod spirv;
pub mod wgsl;

pub use lockstep::run;

/// A statement.
#[derive(Clone, Debug)]
pub enum Statement {
    /// `s = s * 3 + n`.
    Step(u32),
    /// `s = s * 3 + sum + n`, with the sum of `s` over the invocations of the subgroup that are here together.
    Together(u32),
    /// `t = t + r`, with a subgroup operation `r` of `s ^ n`.
    Gather(Gather, u32),
    /// `if (…) { … } else { … }`.
    If(Test, Block, Block),
    /// `switch (s % 5)`.
    Switch(Switch),
    /// A loop.
    Loop(Loop),
    /// Leaves the innermost switch, which must be inside the innermost loop.
    BreakSwitch,
    /// Leaves the innermost loop, also out of a switch.
    BreakLoop,
    /// Continues with the next iteration of the innermost loop.
    Continue,
    /// `return s + n`.
    Return(u32),
}

/// Statements in order.
pub type Block = Vec<Statement>;

/// `(s * factor + index) % modulus < less`, with the invocation's index.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    /// Not 0.
    pub factor: u32,
    /// Not 0.
    pub modulus: u32,
    /// Determines the share of true results.
    pub less: u32,
}

/// The subgroup operation of the invocations that are here together, and how its result goes into `t`.
#[derive(Clone, Copy, Debug)]
pub enum Gather {
    /// Their sum, added.
    Sum,
    /// The exclusive scan, added.
    Below,
    /// The exclusive or, combined with `t` in the same way.
    Odd,
}

/// Case `n` is for the value `n`, unless it is the default.
#[derive(Clone, Debug)]
pub struct Switch {
    /// At most five, in order; the flag says that the case falls through to the next one.
    pub cases: Vec<(Block, bool)>,
    /// The index of the default case; beyond the last: there is none.
    pub default: usize,
}

/// `for (i = 0; i < rounds + index % spread; i++)`, `do … while` if `tested_last`.
#[derive(Clone, Debug)]
pub struct Loop {
    /// Iterations of every invocation.
    pub rounds: u32,
    /// Not 0; more than 1 makes the loop divergent.
    pub spread: u32,
    /// Whether the exit test is after the body.
    pub tested_last: bool,
    /// Whether the trip count is visible to a compiler.
    pub known: bool,
    /// The body; `i` is added to `s` at its start.
    pub body: Block,
}

/// Values of `s % SELECTORS` select a case.
pub const SELECTORS: u32 = 5;

/// Removes jumps without a target and statements after a jump, so that the program is valid in every language.
pub fn prune(block: &mut Block) {
    prune_in(block, false, false, true);
}

/// As [`prune`], for a language without [`Statement::BreakLoop`] inside a switch and without fall-through.
pub fn prune_for_wgsl(block: &mut Block) {
    prune_in(block, false, false, false);
}

fn prune_in(block: &mut Block, in_loop: bool, in_switch: bool, free: bool) {
    block.retain(|statement| match statement {
        Statement::BreakSwitch => in_switch,
        Statement::BreakLoop => in_loop && (free || !in_switch),
        Statement::Continue => in_loop,
        _ => true,
    });
    if let Some(end) = block.iter().position(is_jump) {
        block.truncate(end + 1);
    }
    for statement in block {
        match statement {
            Statement::If(_, then, otherwise) => {
                prune_in(then, in_loop, in_switch, free);
                prune_in(otherwise, in_loop, in_switch, free);
            }
            Statement::Switch(switch) => {
                for (case, falls) in &mut switch.cases {
                    *falls &= free;
                    prune_in(case, in_loop, true, free);
                }
            }
            Statement::Loop(repeated) => prune_in(&mut repeated.body, true, false, free),
            _ => {}
        }
    }
}

fn is_jump(statement: &Statement) -> bool {
    use Statement as S;
    matches!(statement, S::BreakSwitch | S::BreakLoop | S::Continue | S::Return(_))
}

impl Test {
    pub(crate) fn holds(self, s: u32, index: u32) -> bool {
        s.wrapping_mul(self.factor).wrapping_add(index) % self.modulus < self.less
    }
}
