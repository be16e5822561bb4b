//! The code of a thread while it is derived: instructions of the litmus program, and the values that they compute.

use std::rc::Rc;
use std::sync::Arc;

use spelter_memory_model::program::{
    Binary, BranchCondition, Comparison, Expression, Instruction, InstructionKind, Operand, Place, Register,
};

use super::memory::Descriptor;

/// A value of the kernel, as far as it is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Val {
    /// Bits.
    Number(u64),
    /// What a register of the litmus program holds: a word, unsigned.
    Cell(Register),
    /// A bool that depends on registers.
    Compare(Comparison, Operand, Operand),
    /// A buffer; `None` is the null buffer.
    Buffer(Option<Descriptor>),
    /// A value that the litmus program cannot compute, with the reason.
    Unknown(Rc<str>),
}

/// All bits of a word.
const WORD: i64 = 0xffff_ffff;

/// The instructions of a thread.
#[derive(Default)]
pub(super) struct Code {
    pub(super) instructions: Vec<Instruction>,
    /// The place of the next instructions.
    pub(super) place: Place,
    /// The instruction of the kernel that they belong to.
    pub(super) source: u32,
    /// By instruction, that of the kernel.
    pub(super) sources: Vec<u32>,
    temporaries: u32,
    loads: u32,
}

impl Code {
    /// A register for the result of a load, which reports show.
    pub(super) fn result(&mut self) -> Register {
        self.loads += 1;
        Register(Arc::from(format!("r{}", self.loads - 1)))
    }

    /// A register that reports do not show: no text can name it.
    fn temporary(&mut self) -> Register {
        self.temporaries += 1;
        Register(Arc::from(format!(".{}", self.temporaries - 1)))
    }

    pub(super) fn push(&mut self, kind: InstructionKind) {
        self.instructions.push(Instruction { place: self.place, kind });
        self.sources.push(self.source);
    }

    fn set(&mut self, destination: Register, value: Expression) {
        self.push(InstructionKind::Compute { destination, value });
    }

    fn compute(&mut self, binary: Binary, a: Operand, b: Operand) -> Operand {
        let destination = self.temporary();
        self.set(destination.clone(), Expression::Binary(binary, a, b));
        Operand::Register(destination)
    }

    /// A branch whose target is set later; returns its index.
    pub(super) fn branch(&mut self, condition: Option<BranchCondition>) -> usize {
        self.push(InstructionKind::Branch { condition, target: usize::MAX });
        self.instructions.len() - 1
    }

    /// Sets the target of a branch.
    pub(super) fn land(&mut self, branch: usize, at: usize) {
        if let InstructionKind::Branch { target, .. } = &mut self.instructions[branch].kind {
            *target = at;
        }
    }

    /// Copies registers as one step: `to` holds what `from` held before.
    pub(super) fn copy(&mut self, pairs: &[(Register, Register)]) {
        let saved: Vec<_> = pairs
            .iter()
            .map(|(_, from)| {
                let saved = self.temporary();
                self.set(saved.clone(), Expression::Operand(Operand::Register(from.clone())));
                saved
            })
            .collect();
        for ((to, _), saved) in pairs.iter().zip(saved) {
            self.set(to.clone(), Expression::Operand(Operand::Register(saved)));
        }
    }

    /// A word as an operand. A bool becomes 0 or 1.
    pub(super) fn operand(&mut self, value: &Val) -> Result<Operand, Rc<str>> {
        match value {
            Val::Number(bits) => Ok(Operand::Constant((bits & 0xffff_ffff) as i64)),
            Val::Cell(register) => Ok(Operand::Register(register.clone())),
            Val::Compare(comparison, a, b) => {
                let condition = BranchCondition { comparison: *comparison, left: a.clone(), right: b.clone() };
                Ok(self.choose(condition, Operand::Constant(1), Operand::Constant(0)))
            }
            Val::Buffer(_) => Err("a buffer that depends on a value that it loads".into()),
            Val::Unknown(reason) => Err(Rc::clone(reason)),
        }
    }

    /// One of two operands.
    pub(super) fn choose(&mut self, condition: BranchCondition, then: Operand, other: Operand) -> Operand {
        let destination = self.temporary();
        self.set(destination.clone(), Expression::Operand(then));
        let skip = self.branch(Some(condition));
        self.set(destination.clone(), Expression::Operand(other));
        self.land(skip, self.instructions.len());
        Operand::Register(destination)
    }

    /// A sum, difference or product, modulo 2³².
    pub(super) fn wrapped(&mut self, binary: Binary, a: Operand, b: Operand) -> Operand {
        let whole = self.compute(binary, a, b);
        self.compute(Binary::And, whole, Operand::Constant(WORD))
    }

    /// A quotient, or a bitwise operation: words as they are.
    pub(super) fn plain(&mut self, binary: Binary, a: Operand, b: Operand) -> Operand {
        self.compute(binary, a, b)
    }

    /// The signed number of a word.
    pub(super) fn signed(&mut self, a: Operand) -> Operand {
        const SIGN: i64 = 1 << 31;
        if let Operand::Constant(word) = a {
            return Operand::Constant((word as u32).cast_signed().into());
        }
        let flipped = self.compute(Binary::Xor, a, Operand::Constant(SIGN));
        self.compute(Binary::Sub, flipped, Operand::Constant(SIGN))
    }
}

/// The opposite of a comparison.
pub(super) fn negated(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Equal => Comparison::NotEqual,
        Comparison::NotEqual => Comparison::Equal,
        Comparison::Less => Comparison::GreaterEqual,
        Comparison::GreaterEqual => Comparison::Less,
        Comparison::Greater => Comparison::LessEqual,
        Comparison::LessEqual => Comparison::Greater,
    }
}

/// A value of an operand.
pub(super) fn of_operand(operand: Operand) -> Val {
    match operand {
        Operand::Constant(number) => Val::Number(number as u64),
        Operand::Register(register) => Val::Cell(register),
        Operand::Read => Val::Unknown("the value that an update reads".into()),
    }
}
