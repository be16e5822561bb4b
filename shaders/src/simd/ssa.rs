//! SSA construction for the SIMD builder: variables that are written in one block and read in another become block
//! parameters.
//!
//! Braun et al., "Simple and Efficient Construction of Static Single Assignment Form" (2013), with work lists instead
//! of recursion. A read does not walk through the blocks before it: it finds the last write directly if that dominates
//! the read and no loop between writes the variable, and otherwise the join of the paths with and without a write
//! (`dominance`). So a read costs time logarithmic in the nesting depth, and blocks through which a variable is only
//! live get no parameter.
//!
//! Three extensions. A *start* block resets variables: those that were not written since have their default. A *resume*
//! block continues after a barrier: values that are read there were saved in the subgroup's frame, or, if they are
//! *common* to all subgroups, are carried across the barrier once. And a variable may be owned by a block of the scalar
//! kernel: at the header of each loop around that block its previous value is dropped.

use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl};
use foldhash::HashMap;
use smallvec::SmallVec;

use super::builder::{ALL, Builder};
use super::dominance::{Dominance, LoopSpan};
use super::{Block, InstData, Type, Value};
use crate::ir::Op;

/// A variable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Variable(u32);
entity_impl!(Variable, "variable");

/// The value of a variable that was never written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unwritten {
    /// Unspecified: it is never used.
    Undef,
    /// The empty mask.
    Empty,
}

/// The blocks of the scalar kernel, by position, in which a variable may be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Writers {
    /// All blocks.
    Everywhere,
    /// These blocks, in order. The variable belongs to `owner`: its value is dropped at the header of each loop around
    /// it.
    Of {
        /// The block.
        owner: u32,
        /// Whether it is written before that block runs: if the block is a loop header, the loop keeps the value.
        before: bool,
        /// The writing blocks.
        at: SmallVec<[u32; 4]>,
    },
}

impl Writers {
    /// Only the owner writes.
    pub(crate) fn only(owner: u32) -> Self {
        Self::Of { owner, before: false, at: SmallVec::from_slice(&[owner]) }
    }

    /// Whether a loop may write the variable; if so, loops around it may, too.
    fn within(&self, extent: LoopSpan) -> bool {
        match (self, extent) {
            (_, LoopSpan::Stops(..)) | (Self::Everywhere, _) => true,
            (Self::Of { .. }, LoopSpan::Within) => false,
            (Self::Of { at, .. }, LoopSpan::Span(first, last)) => {
                at.get(at.partition_point(|&place| place < first)).is_some_and(|&place| place <= last)
            }
        }
    }

    /// Whether the variable's value is dropped at the header of a loop.
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
    /// Blocks that have written it so far, with their positions in the order, ascending.
    writes: SmallVec<[(u32, Block); 2]>,
    /// Whether the value at a barrier is the same in all subgroups.
    common: bool,
    /// Whether all lanes have the value, inactive ones, too.
    uniform: bool,
    /// Its slot in the frame, once one is needed.
    slot: Option<u32>,
    /// The only value that is ever written to it, if known.
    only: Option<Only>,
}

/// The only value of a variable.
#[derive(Clone, Copy, Debug)]
struct Only {
    value: Value,
    /// The innermost loop around its definition.
    within: Option<usize>,
    /// Whether it is saved in the frame right after its definition.
    stored: bool,
}

/// How a read continues at the head of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Head {
    /// Predecessors may still be added.
    #[default]
    Open,
    /// All predecessors are known.
    Sealed,
    /// Variables have their defaults.
    Start,
    /// Variables are loaded from the frame.
    Resume,
}

#[derive(Debug)]
struct Phi {
    block: Block,
    variable: Variable,
    value: Value,
    /// One operand for each predecessor, once all are known.
    operands: Vec<Value>,
}

/// A variable's value that is saved across a barrier.
#[derive(Clone, Copy, Debug)]
struct Kept {
    variable: Variable,
    resume: Block,
    value: Value,
}

/// A value that is carried across a barrier for all subgroups at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carried {
    /// The resume block.
    pub(crate) resume: Block,
    /// The value after the barrier: a parameter without a block yet.
    pub(crate) param: Value,
    /// The value before the barrier.
    pub(crate) arg: Value,
}

/// A barrier at which subgroups suspend, to continue in a resume block.
#[derive(Clone, Debug)]
pub(crate) struct Barrier {
    /// The block that ends with the barrier.
    pub(crate) stop: Block,
    /// The address of the subgroup's frame, valid in both blocks.
    pub(crate) frame: Value,
    /// The subgroup's lanes.
    pub(crate) lanes: Value,
    /// The loops around it.
    pub(crate) loops: Vec<usize>,
}

/// The variables of a kernel under construction.
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
    /// Values loaded from the frame after a barrier, with their variables.
    loaded: HashMap<Value, Variable>,
    carried: Vec<Carried>,
    /// Bytes of the frame in use.
    pub(crate) frame_bytes: u32,
}

impl Variables {
    /// Declares a variable.
    pub(crate) fn declare(&mut self, ty: Type, default: Unwritten) -> Variable {
        self.declare_of(ty, default, Writers::Everywhere)
    }

    /// Declares a variable that is written in known blocks only.
    pub(crate) fn declare_of(&mut self, ty: Type, default: Unwritten, writers: Writers) -> Variable {
        let writes = SmallVec::new();
        self.all.push(VariableData {
            ty,
            default,
            writers,
            writes,
            common: false,
            uniform: false,
            slot: None,
            only: None,
        })
    }

    /// Sets where a declared variable is written.
    pub(crate) fn set_writers(&mut self, variable: Variable, writers: Writers) {
        self.all[variable].writers = writers;
    }

    /// Declares that a variable has the same value in all subgroups at each barrier where it is live.
    pub(crate) fn make_common(&mut self, variable: Variable) {
        self.all[variable].common = true;
    }

    /// Declares that all lanes of a variable have the same value.
    pub(crate) fn make_uniform(&mut self, variable: Variable) {
        self.all[variable].uniform = true;
    }

    /// Offsets of the frame's slots that hold one value in all lanes, inactive ones included.
    pub(crate) fn uniform_slots(&self) -> impl Iterator<Item = u32> {
        self.all.values().filter(|variable| variable.uniform).filter_map(|variable| variable.slot)
    }

    /// The values to carry across barriers.
    pub(crate) fn carried(&self) -> impl Iterator<Item = Carried> {
        self.carried.iter().map(|carried| Carried { arg: self.resolve(carried.arg), ..*carried })
    }

    /// Type of a variable.
    pub(crate) fn ty(&self, variable: Variable) -> Type {
        self.all[variable].ty
    }

    /// Writes a variable at the current end of a block.
    pub(crate) fn write(&mut self, block: Block, variable: Variable, value: Value) {
        self.values.insert((block, variable), value);
        let order = self.dominance.order(block);
        let writes = &mut self.all[variable].writes;
        // Most writes come in ascending order.
        let at = writes.iter().rposition(|&(before, _)| before <= order).map_or(0, |at| at + 1);
        if at == 0 || writes[at - 1].0 != order {
            writes.insert(at, (order, block));
        }
    }

    /// The last block that wrote a variable up to a position in the order.
    fn last_write(&self, variable: Variable, order: u32) -> Option<(u32, Block)> {
        let writes = &self.all[variable].writes;
        writes[..writes.partition_point(|&(place, _)| place <= order)].last().copied()
    }

    /// As [`Variables::write`], for a variable's only value; `within` is the innermost loop around the block.
    pub(crate) fn write_only(&mut self, block: Block, variable: Variable, value: Value, within: Option<usize>) {
        self.all[variable].only = Some(Only { value, within, stored: false });
        self.write(block, variable, value);
    }

    /// Resolves aliases: a parameter that always has one value is an alias of that value.
    pub(crate) fn resolve(&self, mut value: Value) -> Value {
        while let Some(other) = self.aliases[value].expand() {
            value = other;
        }
        value
    }

    /// As [`Variables::resolve`], with path compression.
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

    /// Marks a start block: variables have their defaults there.
    pub(crate) fn mark_start(&mut self, block: Block) {
        self.heads[block] = Head::Start;
    }

    /// Marks a resume block: it continues after a barrier.
    pub(crate) fn mark_resume(&mut self, block: Block, barrier: Barrier) {
        self.heads[block] = Head::Resume;
        self.barriers.insert(block, barrier);
    }

    /// The source of a variable's value in a block: the block with the last write if it reaches the use on all paths,
    /// else the nearest join above of paths with and without a write. Also returns whether the previous value is
    /// dropped there.
    fn source(&self, variable: Variable, block: Block) -> (Block, bool) {
        if self.values.contains_key(&(block, variable)) {
            return (block, false);
        }
        let VariableData { writers, .. } = &self.all[variable];
        let written = self.last_write(variable, self.dominance.order(block));
        let last = written.map_or(0, |(order, _)| order);
        // If a loop around the use writes the variable, its header is between, unless the write is inside the loop.
        let around = self.dominance.innermost(block, |extent| writers.within(extent));
        let around = around.filter(|&(header, _)| self.dominance.order(header) > last);
        if let (Some((_, write)), None) = (written, around)
            && write == block
        {
            return (block, false);
        }
        let (top, above) = self.dominance.highest_after(block, last);
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
    /// Reads a variable at the current end of a block.
    pub(crate) fn read(&mut self, variable: Variable, block: Block) -> Value {
        let value = self.find(variable, block);
        while let Some(phi) = self.variables.unfilled.pop() {
            self.fill(phi);
        }
        self.variables.resolve(value)
    }

    /// Seals a block: all its predecessors are known.
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

    /// As [`Builder::seal`], for a join; between `above` and the block no variable is written.
    pub(crate) fn seal_join(&mut self, block: Block, above: Block) {
        self.variables.predecessors[block] = vec![above];
        self.variables.dominance.set_predecessors(block, &[above]);
        self.seal(block);
    }

    /// The reaching definition; creates a parameter at a join.
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

    /// A parameter whose arguments are all one value or itself becomes an alias of that value; then parameters that it
    /// was passed to may become aliases, too.
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
            // Aliases are no users any more: kept in the list, they would be visited again and again.
            users.retain(|&user| !self.variables.is_aliased(self.variables.phis[user].value));
            if self.variables.phi_of.contains_key(&only) {
                self.variables.phi_users.entry(only).or_default().extend(&users);
            }
            work.extend(users);
        }
    }

    /// Loads a variable from the frame in a resume block, or records that it is carried; [`Builder::keep_all`] adds the
    /// store at the barrier.
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
                // A mask in the frame may hold stale lanes: only those of the subgroup count.
                let args = [kept, lanes].into_iter().collect();
                self.emit_at_head(resume, InstData::Pure { op: Op::LAnd, args })
            } else {
                kept
            }
        };
        self.variables.kept.push(Kept { variable, resume, value });
        value
    }

    /// Adds the stores to frames of all values read after barriers, and finds the carried values.
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
            // The frame holds the value already if it was loaded from this slot. Results of calls are loads, too, but
            // from the call area.
            let same = self.variables.loaded.get(&kept) == Some(&variable);
            let undef = matches!(self.kernel.definition(kept), Some(InstData::Undef { .. }));
            if !same && !undef {
                self.emit_before_end(stop, InstData::FrameStore { frame, at, value: kept });
            }
            debug_assert!(!self.variables.is_aliased(value));
        }
    }

    /// Adds block parameters and branch arguments, and replaces aliases.
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
            // An undefined mask that no alias replaced may be read next to lanes that hold a value: it becomes empty.
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
