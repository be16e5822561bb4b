//! Variables while the SIMD form is built: what is written in one block and read in another becomes block parameters.
//!
//! Braun et al., "Simple and Efficient Construction of Static Single Assignment Form" (2013), with work lists instead of
//! recursion. A read does not walk through the blocks before: it goes to the last write at once, if that dominates it and no loop
//! between writes the variable, else to the block where ways with a write between come together (`dominance`). So the work for a
//! read grows with the logarithm of what is nested, and blocks that a variable only lives through get no parameter for it.
//!
//! Three things are added. A *start* block begins anew: variables that were not written since have their
//! default. A *resume* block goes on after a barrier: what is read there was kept in the subgroup's frame, or is carried
//! over the barrier once for all subgroups if it is *common* to them. And a variable may belong to a block of the scalar kernel: at the
//! header of each loop around that, what it had before is forgotten.

use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl};
use foldhash::HashMap;
use smallvec::SmallVec;

use super::builder::{ALL, Builder};
use super::dominance::{Dominance, Extent};
use super::{Block, InstData, Type, Value};
use crate::ir::Op;

/// A variable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Variable(u32);
entity_impl!(Variable, "variable");

/// What a variable that was never written has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unwritten {
    /// Nobody reads it.
    Undef,
    /// No lanes.
    Empty,
}

/// Where a variable may be written, in blocks of the scalar kernel, by position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Writers {
    /// Anywhere.
    Everywhere,
    /// In these blocks, in order. The variable is the `owner`'s: at the header of a loop around that, what it had is forgotten.
    Of {
        /// The block.
        owner: u32,
        /// Whether it is written before that block runs: if this is a loop's header, the loop keeps what was written.
        before: bool,
        /// Those that write it.
        at: SmallVec<[u32; 4]>,
    },
}

impl Writers {
    /// The owner alone writes.
    pub(crate) fn only(owner: u32) -> Self {
        Self::Of { owner, before: false, at: SmallVec::from_slice(&[owner]) }
    }

    /// Whether a loop may write the variable; if so, loops around it may, too.
    fn within(&self, extent: Extent) -> bool {
        match (self, extent) {
            (_, Extent::Stops(..)) | (Self::Everywhere, _) => true,
            (Self::Of { .. }, Extent::Within) => false,
            (Self::Of { at, .. }, Extent::Span(first, last)) => {
                at.get(at.partition_point(|&place| place < first)).is_some_and(|&place| place <= last)
            }
        }
    }

    /// Whether what the variable had is forgotten at the header of a loop.
    fn forgotten(&self, span: Option<(u32, u32)>) -> bool {
        match (self, span) {
            (Self::Of { owner, before, .. }, Some((first, last))) => {
                (first..=last).contains(owner) && !(*before && *owner == first)
            }
            _ => false,
        }
    }
}

#[derive(Debug)]
struct VariableData {
    ty: Type,
    default: Unwritten,
    writers: Writers,
    /// Places in the order of blocks that have written it so far, ascending, and the blocks.
    writes: SmallVec<[(u32, Block); 2]>,
    /// Whether all subgroups have the same value whenever they are at a barrier.
    common: bool,
    /// Place in the frame, once it is needed.
    slot: Option<u32>,
    /// The one value that is ever written to it, if it is known.
    only: Option<Only>,
}

/// The one value of a variable.
#[derive(Clone, Copy, Debug)]
struct Only {
    value: Value,
    /// The innermost loop around its definition.
    within: Option<usize>,
    /// Whether it is in the frame from its definition on.
    stored: bool,
}

/// How reading goes on at a block's beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Head {
    /// Predecessors may still come.
    #[default]
    Open,
    /// All predecessors are known.
    Sealed,
    /// Variables have their default.
    Start,
    /// Variables are in the frame.
    Resume,
}

#[derive(Debug)]
struct Phi {
    block: Block,
    variable: Variable,
    value: Value,
    /// One for each predecessor, once all are known.
    operands: Vec<Value>,
}

/// A value of a variable that is kept over a barrier.
#[derive(Clone, Copy, Debug)]
struct Kept {
    variable: Variable,
    resume: Block,
    value: Value,
}

/// A value that is carried over a barrier for all subgroups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carried {
    /// Where subgroups go on.
    pub(crate) resume: Block,
    /// What it is called there: a parameter that has no block yet.
    pub(crate) param: Value,
    /// What it was where they stopped.
    pub(crate) arg: Value,
}

/// A barrier where subgroups stop, to go on in a resume block.
#[derive(Clone, Debug)]
pub(crate) struct Barrier {
    /// Where they stop.
    pub(crate) stop: Block,
    /// The address of their frame in both.
    pub(crate) frame: Value,
    /// Their lanes.
    pub(crate) lanes: Value,
    /// Loops around it.
    pub(crate) loops: Vec<usize>,
}

/// The variables of a kernel that is built.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    all: PrimaryMap<Variable, VariableData>,
    values: HashMap<(Block, Variable), Value>,
    heads: SecondaryMap<Block, Head>,
    pub(crate) dominance: Dominance,
    pub(crate) predecessors: SecondaryMap<Block, Vec<Block>>,
    open: HashMap<Block, Vec<usize>>,
    phis: Vec<Phi>,
    phi_of: HashMap<Value, usize>,
    phi_users: HashMap<Value, Vec<usize>>,
    unfilled: Vec<usize>,
    aliases: SecondaryMap<Value, PackedOption<Value>>,
    barriers: HashMap<Block, Barrier>,
    kept: Vec<Kept>,
    /// What was loaded from the frame after a barrier, and the variable it is.
    loaded: HashMap<Value, Variable>,
    carried: Vec<Carried>,
    /// Bytes of the frame so far.
    pub(crate) frame_bytes: u32,
}

impl Variables {
    /// A new variable.
    pub(crate) fn declare(&mut self, ty: Type, default: Unwritten) -> Variable {
        self.declare_of(ty, default, Writers::Everywhere)
    }

    /// A new variable that is written in known places only.
    pub(crate) fn declare_of(&mut self, ty: Type, default: Unwritten, writers: Writers) -> Variable {
        let writes = SmallVec::new();
        self.all.push(VariableData { ty, default, writers, writes, common: false, slot: None, only: None })
    }

    /// Says where a variable that was declared is written.
    pub(crate) fn set_writers(&mut self, variable: Variable, writers: Writers) {
        self.all[variable].writers = writers;
    }

    /// Says that all subgroups have the same value of a variable whenever they are at a barrier where it is alive.
    pub(crate) fn make_common(&mut self, variable: Variable) {
        self.all[variable].common = true;
    }

    /// What has to be carried over barriers.
    pub(crate) fn carried(&self) -> impl Iterator<Item = Carried> {
        self.carried.iter().map(|carried| Carried { arg: self.resolve(carried.arg), ..*carried })
    }

    /// Type of a variable.
    pub(crate) fn ty(&self, variable: Variable) -> Type {
        self.all[variable].ty
    }

    /// Writes a variable at the end of a block, as far as it is built.
    pub(crate) fn write(&mut self, block: Block, variable: Variable, value: Value) {
        self.values.insert((block, variable), value);
        let order = self.dominance.order(block);
        let writes = &mut self.all[variable].writes;
        // Most writes come in order.
        let at = writes.iter().rposition(|&(before, _)| before <= order).map_or(0, |at| at + 1);
        if at == 0 || writes[at - 1].0 != order {
            writes.insert(at, (order, block));
        }
    }

    /// The last block that wrote a variable up to a place in the order.
    fn last_write(&self, variable: Variable, order: u32) -> Option<(u32, Block)> {
        let writes = &self.all[variable].writes;
        writes[..writes.partition_point(|&(place, _)| place <= order)].last().copied()
    }

    /// As [`Variables::write`], for the only value that the variable ever has; `within` is the innermost loop around.
    pub(crate) fn write_only(&mut self, block: Block, variable: Variable, value: Value, within: Option<usize>) {
        self.all[variable].only = Some(Only { value, within, stored: false });
        self.write(block, variable, value);
    }

    /// What stands for a value: a parameter that always has one value is that value.
    pub(crate) fn resolve(&self, mut value: Value) -> Value {
        while let Some(other) = self.aliases[value].expand() {
            value = other;
        }
        value
    }

    /// As [`Variables::resolve`]; the way there is short the next time.
    fn shorten(&mut self, value: Value) -> Value {
        let end = self.resolve(value);
        let mut at = value;
        while let Some(next) = self.aliases[at].expand() {
            self.aliases[at] = end.into();
            at = next;
        }
        end
    }

    fn is_aliased(&self, value: Value) -> bool {
        self.aliases[value].is_some()
    }

    /// A block at which variables begin anew.
    pub(crate) fn mark_start(&mut self, block: Block) {
        self.heads[block] = Head::Start;
    }

    /// A block that goes on after a barrier.
    pub(crate) fn mark_resume(&mut self, block: Block, barrier: Barrier) {
        self.heads[block] = Head::Resume;
        self.barriers.insert(block, barrier);
    }

    /// Where a variable that is read in a block comes from: the block with the last write, if that is in reach whatever way was
    /// taken; else the nearest block above that ways with and without a write lead to. Whether it forgets what was before.
    fn source(&self, variable: Variable, block: Block) -> (Block, bool) {
        if self.values.contains_key(&(block, variable)) {
            return (block, false);
        }
        let VariableData { writers, .. } = &self.all[variable];
        let written = self.last_write(variable, self.dominance.order(block));
        let last = written.map_or(0, |(order, _)| order);
        // A loop that writes it: its header stands between, unless the write is within.
        let around = self.dominance.innermost(block, |extent| writers.within(extent));
        let around = around.filter(|&(header, _)| self.dominance.order(header) > last);
        if let (Some((_, write)), None) = (written, around)
            && write == block
        {
            return (block, false);
        }
        let (top, above) = self.dominance.behind(block, last);
        match around {
            Some((header, extent)) if self.dominance.order(header) >= self.dominance.order(top) => {
                (header, writers.forgotten(extent.span()))
            }
            _ => match written {
                Some((_, write)) if above == Some(write) => (write, false),
                _ => (top, false),
            },
        }
    }

    fn slot(&mut self, variable: Variable) -> u32 {
        if let Some(slot) = self.all[variable].slot {
            return slot;
        }
        let size = self.all[variable].ty.frame_bytes();
        let slot = self.frame_bytes.next_multiple_of(size);
        self.frame_bytes = slot + size;
        self.all[variable].slot = Some(slot);
        slot
    }
}

impl Builder {
    /// Reads a variable at the end of a block, as far as it is built.
    pub(crate) fn read(&mut self, variable: Variable, block: Block) -> Value {
        let value = self.find(variable, block);
        while let Some(phi) = self.variables.unfilled.pop() {
            self.fill(phi);
        }
        self.variables.resolve(value)
    }

    /// All predecessors of a block are known.
    pub(crate) fn seal(&mut self, block: Block) {
        if self.variables.heads[block] != Head::Open {
            return;
        }
        self.variables.heads[block] = Head::Sealed;
        let open = self.variables.open.remove(&block).unwrap_or_default();
        self.variables.unfilled.extend(open);
        while let Some(phi) = self.variables.unfilled.pop() {
            self.fill(phi);
        }
    }

    /// As [`Builder::seal`], for a block where ways come together between which and `above` no variable is written.
    pub(crate) fn seal_behind(&mut self, block: Block, above: Block) {
        self.variables.predecessors[block] = vec![above];
        self.variables.dominance.hang(block, &[above]);
        self.seal(block);
    }

    /// The nearest definition upwards; makes a parameter where ways come together.
    fn find(&mut self, variable: Variable, from: Block) -> Value {
        let mut block = from;
        let value = loop {
            self.kernel.work.visit(1);
            let (at, forgets) = self.variables.source(variable, block);
            if let Some(&value) = self.variables.values.get(&(at, variable)) {
                break value;
            }
            let value = match (self.variables.heads[at], self.variables.predecessors[at].as_slice()) {
                _ if forgets => self.default_of(variable),
                (Head::Sealed, &[only]) => {
                    block = only;
                    continue;
                }
                (Head::Sealed, []) | (Head::Start, _) => self.default_of(variable),
                (Head::Resume, _) => self.keep(variable, at),
                (Head::Sealed | Head::Open, _) => self.make_phi(variable, at),
            };
            self.variables.values.insert((at, variable), value);
            break value;
        };
        self.variables.values.insert((from, variable), value);
        value
    }

    fn default_of(&mut self, variable: Variable) -> Value {
        let VariableData { ty, default, .. } = self.variables.all[variable];
        match default {
            Unwritten::Undef => self.emit_one(InstData::Undef { ty }),
            Unwritten::Empty => self.constant(ty, 0),
        }
    }

    fn make_phi(&mut self, variable: Variable, block: Block) -> Value {
        let ty = self.variables.all[variable].ty;
        let value = self.param_later(block, ty);
        let number = self.variables.phis.len();
        self.variables.phis.push(Phi { block, variable, value, operands: Vec::new() });
        self.variables.phi_of.insert(value, number);
        self.variables.values.insert((block, variable), value);
        if self.variables.heads[block] == Head::Open {
            self.variables.open.entry(block).or_default().push(number);
        } else {
            self.variables.unfilled.push(number);
        }
        value
    }

    fn fill(&mut self, number: usize) {
        let (block, variable, value) = {
            let phi = &self.variables.phis[number];
            (phi.block, phi.variable, phi.value)
        };
        let predecessors = self.variables.predecessors[block].clone();
        self.kernel.work.visit(predecessors.len());
        for predecessor in predecessors {
            let operand = self.find(variable, predecessor);
            let operand = self.variables.shorten(operand);
            self.variables.phis[number].operands.push(operand);
            if self.variables.phi_of.contains_key(&operand) && operand != value {
                self.variables.phi_users.entry(operand).or_default().push(number);
            }
        }
        self.simplify(number);
    }

    /// A parameter that is always one value, or itself, is that value; those that it was passed to may become so, too.
    fn simplify(&mut self, number: usize) {
        let mut work = vec![number];
        while let Some(number) = work.pop() {
            let Phi { value, block, ref operands, .. } = self.variables.phis[number];
            let count = operands.len();
            self.kernel.work.visit(1 + count);
            if self.variables.is_aliased(value) || count != self.variables.predecessors[block].len() {
                continue;
            }
            let mut only = None;
            let several = (0..count).any(|place| {
                let operand = self.variables.phis[number].operands[place];
                let operand = self.variables.shorten(operand);
                operand != value && *only.get_or_insert(operand) != operand
            });
            let (Some(only), false) = (only, several) else { continue };
            self.variables.aliases[value] = only.into();
            let mut users = self.variables.phi_users.remove(&value).unwrap_or_default();
            users.sort_unstable();
            users.dedup();
            // Those that became values themselves are no users any more: handed on, they would be looked at again and again.
            users.retain(|&user| !self.variables.is_aliased(self.variables.phis[user].value));
            if self.variables.phi_of.contains_key(&only) {
                self.variables.phi_users.entry(only).or_default().extend(&users);
            }
            work.extend(users);
        }
    }

    /// Takes a variable from the frame in a resume block, or says that it is carried; [`Builder::keep_all`] does its part
    /// at the barrier.
    fn keep(&mut self, variable: Variable, resume: Block) -> Value {
        let VariableData { ty, common, .. } = self.variables.all[variable];
        let value = if common {
            self.param_later(resume, ty)
        } else {
            let Barrier { frame, lanes, .. } = self.variables.barriers[&resume];
            let at = self.variables.slot(variable);
            let kept = self.emit_at_head(resume, InstData::FrameLoad { ty, frame, at });
            self.variables.loaded.insert(kept, variable);
            if ty == Type::Mask && self.kernel.constant(lanes) != Some(ALL) {
                // Of no other lanes, whoever put it there.
                let args = [kept, lanes].into_iter().collect();
                self.emit_at_head(resume, InstData::Pure { op: Op::LAnd, args })
            } else {
                kept
            }
        };
        self.variables.kept.push(Kept { variable, resume, value });
        value
    }

    /// Puts into the frames what is read after barriers, and finds what is carried.
    pub(crate) fn keep_all(&mut self) {
        while let Some(Kept { variable, resume, value }) = self.variables.kept.pop() {
            let Barrier { stop, frame, ref loops, .. } = self.variables.barriers[&resume];
            if self.variables.all[variable].common {
                let arg = self.read(variable, stop);
                if self.is_outer(arg) {
                    self.variables.aliases[value] = arg.into();
                } else {
                    self.variables.carried.push(Carried { resume, param: value, arg });
                }
                continue;
            }
            if let Some(only) = self.variables.all[variable].only
                && only.within.is_none_or(|number| loops.contains(&number))
                && !self.is_outer(self.variables.resolve(only.value))
            {
                if !only.stored {
                    self.variables.all[variable].only = Some(Only { stored: true, ..only });
                    let at = self.variables.slot(variable);
                    let kept = self.variables.resolve(only.value);
                    self.emit_after(kept, InstData::FrameStore { frame, at, value: kept });
                }
                continue;
            }
            let kept = self.read(variable, stop);
            let at = self.variables.slot(variable);
            // The frame holds it already if it came from this very slot. Results of calls are loaded, too, from elsewhere.
            let same = self.variables.loaded.get(&kept) == Some(&variable);
            let undef = matches!(self.kernel.definition(kept), Some(InstData::Undef { .. }));
            if !same && !undef {
                self.emit_before_end(stop, InstData::FrameStore { frame, at, value: kept });
            }
            debug_assert!(!self.variables.is_aliased(value));
        }
    }

    /// Gives parameters to blocks and arguments to branches, and replaces what turned out to be the same.
    pub(crate) fn finish_variables(&mut self) {
        let phis = std::mem::take(&mut self.variables.phis);
        for phi in &phis {
            if self.variables.is_aliased(phi.value) {
                continue;
            }
            self.place_param(phi.block, phi.value);
            let predecessors = self.variables.predecessors[phi.block].clone();
            for (predecessor, &operand) in predecessors.into_iter().zip(&phi.operands) {
                let operand = self.variables.shorten(operand);
                self.pass(predecessor, phi.block, operand);
            }
        }
        let variables = &mut self.variables;
        for data in self.kernel.insts.values_mut() {
            // No choice left it out: some lanes may look at it beside lanes that hold something.
            if let InstData::Undef { ty: Type::Mask } = *data {
                *data = InstData::Const { ty: Type::Mask, bits: 0 };
            }
            data.for_each_use_mut(|value| *value = variables.shorten(*value));
        }
        for data in self.kernel.blocks.values_mut() {
            data.exec = data.exec.map(|exec| variables.shorten(exec));
        }
    }
}
