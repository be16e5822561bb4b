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

mod construct;

use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl};
use foldhash::HashMap;
use smallvec::SmallVec;

use super::dominance::{Dominance, LoopSpan};
use super::{Block, Type, Value};
use crate::ssa::AliasMap;

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
struct SsaVariableData {
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
enum BlockHead {
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
pub(crate) struct SsaVariables {
    all: PrimaryMap<Variable, SsaVariableData>,
    values: HashMap<(Block, Variable), Value>,
    heads: SecondaryMap<Block, BlockHead>,
    pub(crate) dominance: Dominance,
    pub(crate) predecessors: SecondaryMap<Block, Vec<Block>>,
    open: HashMap<Block, Vec<usize>>,
    phis: Vec<Phi>,
    phi_of: HashMap<Value, usize>,
    phi_users: HashMap<Value, Vec<usize>>,
    unfilled: Vec<usize>,
    /// Parameters that always have one value are aliases of that value.
    aliases: AliasMap<Value>,
    barriers: HashMap<Block, Barrier>,
    kept: Vec<Kept>,
    /// Values loaded from the frame after a barrier, with their variables.
    loaded: HashMap<Value, Variable>,
    carried: Vec<Carried>,
    /// Bytes of the frame in use.
    pub(crate) frame_bytes: u32,
}

impl SsaVariables {
    /// Declares a variable.
    pub(crate) fn declare(&mut self, ty: Type, default: Unwritten) -> Variable {
        self.declare_of(ty, default, Writers::Everywhere)
    }

    /// Declares a variable that is written in known blocks only.
    pub(crate) fn declare_of(&mut self, ty: Type, default: Unwritten, writers: Writers) -> Variable {
        let writes = SmallVec::new();
        self.all.push(SsaVariableData {
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
        writes[..writes.partition_point(|&(position, _)| position <= order)].last().copied()
    }

    /// As [`SsaVariables::write`], for a variable's only value; `within` is the innermost loop around the block.
    pub(crate) fn write_only(&mut self, block: Block, variable: Variable, value: Value, within: Option<usize>) {
        self.all[variable].only = Some(Only { value, within, stored: false });
        self.write(block, variable, value);
    }

    /// The value that a value is an alias of in the end.
    pub(crate) fn resolve(&self, value: Value) -> Value {
        self.aliases.resolve(value)
    }

    /// Marks a start block: variables have their defaults there.
    pub(crate) fn mark_start(&mut self, block: Block) {
        self.heads[block] = BlockHead::Start;
    }

    /// Marks a resume block: it continues after a barrier.
    pub(crate) fn mark_resume(&mut self, block: Block, barrier: Barrier) {
        self.heads[block] = BlockHead::Resume;
        self.barriers.insert(block, barrier);
    }

    /// The source of a variable's value in a block: the block with the last write if it reaches the use on all paths,
    /// else the nearest join above of paths with and without a write. Also returns whether the previous value is
    /// dropped there.
    fn source(&self, variable: Variable, block: Block) -> (Block, bool) {
        if self.values.contains_key(&(block, variable)) {
            return (block, false);
        }
        let SsaVariableData { writers, .. } = &self.all[variable];
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
