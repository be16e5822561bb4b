//! Random programs of structured control flow, with their meaning in Rust: what every front end and engine must agree with.
//!
//! A program turns `s`, at first the invocation's index, into another number; each step and each branch leaves its mark in
//! it; so does who is where together. Besides it gathers what subgroups put together in `t`, which no branch asks for. [`run`] is what
//! that means, [`spirv`] writes a program as SPIR-V with phis, [`wgsl`] as WGSL with variables.

mod lockstep;
pub mod spirv;
pub mod wgsl;

pub use lockstep::run;

/// A statement.
#[derive(Clone, Debug)]
pub enum Statement {
    /// `s = s * 3 + n`.
    Step(u32),
    /// `s = s * 3 + sum + n`, with the sum of all `s` of those in the subgroup that are here together.
    Together(u32),
    /// `t = t + sum`, with what a group's `s ^ n` are together.
    Gather(Gather, u32),
    /// `if (…) { … } else { … }`.
    If(Test, Block, Block),
    /// `switch (s % 5)`.
    Switch(Switch),
    /// A loop.
    Loop(Loop),
    /// Leaves the innermost switch, which has to be inside the innermost loop.
    BreakSwitch,
    /// Leaves the innermost loop, out of a switch too.
    BreakLoop,
    /// Goes on with the next round of the innermost loop.
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
    /// The share of the true ones.
    pub less: u32,
}

/// How the numbers of those in the subgroup that are here together become one, and how that one goes into `t`.
#[derive(Clone, Copy, Debug)]
pub enum Gather {
    /// Their sum, added.
    Sum,
    /// The sum of those below, added.
    Below,
    /// The bits that differ in an odd number of them, likewise put into `t`.
    Odd,
}

/// Case `n` is the one for the value `n`, unless it is the default.
#[derive(Clone, Debug)]
pub struct Switch {
    /// At most five, in order; the flag says that the end falls through into the next one.
    pub cases: Vec<(Block, bool)>,
    /// Which case is the default; beyond the last: there is none.
    pub default: usize,
}

/// `for (i = 0; i < rounds + index % spread; i++)`, `do … while` if `tested_last`.
#[derive(Clone, Debug)]
pub struct Loop {
    /// Rounds of every invocation.
    pub rounds: u32,
    /// Not 0; more than 1 makes the loop divergent.
    pub spread: u32,
    /// Whether the end is tested after the body.
    pub tested_last: bool,
    /// Whether the program says so. Else a compiler does not know the number of rounds.
    pub known: bool,
    /// The body; `i` is added to `s` at its begin.
    pub body: Block,
}

/// Values of `s % SELECTORS` choose a case.
pub const SELECTORS: u32 = 5;

/// Removes what has no target and what follows a jump, so that the program is valid in every language.
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
