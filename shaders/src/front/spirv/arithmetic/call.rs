//! One instruction to be translated: its operands, checked, and the ways in which a scalar operation spreads over them.

use super::{Operand, Outcome, Shape, Values};
use crate::ir::{Builder, Op, Type, Value};

/// An instruction's operands and the shape of its result.
pub(in super::super) struct Call<'a> {
    /// Where the operations go.
    pub builder: &'a mut Builder,
    /// Shape that the module declares for the result.
    pub result: Shape,
    operands: &'a [Operand<'a>],
}

impl<'a> Call<'a> {
    /// Checks that each operand has the scalars that its shape promises.
    pub(in super::super) fn new(
        builder: &'a mut Builder,
        result: Shape,
        operands: &'a [Operand<'a>],
    ) -> Result<Self, String> {
        for (number, operand) in operands.iter().enumerate() {
            let ty = operand.shape.element();
            let fits = operand.values.len() == operand.shape.len()
                && operand.values.iter().all(|&value| builder.ty(value) == ty);
            if !fits {
                return Err(format!("operand {number} does not have the scalars of its type"));
            }
        }
        Ok(Self { builder, result, operands })
    }

    /// The operands, if there are exactly `N`.
    pub(in super::super) fn operands<const N: usize>(&self) -> Result<[Operand<'a>; N], String> {
        <[Operand<'a>; N]>::try_from(self.operands)
            .map_err(|_| format!("takes {N} operands, not {}", self.operands.len()))
    }

    /// Appends one scalar operation.
    pub(in super::super) fn pure<const N: usize>(&mut self, op: Op, args: [Value; N]) -> Value {
        self.builder.pure(op, &args)
    }

    /// Applies `op` to corresponding components of all operands.
    pub(in super::super) fn each(&mut self, op: Op) -> Outcome {
        let operands = self.operands;
        self.each_of(op, operands, operands.len())
    }

    /// As [`Call::each`] with two operands exchanged: how `>` is made of `<`.
    pub(in super::super) fn each_swapped(&mut self, op: Op) -> Outcome {
        let [a, b] = self.operands()?;
        self.each_of(op, &[b, a], 2)
    }

    /// As [`Call::each`], but operands from number `componentwise` on are scalars that serve every component.
    pub(in super::super) fn each_then_scalars(&mut self, op: Op, componentwise: usize) -> Outcome {
        self.each_of(op, self.operands, componentwise)
    }

    /// Applies two operations to corresponding components: all results of the first, then all of the second.
    pub(in super::super) fn each_pair(&mut self, first: Op, second: Op) -> Outcome {
        let mut values = self.each(first)?;
        let shape = self.result;
        self.result = with_element(shape, second.result())?;
        let others = self.each(second);
        self.result = shape;
        values.extend(others?);
        Ok(values)
    }

    /// Sum of the products of corresponding scalars, from the first on; 0 if there are none.
    pub(in super::super) fn dot(&mut self, a: &[Value], b: &[Value]) -> Value {
        let products: Values = a.iter().zip(b).map(|(&a, &b)| self.pure(Op::FMul, [a, b])).collect();
        let sum = products.into_iter().reduce(|sum, product| self.pure(Op::FAdd, [sum, product]));
        sum.unwrap_or_else(|| self.builder.constant(0f32))
    }

    /// Applies `op` to given operands; those from number `componentwise` on are scalars that serve every component.
    pub(in super::super) fn each_of(&mut self, op: Op, operands: &[Operand<'_>], componentwise: usize) -> Outcome {
        let params = op.params();
        if operands.len() != params.len() {
            return Err(format!("takes {} operands, not {}", params.len(), operands.len()));
        }
        let shape = self.result;
        self.expect_result(with_element(shape, op.result())?)?;
        for (number, (operand, &ty)) in operands.iter().zip(params).enumerate() {
            let wanted = if number < componentwise { with_element(shape, ty)? } else { Shape::Scalar(ty) };
            expect(number, operand.shape, wanted)?;
        }
        Ok((0..shape.len()).map(|component| self.at(op, operands, component)).collect())
    }

    fn at(&mut self, op: Op, operands: &[Operand<'_>], component: usize) -> Value {
        let args: Values =
            operands.iter().map(|operand| operand.values[component.min(operand.values.len() - 1)]).collect();
        self.builder.pure(op, &args)
    }

    /// Checks the shape of the result.
    pub(in super::super) fn expect_result(&self, wanted: Shape) -> Result<(), String> {
        if self.result == wanted {
            return Ok(());
        }
        Err(format!("the result must be {}, not {}", describe(wanted), describe(self.result)))
    }
}

/// Checks the shape of an operand.
pub(in super::super) fn expect(number: usize, shape: Shape, wanted: Shape) -> Result<(), String> {
    if shape == wanted {
        return Ok(());
    }
    Err(format!("operand {number} must be {}, not {}", describe(wanted), describe(shape)))
}

/// A scalar or vector with as many components as `shape`, of type `ty`.
pub(in super::super) fn with_element(shape: Shape, ty: Type) -> Result<Shape, String> {
    match shape {
        Shape::Scalar(_) => Ok(Shape::Scalar(ty)),
        Shape::Vector(_, count) => Ok(Shape::Vector(ty, count)),
        Shape::Matrix { .. } => Err("does not take matrices".into()),
    }
}

/// A shape in words.
pub(in super::super) fn describe(shape: Shape) -> String {
    match shape {
        Shape::Scalar(ty) => format!("one {ty}"),
        Shape::Vector(ty, count) => format!("a vector of {count} {ty}"),
        Shape::Matrix { columns, rows } => format!("a matrix of {columns} columns and {rows} rows"),
    }
}
