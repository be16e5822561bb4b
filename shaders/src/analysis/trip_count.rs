//! Trip counts by evaluation: computes a loop's exit condition, iteration after iteration, from constants, from push
//! constants where they are known, and from the ranges of built-ins.
//!
//! This covers any counter (incremented, decremented, doubled, shifted) and any comparison; also a counter that starts
//! at the invocation's index, as long as all invocations have the same trip count. Scalar evolution, which knows
//! trip counts in closed form, is not needed for that: the callers follow a bounded number of iterations.

use smallvec::SmallVec;

use super::{Dominators, Loops, Predecessors, Range, Ranges};
use crate::ir::op::MAX_ARGS;
use crate::ir::{Block, InstData, Kernel, Op, Place, Type, Value, ValueDef, Width, element};

/// A branch that every iteration of a loop executes, with one target outside of the loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoopExit {
    /// The exiting block.
    pub(crate) block: Block,
    /// The value of its condition that leaves the loop.
    pub(crate) leaves_if: bool,
    condition: Value,
}

impl LoopExit {
    /// The exit at the end of a block of a loop (an index into [`Loops::all`]).
    pub(crate) fn new(
        kernel: &Kernel,
        loops: &Loops,
        dominators: &Dominators,
        number: usize,
        block: Block,
    ) -> Option<Self> {
        // A block that dominates the latches is executed in every iteration.
        if !loops.all[number].latches.iter().all(|&latch| dominators.dominates(block, latch)) {
            return None;
        }
        let InstData::Branch { condition, then, otherwise } = kernel.terminator(block)? else { return None };
        match [then, otherwise].map(|call| loops.contains(number, call.block)) {
            [true, false] => Some(Self { block, leaves_if: false, condition: *condition }),
            [false, true] => Some(Self { block, leaves_if: true, condition: *condition }),
            _ => None,
        }
    }
}

/// Remaining number of operations to evaluate: bounds compile time.
#[derive(Debug)]
pub(crate) struct Steps(usize);

impl Steps {
    pub(crate) fn new(operations: usize) -> Self {
        Self(operations)
    }
}

/// Maximum number of values that a condition depends on.
const MAX_REGISTERS: usize = 48;

/// Maximum depth of operations from which the range of a counter's initial value follows.
const MAX_DEPTH: usize = 6;

/// Evaluates the exits of loops.
#[derive(Debug)]
pub(crate) struct TripCounts<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) loops: &'a Loops,
    pub(crate) predecessors: &'a Predecessors,
    /// Bytes of the push constants, if they are known.
    pub(crate) push: &'a [u8],
    pub(crate) steps: &'a mut Steps,
}

impl TripCounts<'_> {
    /// The number of back edges taken before this exit of a loop is; fewer if another exit is taken first. `None`: more
    /// than `max`, or the condition depends on something unknown.
    pub(crate) fn back_edges_taken(&mut self, number: usize, exit: &LoopExit, max: usize) -> Option<usize> {
        let mut program = self.program(number, exit.condition)?;
        program.run(exit.leaves_if, max, self.steps)
    }

    /// The condition as a function of those of the header's parameters that it depends on.
    fn program(&mut self, number: usize, condition: Value) -> Option<ConditionProgram> {
        let header = self.loops.all[number].header;
        let mut builder = ProgramBuilder::new(self.kernel, self.push, Some(header));
        let condition = builder.value(condition, 0)?;
        let mut carried = Vec::new();
        // The list of parameters may grow meanwhile.
        while let Some(&index) = builder.params.get(carried.len()) {
            let param = builder.value(self.kernel.blocks[header].params[index], 0)?;
            let (mut first, mut next) = (None, None);
            for &from in &self.predecessors[header] {
                let inside = self.loops.contains(number, from);
                for call in self.kernel.targets(from).into_iter().filter(|call| call.block == header) {
                    let arg = *call.args.get(index)?;
                    if inside {
                        let register = builder.value(arg, 0)?;
                        (*next.get_or_insert(register) == register).then_some(())?;
                    } else {
                        let value = self.initial(arg)?;
                        (*first.get_or_insert(value) == value).then_some(())?;
                    }
                }
            }
            builder.registers[param] = first?;
            carried.push((param, next?));
        }
        Some(ConditionProgram { registers: builder.registers, operations: builder.operations, carried, condition })
    }

    /// What is known of a value outside of the loop.
    fn initial(&mut self, value: Value) -> Option<AbstractValue> {
        if let Some(bits) = self.kernel.constant(value) {
            return Some(AbstractValue::Bits(bits));
        }
        let mut builder = ProgramBuilder::new(self.kernel, self.push, None);
        if let Some(result) = builder.value(value, 0) {
            self.steps.0 = self.steps.0.checked_sub(builder.operations.len())?;
            evaluate(&builder.operations, &mut builder.registers);
            if let known @ AbstractValue::Bits(_) = builder.registers[result] {
                return Some(known);
            }
        }
        let is_word = self.kernel.ty(value) == Type::I32;
        is_word.then(|| AbstractValue::of_word(Ranges::local(self.kernel, value, MAX_DEPTH)))
    }
}

/// What is known of a value in one iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AbstractValue {
    Bits(u64),
    /// An `i32` in this range.
    Word(Range),
    Unknown,
}

impl AbstractValue {
    fn of_word(range: Range) -> Self {
        range.value().map_or(Self::Word(range), |value| Self::Bits(value.into()))
    }

    /// The range of an `i32`.
    fn word(self) -> Option<Range> {
        match self {
            Self::Bits(bits) => Some(Range::exact(bits as u32)),
            Self::Word(range) => Some(range),
            Self::Unknown => None,
        }
    }

    fn pure(op: Op, args: &[Self]) -> Self {
        let bits = args.iter().map(|arg| if let Self::Bits(bits) = arg { Some(*bits) } else { None });
        if let Some(bits) = bits.collect::<Option<SmallVec<[u64; MAX_ARGS]>>>() {
            return Self::Bits(op.fold(&bits));
        }
        let words = args.iter().map(|arg| arg.word()).collect::<Option<SmallVec<[Range; MAX_ARGS]>>>();
        let Some(words) = words.filter(|_| op.params().iter().all(|&ty| ty == Type::I32)) else { return Self::Unknown };
        match (op.result(), &words[..]) {
            (Type::I32, words) => Self::of_word(Ranges::evaluate(op, words)),
            (Type::Bool, &[a, b]) => Range::compare(op, a, b).map_or(Self::Unknown, |truth| Self::Bits(truth.into())),
            _ => Self::Unknown,
        }
    }
}

/// One operation of a condition: argument registers and a result register.
struct Operation {
    kind: OpKind,
    args: SmallVec<[usize; MAX_ARGS]>,
    to: usize,
}

enum OpKind {
    Pure(Op),
    Select,
    Element(u32),
}

/// A condition as a function of the header's parameters, with the step from one iteration's parameters to the next.
struct ConditionProgram {
    registers: Vec<AbstractValue>,
    operations: Vec<Operation>,
    /// Register of each parameter, and the register that holds its next value.
    carried: Vec<(usize, usize)>,
    condition: usize,
}

impl ConditionProgram {
    /// The number of iterations after which the condition first is `leaves_if`.
    fn run(&mut self, leaves_if: bool, max: usize, steps: &mut Steps) -> Option<usize> {
        for iteration in 0..=max {
            steps.0 = steps.0.checked_sub(1 + self.operations.len() + self.carried.len())?;
            evaluate(&self.operations, &mut self.registers);
            let AbstractValue::Bits(truth) = self.registers[self.condition] else { return None };
            if (truth != 0) == leaves_if {
                return Some(iteration);
            }
            let next: SmallVec<[AbstractValue; 4]> =
                self.carried.iter().map(|&(_, next)| self.registers[next]).collect();
            for (&(param, _), next) in self.carried.iter().zip(next) {
                self.registers[param] = next;
            }
        }
        None
    }
}

/// Executes operations in order.
fn evaluate(operations: &[Operation], registers: &mut [AbstractValue]) {
    for operation in operations {
        let arg = |number: usize| registers[operation.args[number]];
        registers[operation.to] = match operation.kind {
            OpKind::Pure(op) => {
                let args: SmallVec<[AbstractValue; MAX_ARGS]> =
                    operation.args.iter().map(|&from| registers[from]).collect();
                AbstractValue::pure(op, &args)
            }
            OpKind::Select => match arg(0) {
                AbstractValue::Bits(truth) => arg(if truth != 0 { 1 } else { 2 }),
                _ => AbstractValue::Unknown,
            },
            OpKind::Element(stride) => match [arg(0), arg(1)] {
                [AbstractValue::Bits(base), AbstractValue::Bits(index)] => {
                    AbstractValue::Bits(u64::from(element(base as u32, index as u32, stride)))
                }
                _ => AbstractValue::Unknown,
            },
        };
    }
}

/// Builds a [`ConditionProgram`] from the operations that a condition depends on.
struct ProgramBuilder<'a> {
    kernel: &'a Kernel,
    push: &'a [u8],
    /// The header of the loop; `None`: the code before it, in which no parameter is known.
    header: Option<Block>,
    /// The register of each value so far; the list is short, so lookup is linear.
    numbers: Vec<(Value, usize)>,
    /// Indices of the header's parameters that are used.
    params: Vec<usize>,
    registers: Vec<AbstractValue>,
    operations: Vec<Operation>,
}

impl<'a> ProgramBuilder<'a> {
    fn new(kernel: &'a Kernel, push: &'a [u8], header: Option<Block>) -> Self {
        let (numbers, params, registers, operations) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { kernel, push, header, numbers, params, registers, operations }
    }

    /// The register of a value; `None` if it depends on an unsupported instruction, or on too many values.
    fn value(&mut self, value: Value, depth: usize) -> Option<usize> {
        if let Some(&(_, register)) = self.numbers.iter().find(|known| known.0 == value) {
            return Some(register);
        }
        if depth > MAX_REGISTERS || self.registers.len() > MAX_REGISTERS {
            return None;
        }
        let kernel = self.kernel;
        let register = match kernel.values[value] {
            ValueDef::Param { block, index, .. } if Some(block) == self.header => {
                self.params.push(index as usize);
                self.register(AbstractValue::Unknown)
            }
            ValueDef::Param { .. } => return None,
            ValueDef::Result { inst, .. } => match &kernel.insts[inst] {
                &InstData::Const { bits, .. } => self.register(AbstractValue::Bits(bits)),
                InstData::BuiltIn { .. } => self.register(AbstractValue::of_word(Ranges::local(self.kernel, value, 1))),
                InstData::Pure { op, args } => self.operation(OpKind::Pure(*op), args, depth)?,
                &InstData::Select { condition, then, otherwise } => {
                    self.operation(OpKind::Select, &[condition, then, otherwise], depth)?
                }
                &InstData::Element { base, index, stride } => {
                    self.operation(OpKind::Element(stride), &[base, index], depth)?
                }
                InstData::Load {
                    ty: Type::I32 | Type::F32, width: Width::Word, place: Place::Push { offset }, ..
                } => {
                    let bits = self.push_constant(*offset)?;
                    self.register(AbstractValue::Bits(bits.into()))
                }
                _ => return None,
            },
        };
        self.numbers.push((value, register));
        Some(register)
    }

    /// The word of the push constants at an offset, if both are known.
    fn push_constant(&self, offset: Value) -> Option<u32> {
        let offset = usize::try_from(self.kernel.constant(offset)?).ok()?;
        self.push.get(offset..)?.first_chunk().map(|&bytes| u32::from_le_bytes(bytes))
    }

    fn register(&mut self, known: AbstractValue) -> usize {
        self.registers.push(known);
        self.registers.len() - 1
    }

    fn operation(&mut self, kind: OpKind, args: &[Value], depth: usize) -> Option<usize> {
        let args = args.iter().map(|&arg| self.value(arg, depth + 1)).collect::<Option<_>>()?;
        let to = self.register(AbstractValue::Unknown);
        self.operations.push(Operation { kind, args, to });
        Some(to)
    }
}
