//! Constants: specialized and evaluated during translation.

use std::collections::BTreeMap;
use std::rc::Rc;

use foldhash::HashMap;
use smallvec::SmallVec;
use spirv::Op;

use super::super::Error;
use super::arithmetic::{self, ArithmeticType, OperandValues};
use super::composite;
use super::decorations::Annotations;
use super::module::Sections;
use super::scalar::Scalar;
use super::types::{SpirvType, Types};
use super::words::{Id, Inst, InstResult, op_name, operand};
use crate::ir::{Builder, Kernel, Value};

/// Scalars of all constants of a module together, at most.
const MAX_SCALARS: usize = 1 << 22;

/// A constant.
#[derive(Clone, Debug)]
pub(super) struct Constant {
    /// Its type.
    pub(super) ty: Id,
    /// Bits of its scalars; `None` for any number of zeros.
    pub(super) bits: Option<Rc<[u64]>>,
}

/// The constants of a module by id.
#[derive(Debug)]
pub(super) struct Constants {
    table: HashMap<Id, Constant>,
    /// Evaluates operations by folding; its kernel is never finished.
    scratch: Builder,
    scalars: usize,
}

/// Evaluates types and constants in the module's order, as they may depend on each other.
pub(super) fn declare(sections: &Sections, specialization: &BTreeMap<u32, u64>) -> Result<(Types, Constants), Error> {
    let mut types = Types::default();
    let scratch = Builder::new(Kernel::new("", [1; 3]));
    let mut constants = Constants { table: HashMap::default(), scratch, scalars: 0 };
    for inst in &sections.declarations {
        let operands = sections.words.operands(inst);
        let result = match inst.op {
            Op::Variable => Ok(()),
            Op::TypeForwardPointer => types.declare_forward(operands),
            op if op.is_type() => {
                types.declare(inst, operands, &sections.annotations, |types, id| constants.uint(types, id))
            }
            _ => constants.declare(&mut types, inst, operands, &sections.annotations, specialization),
        };
        result.map_err(|message| sections.error(inst.word, message))?;
    }
    Ok((types, constants))
}

impl Constants {
    /// The constant of an id.
    pub(super) fn get(&self, id: Id) -> Option<&Constant> {
        self.table.get(&id)
    }

    /// The value of an integer constant.
    pub(super) fn uint(&self, types: &Types, id: Id) -> InstResult<u32> {
        let constant = self.get(id).ok_or_else(|| format!("%{id} is not a constant"))?;
        match types.get(constant.ty)?.ty {
            SpirvType::Scalar(Scalar::I64) => match constant.bits.as_deref() {
                Some(&[low, 0]) => Ok(low as u32),
                None => Ok(0),
                Some(_) => Err(format!("%{id} is more than 32 bits hold")),
            },
            SpirvType::Scalar(scalar) if scalar.is_int() => Ok(constant.bits.as_ref().map_or(0, |bits| bits[0] as u32)),
            _ => Err(format!("%{id} is not an integer constant")),
        }
    }

    /// The bits of a constant's scalars.
    pub(super) fn bits(&self, types: &mut Types, id: Id) -> InstResult<Rc<[u64]>> {
        let constant = self.get(id).ok_or_else(|| format!("%{id} is not a constant"))?;
        match &constant.bits {
            Some(bits) => Ok(bits.clone()),
            None => Ok(vec![0; types.scalars(constant.ty)?.len()].into()),
        }
    }

    fn ty(&self, id: Id) -> InstResult<Id> {
        self.get(id).map(|constant| constant.ty).ok_or_else(|| format!("%{id} is not a constant"))
    }

    fn declare(
        &mut self,
        types: &mut Types,
        inst: &Inst,
        operands: &[u32],
        annotations: &Annotations,
        specialization: &BTreeMap<u32, u64>,
    ) -> InstResult<()> {
        let spec_id = annotations.of(inst.id).and_then(|decorations| decorations.spec_id);
        let given = spec_id.and_then(|id| specialization.get(&id)).copied();
        let info = types.get(inst.ty)?;
        let is_bool = matches!(info.ty, SpirvType::Scalar(Scalar::Bool));
        let one = |bits: u64| Some(Rc::from([bits]));
        let bits = match inst.op {
            Op::ConstantTrue | Op::ConstantFalse if is_bool => one(u64::from(inst.op == Op::ConstantTrue)),
            Op::SpecConstantTrue | Op::SpecConstantFalse if is_bool => {
                let default = u64::from(inst.op == Op::SpecConstantTrue);
                one(u64::from(given.unwrap_or(default) != 0))
            }
            Op::Constant | Op::SpecConstant => {
                let given = given.filter(|_| inst.op == Op::SpecConstant);
                match info.ty {
                    SpirvType::Scalar(scalar) if scalar != Scalar::Bool => {
                        let high = if scalar.words() == 2 { operand(operands, 1)? } else { 0 };
                        let literal = u64::from(operand(operands, 0)?) | u64::from(high) << 32;
                        Some(registers(scalar, given.unwrap_or(literal)))
                    }
                    _ => return Err(format!("%{} is not the type of a numeric constant", inst.ty)),
                }
            }
            Op::ConstantNull | Op::Undef => match info.ty {
                SpirvType::Void | SpirvType::Function { .. } => {
                    return Err(format!("{} of type %{} is not supported", op_name(inst.op), inst.ty));
                }
                _ => None,
            },
            Op::ConstantComposite | Op::SpecConstantComposite => Some(self.composite(types, inst.ty, operands)?),
            Op::SpecConstantOp => Some(self.operation(types, inst.ty, operands)?),
            op => return Err(format!("{} is not supported", op_name(op))),
        };
        self.spend(bits.as_ref().map_or(0, |bits| bits.len()))?;
        self.table.insert(inst.id, Constant { ty: inst.ty, bits });
        Ok(())
    }

    fn composite(&self, types: &mut Types, ty: Id, constituents: &[Id]) -> InstResult<Rc<[u64]>> {
        if types.component_count(ty)? as usize != constituents.len() {
            return Err(format!(
                "{} constituents for a constant of {} components",
                constituents.len(),
                types.component_count(ty)?
            ));
        }
        let mut all = Vec::with_capacity(types.scalars(ty)?.len());
        for (index, &id) in (0..).zip(constituents) {
            if types.component(ty, index)?.0 != self.ty(id)? {
                return Err(format!("constituent {index} has the wrong type"));
            }
            all.extend_from_slice(&self.bits(types, id)?);
        }
        Ok(all.into())
    }

    fn spend(&mut self, scalars: usize) -> InstResult<()> {
        self.scalars += scalars;
        if self.scalars > MAX_SCALARS { Err("the module's constants are too large".into()) } else { Ok(()) }
    }

    /// Counts the scalars of operands: large operands cost time even if the result is small. Literals among the words
    /// are harmless: they are not ids of large constants.
    fn charge(&mut self, types: &Types, operands: &[u32]) -> InstResult<()> {
        for operand in operands {
            if let Some(constant) = self.table.get(operand) {
                let scalars = types.get(constant.ty)?.scalars;
                self.spend(scalars as usize)?;
            }
        }
        Ok(())
    }

    /// `OpSpecConstantOp`.
    fn operation(&mut self, types: &mut Types, ty: Id, operands: &[u32]) -> InstResult<Rc<[u64]>> {
        let number = operand(operands, 0)?;
        let op = Op::from_u32(number).ok_or_else(|| format!("OpSpecConstantOp: unknown opcode {number}"))?;
        let operands = &operands[1..];
        self.charge(types, operands)?;
        let result = match op {
            Op::CompositeExtract => {
                let from = operand(operands, 0)?;
                let component = composite::component(types, self.ty(from)?, &operands[1..])?;
                composite::expect_type(ty, component.ty)?;
                self.bits(types, from)?[component.range()].to_vec()
            }
            Op::CompositeInsert => {
                let (object, into) = (operand(operands, 0)?, operand(operands, 1)?);
                let component = composite::component(types, self.ty(into)?, &operands[2..])?;
                composite::expect_type(component.ty, self.ty(object)?)?;
                composite::expect_type(ty, self.ty(into)?)?;
                let mut all = self.bits(types, into)?.to_vec();
                all[component.range()].copy_from_slice(&self.bits(types, object)?);
                all
            }
            Op::VectorShuffle => {
                let (a, b) = (operand(operands, 0)?, operand(operands, 1)?);
                let picks = composite::shuffle(types, ty, [self.ty(a)?, self.ty(b)?], &operands[2..])?;
                let all = [&*self.bits(types, a)?, &*self.bits(types, b)?].concat();
                let words = composite::vector(types, ty)?.0.words() as usize;
                composite::picked(&all, &picks, words, 0)
            }
            Op::Select => self.select(types, ty, operands)?,
            op => self.arithmetic(types, op, ty, operands)?,
        };
        Ok(result.into())
    }

    fn select(&mut self, types: &mut Types, ty: Id, operands: &[Id]) -> InstResult<Vec<u64>> {
        let [condition, then, otherwise] = *operands else { return Err("OpSelect takes 3 operands".into()) };
        composite::expect_type(ty, self.ty(then)?)?;
        composite::expect_type(ty, self.ty(otherwise)?)?;
        composite::check_condition(types, self.ty(condition)?, ty)?;
        let conditions = self.bits(types, condition)?;
        let (then, otherwise) = (self.bits(types, then)?, self.bits(types, otherwise)?);
        let words = then.len() / conditions.len().max(1);
        let pick = |at: usize| conditions[(at / words.max(1)).min(conditions.len() - 1)] != 0;
        Ok((0..then.len()).map(|at| if pick(at) { then[at] } else { otherwise[at] }).collect())
    }

    fn arithmetic(&mut self, types: &mut Types, op: Op, ty: Id, operands: &[Id]) -> InstResult<Vec<u64>> {
        let mut values: Vec<(SmallVec<[Value; 4]>, ArithmeticType)> = Vec::new();
        for &id in operands {
            let ty = self.ty(id)?;
            let shape = types.shape(ty)?.ok_or_else(|| format!("%{id} is not a scalar, vector or matrix"))?;
            let bits = self.bits(types, id)?;
            let element = shape.element().ty();
            values.push((bits.iter().map(|&bits| self.scratch.constant_bits(element, bits)).collect(), shape));
        }
        let values: Vec<OperandValues<'_>> =
            values.iter().map(|(values, shape)| OperandValues { values, shape: *shape }).collect();
        let shape = types.shape(ty)?.ok_or("the result is not a scalar, vector or matrix")?;
        let result = arithmetic::translate(&mut self.scratch, op, &shape, &values)
            .ok_or_else(|| format!("OpSpecConstantOp {op:?} is not supported"))?
            .map_err(|message| format!("OpSpecConstantOp {op:?}: {message}"))?;
        result
            .into_iter()
            .map(|value| self.scratch.kernel().constant(value))
            .collect::<Option<Vec<u64>>>()
            .ok_or_else(|| format!("OpSpecConstantOp {op:?} has no constant result"))
    }
}

/// The register words of a number; below 32 bits only the low bits are used.
fn registers(scalar: Scalar, bits: u64) -> Rc<[u64]> {
    let word = bits & u64::from(u32::MAX);
    match scalar {
        Scalar::I8 => Rc::from([bits & 0xff]),
        Scalar::I16 => Rc::from([bits & 0xffff]),
        Scalar::F16 => Rc::from([u64::from(half::f16::from_bits(bits as u16).to_f32_const().to_bits())]),
        Scalar::I64 | Scalar::F64 => Rc::from([word, bits >> 32]),
        _ => Rc::from([word]),
    }
}
