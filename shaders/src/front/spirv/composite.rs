//! Composites as exploded values: construction, extraction, insertion, shuffles.

use std::ops::Range;
use std::rc::Rc;

use super::scalar::Scalar;
use super::translate::Translator;
use super::types::{SpirvType, Types};
use super::words::{Id, Inst, InstResult, operand};
use crate::ir::Value;

/// A value: its type and its scalars in order.
#[derive(Clone, Debug)]
pub(super) struct Composite {
    /// Its type.
    pub(super) ty: Id,
    /// Its scalars.
    pub(super) values: Rc<[Value]>,
}

/// A component of a composite: its type and its scalars.
#[derive(Clone, Copy, Debug)]
pub(super) struct Component {
    /// Its type.
    pub(super) ty: Id,
    first: usize,
    len: usize,
}

impl Component {
    /// Index range of its scalars in the composite.
    pub(super) fn range(self) -> Range<usize> {
        self.first..self.first + self.len
    }
}

/// Follows literal indices into a type.
pub(super) fn component(types: &mut Types, ty: Id, indices: &[u32]) -> InstResult<Component> {
    let total = types.scalars(ty)?.len();
    let mut component = Component { ty, first: 0, len: total };
    for &index in indices {
        let (ty, first) = types.component(component.ty, index)?;
        component = Component { ty, first: component.first + first as usize, len: types.get(ty)?.scalars as usize };
    }
    Ok(component)
}

/// Indices of the scalars that a shuffle selects from two concatenated vectors; `None` for undefined components.
pub(super) fn shuffle(types: &Types, ty: Id, from: [Id; 2], literals: &[u32]) -> InstResult<Vec<Option<usize>>> {
    let (result, count) = vector(types, ty)?;
    let mut total = 0;
    for from in from {
        let (scalar, count) = vector(types, from)?;
        if scalar != result {
            return Err("the vectors have different component types".into());
        }
        total += count;
    }
    if literals.len() != count as usize {
        return Err(format!("{} literals for {count} components", literals.len()));
    }
    let pick = |&literal: &u32| match literal {
        u32::MAX => Ok(None),
        literal if literal < total => Ok(Some(literal as usize)),
        literal => Err(format!("component {literal} of {total}")),
    };
    literals.iter().map(pick).collect()
}

/// The selected components of a shuffle, each with all its words.
pub(super) fn picked<T: Copy>(all: &[T], picks: &[Option<usize>], words: usize, undefined: T) -> Vec<T> {
    let word = |pick: &Option<usize>, word: usize| pick.map_or(undefined, |pick| all[pick * words + word]);
    picks.iter().flat_map(|pick| (0..words).map(move |number| word(pick, number))).collect()
}

/// Component type and count of a vector type.
pub(super) fn vector(types: &Types, ty: Id) -> InstResult<(Scalar, u32)> {
    match types.get(ty)?.ty {
        SpirvType::Vector { scalar, count, .. } => Ok((scalar, count)),
        _ => Err(format!("%{ty} is not a vector type")),
    }
}

/// Checks that two types are equal.
pub(super) fn expect_type(expected: Id, found: Id) -> InstResult<()> {
    if expected == found { Ok(()) } else { Err(format!("the type is %{found} where %{expected} is expected")) }
}

/// Checks that the condition of an `OpSelect` fits its objects: one bool, or a vector with one per component.
pub(super) fn check_condition(types: &Types, condition: Id, objects: Id) -> InstResult<()> {
    match (&types.get(condition)?.ty, &types.get(objects)?.ty) {
        (SpirvType::Scalar(Scalar::Bool), _) => Ok(()),
        (SpirvType::Vector { scalar: Scalar::Bool, count, .. }, SpirvType::Vector { count: objects, .. })
            if count == objects =>
        {
            Ok(())
        }
        _ => Err("the condition is neither a bool nor one bool for each component".into()),
    }
}

impl Translator<'_> {
    /// `OpExpectKHR`: the value itself; the hint is ignored.
    pub(super) fn expected(&mut self, ty: Id, operands: &[u32]) -> InstResult<Composite> {
        let value = self.value(operand(operands, 0)?)?;
        expect_type(ty, value.ty)?;
        expect_type(ty, self.value(operand(operands, 1)?)?.ty)?;
        Ok(value)
    }

    /// Whether values of a type exist at run time. False for images, samplers, arrays without a size, and pointers that
    /// are resolved during translation.
    pub(super) fn has_values(&mut self, ty: Id) -> InstResult<bool> {
        let info = self.types.get(ty)?;
        match info.ty {
            SpirvType::Void | SpirvType::Function { .. } => return Err(format!("there are no values of type %{ty}")),
            SpirvType::Pointer { .. } => return Ok(self.check_pointer_type(ty).is_ok()),
            _ if info.unsized_tail || info.has_logical_pointer => return Ok(false),
            _ => {}
        }
        Ok(!self.types.scalars(ty)?.contains(&Scalar::Handle))
    }

    /// A value of zeros; also used for undefined values.
    pub(super) fn zero(&mut self, ty: Id) -> InstResult<Composite> {
        if matches!(self.types.get(ty)?.ty, SpirvType::Pointer { .. }) {
            return self.null_pointer(ty);
        }
        let scalars = self.constant_scalars(ty)?;
        let values = scalars.iter().map(|scalar| self.builder.constant_bits(scalar.ty(), 0)).collect();
        Ok(Composite { ty, values })
    }

    /// The scalars of a constant that is no pointer, all of which are to be emitted.
    pub(super) fn constant_scalars(&mut self, ty: Id) -> InstResult<Rc<[Scalar]>> {
        let scalars = self.types.scalars(ty)?;
        if scalars.contains(&Scalar::Handle) || self.types.get(ty)?.has_logical_pointer {
            return Err("there are no constant images, samplers or structures of pointers".into());
        }
        self.spend(scalars.len())?;
        Ok(scalars)
    }

    pub(super) fn construct(&mut self, ty: Id, operands: &[Id]) -> InstResult<Composite> {
        let total = self.types.scalars(ty)?.len();
        self.spend(total)?;
        let as_vector = vector(&self.types, ty).ok();
        let mut values = Vec::with_capacity(total);
        for (index, &id) in (0..).zip(operands) {
            let constituent = self.value(id)?;
            match as_vector {
                // A vector may be constructed from scalars and vectors.
                Some((scalar, _)) => self.expect_components(constituent.ty, scalar)?,
                None => expect_type(self.types.component(ty, index)?.0, constituent.ty)?,
            }
            values.extend_from_slice(&constituent.values);
            if values.len() > total {
                break;
            }
        }
        if values.len() != total {
            return Err(format!("the constituents do not have the {total} scalars of the result"));
        }
        Ok(Composite { ty, values: values.into() })
    }

    fn expect_components(&self, ty: Id, wanted: Scalar) -> InstResult<()> {
        match self.types.get(ty)?.ty {
            SpirvType::Scalar(scalar) | SpirvType::Vector { scalar, .. } if scalar == wanted => Ok(()),
            _ => Err("a constituent has the wrong type".into()),
        }
    }

    pub(super) fn extract(&mut self, ty: Id, operands: &[u32]) -> InstResult<Composite> {
        if let Some(memory) = self.by_reference(operand(operands, 0)?).cloned() {
            return self.extract_by_reference(memory, ty, &operands[1..]);
        }
        let from = self.value(operand(operands, 0)?)?;
        let component = component(&mut self.types, from.ty, &operands[1..])?;
        expect_type(ty, component.ty)?;
        self.spend(component.len)?;
        Ok(Composite { ty, values: from.values[component.range()].into() })
    }

    pub(super) fn insert(&mut self, ty: Id, operands: &[u32]) -> InstResult<Composite> {
        let object = self.value(operand(operands, 0)?)?;
        let into = self.value(operand(operands, 1)?)?;
        let component = component(&mut self.types, into.ty, &operands[2..])?;
        expect_type(component.ty, object.ty)?;
        expect_type(ty, into.ty)?;
        self.spend(into.values.len())?;
        let mut values = into.values.to_vec();
        values[component.range()].copy_from_slice(&object.values);
        Ok(Composite { ty, values: values.into() })
    }

    pub(super) fn vector_shuffle(&mut self, ty: Id, operands: &[u32]) -> InstResult<Composite> {
        let a = self.value(operand(operands, 0)?)?;
        let b = self.value(operand(operands, 1)?)?;
        let picks = shuffle(&self.types, ty, [a.ty, b.ty], &operands[2..])?;
        let (scalar, _) = vector(&self.types, ty)?;
        let undefined = self.builder.constant_bits(scalar.ty(), 0);
        let all = [&*a.values, &*b.values].concat();
        let values = picked(&all, &picks, scalar.words() as usize, undefined).into();
        Ok(Composite { ty, values })
    }

    /// An index out of range selects the first component.
    pub(super) fn extract_dynamic(&mut self, ty: Id, operands: &[u32]) -> InstResult<Composite> {
        let from = self.value(operand(operands, 0)?)?;
        let index = self.index(operand(operands, 1)?)?;
        let (scalar, _) = vector(&self.types, from.ty)?;
        expect_type(ty, self.types.component(from.ty, 0)?.0)?;
        let words = scalar.words() as usize;
        let word = |word: usize| from.values.iter().skip(word).step_by(words).copied().collect::<Vec<_>>();
        let values = (0..words).map(|number| self.pick(&word(number), index)).collect();
        Ok(Composite { ty, values })
    }

    /// The value at `index`; the first one if the index is out of range.
    pub(super) fn pick(&mut self, values: &[Value], index: Value) -> Value {
        let mut picked = values[0];
        for (at, &value) in (0u32..).zip(values).skip(1) {
            let here = self.is_index(index, at);
            picked = self.builder.select(here, value, picked);
        }
        picked
    }

    fn is_index(&mut self, index: Value, at: u32) -> Value {
        let at = self.builder.constant(at);
        self.builder.pure(crate::ir::Op::IEq, &[index, at])
    }

    /// An index out of range changes nothing.
    pub(super) fn insert_dynamic(&mut self, ty: Id, operands: &[u32]) -> InstResult<Composite> {
        let into = self.value(operand(operands, 0)?)?;
        let component = self.value(operand(operands, 1)?)?;
        let index = self.index(operand(operands, 2)?)?;
        let words = vector(&self.types, into.ty)?.0.words() as usize;
        expect_type(self.types.component(into.ty, 0)?.0, component.ty)?;
        expect_type(ty, into.ty)?;
        let mut values = into.values.to_vec();
        for (at, values) in (0..).zip(values.chunks_exact_mut(words)) {
            let here = self.is_index(index, at);
            for (value, &component) in values.iter_mut().zip(&*component.values) {
                *value = self.builder.select(here, component, *value);
            }
        }
        Ok(Composite { ty, values: values.into() })
    }

    /// The types may differ in decorations only, so they have the same scalars.
    pub(super) fn copy_logical(&mut self, ty: Id, operands: &[u32]) -> InstResult<Composite> {
        let from = self.value(operand(operands, 0)?)?;
        if self.types.scalars(ty)? != self.types.scalars(from.ty)? {
            return Err("the types do not match logically".into());
        }
        Ok(Composite { ty, values: from.values })
    }

    pub(super) fn select(&mut self, inst: &Inst, operands: &[u32]) -> InstResult<Composite> {
        let ty = inst.ty;
        self.check_pointer_type(ty)?;
        let condition = self.value(operand(operands, 0)?)?;
        let then = self.value(operand(operands, 1)?)?;
        let otherwise = self.value(operand(operands, 2)?)?;
        expect_type(ty, then.ty)?;
        expect_type(ty, otherwise.ty)?;
        check_condition(&self.types, condition.ty, ty)?;
        self.record_origin(ty, inst.id, operand(operands, 1)?)?;
        self.record_origin(ty, inst.id, operand(operands, 2)?)?;
        self.spend(then.values.len())?;
        let words = (then.values.len() / condition.values.len().max(1)).max(1);
        let mut values = Vec::with_capacity(then.values.len());
        for (at, (&then, &otherwise)) in then.values.iter().zip(&*otherwise.values).enumerate() {
            let condition = condition.values[(at / words).min(condition.values.len() - 1)];
            values.push(self.builder.select(condition, then, otherwise));
        }
        Ok(Composite { ty, values: values.into() })
    }
}
