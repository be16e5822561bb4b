//! Which values are the same in all lanes that are on together, and which branches send lanes different ways.
//!
//! Values and control depend on each other: a value that comes together from ways that lanes took apart differs, and
//! so does one that lanes carry out of a loop after different numbers of trips. So both are found in turns, from "all
//! is uniform" upwards, until nothing changes.

use cranelift_entity::{EntitySet, SecondaryMap};

use super::patterns::{Patterns, Shape};
use super::reconvergence::Flow;
use super::{Dominators, Loops, Predecessors, predecessors, trailing_zeros};
use crate::image::{Field, ROW_ALIGNMENT};
use crate::ir::{Block, BuiltIn, Inst, InstData, Kernel, Op, Place, SubgroupOp, Type, Value, VariableSpace};

/// Invocations that values are compared between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Among {
    Subgroup,
    Workgroup,
}

/// What is known about a kernel's values and branches.
#[derive(Debug)]
pub struct Uniformity {
    /// Which blocks run for which lanes.
    pub flow: Flow,
    /// The loops.
    pub loops: Loops,
    /// The dominator tree.
    pub dominators: Dominators,
    /// Patterns that shapes name.
    pub patterns: Patterns,
    shapes: SecondaryMap<Value, Option<Shape>>,
    zeros: SecondaryMap<Value, u8>,
    divergent: EntitySet<Block>,
    homes: SecondaryMap<Value, Option<Block>>,
}

impl Uniformity {
    /// Analyses a kernel whose loops have one edge into them and one back, with a layout of blocks that control can reach.
    pub fn new(kernel: &Kernel) -> Self {
        Self::among(kernel, Among::Subgroup)
    }

    /// As [`Uniformity::new`], for all invocations of a workgroup: where that says "lane", it means any of them, and what
    /// has no shape that all of them know is varying. Memory is taken to be free of data races.
    pub fn of_workgroup(kernel: &Kernel) -> Self {
        Self::among(kernel, Among::Workgroup)
    }

    fn among(kernel: &Kernel, among: Among) -> Self {
        let dominators = Dominators::new(kernel);
        let loops = Loops::new(kernel, &dominators);
        let mut divergent = EntitySet::new();
        let mut flow = Flow::new(kernel, &dominators, &loops, &divergent);
        let mut solver = Solver::new(kernel, loops, among);
        loop {
            solver.solve(&flow);
            let mut changed = false;
            for &block in &kernel.layout {
                if solver.splits(&flow, block) {
                    changed |= divergent.insert(block);
                }
            }
            // Who asked for it asks whether that was too much.
            if !changed || kernel.work.is_spent() {
                let Solver { loops, patterns, shapes, zeros, homes, .. } = solver;
                return Self { flow, loops, dominators, patterns, shapes, zeros, divergent, homes };
            }
            flow = Flow::new(kernel, &dominators, &solver.loops, &divergent);
        }
    }

    /// How a value differs between lanes where it is defined. Values that no solution reached are uniform.
    pub fn shape(&self, value: Value) -> Shape {
        self.shapes[value].unwrap_or(Shape::Uniform)
    }

    /// How many of the lowest bits of a value that is uniform, or of the base of its pattern, are zero.
    pub fn zeros(&self, value: Value) -> u8 {
        self.zeros[value]
    }

    /// Whether lanes that use a value in `block` may have left, at different times, the loop that defines it.
    pub fn is_frozen(&self, value: Value, block: Block) -> bool {
        frozen(&self.loops, &self.flow, self.homes[value], block)
    }

    /// How a value differs between the lanes that use it in `block`.
    pub fn shape_in(&self, value: Value, block: Block) -> Shape {
        if self.is_frozen(value, block) { Shape::Varying } else { self.shape(value) }
    }

    /// Whether a block's branch sends lanes different ways.
    pub fn is_divergent(&self, block: Block) -> bool {
        self.divergent.contains(block)
    }

    /// The blocks that all lanes come to together, each time that one does.
    pub fn full(&self, kernel: &Kernel) -> EntitySet<Block> {
        let predecessors = predecessors(kernel);
        let mut full: EntitySet<Block> = EntitySet::new();
        full.extend(kernel.layout.iter().copied());
        loop {
            let mut changed = false;
            for &block in kernel.layout.iter().skip(1) {
                let stays = if self.flow.is_parked(block) {
                    self.flow.whole(block).is_some_and(|from| full.contains(from))
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
    pub fn home(&self, value: Value) -> Option<Block> {
        self.homes[value]
    }
}

fn frozen(loops: &Loops, flow: &Flow, home: Option<Block>, block: Block) -> bool {
    let Some(home) = home else { return false };
    if home == block {
        return false;
    }
    let around = std::iter::successors(loops.of(home), |&number| loops.all[number].parent);
    around.take_while(|&number| !loops.contains(number, block)).any(|number| flow.is_divergent(number))
}

struct Solver<'a> {
    kernel: &'a Kernel,
    among: Among,
    loops: Loops,
    patterns: Patterns,
    shapes: SecondaryMap<Value, Option<Shape>>,
    /// Low zeros of uniform values and of patterns' bases; too many while values are not known.
    zeros: SecondaryMap<Value, u8>,
    homes: SecondaryMap<Value, Option<Block>>,
    block_of: SecondaryMap<Inst, Option<Block>>,
    users: SecondaryMap<Value, Vec<Inst>>,
    predecessors: Predecessors,
}

impl<'a> Solver<'a> {
    fn new(kernel: &'a Kernel, loops: Loops, among: Among) -> Self {
        let mut solver = Self {
            kernel,
            among,
            loops,
            patterns: Patterns::default(),
            shapes: SecondaryMap::new(),
            zeros: SecondaryMap::with_default(trailing_zeros::ALL),
            homes: SecondaryMap::new(),
            block_of: SecondaryMap::new(),
            users: SecondaryMap::new(),
            predecessors: predecessors(kernel),
        };
        for &block in &kernel.layout {
            for &param in &kernel.blocks[block].params {
                solver.homes[param] = Some(block);
            }
            for &inst in &kernel.blocks[block].insts {
                solver.block_of[inst] = Some(block);
                if let Some(result) = kernel.results[inst] {
                    solver.homes[result] = Some(block);
                }
                kernel.insts[inst].for_each_use(|value| solver.users[value].push(inst));
            }
        }
        solver
    }

    /// Raises shapes until all instructions agree with them.
    fn solve(&mut self, flow: &Flow) {
        let mut work: Vec<Inst> = self
            .kernel
            .layout
            .iter()
            .rev()
            .flat_map(|&block| self.kernel.blocks[block].insts.iter().rev())
            .copied()
            .collect();
        while let Some(inst) = work.pop() {
            self.kernel.work.visit(1);
            let Some(block) = self.block_of[inst] else { continue };
            let data = &self.kernel.insts[inst];
            if let Some(result) = self.kernel.results[inst] {
                if let Some(shape) = self.evaluate(flow, block, data) {
                    self.raise(result, shape, self.zeros_of(data), &mut work);
                }
            } else if data.is_terminator() {
                self.pass(flow, block, data, &mut work);
            }
        }
    }

    fn raise(&mut self, value: Value, shape: Shape, zeros: u8, work: &mut Vec<Inst>) {
        let joined = match self.shapes[value] {
            Some(before) if before != shape => Shape::Varying,
            _ => shape,
        };
        // Only words have patterns.
        let joined = match joined {
            Shape::Pattern(_) if self.kernel.ty(value) != Type::I32 => Shape::Varying,
            other => other,
        };
        let zeros = zeros.min(self.zeros[value]);
        if self.shapes[value] != Some(joined) || self.zeros[value] != zeros {
            self.shapes[value] = Some(joined);
            self.zeros[value] = zeros;
            work.extend(&self.users[value]);
        }
    }

    /// The shape of a value where it is used; `None` while it is not known.
    fn used(&self, flow: &Flow, value: Value, block: Block) -> Option<Shape> {
        let shape = self.shapes[value]?;
        Some(if frozen(&self.loops, flow, self.homes[value], block) { Shape::Varying } else { shape })
    }

    /// Raises the parameters of a terminator's targets.
    fn pass(&mut self, flow: &Flow, block: Block, data: &InstData, work: &mut Vec<Inst>) {
        for call in data.targets() {
            let mixed = flow.is_parked(call.block)
                && self.loops.headed_by(call.block).is_none()
                && (self.predecessors[call.block].len() > 1
                    || data.targets().iter().filter(|other| other.block == call.block).count() > 1);
            for (index, &arg) in call.args.iter().enumerate() {
                let param = self.kernel.blocks[call.block].params[index];
                let Some(shape) = self.used(flow, arg, block) else { continue };
                // A switch or a branch with both targets the same block mixes lanes even without other predecessors.
                let shape = if mixed { Shape::Varying } else { shape };
                self.raise(param, shape, self.zeros[arg], work);
            }
        }
    }

    fn evaluate(&mut self, flow: &Flow, block: Block, data: &InstData) -> Option<Shape> {
        Some(match data {
            InstData::Const { .. } => Shape::Uniform,
            InstData::BuiltIn { builtin, .. } if self.among == Among::Workgroup => match builtin {
                BuiltIn::NumWorkgroups | BuiltIn::WorkgroupId | BuiltIn::NumSubgroups => Shape::Uniform,
                _ => Shape::Varying,
            },
            InstData::BuiltIn { builtin, component } => {
                self.patterns.builtin(*builtin, *component, self.kernel.workgroup_size)
            }
            InstData::Pure { op, args } => return self.pure(flow, block, *op, args),
            InstData::Select { condition, then, otherwise } => {
                let shapes = [condition, then, otherwise].map(|&value| self.used(flow, value, block));
                match shapes {
                    [Some(Shape::Uniform), Some(a), Some(b)] if a == b => a,
                    [Some(_), Some(_), Some(_)] => Shape::Varying,
                    _ => return None,
                }
            }
            InstData::Atomic { .. } | InstData::Clock { .. } => Shape::Varying,
            InstData::Subgroup { .. } if self.among == Among::Workgroup => Shape::Varying,
            InstData::Subgroup { op, .. } if op.is_uniform() => Shape::Uniform,
            // What lanes find together.
            InstData::BufferNear { .. } | InstData::Reaches { .. } if self.among == Among::Subgroup => Shape::Uniform,
            // Who looks at one invocation gets what that has.
            InstData::Subgroup { op: SubgroupOp::Shuffle(_), args } => match self.used(flow, args[1], block)? {
                Shape::Uniform => Shape::Uniform,
                _ => Shape::Varying,
            },
            InstData::Subgroup { .. } => Shape::Varying,
            InstData::Load { place: Place::Variable { variable, .. }, .. }
                if self.kernel.variables[*variable].space == VariableSpace::Private =>
            {
                Shape::Varying
            }
            other => {
                let mut all = Some(Shape::Uniform);
                other.for_each_use(|value| {
                    all = match (all, self.used(flow, value, block)) {
                        (Some(Shape::Uniform), Some(Shape::Uniform)) => Some(Shape::Uniform),
                        (Some(_), Some(_)) => Some(Shape::Varying),
                        _ => None,
                    };
                });
                return all;
            }
        })
    }

    /// Low zeros of an instruction's result.
    fn zeros_of(&self, data: &InstData) -> u8 {
        match data {
            InstData::Const { bits, .. } => trailing_zeros::of_constant(*bits),
            InstData::BuiltIn { builtin, component } => {
                trailing_zeros::of_builtin(*builtin, *component, self.kernel.workgroup_size)
            }
            InstData::Pure { op, args } => match args[..] {
                [a, b] => {
                    let second = self.kernel.constant(b).map(|bits| bits as u32);
                    trailing_zeros::of_binary(*op, [self.zeros[a], self.zeros[b]], second)
                }
                _ => 0,
            },
            InstData::Select { then, otherwise, .. } => self.zeros[*then].min(self.zeros[*otherwise]),
            // Where a pitch is any other, all rows but the first are outside.
            InstData::ImageField { field: Field::RowPitch | Field::OuterPitch, .. } => {
                ROW_ALIGNMENT.trailing_zeros() as u8
            }
            _ => 0,
        }
    }

    /// The shape of a mask, a union or a difference of bits: lanes' constants have to stay clear of the bases.
    fn bitwise(&mut self, op: Op, args: [Value; 2], shapes: [Shape; 2]) -> Shape {
        let (Some(a), Some(b)) = (self.patterns.offsets(shapes[0]), self.patterns.offsets(shapes[1])) else {
            return Shape::Varying;
        };
        let [first, second] = args.map(|arg| self.kernel.constant(arg).map(|bits| bits as u32));
        let zeros = match (first, second) {
            (None, Some(_)) => self.zeros[args[0]],
            (Some(_), None) => self.zeros[args[1]],
            _ => self.zeros[args[0]].min(self.zeros[args[1]]),
        };
        // What a constant has there is the same in all lanes: the bases have it.
        let [first, second] = [first, second].map(|bits| trailing_zeros::low_bits(bits.unwrap_or(0), zeros));
        if a.iter().chain(&b).any(|&lane| trailing_zeros::low_bits(lane, zeros) != lane) {
            return Shape::Varying;
        }
        let fold = |a: u32, b: u32| op.fold(&[a.into(), b.into()]) as u32;
        let base = fold(first, second);
        self.patterns.shape(std::array::from_fn(|lane| fold(a[lane] | first, b[lane] | second).wrapping_sub(base)))
    }

    fn pure(&mut self, flow: &Flow, block: Block, op: Op, args: &[Value]) -> Option<Shape> {
        let shapes: Option<smallvec::SmallVec<[Shape; 4]>> =
            args.iter().map(|&arg| self.used(flow, arg, block)).collect();
        let shapes = shapes?;
        if shapes.iter().all(|&shape| shape == Shape::Uniform) {
            return Some(Shape::Uniform);
        }
        let constant = |index: usize| self.kernel.constant(args[index]).map(|bits| bits as u32);
        Some(match op {
            Op::IAdd => self.patterns.combine(shapes[0], shapes[1], u32::wrapping_add),
            Op::ISub => self.patterns.combine(shapes[0], shapes[1], u32::wrapping_sub),
            Op::IMul => match (constant(0), constant(1)) {
                (Some(factor), _) => self.patterns.combine(shapes[1], shapes[1], |a, _| a.wrapping_mul(factor)),
                (_, Some(factor)) => self.patterns.combine(shapes[0], shapes[0], |a, _| a.wrapping_mul(factor)),
                _ => Shape::Varying,
            },
            Op::And | Op::Or | Op::Xor => self.bitwise(op, [args[0], args[1]], [shapes[0], shapes[1]]),
            Op::LShr | Op::AShr => match (constant(1), self.patterns.offsets(shapes[0])) {
                (Some(amount), Some(lanes)) => {
                    let zeros = self.zeros[args[0]].min(31);
                    if lanes.iter().all(|&lane| trailing_zeros::low_bits(lane, zeros) == lane) {
                        self.patterns.shape(lanes.map(|lane| lane.wrapping_shr(amount)))
                    } else {
                        Shape::Varying
                    }
                }
                _ => Shape::Varying,
            },
            Op::Shl => match constant(1) {
                Some(amount) => self.patterns.combine(shapes[0], shapes[0], |a, _| a.wrapping_shl(amount)),
                None => Shape::Varying,
            },
            _ => Shape::Varying,
        })
    }

    /// Whether a block's terminator looks at a value that differs.
    fn splits(&self, flow: &Flow, block: Block) -> bool {
        let Some(&last) = self.kernel.blocks[block].insts.last() else { return false };
        let on = match &self.kernel.insts[last] {
            InstData::Branch { condition, .. } => *condition,
            InstData::Switch { selector, .. } => *selector,
            _ => return false,
        };
        self.used(flow, on, block).is_some_and(|shape| shape != Shape::Uniform)
    }
}
