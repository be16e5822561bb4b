//! One instruction to translate: checks its operands, and applies scalar operations to their components.

use super::super::scalar::Scalar;
use super::num::{self, Num, Nums};
use super::{ArithmeticResult, ArithmeticType, Operand, OperandValues, Values, widths};
use crate::ir::{Builder, Op, Type, Value};

/// An instruction's operands and the shape of its result.
pub(in super::super) struct Call<'a> {
    /// Receives the emitted operations.
    pub builder: &'a mut Builder,
    /// ArithmeticType of the declared result type.
    pub result: ArithmeticType,
    operands: &'a [Operand<'a>],
    /// The first operation that does not exist at the width of its operands.
    missing: Option<String>,
}

/// The scalars of an operand, if their number and types fit its shape.
pub(super) fn checked(builder: &Builder, number: usize, operand: &OperandValues<'_>) -> Result<Nums, String> {
    let ty = operand.shape.element().ty();
    let list = num::of_values(operand.shape, operand.values);
    list.filter(|_| operand.values.iter().all(|&value| builder.ty(value) == ty))
        .ok_or_else(|| format!("operand {number} does not have the scalars of its type"))
}

impl<'a> Call<'a> {
    /// Checks the operands.
    pub(super) fn new(builder: &'a mut Builder, result: ArithmeticType, operands: &'a [Operand<'a>]) -> Self {
        Self { builder, result, operands, missing: None }
    }

    /// The values of the result, or the first error.
    pub(super) fn finish(self, outcome: ArithmeticResult) -> Result<Values, String> {
        let nums = outcome?;
        match self.missing {
            Some(problem) => Err(problem),
            None => Ok(nums.into_iter().flat_map(Num::values).collect()),
        }
    }

    /// The operands, if there are exactly `N`.
    pub(in super::super) fn operands<const N: usize>(&self) -> Result<[Operand<'a>; N], String> {
        <[Operand<'a>; N]>::try_from(self.operands)
            .map_err(|_| format!("takes {N} operands, not {}", self.operands.len()))
    }

    /// Appends one scalar operation, at the width of its operands.
    pub(in super::super) fn pure<const N: usize>(&mut self, op: Op, args: [Num; N]) -> Num {
        self.pure_of(op, &args)
    }

    fn pure_of(&mut self, op: Op, args: &[Num]) -> Num {
        widths::pure(self.builder, op, args).unwrap_or_else(|problem| {
            self.missing.get_or_insert(problem);
            args[0]
        })
    }

    /// A constant, rounded to the nearest number of the type.
    pub(in super::super) fn float(&mut self, ty: Scalar, value: f64) -> Num {
        widths::float(self.builder, ty, value)
    }

    /// `condition ? then : otherwise`.
    pub(in super::super) fn select(&mut self, condition: Num, then: Num, otherwise: Num) -> Num {
        widths::select(self.builder, condition.low, then, otherwise)
    }

    /// Applies `op` to corresponding components of all operands.
    pub(in super::super) fn each(&mut self, op: Op) -> ArithmeticResult {
        let operands = self.operands;
        self.each_of(op, operands, operands.len())
    }

    /// As [`Call::each`] with two operands swapped: `>` in terms of `<`.
    pub(in super::super) fn each_swapped(&mut self, op: Op) -> ArithmeticResult {
        let [a, b] = self.operands()?;
        self.each_of(op, &[b, a], 2)
    }

    /// As [`Call::each`], but operands from index `componentwise` on are scalars that apply to every component.
    pub(in super::super) fn each_then_scalars(&mut self, op: Op, componentwise: usize) -> ArithmeticResult {
        self.each_of(op, self.operands, componentwise)
    }

    /// Applies two operations to corresponding components: all results of the first, then all of the second.
    pub(in super::super) fn each_pair(&mut self, first: Op, second: Op) -> ArithmeticResult {
        let mut values = self.each(first)?;
        let shape = self.result;
        self.result = match second {
            Op::FrexpExponent => with_element(shape, Scalar::I32)?,
            _ => shape,
        };
        let others = self.each(second);
        self.result = shape;
        values.extend(others?);
        Ok(values)
    }

    /// Sum of the products of corresponding scalars, from the first on; 0 if there are none.
    pub(in super::super) fn dot(&mut self, a: &[Num], b: &[Num]) -> Num {
        let products: Nums = a.iter().zip(b).map(|(&a, &b)| self.pure(Op::FMul, [a, b])).collect();
        let sum = products.into_iter().reduce(|sum, product| self.pure(Op::FAdd, [sum, product]));
        sum.unwrap_or_else(|| self.float(Scalar::F32, 0.0))
    }

    /// Applies `op` to given operands; those from index `componentwise` on are scalars that apply to every component.
    pub(in super::super) fn each_of(
        &mut self,
        op: Op,
        operands: &[Operand<'_>],
        componentwise: usize,
    ) -> ArithmeticResult {
        let params = op.params();
        if operands.len() != params.len() {
            return Err(format!("takes {} operands, not {}", params.len(), operands.len()));
        }
        let shape = self.result;
        let elements = || operands.iter().map(|operand| operand.shape.element());
        // The operation's width is that of the first operand of its operand type.
        let at = elements().zip(params).find(|(ty, param)| **param != Type::Bool && is_kind(*ty, **param));
        let like = |param: Type| match at {
            Some((ty, _)) if is_kind(ty, param) => ty,
            _ => Scalar::of(param),
        };
        let wanted = match op {
            // A bit count fits in any integer type.
            Op::BitCount if is_kind(shape.element(), Type::I32) => shape.element(),
            Op::FrexpExponent => Scalar::I32,
            _ => like(op.result()),
        };
        self.expect_result(with_element(shape, wanted)?)?;
        for (number, (operand, &param)) in operands.iter().zip(params).enumerate() {
            let element = operand.shape.element();
            let ty = if takes_any_width(op, number) && is_kind(element, Type::I32) { element } else { like(param) };
            let wanted = if number < componentwise { with_element(shape, ty)? } else { ArithmeticType::Scalar(ty) };
            expect(number, operand.shape, wanted)?;
        }
        Ok((0..shape.scalars()).map(|component| self.at(op, operands, component, wanted)).collect())
    }

    fn at(&mut self, op: Op, operands: &[Operand<'_>], component: usize, wanted: Scalar) -> Num {
        let mut args: Nums =
            operands.iter().map(|operand| operand.values[component.min(operand.values.len() - 1)]).collect();
        if op == Op::Ldexp {
            args[1] = widths::exponent(self.builder, args[1]);
        }
        let result = self.pure_of(op, &args);
        if op == Op::BitCount { widths::resized(self.builder, result, wanted) } else { result }
    }

    /// Checks the shape of the result.
    pub(in super::super) fn expect_result(&self, wanted: ArithmeticType) -> Result<(), String> {
        if self.result == wanted {
            return Ok(());
        }
        Err(format!("the result must be {}, not {}", describe(wanted), describe(self.result)))
    }

    /// An integer constant of 32 bits.
    pub(in super::super) fn int(&mut self, value: u32) -> Value {
        self.builder.constant(value)
    }
}

/// Whether a scalar is an integer, a float or a bool, as the 32-bit operation's operand type is.
fn is_kind(ty: Scalar, param: Type) -> bool {
    match param {
        Type::I32 => ty.is_int(),
        Type::F32 => ty.is_float(),
        Type::Bool => ty == Scalar::Bool,
        Type::Buffer => false,
    }
}

/// Shift amounts, bit-field positions and exponents, which may have any width.
fn takes_any_width(op: Op, number: usize) -> bool {
    match op {
        Op::Shl | Op::LShr | Op::AShr | Op::Ldexp => number == 1,
        Op::BitInsert => number >= 2,
        Op::BitUExtract | Op::BitSExtract => number >= 1,
        Op::BitCount => true,
        _ => false,
    }
}

/// Checks the shape of an operand.
pub(in super::super) fn expect(number: usize, shape: ArithmeticType, wanted: ArithmeticType) -> Result<(), String> {
    if shape == wanted {
        return Ok(());
    }
    Err(format!("operand {number} must be {}, not {}", describe(wanted), describe(shape)))
}

/// A scalar or vector with as many components as `shape`, of type `ty`.
pub(in super::super) fn with_element(shape: ArithmeticType, ty: Scalar) -> Result<ArithmeticType, String> {
    match shape {
        ArithmeticType::Scalar(_) => Ok(ArithmeticType::Scalar(ty)),
        ArithmeticType::Vector(_, count) => Ok(ArithmeticType::Vector(ty, count)),
        ArithmeticType::Matrix { .. } => Err("does not take matrices".into()),
    }
}

/// A shape as text, for messages.
pub(in super::super) fn describe(shape: ArithmeticType) -> String {
    match shape {
        ArithmeticType::Scalar(ty) => format!("one {ty}"),
        ArithmeticType::Vector(ty, count) => format!("a vector of {count} {ty}"),
        ArithmeticType::Matrix { columns, rows, .. } => format!("a matrix of {columns} columns and {rows} rows"),
    }
}
