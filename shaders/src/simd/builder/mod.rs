//! Builder of a SIMD [`Kernel`]: appends instructions, and hoists workgroup-invariant ones to the entry block.
//! `values.rs` folds constants and masks.

mod values;

use cranelift_entity::{EntitySet, SecondaryMap};
use foldhash::{HashMap, HashMapExt};
use smallvec::SmallVec;

use super::ssa::SsaVariables;
use super::{Block, BlockCall, BlockData, Inst, InstData, Kernel, LANES, Routine, SubgroupLoop, Type, Value, ValueDef};

/// The bits of a mask with all lanes.
pub(crate) const ALL: u64 = (1 << LANES) - 1;

/// Initial capacity of the value table: enough for most kernels.
const VALUES: usize = 96;

/// Appends instructions to the current block of a kernel.
///
/// Scalars that depend on the workgroup only are emitted once, in the entry: they are the same for all subgroups.
/// Scalars that depend on the subgroup only are emitted at the head of its parallel region, so that they need not be
/// saved across barriers. Within a block, common subexpressions are shared.
#[derive(Debug)]
pub(crate) struct Builder {
    pub(crate) kernel: Kernel,
    pub(crate) variables: SsaVariables,
    /// The SPIR-V word that new instructions come from; 0 without debug lines.
    origin: u32,
    current: Block,
    /// The blocks that scalars are hoisted to: the entry, and the head of the subgroup's region once it is known.
    levels: SmallVec<[Block; 2]>,
    /// For values of these blocks: 2 in the entry, 1 in the block of the subgroup; 0 for other values.
    level: SecondaryMap<Value, u8>,
    outer: HashMap<InstData, Value>,
    locals: HashMap<InstData, Value>,
    /// The blocks of instructions whose results are not usable everywhere.
    defining_blocks: SecondaryMap<Inst, Block>,
    /// Loads at the heads of resume blocks.
    heads: HashMap<Block, Vec<Inst>>,
}

impl Builder {
    /// Starts in the entry block.
    pub(crate) fn new(mut kernel: Kernel) -> Self {
        let entry = kernel.blocks.push(BlockData::default());
        kernel.layout.push(entry);
        let mut variables = SsaVariables::default();
        variables.dominance.append(entry, &[]);
        Self {
            kernel,
            variables,
            origin: 0,
            current: entry,
            levels: SmallVec::from_slice(&[entry]),
            level: SecondaryMap::new(),
            outer: HashMap::with_capacity(VALUES),
            locals: HashMap::with_capacity(VALUES),
            defining_blocks: SecondaryMap::with_default(entry),
            heads: HashMap::default(),
        }
    }

    /// Sets the SPIR-V word from which the following instructions come. Kernels without debug lines do not keep it.
    pub(crate) fn set_origin(&mut self, word: u32) {
        if !self.kernel.lines.is_empty() {
            self.origin = word;
        }
    }

    /// A new block; [`Builder::switch_to`] gives it its position in the layout.
    pub(crate) fn create_block(&mut self) -> Block {
        self.kernel.blocks.push(BlockData::default())
    }

    /// The block to which instructions are appended.
    pub(crate) fn current(&self) -> Block {
        self.current
    }

    /// Makes `block` the current block, and the next one in the layout.
    pub(crate) fn switch_to(&mut self, block: Block) {
        self.current = block;
        self.kernel.layout.push(block);
        let SsaVariables { dominance, predecessors, .. } = &mut self.variables;
        dominance.append(block, &predecessors[block]);
        self.locals.clear();
    }

    /// Makes a block without a terminator, which has its place in the layout, the current one again.
    pub(crate) fn return_to(&mut self, block: Block) {
        self.current = block;
        self.locals.clear();
    }

    /// Type of a value.
    pub(crate) fn ty(&self, value: Value) -> Type {
        self.kernel.ty(value)
    }

    /// Makes the current block the start of a subgroup; its parameters and instructions so far belong to the subgroup.
    pub(crate) fn begin_subgroup(&mut self, params: &[Value]) {
        self.levels.push(self.current);
        params.iter().for_each(|&value| self.level[value] = 1);
    }

    /// Declares that a value of the subgroup's block may be used everywhere after it.
    pub(crate) fn make_outer(&mut self, value: Value) {
        self.level[value] = 1;
    }

    /// Declares that a value of the entry block may be used everywhere.
    pub(crate) fn make_workgroups(&mut self, value: Value) {
        self.level[value] = 2;
    }

    /// A 64-bit constant in the entry block whose bits are set later.
    pub(crate) fn placeholder(&mut self) -> Inst {
        let inst = self.add(InstData::Const { ty: Type::S64, bits: 0 });
        let entry = self.levels[0];
        self.kernel.blocks[entry].insts.push(inst);
        // Not treated as a constant: nothing may be folded with it yet.
        self.level[self.kernel.results[inst][0]] = 2;
        inst
    }

    /// Terminates a block other than the current one. Its targets get no record of this predecessor.
    pub(crate) fn terminate_at(&mut self, block: Block, data: InstData) {
        let inst = self.add(data);
        self.kernel.blocks[block].insts.push(inst);
    }

    /// Whether a value is the same at all its uses within a subgroup's run, so that it needs no variable.
    pub(crate) fn is_outer(&self, value: Value) -> bool {
        self.level[value] > 0
    }

    /// Whether a value is the same for all subgroups and defined before the first one.
    pub(crate) fn is_workgroups(&self, value: Value) -> bool {
        self.level[value] == 2
    }

    /// Adds a parameter to a new block.
    pub(crate) fn param(&mut self, block: Block, ty: Type) -> Value {
        let value = self.param_later(block, ty);
        self.place_param(block, value);
        value
    }

    pub(crate) fn param_later(&mut self, block: Block, ty: Type) -> Value {
        self.kernel.values.push(ValueDef::Param { block, index: 0, ty })
    }

    pub(crate) fn place_param(&mut self, block: Block, value: Value) {
        let params = &mut self.kernel.blocks[block].params;
        let index = params.len() as u32;
        params.push(value);
        if let ValueDef::Param { index: at, .. } = &mut self.kernel.values[value] {
            *at = index;
        }
    }

    /// Makes a value without a definition a parameter of a block.
    pub(crate) fn adopt_param(&mut self, block: Block, value: Value) {
        if let ValueDef::Param { block: of, .. } = &mut self.kernel.values[value] {
            *of = block;
        }
        self.place_param(block, value);
    }

    /// Adds an argument to the branch from one block to another.
    pub(crate) fn pass(&mut self, from: Block, to: Block, value: Value) {
        if let Some(&last) = self.kernel.blocks[from].insts.last() {
            for call in self.kernel.insts[last].targets_mut() {
                if call.block == to {
                    call.args.push(value);
                }
            }
        }
    }

    fn add(&mut self, data: InstData) -> Inst {
        let types = {
            let values = &self.kernel.values;
            data.result_types(|value| values[value].ty())
        };
        let inst = self.kernel.insts.push(data);
        if self.origin != 0 {
            self.kernel.origins[inst] = self.origin;
        }
        for (index, ty) in types.into_iter().enumerate() {
            let value = self.kernel.values.push(ValueDef::Result { inst, index: index as u32, ty });
            self.kernel.results[inst].push(value);
        }
        inst
    }

    /// Appends an instruction that has an effect or must stay in its block.
    pub(crate) fn emit(&mut self, data: InstData) -> Inst {
        let inst = self.add(data);
        let block = self.current;
        self.defining_blocks[inst] = block;
        self.kernel.blocks[block].insts.push(inst);
        inst
    }

    /// As [`Builder::emit`], for an instruction with one result.
    pub(crate) fn emit_value(&mut self, data: InstData) -> Value {
        let inst = self.emit(data);
        self.kernel.results[inst][0]
    }

    /// Appends a libcall, and makes the area of rows large enough for it.
    pub(crate) fn call(&mut self, routine: Routine, area: Value, mask: Value) {
        self.kernel.call_bytes = self.kernel.call_bytes.max(routine.bytes());
        self.emit(InstData::Call { routine, area, mask });
    }

    /// Appends an instruction without effects, or reuses an equal one.
    pub(crate) fn emit_one(&mut self, data: InstData) -> Value {
        let level = self.level_of(&data);
        if level > 0 {
            if let Some(&value) = self.outer.get(&data) {
                return value;
            }
            let inst = self.add(data.clone());
            let block = self.levels[2 - usize::from(level)];
            self.kernel.blocks[block].insts.push(inst);
            let value = self.kernel.results[inst][0];
            self.level[value] = level;
            self.outer.insert(data, value);
            return value;
        }
        if let Some(&value) = self.locals.get(&data) {
            return value;
        }
        let value = self.emit_value(data.clone());
        self.locals.insert(data, value);
        value
    }

    /// How far an instruction without effects can be hoisted at a reasonable register cost: 2 to the entry, 1 to the
    /// subgroup's block, 0 not at all.
    fn level_of(&self, data: &InstData) -> u8 {
        let max = match data {
            InstData::Const { .. } | InstData::Lanes { .. } | InstData::Undef { .. } | InstData::Context { .. } => 2,
            InstData::BufferBase { .. } | InstData::BufferLen { .. } | InstData::Wide { .. } => 2,
            InstData::BufferAt { .. } | InstData::ImageField { .. } => 2,
            InstData::Pure { args, .. } if args.iter().all(|&arg| !self.ty(arg).is_vector()) => 2,
            InstData::Select { then, .. } if !self.ty(*then).is_vector() => 2,
            InstData::Load { ty, .. } if !ty.is_vector() => 2,
            _ => 0,
        };
        let mut level = max;
        if level > 0 {
            data.for_each_use(|value| level = level.min(self.level[value]));
        }
        // A load is hoisted to the entry only: in the subgroup's block it would be repeated for each subgroup.
        if level == 1 && matches!(data, InstData::Load { .. }) { 0 } else { level }
    }

    /// Inserts an instruction at the head of a resume block.
    pub(crate) fn emit_at_head(&mut self, block: Block, data: InstData) -> Value {
        let inst = self.add(data);
        self.defining_blocks[inst] = block;
        self.heads.entry(block).or_default().push(inst);
        self.kernel.results[inst][0]
    }

    /// Inserts an instruction after the definition of a value.
    pub(crate) fn emit_after(&mut self, value: Value, data: InstData) {
        let inst = self.add(data);
        let (block, at) = match self.kernel.values[value] {
            ValueDef::Param { block, .. } => (block, 0),
            ValueDef::Result { inst: definition, .. } => {
                let block = self.defining_blocks[definition];
                let insts = &self.kernel.blocks[block].insts;
                (block, insts.iter().position(|&other| other == definition).map_or(0, |at| at + 1))
            }
        };
        self.kernel.blocks[block].insts.insert(at, inst);
    }

    /// Inserts an instruction before the terminator of a block.
    pub(crate) fn emit_before_end(&mut self, block: Block, data: InstData) {
        let inst = self.add(data);
        let insts = &mut self.kernel.blocks[block].insts;
        let end = insts.len() - 1;
        insts.insert(end, inst);
    }

    /// Ends the current block with a jump.
    pub(crate) fn jump(&mut self, to: Block) {
        self.terminate(InstData::Jump { to: BlockCall::new(to) });
    }

    /// Ends the current block with a branch.
    pub(crate) fn branch(&mut self, condition: Value, then: Block, otherwise: Block) {
        let (then, otherwise) = (BlockCall::new(then), BlockCall::new(otherwise));
        self.terminate(InstData::Branch { condition, then, otherwise });
    }

    /// Terminates the current block, and records it as a predecessor of its targets.
    pub(crate) fn terminate(&mut self, data: InstData) {
        let block = self.current;
        let targets: SmallVec<[Block; 4]> = data.targets().iter().map(|call| call.block).collect();
        for target in targets {
            let predecessors = &mut self.variables.predecessors[target];
            if predecessors.last() != Some(&block) {
                predecessors.push(block);
            }
        }
        self.emit(data);
    }

    /// Adds the block parameters and branch arguments of variables: no variable can be read afterwards.
    pub(crate) fn fill_params(&mut self) {
        self.finish_variables();
        for (block, mut head) in std::mem::take(&mut self.heads) {
            head.append(&mut self.kernel.blocks[block].insts);
            self.kernel.blocks[block].insts = head;
        }
    }

    /// Returns the kernel without unreachable blocks.
    pub(crate) fn finish(mut self) -> Kernel {
        let reached = self.reached();
        self.kernel.layout.retain(|&block| reached.contains(block));
        // The latch of a region that never ends is unreachable: the region runs for one subgroup only.
        let ends =
            |&SubgroupLoop { header, latch, .. }: &SubgroupLoop| reached.contains(header) && reached.contains(latch);
        self.kernel.subgroup_loops.retain(ends);
        self.kernel
    }

    fn reached(&self) -> EntitySet<Block> {
        let mut reached = EntitySet::new();
        let mut stack = vec![self.levels[0]];
        while let Some(block) = stack.pop() {
            if reached.insert(block)
                && let Some(&last) = self.kernel.blocks[block].insts.last()
            {
                stack.extend(self.kernel.insts[last].targets().iter().map(|call| call.block));
            }
        }
        reached
    }
}
