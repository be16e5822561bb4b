//! If-conversion: a selection with short sides becomes selects.
//!
//! A side is empty or a few cheap operations without memory access or side effects. Values that the sides pass to the
//! merge block are selected. Blocks are visited from last to first, so that inner selections are converted first and
//! the resulting straight-line block can be a side of the outer one.

use cranelift_entity::EntitySet;
use smallvec::SmallVec;

use super::aliases::Aliases;
use super::cfg::{Edges, create};
use crate::ir::{Block, BlockCall, Inst, InstData, Kernel, Merge, Op, Type, Value};

/// Maximum cost of the operations of both sides together.
const MAX_OPS: usize = 6;

/// Maximum cost of operations and selects together.
const MAX_COST: usize = 8;

/// Runs the pass.
pub(super) fn run(kernel: &mut Kernel) {
    let mut converter = IfConverter::new(kernel);
    for position in (0..converter.kernel.layout.len()).rev() {
        let block = converter.kernel.layout[position];
        if !converter.gone.contains(block)
            && let Some(selection) = converter.selection(block)
        {
            converter.convert(block, selection);
        }
    }
    let IfConverter { kernel, gone, aliases, .. } = converter;
    kernel.layout.retain(|&block| !gone.contains(block));
    aliases.apply(kernel);
}

/// A branch whose two paths meet in one merge block.
struct Selection {
    condition: Value,
    /// The side blocks, with nothing but cheap operations.
    sides: SmallVec<[Block; 2]>,
    /// The calls of the merge block at the end of each path.
    then: BlockCall,
    otherwise: BlockCall,
}

struct IfConverter<'k> {
    kernel: &'k mut Kernel,
    edges: Edges,
    gone: EntitySet<Block>,
    aliases: Aliases,
}

impl<'k> IfConverter<'k> {
    fn new(kernel: &'k mut Kernel) -> Self {
        let edges = Edges::from(kernel, &kernel.layout);
        Self { kernel, edges, gone: EntitySet::new(), aliases: Aliases::default() }
    }

    fn selection(&self, block: Block) -> Option<Selection> {
        let data = &self.kernel.blocks[block];
        let InstData::Branch { condition, then, otherwise } = &self.kernel.insts[*data.insts.last()?] else {
            return None;
        };
        let [after_then, after_otherwise] = [then, otherwise].map(|call| self.after_side(call));
        // No side block, one, or two.
        let (sides, then, otherwise): (SmallVec<[Block; 2]>, _, _) = match (after_then, after_otherwise) {
            _ if then.block == otherwise.block => (SmallVec::new(), then, otherwise),
            (Some(next), _) if next.block == otherwise.block => (smallvec::smallvec![then.block], next, otherwise),
            (_, Some(next)) if next.block == then.block => (smallvec::smallvec![otherwise.block], then, next),
            (Some(a), Some(b)) if a.block == b.block => (smallvec::smallvec![then.block, otherwise.block], a, b),
            _ => return None,
        };
        let fits = match data.merge {
            None => true,
            Some(Merge::Selection { merge }) => merge == then.block,
            Some(Merge::Loop { .. }) => false,
        };
        if !fits || then.block == block || !self.is_cheap(&sides, then, otherwise) {
            return None;
        }
        Some(Selection { condition: *condition, sides, then: then.clone(), otherwise: otherwise.clone() })
    }

    /// The call at the end of a side, if the target can be one: a block with one predecessor that ends in a jump.
    fn after_side(&self, call: &BlockCall) -> Option<&BlockCall> {
        let block = &self.kernel.blocks[call.block];
        if !self.edges.is_own(call.block) || !block.params.is_empty() || block.merge.is_some() {
            return None;
        }
        match &self.kernel.insts[*block.insts.last()?] {
            InstData::Jump { to } => Some(to),
            _ => None,
        }
    }

    fn is_cheap(&self, sides: &[Block], then: &BlockCall, otherwise: &BlockCall) -> bool {
        let mut ops = 0;
        for &side in sides {
            let Some((_, insts)) = self.kernel.blocks[side].insts.split_last() else { return false };
            for &inst in insts {
                match cost(&self.kernel.insts[inst]) {
                    Some(cost) if ops + cost <= MAX_OPS => ops += cost,
                    _ => return false,
                }
            }
        }
        let mut choices = then.args.iter().zip(&otherwise.args).filter(|(a, b)| a != b);
        // A selected buffer would no longer be uniform.
        choices.clone().count() + ops <= MAX_COST && choices.all(|(&a, _)| self.kernel.ty(a) != Type::Buffer)
    }

    fn convert(&mut self, block: Block, selection: Selection) {
        let Selection { condition, sides, then, otherwise } = selection;
        let Some(branch) = self.kernel.blocks[block].insts.pop() else { return };
        let origin = self.kernel.origins[branch];
        let merge = then.block;
        for &side in &sides {
            let mut insts = std::mem::take(&mut self.kernel.blocks[side].insts);
            insts.pop();
            self.kernel.blocks[block].insts.extend(insts);
            self.gone.insert(side);
        }
        let pairs = then.args.into_iter().zip(otherwise.args);
        let args = pairs.map(|(then, otherwise)| self.choose(block, condition, then, otherwise, origin)).collect();
        self.kernel.insts[branch] = InstData::Jump { to: BlockCall { block: merge, args } };
        self.kernel.blocks[block].insts.push(branch);
        if self.kernel.blocks[block].merge.take().is_some() {
            self.edges.names[merge] -= 1;
        }
        self.edges.incoming[merge] -= 1;
        if self.edges.is_own(merge) {
            self.merge_blocks(block, merge, branch);
        }
    }

    fn choose(&mut self, block: Block, condition: Value, then: Value, otherwise: Value, origin: u32) -> Value {
        if then == otherwise {
            return then;
        }
        let ty = self.kernel.ty(then);
        let (inst, value) = create(self.kernel, InstData::Select { condition, then, otherwise }, ty, origin);
        self.kernel.blocks[block].insts.push(inst);
        value
    }

    /// Merges a block into its only predecessor, which jumps to it.
    fn merge_blocks(&mut self, block: Block, next: Block, jump: Inst) {
        let taken = std::mem::take(&mut self.kernel.blocks[next]);
        if let InstData::Jump { to } = &self.kernel.insts[jump] {
            for (&param, &arg) in taken.params.iter().zip(&to.args) {
                self.aliases.replace(param, arg);
            }
        }
        let head = &mut self.kernel.blocks[block];
        head.insts.pop();
        head.insts.extend(taken.insts);
        head.merge = taken.merge;
        self.gone.insert(next);
    }
}

/// Cost of executing an instruction whose result may be unused; `None` if it is too high or execution is not allowed.
fn cost(data: &InstData) -> Option<usize> {
    match data {
        InstData::Const { .. } => Some(0),
        InstData::Select { .. } | InstData::Element { .. } | InstData::BuiltIn { .. } => Some(1),
        InstData::BufferNumber { .. } | InstData::BufferOf { .. } => Some(1),
        InstData::Pure { op, .. } => is_cheap(*op).then_some(1),
        _ => None,
    }
}

/// Whether the operation is one or two machine instructions.
fn is_cheap(op: Op) -> bool {
    use Op::*;
    let integers = matches!(
        op,
        IAdd | ISub
            | IMul
            | INeg
            | SAbs
            | UMin
            | UMax
            | SMin
            | SMax
            | IEq
            | INe
            | ULt
            | ULe
            | SLt
            | SLe
            | UClamp
            | SClamp
    );
    let bits = matches!(op, And | Or | Xor | Not | Shl | LShr | AShr | LAnd | LOr | LXor | LNot);
    let floats =
        matches!(op, FAdd | FSub | FMul | FNeg | Fma | FAbs | FMin | FMax | FClamp | Floor | Ceil | Trunc | RoundEven);
    let comparisons =
        matches!(op, FOrdEq | FOrdNe | FOrdLt | FOrdLe | FUnordEq | FUnordNe | FUnordLt | FUnordLe | IsNan | IsInf);
    let conversions = matches!(op, BoolToInt | FloatBits | FloatFromBits | FloatToSInt | SIntToFloat);
    integers || bits || floats || comparisons || conversions
}
