//! The instructions of an invocation: memory accesses, atomics and barriers become operations of the memory model.

use std::collections::BTreeMap;

use spelter_memory_model::event::{Access, Action, Class, Location, Operation, Scope as MemoryScope};
use spelter_memory_model::program::{Barrier, Binary, Expression, InstructionKind, Operand};
use spelter_shaders::ir::{
    AtomicOp, BufferSpace, BuiltIn, Inst, InstData, Kernel, Place as IrPlace, Value, VariableSpace, Width,
};

use super::code::Val;
use super::memory::{Memory, MemoryLocation, word};
use super::pure;
use super::rules::{self, scope};
use super::walk::{Flow, State, Walk};
use super::{Launch, Refusal};

/// What the threads of a launch share while they are derived.
pub(super) struct Shared<'k> {
    pub(super) kernel: &'k Kernel,
    pub(super) launch: &'k Launch,
    pub(super) memory: Memory,
    pub(super) flow: Flow,
    /// The numbers of control barriers: by instruction, and by subgroup for those of a subgroup.
    barriers: BTreeMap<(Inst, Option<u32>), u32>,
    /// Whether a thread branches on a value that it loads.
    pub(super) branches_on_loads: bool,
    /// Why a stored value is not known, if one is not.
    pub(super) unknown_store: Option<Refusal>,
}

impl<'k> Shared<'k> {
    pub(super) fn new(kernel: &'k Kernel, launch: &'k Launch, memory: Memory) -> Self {
        let flow = Flow::new(kernel);
        let barriers = BTreeMap::new();
        Self { kernel, launch, memory, flow, barriers, branches_on_loads: false, unknown_store: None }
    }
}

/// The built-ins of an invocation.
#[derive(Clone, Copy, Debug)]
pub(super) struct BuiltIns {
    pub(super) groups: [u32; 3],
    pub(super) workgroup: [u32; 3],
    pub(super) size: [u32; 3],
    pub(super) local: [u32; 3],
    pub(super) subgroup_size: u32,
}

impl BuiltIns {
    /// The number of the workgroup in the launch.
    pub(super) fn workgroup_index(&self) -> u32 {
        let [x, y, z] = self.workgroup;
        x + self.groups[0] * (y + self.groups[1] * z)
    }

    /// `LocalInvocationIndex`.
    pub(super) fn local_index(&self) -> u32 {
        let [x, y, z] = self.local;
        x + self.size[0] * (y + self.size[1] * z)
    }

    /// `SubgroupId`.
    pub(super) fn subgroup(&self) -> u32 {
        self.local_index() / self.subgroup_size
    }

    /// `NumSubgroups`.
    pub(super) fn subgroups(&self) -> u32 {
        self.size.iter().product::<u32>().div_ceil(self.subgroup_size)
    }

    fn get(&self, builtin: BuiltIn, component: u8) -> u32 {
        let at = usize::from(component.min(2));
        match builtin {
            BuiltIn::NumWorkgroups => self.groups[at],
            BuiltIn::WorkgroupId => self.workgroup[at],
            BuiltIn::LocalInvocationId => self.local[at],
            BuiltIn::GlobalInvocationId => self.workgroup[at].wrapping_mul(self.size[at]).wrapping_add(self.local[at]),
            BuiltIn::LocalInvocationIndex => self.local_index(),
            BuiltIn::NumSubgroups => self.subgroups(),
            BuiltIn::SubgroupId => self.subgroup(),
            BuiltIn::SubgroupLocalInvocationId => self.local_index() % self.subgroup_size,
        }
    }
}

/// Where an access goes.
enum Target {
    /// A word that invocations share.
    Shared(MemoryLocation, Class),
    /// A word whose value is known.
    Known(u32),
    /// Outside of the buffer or variable: reads give 0, writes are dropped.
    Outside,
    /// A private word, and the first bit of the access in it.
    Private((spelter_shaders::ir::Variable, u32), u32),
}

impl Walk<'_, '_> {
    /// Executes an instruction that is no terminator; returns the value of its result.
    pub(super) fn instruction(
        &mut self,
        state: &mut State,
        inst: Inst,
        data: &InstData,
    ) -> Result<Option<Val>, Refusal> {
        Ok(Some(match data {
            InstData::Const { bits, .. } => Val::Number(*bits),
            InstData::Pure { op, args } => {
                let args: Vec<Val> = args.iter().map(|&arg| state.of(arg)).collect();
                pure::apply(&mut self.code, *op, &args)
            }
            InstData::Select { condition, then, otherwise } => {
                let [condition, then, otherwise] = [*condition, *then, *otherwise].map(|value| state.of(value));
                pure::select(&mut self.code, &condition, &then, &otherwise)
            }
            InstData::BuiltIn { builtin, component } => Val::Number(self.builtins.get(*builtin, *component).into()),
            InstData::Element { base, index, stride } => match (state.of(*base), state.of(*index)) {
                (Val::Number(base), Val::Number(index)) => {
                    let offset = index.saturating_mul(u64::from(*stride)).saturating_add(base);
                    Val::Number(offset.min(u64::from(u32::MAX)))
                }
                _ => Val::Unknown("an index that depends on a value that it loads".into()),
            },
            InstData::Buffer { binding, index } => {
                let index = self.number(state, *index, "the index into an array of buffers")?;
                Val::Buffer((index < self.kernel.bindings[*binding].count.max(1)).then_some((*binding, index)))
            }
            InstData::BufferSize { buffer } => match state.of(*buffer) {
                Val::Buffer(descriptor) => {
                    Val::Number(descriptor.map_or(0, |descriptor| self.shared.memory.size(descriptor)).into())
                }
                _ => return Err(self.refuse("the length of a buffer that depends on a value that it loads")),
            },
            InstData::Load { width, place, access, .. } => {
                let target = self.target(state, place, *width)?;
                self.load(state, target, *width, *access)?
            }
            InstData::Store { width, place, value, access } => {
                let (target, value) = (self.target(state, place, *width)?, state.of(*value));
                self.store(state, target, *width, value, *access)?;
                return Ok(None);
            }
            InstData::Atomic { .. } => return self.atomic(state, data),
            InstData::Barrier { execution, memory, semantics } => {
                self.barrier(inst, scope(*execution), *memory, *semantics);
                return Ok(None);
            }
            InstData::Fence { scope: of, semantics } => {
                let mut operation = Operation::new(Action::Fence);
                rules::semantics(self.kernel.memory_model, &mut operation, *semantics);
                operation.scope = Some(scope(*of));
                // A fence without order has no effect.
                if operation.acquire || operation.release {
                    self.execute(operation, None, None, None);
                }
                return Ok(None);
            }
            InstData::Print { .. } => return Ok(None),
            InstData::Clock { .. } | InstData::HighWord { .. } => Val::Unknown("the time".into()),
            InstData::Subgroup { op, .. } => {
                return Err(self.refuse(format!("the subgroup operation `{}` has no litmus form", op.name())));
            }
            InstData::Image { .. } | InstData::ImageField { .. } => {
                return Err(self.refuse("accesses of images have no litmus form"));
            }
            _ => return Err(self.refuse("pointers as values have no litmus form")),
        }))
    }

    fn number(&self, state: &State, value: Value, what: &str) -> Result<u32, Refusal> {
        match state.of(value) {
            Val::Number(bits) => Ok(bits as u32),
            _ => Err(self.refuse(format!("{what} depends on a value that it loads"))),
        }
    }

    fn target(&self, state: &State, place: &IrPlace, width: Width) -> Result<Target, Refusal> {
        let offset = self.number(state, place.offset(), "the address of an access")?;
        let end = u64::from(offset) + u64::from(width.bytes());
        Ok(match *place {
            IrPlace::Push { .. } => {
                let push = &self.shared.launch.push;
                if end > push.len() as u64 {
                    return Err(self.refuse(format!("push constants up to byte {end} are read: use --push TYPE:a,b,c")));
                }
                Target::Known(part(word(push, offset), 0, width))
            }
            IrPlace::Buffer { space, buffer, .. } => {
                let Val::Buffer(descriptor) = state.of(buffer) else {
                    return Err(self.refuse("a buffer that depends on a value that it loads"));
                };
                let Some(descriptor) = descriptor else { return Ok(Target::Outside) };
                if end > u64::from(self.shared.memory.size(descriptor)) {
                    return Ok(Target::Outside);
                }
                if space == BufferSpace::Uniform || self.kernel.bindings[descriptor.0].read_only {
                    // It does not change during the dispatch.
                    return Ok(Target::Known(part(self.shared.memory.initial(descriptor, offset), 0, width)));
                }
                self.whole(offset, width)?;
                Target::Shared(MemoryLocation::Buffer(descriptor, offset), Class::Uniform)
            }
            IrPlace::Variable { variable, .. } => {
                let data = &self.kernel.variables[variable];
                if end > u64::from(data.bytes) {
                    return Ok(Target::Outside);
                }
                match data.space {
                    VariableSpace::Constant => {
                        let word = data.words.get(offset as usize / 4).copied().unwrap_or(0);
                        Target::Known(part(word, offset % 4 * 8, width))
                    }
                    VariableSpace::Private => Target::Private((variable, offset / 4 * 4), offset % 4 * 8),
                    VariableSpace::Workgroup => {
                        self.whole(offset, width)?;
                        let workgroup = self.builtins.workgroup_index();
                        Target::Shared(MemoryLocation::Workgroup(variable, offset, workgroup), Class::Workgroup)
                    }
                }
            }
        })
    }

    /// Locations are whole words.
    fn whole(&self, offset: u32, width: Width) -> Result<(), Refusal> {
        if width == Width::Word && offset.is_multiple_of(4) {
            return Ok(());
        }
        Err(self
            .refuse(format!("an access of {} bytes at byte {offset}: locations are words of 4 bytes", width.bytes())))
    }

    fn load(
        &mut self,
        state: &State,
        target: Target,
        width: Width,
        access: spelter_shaders::ir::Access,
    ) -> Result<Val, Refusal> {
        Ok(match target {
            Target::Outside => Val::Number(0),
            Target::Known(bits) => Val::Number(bits.into()),
            Target::Private(place, shift) => {
                let val = state.private.get(&place).cloned().unwrap_or(Val::Number(0));
                match (val, width) {
                    (val, Width::Word) => val,
                    (Val::Number(bits), width) => Val::Number(part(bits as u32, shift, width).into()),
                    _ => Val::Unknown("bytes of a word that it loads".into()),
                }
            }
            Target::Shared(place, class) => {
                let mut operation = self.access(place, class, (true, false), false);
                rules::access(self.kernel.memory_model, &mut operation, access);
                let destination = self.code.result();
                self.execute(operation, Some(destination.clone()), None, None);
                Val::Cell(destination)
            }
        })
    }

    fn store(
        &mut self,
        state: &mut State,
        target: Target,
        width: Width,
        value: Val,
        access: spelter_shaders::ir::Access,
    ) -> Result<(), Refusal> {
        match target {
            Target::Outside | Target::Known(_) => {}
            Target::Private(place, _) if width == Width::Word => _ = state.private.insert(place, value),
            Target::Private(place, shift) => {
                let before = state.private.get(&place).cloned().unwrap_or(Val::Number(0));
                let after = match (before, value) {
                    (Val::Number(before), Val::Number(value)) => {
                        let mask = mask(width) << shift;
                        let bits = (value as u32) << shift & mask | before as u32 & !mask;
                        Val::Number(bits.into())
                    }
                    _ => Val::Unknown("a word of which it stores a part".into()),
                };
                state.private.insert(place, after);
            }
            Target::Shared(place, class) => {
                let mut operation = self.access(place, class, (false, true), false);
                rules::access(self.kernel.memory_model, &mut operation, access);
                let value = self.written(&value);
                self.execute(operation, None, value, None);
            }
        }
        Ok(())
    }

    /// The value of a store; `None` if the litmus program cannot compute it.
    fn written(&mut self, value: &Val) -> Option<Expression> {
        match self.code.operand(value) {
            Ok(operand) => Some(Expression::Operand(operand)),
            Err(reason) => {
                let refusal =
                    self.refuse(format!("it stores {reason}, while a branch depends on a value that it loads"));
                self.shared.unknown_store.get_or_insert(refusal);
                None
            }
        }
    }

    fn atomic(&mut self, state: &State, data: &InstData) -> Result<Option<Val>, Refusal> {
        let InstData::Atomic { op, place, value, wide, scope: of, semantics, .. } = data else { return Ok(None) };
        if wide.is_some() || op.is_half() || *op == AtomicOp::FAddHalf {
            return Err(self.refuse("atomics of 16 and 64 bits have no litmus form"));
        }
        if *op == AtomicOp::CompareExchange {
            return Err(self.refuse("a compare-exchange, which writes or not, has no litmus form"));
        }
        let (place, class) = match self.target(state, place, Width::Word)? {
            Target::Shared(place, class) => (place, class),
            Target::Known(bits) if op.is_load() => return Ok(Some(Val::Number(bits.into()))),
            // Nothing happens, and the result is 0.
            _ => return Ok(Some(Val::Number(0))),
        };
        let mut operation = self.access(place, class, (!op.is_store(), !op.is_load()), true);
        rules::semantics(self.kernel.memory_model, &mut operation, *semantics);
        operation.scope = Some(scope(*of));
        let operand = value.map(|value| state.of(value));
        let written = match (op, operand) {
            (AtomicOp::Load, _) | (_, None) => None,
            (AtomicOp::Store | AtomicOp::Exchange, Some(value)) => self.written(&value),
            (op, Some(value)) => self.updated(*op, &value),
        };
        let destination = (!op.is_store()).then(|| self.code.result());
        self.execute(operation, destination.clone(), written, None);
        Ok(destination.map(Val::Cell))
    }

    /// The value that an update writes: one operation on the value that it reads. It does not wrap at 32 bits.
    fn updated(&mut self, op: AtomicOp, value: &Val) -> Option<Expression> {
        let binary = match op {
            AtomicOp::Add => Some(Binary::Add),
            AtomicOp::Sub => Some(Binary::Sub),
            AtomicOp::And => Some(Binary::And),
            AtomicOp::Or => Some(Binary::Or),
            AtomicOp::Xor => Some(Binary::Xor),
            _ => None,
        };
        let Some(binary) = binary else {
            return self.written(&Val::Unknown("the minimum, maximum or sum of floats in an atomic".into()));
        };
        let operand = match self.written(value)? {
            Expression::Operand(operand) => operand,
            Expression::Binary(..) => return None,
        };
        // Adding 2³² - n is how compilers subtract n.
        let (binary, operand) = match (binary, operand) {
            (Binary::Add, Operand::Constant(number)) if number >= 1 << 31 => {
                (Binary::Sub, Operand::Constant((1 << 32) - number))
            }
            other => other,
        };
        Some(Expression::Binary(binary, Operand::Read, operand))
    }

    fn barrier(
        &mut self,
        inst: Inst,
        execution: MemoryScope,
        memory: spelter_shaders::ir::Scope,
        semantics: spelter_shaders::ir::Semantics,
    ) {
        let mut operation = Operation::new(Action::ControlBarrier { execution });
        rules::semantics(self.kernel.memory_model, &mut operation, semantics);
        operation.scope = Some(scope(self.kernel.memory_model.barrier_scope(memory)));
        let of_subgroup = execution < MemoryScope::Workgroup;
        let key = (inst, of_subgroup.then(|| self.builtins.subgroup()));
        let next = self.shared.barriers.len() as u32;
        let id = *self.shared.barriers.entry(key).or_insert(next);
        self.execute(operation, None, None, Some(Barrier::Static { id, quorum: None }));
    }

    fn access(
        &mut self,
        place: MemoryLocation,
        class: Class,
        (reads, writes): (bool, bool),
        atomic: bool,
    ) -> Operation {
        let index = self.shared.memory.index(self.kernel, place);
        Operation::new(Action::Access(Access {
            reads,
            writes,
            atomic,
            non_private: false,
            available: false,
            visible: false,
            class,
            reference: index,
            location: Location::whole(index),
        }))
    }

    fn execute(
        &mut self,
        mut operation: Operation,
        destination: Option<spelter_memory_model::program::Register>,
        value: Option<Expression>,
        barrier: Option<Barrier>,
    ) {
        operation.complete();
        self.code.push(InstructionKind::Execute { operation, destination, value, barrier });
    }
}

fn mask(width: Width) -> u32 {
    u32::MAX >> (32 - 8 * width.bytes())
}

/// The bits of an access in a word.
fn part(word: u32, shift: u32, width: Width) -> u32 {
    word >> shift & mask(width)
}
