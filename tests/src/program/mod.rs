//! Random programs of structured control flow, with their meaning in Rust: what every front end and engine must agree with.
//!
//! A program turns `s`, at first the invocation's index, into another number; each step and each branch leaves its mark in
//! it. [`spirv`] writes a program as SPIR-V with phis, [`wgsl`] as WGSL with variables.

pub mod spirv;
pub mod wgsl;

/// A statement.
#[derive(Clone, Debug)]
pub enum Statement {
    /// `s = s * 3 + n`.
    Step(u32),
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
    /// The body; `i` is added to `s` at its begin.
    pub body: Block,
}

/// Values of `s % SELECTORS` choose a case.
pub const SELECTORS: u32 = 5;

enum Flow {
    Next,
    BreakSwitch,
    BreakLoop,
    Continue,
    Return,
}

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

/// What the program makes of an invocation's index.
pub fn run(program: &Block, index: u32) -> u32 {
    let mut s = index;
    block(program, index, &mut s);
    s
}

fn block(statements: &Block, index: u32, s: &mut u32) -> Flow {
    for statement in statements {
        let flow = match statement {
            Statement::Step(n) => {
                *s = s.wrapping_mul(3).wrapping_add(*n);
                Flow::Next
            }
            Statement::If(test, then, otherwise) => {
                block(if test.holds(*s, index) { then } else { otherwise }, index, s)
            }
            Statement::Switch(switch) => choose(switch, index, s),
            Statement::Loop(repeated) => repeat(repeated, index, s),
            Statement::BreakSwitch => Flow::BreakSwitch,
            Statement::BreakLoop => Flow::BreakLoop,
            Statement::Continue => Flow::Continue,
            Statement::Return(n) => {
                *s = s.wrapping_add(*n);
                Flow::Return
            }
        };
        if !matches!(flow, Flow::Next) {
            return flow;
        }
    }
    Flow::Next
}

impl Test {
    fn holds(self, s: u32, index: u32) -> bool {
        s.wrapping_mul(self.factor).wrapping_add(index) % self.modulus < self.less
    }
}

fn choose(switch: &Switch, index: u32, s: &mut u32) -> Flow {
    let value = (*s % SELECTORS) as usize;
    let taken = if value < switch.cases.len() && value != switch.default { value } else { switch.default };
    for (case, falls) in switch.cases.iter().skip(taken) {
        match block(case, index, s) {
            Flow::Next if *falls => {}
            Flow::Next | Flow::BreakSwitch => break,
            flow => return flow,
        }
    }
    Flow::Next
}

fn repeat(repeated: &Loop, index: u32, s: &mut u32) -> Flow {
    let rounds = repeated.rounds + index % repeated.spread;
    let mut i = 0;
    while repeated.tested_last || i < rounds {
        *s = s.wrapping_add(i);
        match block(&repeated.body, index, s) {
            Flow::Next | Flow::Continue => {}
            Flow::BreakLoop => break,
            flow => return flow,
        }
        i += 1;
        if repeated.tested_last && i >= rounds {
            break;
        }
    }
    Flow::Next
}
