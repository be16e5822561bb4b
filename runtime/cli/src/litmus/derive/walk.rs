//! One invocation as a thread: its control flow, followed where conditions are numbers, and branched where they depend
//! on values that it loads.
//!
//! A branch on a loaded value continues in both directions; code after the selection is emitted once for each. A loop
//! is unrolled as long as its state changes. When a header is reached with the same state as before, apart from the
//! values of loads, the loop continues at the code that was emitted for that state: this is how a spin loop ends.

use std::collections::{BTreeMap, BTreeSet};

use spelter_memory_model::program::{
    BranchCondition, Comparison, Instruction, InstructionKind, Operand, Place as Line, Register,
};
use spelter_shaders::ir::{Block, BlockCall, Inst, InstData, Kernel, Value, Variable};

use super::Refusal;
use super::code::{Code, Val};
use super::invocation::Shared;

/// The largest number of instructions of the kernel that one invocation executes, on all paths together.
const MAX_STEPS: u32 = 50_000;

/// The largest number of instructions of a thread.
const MAX_CODE: usize = 2_000;

/// The values of an invocation at a place of the kernel.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    values: BTreeMap<Value, Val>,
    /// Words of private variables, by their offset in bytes; those that are missing hold 0.
    pub(super) private: BTreeMap<(Variable, u32), Val>,
}

impl State {
    /// The value of an operand.
    pub(super) fn of(&self, value: Value) -> Val {
        self.values.get(&value).cloned().unwrap_or_else(|| Val::Unknown("a value without a definition".into()))
    }

    pub(super) fn set(&mut self, value: Value, val: Val) {
        self.values.insert(value, val);
    }
}

/// A state in which a loop's header was reached, reduced to what later code can use.
type Snapshot = (Vec<(Value, Val)>, Vec<((Variable, u32), Val)>);

/// A path that continues at the target of a branch.
struct Pending {
    branch: usize,
    state: State,
    to: BlockCall,
}

/// The code of one invocation.
pub(super) struct Walk<'a, 'k> {
    pub(super) shared: &'a mut Shared<'k>,
    pub(super) kernel: &'k Kernel,
    pub(super) code: Code,
    pub(super) builtins: super::invocation::BuiltIns,
    pending: Vec<Pending>,
    /// Branches to the end of the code.
    ends: Vec<usize>,
    seen: BTreeMap<Block, Vec<(usize, Snapshot)>>,
    steps: u32,
}

impl<'a, 'k> Walk<'a, 'k> {
    pub(super) fn new(shared: &'a mut Shared<'k>, builtins: super::invocation::BuiltIns) -> Self {
        let kernel = shared.kernel;
        Self {
            shared,
            kernel,
            code: Code::default(),
            builtins,
            pending: Vec::new(),
            ends: Vec::new(),
            seen: BTreeMap::new(),
            steps: 0,
        }
    }

    /// Derives the whole code.
    pub(super) fn run(mut self) -> Result<Code, Refusal> {
        let Some(&entry) = self.kernel.layout.first() else { return Ok(self.code) };
        self.path(entry, State::default())?;
        while let Some(Pending { branch, mut state, to }) = self.pending.pop() {
            self.code.land(branch, self.code.instructions.len());
            enter(self.kernel, &mut state, &to);
            self.path(to.block, state)?;
        }
        for end in std::mem::take(&mut self.ends) {
            self.code.land(end, self.code.instructions.len());
        }
        Ok(self.code)
    }

    /// Follows one path to its end.
    fn path(&mut self, mut block: Block, mut state: State) -> Result<(), Refusal> {
        loop {
            // A loop closes only where its state repeats, as while it waits for a flag; otherwise it is unrolled.
            if self.shared.flow.headers.contains(&block) && self.continues_before(block, &state) {
                return Ok(());
            }
            let kernel = self.kernel;
            let mut next = None;
            for &inst in &kernel.blocks[block].insts {
                self.at(inst)?;
                match &kernel.insts[inst] {
                    InstData::Jump { to } => next = Some(to),
                    InstData::Branch { condition, then, otherwise } => {
                        next = Some(self.branch(&state, *condition, then, otherwise)?);
                    }
                    InstData::Switch { selector, default, cases } => {
                        next = Some(self.switch(&state, *selector, default, cases)?);
                    }
                    InstData::Return | InstData::Unreachable => {}
                    data => {
                        let value = self.instruction(&mut state, inst, data)?;
                        if let (Some(result), Some(value)) = (kernel.results[inst], value) {
                            state.set(result, value);
                        }
                    }
                }
            }
            let Some(to) = next else {
                // The code of the pending paths follows, and this one must not run into it.
                if !self.pending.is_empty() {
                    let end = self.code.branch(None);
                    self.ends.push(end);
                }
                return Ok(());
            };
            enter(kernel, &mut state, to);
            block = to.block;
        }
    }

    /// Notes the place of an instruction, and checks the bounds.
    fn at(&mut self, inst: Inst) -> Result<(), Refusal> {
        self.code.source = inst.as_u32();
        if let Some(line) = self.kernel.line_of(inst) {
            self.code.place = Line { line: line.line, column: line.column };
        } else if let Some(&line) = self.shared.launch.lines.get(&self.kernel.origins[inst]) {
            self.code.place = Line { line, column: 0 };
        }
        self.steps += 1;
        if self.steps > MAX_STEPS || self.code.instructions.len() > MAX_CODE {
            let why = format!(
                "an invocation needs more than {MAX_STEPS} instructions of the kernel or {MAX_CODE} of the test: a loop \
                 that changes its state without end, or too many branches on loaded values"
            );
            return Err(self.refuse(why));
        }
        Ok(())
    }

    /// An error at the present place.
    pub(super) fn refuse(&self, why: impl Into<String>) -> Refusal {
        Refusal { line: self.code.place.line, why: why.into() }
    }

    /// The condition of a branch on a value; a number has none.
    fn condition(&mut self, value: &Val) -> Result<Option<BranchCondition>, Refusal> {
        match value {
            Val::Number(_) => Ok(None),
            Val::Compare(comparison, a, b) => {
                Ok(Some(BranchCondition { comparison: *comparison, left: a.clone(), right: b.clone() }))
            }
            Val::Cell(register) => {
                let left = Operand::Register(register.clone());
                Ok(Some(BranchCondition { comparison: Comparison::NotEqual, left, right: Operand::Constant(0) }))
            }
            Val::Unknown(reason) => Err(self.refuse(format!("a branch depends on {reason}"))),
            Val::Buffer(_) => Err(self.refuse("a branch depends on a buffer")),
        }
    }

    fn branch<'b>(
        &mut self,
        state: &State,
        condition: Value,
        then: &'b BlockCall,
        otherwise: &'b BlockCall,
    ) -> Result<&'b BlockCall, Refusal> {
        let value = state.of(condition);
        let Some(condition) = self.condition(&value)? else {
            return Ok(if value == Val::Number(0) { otherwise } else { then });
        };
        self.fork(state, condition, then);
        Ok(otherwise)
    }

    fn switch<'b>(
        &mut self,
        state: &State,
        selector: Value,
        default: &'b BlockCall,
        cases: &'b [(u32, BlockCall)],
    ) -> Result<&'b BlockCall, Refusal> {
        let value = state.of(selector);
        if let Val::Number(bits) = value {
            return Ok(cases.iter().find(|case| u64::from(case.0) == bits).map_or(default, |case| &case.1));
        }
        let operand =
            self.code.operand(&value).map_err(|reason| self.refuse(format!("a switch depends on {reason}")))?;
        for (literal, to) in cases {
            let right = Operand::Constant(i64::from(*literal));
            self.fork(state, BranchCondition { comparison: Comparison::Equal, left: operand.clone(), right }, to);
        }
        Ok(default)
    }

    /// A branch to a path that is derived later.
    fn fork(&mut self, state: &State, condition: BranchCondition, to: &BlockCall) {
        let branch = self.code.branch(Some(condition));
        self.pending.push(Pending { branch, state: state.clone(), to: to.clone() });
        self.shared.branches_on_loads = true;
    }

    /// Whether the header was reached in this state before: then the thread continues there, with the values of its
    /// registers moved.
    fn continues_before(&mut self, header: Block, state: &State) -> bool {
        let snapshot = self.snapshot(header, state);
        let found = self
            .seen
            .get(&header)
            .and_then(|seen| seen.iter().find_map(|(label, before)| Some((*label, moves(before, &snapshot)?))));
        let Some((label, pairs)) = found else {
            let label = self.code.instructions.len();
            self.seen.entry(header).or_default().push((label, snapshot));
            return false;
        };
        self.code.copy(&pairs);
        let back = self.code.branch(None);
        self.code.land(back, label);
        true
    }

    fn snapshot(&self, header: Block, state: &State) -> Snapshot {
        let live = self.shared.flow.live.get(&header);
        let values = live.into_iter().flatten().map(|&value| (value, state.of(value)));
        let private = state.private.iter().map(|(place, val)| (*place, val.clone()));
        (values.collect(), private.collect())
    }
}

/// Binds the parameters of a block.
fn enter(kernel: &Kernel, state: &mut State, to: &BlockCall) {
    let args: Vec<Val> = to.args.iter().map(|&arg| state.of(arg)).collect();
    for (&param, arg) in kernel.blocks[to.block].params.iter().zip(args) {
        state.set(param, arg);
    }
}

/// The registers to copy so that `before` holds again after `now`; `None` if the states differ in more than registers.
fn moves(before: &Snapshot, now: &Snapshot) -> Option<Vec<(Register, Register)>> {
    let mut known: BTreeMap<Register, Register> = BTreeMap::new();
    let mut same_register = |old: &Register, new: &Register| match known.get(old) {
        Some(mapped) => mapped == new,
        None => {
            known.insert(old.clone(), new.clone());
            true
        }
    };
    let mut same_operand = |old: &Operand, new: &Operand| match (old, new) {
        (Operand::Register(old), Operand::Register(new)) => same_register(old, new),
        (old, new) => old == new,
    };
    let mut same = |old: &Val, new: &Val| match (old, new) {
        (Val::Cell(old), Val::Cell(new)) => {
            same_operand(&Operand::Register(old.clone()), &Operand::Register(new.clone()))
        }
        (Val::Compare(c, a, b), Val::Compare(d, x, y)) => c == d && same_operand(a, x) && same_operand(b, y),
        (Val::Unknown(_), Val::Unknown(_)) => true,
        (old, new) => old == new,
    };
    let values = before.0.len() == now.0.len()
        && before.0.iter().zip(&now.0).all(|((a, old), (b, new))| a == b && same(old, new));
    let private = before.1.len() == now.1.len()
        && before.1.iter().zip(&now.1).all(|((a, old), (b, new))| a == b && same(old, new));
    let pairs = known.into_iter().filter(|(old, new)| old != new);
    (values && private).then(|| pairs.collect())
}

/// What the walk asks of the kernel's control flow.
pub(super) struct Flow {
    /// Targets of back edges.
    pub(super) headers: BTreeSet<Block>,
    /// The values that code from a header on uses, its parameters included.
    pub(super) live: BTreeMap<Block, BTreeSet<Value>>,
}

impl Flow {
    /// Computes liveness by iteration: kernels of litmus tests are small.
    pub(super) fn new(kernel: &Kernel) -> Self {
        let order: BTreeMap<Block, usize> = kernel.layout.iter().enumerate().map(|(at, &block)| (block, at)).collect();
        let mut headers = BTreeSet::new();
        for &block in &kernel.layout {
            headers.extend(kernel.targets(block).iter().map(|to| to.block).filter(|to| order[to] <= order[&block]));
        }
        // Values that a block, or one after it, uses before they are defined there.
        let mut needed: BTreeMap<Block, BTreeSet<Value>> = BTreeMap::new();
        let mut changed = true;
        while changed {
            changed = false;
            for &block in kernel.layout.iter().rev() {
                let mut live: BTreeSet<Value> = BTreeSet::new();
                for to in kernel.targets(block) {
                    live.extend(needed.get(&to.block).into_iter().flatten());
                }
                for &inst in kernel.blocks[block].insts.iter().rev() {
                    if let Some(result) = kernel.results[inst] {
                        live.remove(&result);
                    }
                    kernel.insts[inst].for_each_use(|value| _ = live.insert(value));
                }
                for param in &kernel.blocks[block].params {
                    live.remove(param);
                }
                changed |= needed.get(&block) != Some(&live);
                needed.insert(block, live);
            }
        }
        let live = headers.iter().map(|&header| {
            let mut live = needed.get(&header).cloned().unwrap_or_default();
            live.extend(kernel.blocks[header].params.iter().copied());
            (header, live)
        });
        Self { live: live.collect(), headers }
    }
}

/// Whether code has a branch.
pub(super) fn branches(code: &[Instruction]) -> bool {
    code.iter().any(|instruction| matches!(instruction.kind, InstructionKind::Branch { .. }))
}
