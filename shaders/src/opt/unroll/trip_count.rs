//! Trip counts by evaluation: computes a loop's exit condition, iteration after iteration, from constants and from the
//! ranges of built-ins.
//!
//! This covers any counter (incremented, decremented, doubled, shifted) and any comparison; also a counter that starts
//! at the invocation's index, as long as all invocations have the same trip count.

use smallvec::SmallVec;

use super::Nest;
use crate::analysis::{Range, Ranges};
use crate::ir::op::MAX_ARGS;
use crate::ir::{Block, InstData, Kernel, Op, Type, Value, ValueDef, element};

/// The exit that is evaluated, and when it is taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct TripCount {
    /// The exiting block.
    pub(super) test: Block,
    /// The value of its condition that leaves the loop.
    pub(super) leaves_if: bool,
    /// The number of back edges taken before this exit is; fewer if another exit is taken first.
    pub(super) back_edges_taken: usize,
}

/// Remaining number of operations to evaluate for all loops of a kernel: bounds compile time.
pub(super) struct Steps(usize);

impl Steps {
    /// The budget of a kernel with `size` instructions.
    pub(super) fn for_kernel(size: usize) -> Self {
        Self(65_536 + 4 * size)
    }
}

/// Maximum number of values that a condition depends on.
const MAX_REGISTERS: usize = 48;

/// Evaluates the trip count, up to `max` back edges.
pub(super) fn count(
    kernel: &Kernel,
    nest: &Nest,
    number: usize,
    entering: Block,
    max: usize,
    steps: &mut Steps,
) -> Option<TripCount> {
    let found = &nest.loops.all[number];
    let &latch = found.latches.first()?;
    // A block that dominates the latch is executed in every iteration.
    let tests = found.blocks.iter().filter(|&&block| nest.dominators.dominates(block, latch));
    for &test in tests {
        let Some(InstData::Branch { condition, then, otherwise }) = kernel.terminator(test) else {
            continue;
        };
        let leaves_if = match [then, otherwise].map(|call| nest.loops.contains(number, call.block)) {
            [true, false] => false,
            [false, true] => true,
            _ => continue,
        };
        if let Some(mut program) = ConditionProgram::new(kernel, found.header, entering, latch, *condition)
            && let Some(back_edges_taken) = program.run(leaves_if, max, steps)
        {
            return Some(TripCount { test, leaves_if, back_edges_taken });
        }
    }
    None
}

/// Maximum depth of operations that a counter's initial value depends on.
const MAX_DEPTH: usize = 6;

/// What is known of a value in one iteration.
#[derive(Clone, Copy, Debug)]
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
    fn new(kernel: &Kernel, header: Block, entering: Block, latch: Block, condition: Value) -> Option<Self> {
        let mut builder = ProgramBuilder {
            kernel,
            header,
            numbers: Vec::new(),
            params: Vec::new(),
            registers: Vec::new(),
            operations: Vec::new(),
        };
        let condition = builder.value(condition, 0)?;
        let mut carried = Vec::new();
        // The list of parameters may grow meanwhile.
        while let Some(&index) = builder.params.get(carried.len()) {
            let param = builder.value(kernel.blocks[header].params[index], 0)?;
            let [first, next] = [entering, latch].map(|from| {
                let last = kernel.last_inst(from)?;
                let call = kernel.insts[last].targets().into_iter().find(|call| call.block == header)?;
                call.args.get(index).copied()
            });
            let first = first?;
            builder.registers[param] = match kernel.constant(first) {
                Some(bits) => AbstractValue::Bits(bits),
                None if kernel.ty(first) == Type::I32 => {
                    AbstractValue::of_word(Ranges::local(kernel, first, MAX_DEPTH))
                }
                None => return None,
            };
            carried.push((param, builder.value(next?, 0)?));
        }
        Some(Self { registers: builder.registers, operations: builder.operations, carried, condition })
    }

    /// The number of iterations after which the condition first is `leaves_if`.
    fn run(&mut self, leaves_if: bool, max: usize, steps: &mut Steps) -> Option<usize> {
        for iteration in 0..=max {
            steps.0 = steps.0.checked_sub(1 + self.operations.len() + self.carried.len())?;
            for operation in &self.operations {
                let arg = |number: usize| self.registers[operation.args[number]];
                self.registers[operation.to] = match operation.kind {
                    OpKind::Pure(op) => {
                        let args: SmallVec<[AbstractValue; MAX_ARGS]> =
                            operation.args.iter().map(|&from| self.registers[from]).collect();
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

/// Builds a [`ConditionProgram`] from the operations that a condition depends on.
struct ProgramBuilder<'a> {
    kernel: &'a Kernel,
    header: Block,
    /// The register of each value so far; the list is short, so lookup is linear.
    numbers: Vec<(Value, usize)>,
    /// Indices of the header's parameters that are used.
    params: Vec<usize>,
    registers: Vec<AbstractValue>,
    operations: Vec<Operation>,
}

impl ProgramBuilder<'_> {
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
            ValueDef::Param { block, index, .. } if block == self.header => {
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
                _ => return None,
            },
        };
        self.numbers.push((value, register));
        Some(register)
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
