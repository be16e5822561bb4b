//! Uniformity analysis: divergent values and divergent branches, with sync dependence and temporal divergence.
//!
//! Value divergence and branch divergence depend on each other: a block parameter at the join of a divergent branch is
//! divergent (sync dependence), and so is a value that leaves a loop which lanes exit in different iterations (temporal
//! divergence). Both are solved together by fixed-point iteration from "all uniform".

use cranelift_entity::{EntitySet, SecondaryMap};
use smallvec::SmallVec;

use super::lane_affine::{LaneOffsetTable, OperandShape, Shape, trailing_zeros};
use super::reconvergence::Linearization;
use super::{Dominators, Loops, Range, Ranges, predecessors};
use crate::image::{Field, ROW_ALIGNMENT};
use crate::ir::{Block, BufferSpace, BuiltIn, Inst, InstData, Kernel, Place, SubgroupOp, Type, Value, VariableSpace};

/// The invocations that a uniform value is equal in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UniformityScope {
    Subgroup,
    Workgroup,
}

/// Whether invocations may load different values from the same memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Races {
    None,
    Possible,
}

/// Shapes of a kernel's values and divergence of its branches.
#[derive(Debug)]
pub struct Uniformity {
    /// Reconvergence and order of the blocks.
    pub linearization: Linearization,
    /// The loops.
    pub loops: Loops,
    /// The dominator tree.
    pub dominators: Dominators,
    /// The lane offsets of affine shapes.
    pub lane_offsets: LaneOffsetTable,
    shapes: SecondaryMap<Value, Option<Shape>>,
    zeros: SecondaryMap<Value, u8>,
    divergent: EntitySet<Block>,
    defining_blocks: SecondaryMap<Value, Option<Block>>,
}

impl Uniformity {
    /// Analyses a kernel whose loops have one entry edge and one back edge and whose layout has reachable blocks only.
    /// If the work budget is spent afterwards, the result is incomplete and must not be used.
    pub fn new(kernel: &Kernel) -> Self {
        Self::of_scope(kernel, UniformityScope::Subgroup, Races::None)
    }

    /// As [`Uniformity::new`] with workgroup scope: "uniform" means equal in all invocations of the workgroup; affine
    /// shapes of built-ins and subgroup operations are varying. Assumes that memory is free of data races.
    pub fn of_workgroup(kernel: &Kernel) -> Self {
        Self::of_scope(kernel, UniformityScope::Workgroup, Races::None)
    }

    /// As [`Uniformity::new`] and [`Uniformity::of_workgroup`], without the assumption: what is loaded from memory that
    /// invocations may write is varying.
    pub fn with_races(kernel: &Kernel) -> [Self; 2] {
        [UniformityScope::Subgroup, UniformityScope::Workgroup]
            .map(|scope| Self::of_scope(kernel, scope, Races::Possible))
    }

    fn of_scope(kernel: &Kernel, scope: UniformityScope, races: Races) -> Self {
        let dominators = Dominators::new(kernel);
        let loops = Loops::new(kernel, &dominators);
        let mut divergent = EntitySet::new();
        let mut linearization = Linearization::new(kernel, &dominators, &loops, &divergent);
        let mut solver = Solver::new(kernel, loops, scope, races);
        loop {
            solver.solve(&linearization);
            let mut changed = false;
            for &block in &kernel.layout {
                if solver.is_divergent_branch(&linearization, block) {
                    changed |= divergent.insert(block);
                }
            }
            // The caller checks whether the work budget is spent.
            if !changed || kernel.work.is_spent() {
                let Solver { loops, lane_offsets, shapes, zeros, defining_blocks, .. } = solver;
                return Self {
                    linearization,
                    loops,
                    dominators,
                    lane_offsets,
                    shapes,
                    zeros,
                    divergent,
                    defining_blocks,
                };
            }
            linearization = Linearization::new(kernel, &dominators, &solver.loops, &divergent);
        }
    }

    /// Shape of a value in the block that defines it. Values that the solver did not reach are uniform.
    pub fn shape(&self, value: Value) -> Shape {
        self.shapes[value].unwrap_or(Shape::Uniform)
    }

    /// Known trailing zeros of a uniform value, or of the base of an affine one.
    pub fn zeros(&self, value: Value) -> u8 {
        self.zeros[value]
    }

    /// Whether a use in `block` is temporally divergent: lanes may have left a loop around the definition in different
    /// iterations.
    pub fn is_temporally_divergent(&self, value: Value, block: Block) -> bool {
        is_temporally_divergent(&self.loops, &self.linearization, self.defining_blocks[value], block)
    }

    /// Shape of a value as used in `block`: varying if the use is temporally divergent.
    pub fn shape_in(&self, value: Value, block: Block) -> Shape {
        if self.is_temporally_divergent(value, block) { Shape::Varying } else { self.shape(value) }
    }

    /// Whether a block ends in a divergent branch.
    pub fn is_divergent(&self, block: Block) -> bool {
        self.divergent.contains(block)
    }

    /// The convergent blocks: whenever they run, all lanes of the subgroup (or workgroup) are active.
    pub fn convergent_blocks(&self, kernel: &Kernel) -> EntitySet<Block> {
        let predecessors = predecessors(kernel);
        let mut full: EntitySet<Block> = EntitySet::new();
        full.extend(kernel.layout.iter().copied());
        loop {
            let mut changed = false;
            for &block in kernel.layout.iter().skip(1) {
                let stays = if self.linearization.has_block_in_mask(block) {
                    self.linearization.reconverges(block).is_some_and(|from| full.contains(from))
                } else {
                    let all = |from: &Block| full.contains(*from) && !self.is_divergent(*from);
                    predecessors[block].iter().all(all)
                };
                if !stays && full.contains(block) {
                    full.remove(block);
                    changed = true;
                }
            }
            if !changed {
                return full;
            }
        }
    }

    /// The block that defines a value.
    pub fn defining_block(&self, value: Value) -> Option<Block> {
        self.defining_blocks[value]
    }
}

/// Whether a use in `block` of a value that block `definition` defines is outside a divergent loop around the
/// definition.
fn is_temporally_divergent(
    loops: &Loops,
    linearization: &Linearization,
    definition: Option<Block>,
    block: Block,
) -> bool {
    let Some(definition) = definition else { return false };
    if definition == block {
        return false;
    }
    let around = std::iter::successors(loops.of(definition), |&number| loops.all[number].parent);
    around.take_while(|&number| !loops.contains(number, block)).any(|number| linearization.is_divergent(number))
}

/// What a value flows into.
#[derive(Clone, Copy, Debug)]
enum Use {
    /// The result of an instruction.
    Operand(Inst),
    /// The parameter at an index of a target of a terminator: one of many, of which the others need no visit.
    Argument { terminator: Inst, target: u32, index: u32 },
}

struct Solver<'a> {
    kernel: &'a Kernel,
    scope: UniformityScope,
    races: Races,
    loops: Loops,
    lane_offsets: LaneOffsetTable,
    shapes: SecondaryMap<Value, Option<Shape>>,
    /// Known trailing zeros of uniform values and of the bases of affine ones; starts at the maximum and only
    /// decreases.
    zeros: SecondaryMap<Value, u8>,
    defining_blocks: SecondaryMap<Value, Option<Block>>,
    block_of: SecondaryMap<Inst, Option<Block>>,
    users: SecondaryMap<Value, Vec<Use>>,
    /// Blocks with several incoming edges. Two edges of one switch or branch to the same block count, too.
    joins: EntitySet<Block>,
}

impl<'a> Solver<'a> {
    fn new(kernel: &'a Kernel, loops: Loops, scope: UniformityScope, races: Races) -> Self {
        let mut solver = Self {
            kernel,
            scope,
            races,
            loops,
            lane_offsets: LaneOffsetTable::default(),
            shapes: SecondaryMap::new(),
            zeros: SecondaryMap::with_default(trailing_zeros::ALL),
            defining_blocks: SecondaryMap::new(),
            block_of: SecondaryMap::new(),
            users: SecondaryMap::new(),
            joins: EntitySet::new(),
        };
        let mut entered: EntitySet<Block> = EntitySet::new();
        for &block in &kernel.layout {
            for &param in &kernel.blocks[block].params {
                solver.defining_blocks[param] = Some(block);
            }
            for &inst in &kernel.blocks[block].insts {
                solver.block_of[inst] = Some(block);
                if let Some(result) = kernel.results[inst] {
                    solver.defining_blocks[result] = Some(block);
                }
                let data = &kernel.insts[inst];
                if !data.is_terminator() {
                    data.for_each_use(|value| solver.users[value].push(Use::Operand(inst)));
                    continue;
                }
                for (target, call) in (0..).zip(data.targets()) {
                    if !entered.insert(call.block) {
                        solver.joins.insert(call.block);
                    }
                    for (index, &arg) in (0..).zip(&call.args) {
                        solver.users[arg].push(Use::Argument { terminator: inst, target, index });
                    }
                }
            }
        }
        solver
    }

    /// Sparse fixed-point iteration: shapes only rise in the lattice uniform/affine < varying. Ends early if the work
    /// budget is spent.
    fn solve(&mut self, linearization: &Linearization) {
        let mut work: Vec<Use> = Vec::new();
        for &block in self.kernel.layout.iter().rev() {
            for &inst in self.kernel.blocks[block].insts.iter().rev() {
                let data = &self.kernel.insts[inst];
                if !data.is_terminator() {
                    work.push(Use::Operand(inst));
                    continue;
                }
                for (target, call) in (0..).zip(data.targets()) {
                    let argument = |index| Use::Argument { terminator: inst, target, index };
                    work.extend((0..call.args.len() as u32).rev().map(argument));
                }
            }
        }
        while let Some(next) = work.pop()
            && !self.kernel.work.is_spent()
        {
            self.kernel.work.visit(1);
            match next {
                Use::Operand(inst) => {
                    let (Some(block), Some(result)) = (self.block_of[inst], self.kernel.results[inst]) else {
                        continue;
                    };
                    let data = &self.kernel.insts[inst];
                    if let Some(shape) = self.evaluate(linearization, block, data) {
                        self.raise(result, shape, self.zeros_of(data), &mut work);
                    }
                }
                Use::Argument { terminator, target, index } => {
                    self.propagate_argument(linearization, terminator, target as usize, index as usize, &mut work);
                }
            }
        }
    }

    fn raise(&mut self, value: Value, shape: Shape, zeros: u8, work: &mut Vec<Use>) {
        let joined = self.shapes[value].map_or(shape, |before| before.join(shape));
        // Only 32-bit integers have affine shapes.
        let joined = match joined {
            Shape::Affine(_) if self.kernel.ty(value) != Type::I32 => Shape::Varying,
            other => other,
        };
        let zeros = zeros.min(self.zeros[value]);
        if self.shapes[value] != Some(joined) || self.zeros[value] != zeros {
            self.shapes[value] = Some(joined);
            self.zeros[value] = zeros;
            work.extend(&self.users[value]);
        }
    }

    /// The shape of a value as used in `block`; `None` while no shape is known.
    fn used(&self, linearization: &Linearization, value: Value, block: Block) -> Option<Shape> {
        let shape = self.shapes[value]?;
        let left = is_temporally_divergent(&self.loops, linearization, self.defining_blocks[value], block);
        Some(if left { Shape::Varying } else { shape })
    }

    /// Raises a parameter of a terminator's target (a phi) by one argument (its operand for an edge).
    fn propagate_argument(
        &mut self,
        linearization: &Linearization,
        terminator: Inst,
        target: usize,
        index: usize,
        work: &mut Vec<Use>,
    ) {
        let Some(block) = self.block_of[terminator] else { return };
        let call = &self.kernel.insts[terminator].targets()[target];
        let arg = call.args[index];
        let Some(shape) = self.used(linearization, arg, block) else { return };
        // Sync dependence.
        let mixed = linearization.has_block_in_mask(call.block)
            && self.loops.headed_by(call.block).is_none()
            && self.joins.contains(call.block);
        let shape = if mixed { Shape::Varying } else { shape };
        self.raise(self.kernel.blocks[call.block].params[index], shape, self.zeros[arg], work);
    }

    fn evaluate(&mut self, linearization: &Linearization, block: Block, data: &InstData) -> Option<Shape> {
        Some(match data {
            InstData::Const { .. } => Shape::Uniform,
            InstData::BuiltIn { builtin, .. } if self.scope == UniformityScope::Workgroup => match builtin {
                BuiltIn::NumWorkgroups | BuiltIn::WorkgroupId | BuiltIn::NumSubgroups => Shape::Uniform,
                _ => Shape::Varying,
            },
            InstData::BuiltIn { builtin, component } => {
                self.lane_offsets.builtin(*builtin, *component, self.kernel.workgroup_size)
            }
            InstData::Pure { op, args } => {
                let operand = |&value: &Value| {
                    let shape = self.used(linearization, value, block)?;
                    let constant = self.kernel.constant(value).map(|bits| bits as u32);
                    Some(OperandShape { shape, zeros: self.zeros[value], constant })
                };
                let operands: SmallVec<[OperandShape; 4]> = args.iter().map(operand).collect::<Option<_>>()?;
                self.lane_offsets.pure(*op, &operands)
            }
            InstData::Select { condition, then, otherwise } => {
                let shapes = [condition, then, otherwise].map(|&value| self.used(linearization, value, block));
                match shapes {
                    [Some(Shape::Uniform), Some(a), Some(b)] => a.join(b),
                    [Some(_), Some(_), Some(_)] => Shape::Varying,
                    _ => return None,
                }
            }
            InstData::Atomic { .. } | InstData::Clock { .. } => Shape::Varying,
            InstData::Subgroup { .. } if self.scope == UniformityScope::Workgroup => Shape::Varying,
            InstData::Subgroup { op, .. } if op.is_uniform() => Shape::Uniform,
            // Computed once for all active lanes.
            InstData::BufferNear { .. } | InstData::Reaches { .. } if self.scope == UniformityScope::Subgroup => {
                Shape::Uniform
            }
            // With a uniform index all lanes read the same lane.
            InstData::Subgroup { op: SubgroupOp::Shuffle(_), args } => {
                match self.used(linearization, args[1], block)? {
                    Shape::Uniform => Shape::Uniform,
                    _ => Shape::Varying,
                }
            }
            InstData::Subgroup { .. } => Shape::Varying,
            InstData::Load { place, .. } if self.races == Races::Possible && self.may_change(place) => Shape::Varying,
            InstData::Image { .. } if self.races == Races::Possible => Shape::Varying,
            InstData::Load { place: Place::Variable { variable, .. }, .. }
                if self.kernel.variables[*variable].space == VariableSpace::Private =>
            {
                Shape::Varying
            }
            other => {
                let mut all = Some(Shape::Uniform);
                other.for_each_use(|value| {
                    all = match (all, self.used(linearization, value, block)) {
                        (Some(Shape::Uniform), Some(Shape::Uniform)) => Some(Shape::Uniform),
                        (Some(_), Some(_)) => Some(Shape::Varying),
                        _ => None,
                    };
                });
                return all;
            }
        })
    }

    /// Whether invocations may write the memory of a load.
    fn may_change(&self, place: &Place) -> bool {
        match *place {
            Place::Push { .. } | Place::Buffer { space: BufferSpace::Uniform, .. } => false,
            Place::Variable { variable, .. } => self.kernel.variables[variable].space != VariableSpace::Constant,
            Place::Buffer { space: BufferSpace::Storage, buffer, .. } => match self.kernel.definition(buffer) {
                Some(&InstData::Buffer { binding, .. }) => !self.kernel.bindings[binding].read_only,
                _ => true,
            },
        }
    }

    /// Known trailing zeros of an instruction's result.
    fn zeros_of(&self, data: &InstData) -> u8 {
        match data {
            InstData::Const { bits, .. } => Range::exact(*bits as u32).zeros,
            InstData::BuiltIn { builtin, component } => {
                trailing_zeros::of_builtin(*builtin, *component, self.kernel.workgroup_size)
            }
            InstData::Pure { op, args } => {
                let base = |&arg: &Value| match self.kernel.constant(arg) {
                    Some(bits) => Range::exact(bits as u32),
                    None => Range::ANY.with_zeros(self.zeros[arg].into()),
                };
                let bases: SmallVec<[Range; 4]> = args.iter().map(base).collect();
                Ranges::evaluate(*op, &bases).zeros
            }
            InstData::Select { then, otherwise, .. } => self.zeros[*then].min(self.zeros[*otherwise]),
            // With any other pitch, all rows but the first are out of bounds.
            InstData::ImageField { field: Field::RowPitch | Field::OuterPitch, .. } => {
                ROW_ALIGNMENT.trailing_zeros() as u8
            }
            _ => 0,
        }
    }

    /// Whether the condition of a block's terminator is not uniform.
    fn is_divergent_branch(&self, linearization: &Linearization, block: Block) -> bool {
        let Some(&last) = self.kernel.blocks[block].insts.last() else { return false };
        let condition = match &self.kernel.insts[last] {
            InstData::Branch { condition, .. } => *condition,
            InstData::Switch { selector, .. } => *selector,
            _ => return false,
        };
        self.used(linearization, condition, block).is_some_and(|shape| shape != Shape::Uniform)
    }
}
