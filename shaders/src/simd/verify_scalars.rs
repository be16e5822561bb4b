//! Proves that scalars are computed from lanes with defined values, and that no active lane gets a word from a lane
//! without one.
//!
//! In inactive lanes, the results of gathers, atomics and calls are undefined. So are values computed from them lane by
//! lane, until a select with a mask that is a subset of the execution mask excludes inactive lanes.

use std::collections::HashMap;

use cranelift_entity::SecondaryMap;
use foldhash::fast::RandomState;
use smallvec::SmallVec;

use super::subsets::Subsets;
use super::verify::Result;
use super::verify_inst::is_calls;
use super::{Block, Inst, InstData, Kernel, LANES, Type, Value};
use crate::analysis::Dominators;
use crate::ir::Op;
use crate::ssa::broken;

/// The contents of a vector's inactive lanes, from best to worst. A combination of two vectors has the worse of the
/// two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Inactive {
    /// A function of the lane index and of uniform values: as defined as in active lanes.
    #[default]
    Defined,
    /// As `Defined`, except on paths that compute nothing: no read of the value follows those.
    UndefinedPath,
    /// A word of memory that belongs to no invocation or to another one. Other lanes may read it.
    Foreign,
    /// Undefined.
    Unspecified,
}

/// Checks all reachable blocks. The kernel must have passed the rest of the verifier.
pub(crate) fn check_scalars<'a>(
    kernel: &'a Kernel,
    dominators: &Dominators<Block>,
    subsets: &mut Subsets<'a>,
) -> Result {
    let mut search = ScalarProof::new(kernel, dominators, subsets);
    search.solve();
    for &block in kernel.layout.iter().filter(|&&block| dominators.is_reachable(block)) {
        for &inst in &kernel.blocks[block].insts {
            search.check(block, inst)?;
        }
    }
    Ok(())
}

/// The vectors that are loaded from a frame slot, and the worst contents of inactive lanes that are stored there.
#[derive(Clone, Debug, Default)]
struct SlotContents {
    loaded: SmallVec<[Value; 2]>,
    worst: Inactive,
}

struct ScalarProof<'a, 'b> {
    kernel: &'a Kernel,
    subsets: &'b mut Subsets<'a>,
    /// The reachable block of each instruction that uses vectors.
    defining_blocks: SecondaryMap<Inst, Option<Block>>,
    users: SecondaryMap<Value, SmallVec<[Inst; 2]>>,
    /// The block parameters that each vector is passed to.
    passed: SecondaryMap<Value, SmallVec<[Value; 2]>>,
    /// By frame slot.
    places: HashMap<(u32, Type), SlotContents, RandomState>,
    known: SecondaryMap<Value, Inactive>,
    /// Vectors whose state became worse since their users were visited.
    work: Vec<Value>,
}

impl<'a, 'b> ScalarProof<'a, 'b> {
    fn new(kernel: &'a Kernel, dominators: &Dominators<Block>, subsets: &'b mut Subsets<'a>) -> Self {
        let mut search = Self {
            kernel,
            subsets,
            defining_blocks: SecondaryMap::new(),
            users: SecondaryMap::new(),
            passed: SecondaryMap::new(),
            places: HashMap::with_hasher(RandomState::default()),
            known: SecondaryMap::new(),
            work: Vec::new(),
        };
        for &block in kernel.layout.iter().filter(|&&block| dominators.is_reachable(block)) {
            for &inst in &kernel.blocks[block].insts {
                search.defining_blocks[inst] = Some(block);
                let data = &kernel.insts[inst];
                search.record_uses(inst);
                search.record_load(inst);
                let first = search.source(data);
                search.lower_results(block, inst, first);
            }
        }
        search
    }

    /// Records the uses of vectors. Branch arguments are recorded one by one: there may be as many as blocks.
    fn record_uses(&mut self, inst: Inst) {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        if data.is_terminator() {
            for call in data.targets() {
                kernel.work.visit(call.args.len());
                for (&param, &arg) in kernel.blocks[call.block].params.iter().zip(&call.args) {
                    if kernel.ty(arg).is_vector() {
                        self.passed[arg].push(param);
                    }
                }
            }
            return;
        }
        data.for_each_use(|value| {
            if kernel.ty(value).is_vector() && self.users[value].last() != Some(&inst) {
                self.users[value].push(inst);
            }
        });
    }

    /// Records a load from a frame slot.
    fn record_load(&mut self, inst: Inst) {
        let kernel = self.kernel;
        if let InstData::FrameLoad { ty, frame, at } = kernel.insts[inst]
            && !is_calls(kernel, frame)
        {
            self.places.entry((at, ty)).or_default().loaded.extend(kernel.results[inst].first().copied());
        }
    }

    /// Whether it loads a result row of a call.
    fn is_of_call(&self, data: &InstData) -> bool {
        matches!(*data, InstData::FrameLoad { frame, .. } if is_calls(self.kernel, frame))
    }

    /// Contents of the inactive lanes that an instruction produces regardless of its operands.
    fn source(&self, data: &InstData) -> Inactive {
        match data {
            InstData::LoadRow { .. } | InstData::LoadElements { .. } => Inactive::Foreign,
            InstData::Gather { .. } | InstData::GatherElements { .. } | InstData::Atomic { .. } => {
                Inactive::Unspecified
            }
            InstData::Undef { .. } => Inactive::UndefinedPath,
            InstData::FrameLoad { .. } if self.is_of_call(data) => Inactive::Unspecified,
            _ => Inactive::Defined,
        }
    }

    fn solve(&mut self) {
        while let Some(value) = self.work.pop() {
            for position in 0..self.passed[value].len() {
                self.lower(self.passed[value][position], self.known[value]);
            }
            for inst in self.users[value].clone() {
                self.visit(inst);
            }
        }
    }

    fn visit(&mut self, inst: Inst) {
        let Some(block) = self.defining_blocks[inst] else { return };
        let kernel = self.kernel;
        match &kernel.insts[inst] {
            &InstData::FrameStore { frame, at, value } if !is_calls(kernel, frame) => {
                let stored = self.known[value];
                let Some(place) = self.places.get_mut(&(at, kernel.ty(value))) else { return };
                if stored > place.worst {
                    place.worst = stored;
                    for load in place.loaded.clone() {
                        self.lower(load, stored);
                    }
                }
            }
            &InstData::Select { condition, then, otherwise } => {
                let mut worst = self.known[otherwise];
                let by_lane = kernel.ty(condition) == Type::Mask;
                // If the condition has active lanes only, inactive lanes have the second value.
                if !(by_lane && self.is_active(block, condition)) {
                    worst = worst.max(self.known[then]).max(self.known[condition]);
                }
                // Undefined in some lanes only: lanes that were never written are mixed with lanes that are read.
                if by_lane && worst == Inactive::UndefinedPath {
                    worst = Inactive::Unspecified;
                }
                self.lower_results(block, inst, worst);
            }
            data @ (InstData::Pure { .. } | InstData::Pick { .. } | InstData::Permute { .. }) => {
                let mut worst = Inactive::Defined;
                data.for_each_use(|value| worst = worst.max(self.known[value]));
                self.lower_results(block, inst, worst);
            }
            _ => {}
        }
    }

    fn lower_results(&mut self, block: Block, inst: Inst, to: Inactive) {
        let kernel = self.kernel;
        for &result in kernel.results[inst].iter().filter(|&&result| kernel.ty(result).is_vector()) {
            // A mask computed from other masks may be known to have active lanes only: then it is defined in all lanes.
            let is_made_of_masks = match kernel.insts[inst] {
                InstData::Pure { op, .. } => matches!(op, Op::LAnd | Op::LOr | Op::LXor),
                InstData::Select { .. } => kernel.ty(result) == Type::Mask,
                _ => false,
            };
            let is_lower = to > self.known[result] && !self.all_are_active(block);
            if is_lower && !(is_made_of_masks && self.is_active(block, result)) {
                self.lower(result, to);
            }
        }
    }

    fn lower(&mut self, value: Value, to: Inactive) {
        if to > self.known[value] {
            self.known[value] = to;
            self.work.push(value);
        }
    }

    fn all_are_active(&self, block: Block) -> bool {
        let all = (1 << LANES) - 1;
        let exec = self.kernel.blocks[block].exec.and_then(|exec| self.kernel.constant(exec));
        exec.is_some_and(|exec| exec & all == all)
    }

    /// Whether all lanes of a mask are known to be active in a block.
    fn is_active(&mut self, block: Block, mask: Value) -> bool {
        self.kernel.blocks[block].exec.is_some_and(|exec| self.subsets.contains(exec, mask))
    }

    /// Checks the requirements of instructions that move words between lanes or extract scalars.
    fn check(&mut self, block: Block, inst: Inst) -> Result {
        let kernel = self.kernel;
        let (vectors, max): (SmallVec<[Value; 2]>, _) = match kernel.insts[inst] {
            InstData::Any { mask } | InstData::MaskBits { mask } | InstData::FirstLane { mask } => {
                if self.known[mask] <= Inactive::UndefinedPath || self.is_active(block, mask) {
                    return Ok(());
                }
                ([mask].into_iter().collect(), Inactive::UndefinedPath)
            }
            InstData::Extract { vector, lane } => {
                if let Some(&InstData::FirstLane { mask }) = kernel.definition(lane)
                    && self.is_active(block, mask)
                {
                    return Ok(());
                }
                ([vector].into_iter().collect(), Inactive::UndefinedPath)
            }
            InstData::Pick { first, second, .. } => ([first, second].into_iter().collect(), Inactive::Foreign),
            InstData::Permute { vector, .. } => ([vector].into_iter().collect(), Inactive::Foreign),
            _ => return Ok(()),
        };
        if self.all_are_active(block) {
            return Ok(());
        }
        match vectors.into_iter().find(|&vector| self.known[vector] > max) {
            None => Ok(()),
            Some(vector) => broken(kernel, inst, self.refusal(vector)),
        }
    }

    fn refusal(&self, vector: Value) -> String {
        let end = if self.subsets.is_exhausted() { "; the search was too long" } else { "" };
        match self.known[vector] {
            Inactive::Foreign => format!("inactive lanes of {vector} may hold words of other invocations{end}"),
            _ => format!("inactive lanes of {vector} may be undefined{end}"),
        }
    }
}
