//! How often a loop goes round: its exit condition is computed, trip after trip, if it depends on constants only.
//!
//! That takes in any counter: up, down, doubled, shifted, and whatever it is compared with.

use smallvec::SmallVec;

use super::Nest;
use crate::ir::op::MAX_ARGS;
use crate::ir::{Block, InstData, Kernel, Op, Value, ValueDef, element};
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
const LARGEST: usize = 48;

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
        let leaves_if = match [then, otherwise].map(|call| nest.contains(number, call.block)) {
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
    registers: Vec<u64>,
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
            maker.registers[param] = kernel.constant(first?)?;
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
                        let args: SmallVec<[u64; MAX_ARGS]> =
                            operation.args.iter().map(|&from| self.registers[from]).collect();
                        op.fold(&args)
                    }
                    What::Select => arg(if arg(0) != 0 { 1 } else { 2 }),
                    What::Element(stride) => u64::from(element(arg(0) as u32, arg(1) as u32, stride)),
                };
            }
            if (self.registers[self.condition] != 0) == leaves_if {
                return Some(trip);
            }
            let next: SmallVec<[u64; 4]> = self.carried.iter().map(|&(_, next)| self.registers[next]).collect();
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
    registers: Vec<u64>,
    operations: Vec<Operation>,
}

impl Maker<'_> {
    /// The register of a value; `None` if it depends on more than constants, or on too much.
    fn value(&mut self, value: Value, depth: usize) -> Option<usize> {
        if let Some(&(_, register)) = self.numbers.iter().find(|known| known.0 == value) {
            return Some(register);
        }
        if depth > LARGEST || self.registers.len() > LARGEST {
            return None;
        }
        let kernel = self.kernel;
        let register = match kernel.values[value] {
            ValueDef::Param { block, index, .. } if block == self.header => {
                self.params.push(index as usize);
                self.register(0)
            }
            ValueDef::Param { .. } => return None,
            ValueDef::Result { inst, .. } => match &kernel.insts[inst] {
                &InstData::Const { bits, .. } => self.register(bits),
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

    fn register(&mut self, bits: u64) -> usize {
        self.registers.push(bits);
        self.registers.len() - 1
    }

    fn operation(&mut self, what: What, args: &[Value], depth: usize) -> Option<usize> {
        let args = args.iter().map(|&arg| self.value(arg, depth + 1)).collect::<Option<_>>()?;
        let to = self.register(0);
        self.operations.push(Operation { what, args, to });
        Some(to)
    }
}
