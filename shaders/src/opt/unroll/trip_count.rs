//! How often a loop goes round: its exit condition is computed, trip after trip, from constants and from what is known about
//! the ranges of built-ins.
//!
//! That takes in any counter: up, down, doubled, shifted, and whatever it is compared with; and one that begins with
//! the invocation's index, as long as all invocations make equally many trips.

use smallvec::SmallVec;

use super::Nest;
use crate::analysis::{Range, Ranges};
use crate::ir::op::MAX_ARGS;
use crate::ir::{Block, InstData, Kernel, Op, Type, Value, ValueDef, element};
use crate::opt::cfg;

/// The one way out that is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trips {
    /// The block that tests.
    pub(super) test: Block,
    /// The value of its condition for leaving.
    pub(super) leaves_if: bool,
    /// How often control goes back to the header before it leaves there, unless it leaves elsewhere.
    pub(super) times: usize,
}

/// Operations that all trips of a kernel's loops may take together to be counted.
pub(super) struct Steps(usize);

impl Steps {
    /// For a kernel of so many instructions.
    pub(super) fn for_kernel(size: usize) -> Self {
        Self(65_536 + 4 * size)
    }
}

/// Values that a condition may depend on, at most.
const MAX_REGISTERS: usize = 48;

/// Counts the trips, up to `most`.
pub(super) fn count(
    kernel: &Kernel,
    nest: &Nest,
    number: usize,
    before: Block,
    most: usize,
    steps: &mut Steps,
) -> Option<Trips> {
    let found = &nest.loops.all[number];
    let &latch = found.latches.first()?;
    let tests = found.blocks.iter().filter(|&&block| nest.dominators.dominates(block, latch));
    for &test in tests {
        let Some(InstData::Branch { condition, then, otherwise }) =
            cfg::terminator(kernel, test).map(|last| &kernel.insts[last])
        else {
            continue;
        };
        let leaves_if = match [then, otherwise].map(|call| nest.loops.contains(number, call.block)) {
            [true, false] => false,
            [false, true] => true,
            _ => continue,
        };
        if let Some(mut program) = Program::new(kernel, found.header, before, latch, *condition)
            && let Some(times) = program.run(leaves_if, most, steps)
        {
            return Some(Trips { test, leaves_if, times });
        }
    }
    None
}

/// Operations that a counter's first value depends on, at most.
const DEPTH: usize = 6;

/// What is known about a value in a trip.
#[derive(Clone, Copy, Debug)]
enum Known {
    Bits(u64),
    /// One of these words.
    Word(Range),
    Nothing,
}

impl Known {
    fn of_word(range: Range) -> Self {
        range.value().map_or(Self::Word(range), |value| Self::Bits(value.into()))
    }

    /// As a word, if it is one.
    fn word(self) -> Option<Range> {
        match self {
            Self::Bits(bits) => Some(Range::exact(bits as u32)),
            Self::Word(range) => Some(range),
            Self::Nothing => None,
        }
    }

    fn pure(op: Op, args: &[Self]) -> Self {
        let bits = args.iter().map(|arg| if let Self::Bits(bits) = arg { Some(*bits) } else { None });
        if let Some(bits) = bits.collect::<Option<SmallVec<[u64; MAX_ARGS]>>>() {
            return Self::Bits(op.fold(&bits));
        }
        let words = args.iter().map(|arg| arg.word()).collect::<Option<SmallVec<[Range; MAX_ARGS]>>>();
        let Some(words) = words.filter(|_| op.params().iter().all(|&ty| ty == Type::I32)) else { return Self::Nothing };
        match (op.result(), &words[..]) {
            (Type::I32, words) => Self::of_word(Ranges::evaluate(op, words)),
            (Type::Bool, &[a, b]) => Range::compare(op, a, b).map_or(Self::Nothing, |truth| Self::Bits(truth.into())),
            _ => Self::Nothing,
        }
    }
}

/// One operation of a condition: registers in, register out.
struct Operation {
    what: What,
    args: SmallVec<[usize; MAX_ARGS]>,
    to: usize,
}

enum What {
    Pure(Op),
    Select,
    Element(u32),
}

/// A condition as a function of the header's parameters, and these from one trip to the next.
struct Program {
    registers: Vec<Known>,
    operations: Vec<Operation>,
    /// Registers of parameters, and those that hold their next values.
    carried: Vec<(usize, usize)>,
    condition: usize,
}

impl Program {
    fn new(kernel: &Kernel, header: Block, before: Block, latch: Block, condition: Value) -> Option<Self> {
        let mut maker = Maker {
            kernel,
            header,
            numbers: Vec::new(),
            params: Vec::new(),
            registers: Vec::new(),
            operations: Vec::new(),
        };
        let condition = maker.value(condition, 0)?;
        let mut carried = Vec::new();
        // New parameters may turn up on the way.
        while let Some(&index) = maker.params.get(carried.len()) {
            let param = maker.value(kernel.blocks[header].params[index], 0)?;
            let [first, next] = [before, latch].map(|from| {
                let last = cfg::terminator(kernel, from)?;
                let call = kernel.insts[last].targets().into_iter().find(|call| call.block == header)?;
                call.args.get(index).copied()
            });
            let first = first?;
            maker.registers[param] = match kernel.constant(first) {
                Some(bits) => Known::Bits(bits),
                None if kernel.ty(first) == Type::I32 => Known::of_word(Ranges::local(kernel, first, DEPTH)),
                None => return None,
            };
            carried.push((param, maker.value(next?, 0)?));
        }
        Some(Self { registers: maker.registers, operations: maker.operations, carried, condition })
    }

    /// The number of trips until the condition is `leaves_if`.
    fn run(&mut self, leaves_if: bool, most: usize, steps: &mut Steps) -> Option<usize> {
        for trip in 0..=most {
            steps.0 = steps.0.checked_sub(1 + self.operations.len() + self.carried.len())?;
            for operation in &self.operations {
                let arg = |number: usize| self.registers[operation.args[number]];
                self.registers[operation.to] = match operation.what {
                    What::Pure(op) => {
                        let args: SmallVec<[Known; MAX_ARGS]> =
                            operation.args.iter().map(|&from| self.registers[from]).collect();
                        Known::pure(op, &args)
                    }
                    What::Select => match arg(0) {
                        Known::Bits(truth) => arg(if truth != 0 { 1 } else { 2 }),
                        _ => Known::Nothing,
                    },
                    What::Element(stride) => match [arg(0), arg(1)] {
                        [Known::Bits(base), Known::Bits(index)] => {
                            Known::Bits(u64::from(element(base as u32, index as u32, stride)))
                        }
                        _ => Known::Nothing,
                    },
                };
            }
            let Known::Bits(truth) = self.registers[self.condition] else { return None };
            if (truth != 0) == leaves_if {
                return Some(trip);
            }
            let next: SmallVec<[Known; 4]> = self.carried.iter().map(|&(_, next)| self.registers[next]).collect();
            for (&(param, _), next) in self.carried.iter().zip(next) {
                self.registers[param] = next;
            }
        }
        None
    }
}

/// Collects the operations.
struct Maker<'a> {
    kernel: &'a Kernel,
    header: Block,
    /// The register of each value so far; they are few.
    numbers: Vec<(Value, usize)>,
    /// Places of the header's parameters that were met.
    params: Vec<usize>,
    registers: Vec<Known>,
    operations: Vec<Operation>,
}

impl Maker<'_> {
    /// The register of a value; `None` if it depends on more than is known, or on too much.
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
                self.register(Known::Nothing)
            }
            ValueDef::Param { .. } => return None,
            ValueDef::Result { inst, .. } => match &kernel.insts[inst] {
                &InstData::Const { bits, .. } => self.register(Known::Bits(bits)),
                InstData::BuiltIn { .. } => self.register(Known::of_word(Ranges::local(self.kernel, value, 1))),
                InstData::Pure { op, args } => self.operation(What::Pure(*op), args, depth)?,
                &InstData::Select { condition, then, otherwise } => {
                    self.operation(What::Select, &[condition, then, otherwise], depth)?
                }
                &InstData::Element { base, index, stride } => {
                    self.operation(What::Element(stride), &[base, index], depth)?
                }
                _ => return None,
            },
        };
        self.numbers.push((value, register));
        Some(register)
    }

    fn register(&mut self, known: Known) -> usize {
        self.registers.push(known);
        self.registers.len() - 1
    }

    fn operation(&mut self, what: What, args: &[Value], depth: usize) -> Option<usize> {
        let args = args.iter().map(|&arg| self.value(arg, depth + 1)).collect::<Option<_>>()?;
        let to = self.register(Known::Nothing);
        self.operations.push(Operation { what, args, to });
        Some(to)
    }
}
