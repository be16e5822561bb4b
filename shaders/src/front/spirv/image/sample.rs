//! Fetches, samples and gathers: image instructions with ordered operands.

use super::super::composite::Composite;
use super::super::scalar::Scalar;
use super::super::translate::Translator;
use super::super::types::SpirvType;
use super::super::words::{Inst, InstResult, operand};
use super::Handle;
use super::operands::{Extra, Scalars};
use crate::image::{Dim, ImageOp, Kind, LodOperand, Offsets};
use crate::ir::{Access, InstData, Op, Value};

impl Translator<'_> {
    /// `OpImageFetch`.
    pub(in crate::front::spirv) fn image_fetch(&mut self, inst: &Inst, operands: &[u32]) -> InstResult<()> {
        let handle = self.handle(operand(operands, 0)?)?;
        if handle.ty.storage || handle.ty.dim == Dim::Cube {
            return Err("fetches need a sampled image other than a cube".into());
        }
        let extra = self.image_operands(operands.get(2..).unwrap_or_default())?;
        let mut op = ImageOp::new(Kind::Read, handle.ty.dim, handle.ty.arrayed, handle.ty.class);
        let mut args = self.integers_of(operand(operands, 1)?, handle.ty.texel_coordinates())?;
        if let Some(lod) = extra.lod.filter(|_| op.dim != Dim::Buffer) {
            op.lod = LodOperand::Lod;
            args.extend(self.integers_of(lod, 1)?);
        }
        self.one_offset(&mut op, &extra, &mut args)?;
        self.texel_result(inst, op, handle, args, extra.access)
    }

    /// `OpImageSample…ExplicitLod`.
    pub(in crate::front::spirv) fn sample(
        &mut self,
        inst: &Inst,
        operands: &[u32],
        dref: bool,
        project: bool,
    ) -> InstResult<()> {
        let (handle, _) = self.with_sampler(operand(operands, 0)?)?;
        let own = if dref { 3 } else { 2 };
        let extra = self.image_operands(operands.get(own..).unwrap_or_default())?;
        let dims = handle.ty.dim.coordinates();
        let mut op = ImageOp::new(Kind::Sample, handle.ty.dim, handle.ty.arrayed, handle.ty.class);
        op.dref = dref;
        let count = dims + usize::from(handle.ty.arrayed || project);
        let mut args = self.scalars_of(operand(operands, 1)?, Scalar::F32, count)?;
        if dref {
            args.push(self.scalar(operand(operands, 2)?, Scalar::F32)?);
        }
        if project {
            if handle.ty.arrayed || handle.ty.dim == Dim::Cube {
                return Err("projections need an image without layers, other than a cube".into());
            }
            let divisor = args.remove(dims);
            for arg in &mut args {
                *arg = self.builder.pure(Op::FDiv, &[*arg, divisor]);
            }
        }
        match (extra.lod, extra.grad) {
            (Some(lod), None) => {
                op.lod = LodOperand::Lod;
                args.push(self.scalar(lod, Scalar::F32)?);
            }
            (None, Some(grad)) => {
                op.lod = LodOperand::Grad;
                for change in grad {
                    args.extend(self.scalars_of(change, Scalar::F32, dims)?);
                }
            }
            _ => return Err("a sample needs either Lod or Grad".into()),
        }
        self.one_offset(&mut op, &extra, &mut args)?;
        if let Some(min_lod) = extra.min_lod {
            op.min_lod = true;
            args.push(self.scalar(min_lod, Scalar::F32)?);
        }
        if dref {
            return self.comparison_result(inst, op, handle, args);
        }
        self.texel_result(inst, op, handle, args, extra.access)
    }

    /// `OpImageGather` and `OpImageDrefGather`.
    pub(in crate::front::spirv) fn gather(&mut self, inst: &Inst, operands: &[u32], dref: bool) -> InstResult<()> {
        let (handle, _) = self.with_sampler(operand(operands, 0)?)?;
        let extra = self.image_operands(operands.get(3..).unwrap_or_default())?;
        let mut op = ImageOp::new(Kind::Gather, handle.ty.dim, handle.ty.arrayed, handle.ty.class);
        op.dref = dref;
        let count = handle.ty.dim.coordinates() + usize::from(handle.ty.arrayed);
        let mut args = self.scalars_of(operand(operands, 1)?, Scalar::F32, count)?;
        let third = operand(operands, 2)?;
        args.push(if dref { self.scalar(third, Scalar::F32)? } else { self.integer(third)? });
        match extra.four_offsets {
            Some(offsets) => {
                op.offsets = Offsets::Four;
                args.extend(self.integers_of(offsets, 8)?);
            }
            None => self.one_offset(&mut op, &extra, &mut args)?,
        }
        self.texel_result(inst, op, handle, args, extra.access)
    }

    fn one_offset(&mut self, op: &mut ImageOp, extra: &Extra, args: &mut Scalars) -> InstResult<()> {
        if let Some(offset) = extra.offset {
            op.offsets = Offsets::One;
            args.extend(self.integers_of(offset, op.dim.coordinates())?);
        }
        Ok(())
    }

    /// An instruction whose result is a vector of four components.
    pub(super) fn texel_result(
        &mut self,
        inst: &Inst,
        op: ImageOp,
        handle: Handle,
        args: Scalars,
        access: Access,
    ) -> InstResult<()> {
        let scalars = self.types.scalars(inst.ty)?;
        let fits = matches!(self.types.get(inst.ty)?.ty, SpirvType::Vector { .. } | SpirvType::Scalar(_));
        if !fits || scalars.iter().any(|scalar| scalar.ty() != op.component_type()) {
            return Err("the result does not have the image's sampled type".into());
        }
        let values = (0..scalars.len() as u8)
            .map(|component| self.image_value(ImageOp { component, ..op }, handle, &args, access))
            .collect::<InstResult<_>>()?;
        self.bind(inst.id, Composite { ty: inst.ty, values });
        Ok(())
    }

    /// A comparison, which returns one float.
    fn comparison_result(&mut self, inst: &Inst, op: ImageOp, handle: Handle, args: Scalars) -> InstResult<()> {
        if !matches!(self.types.get(inst.ty)?.ty, SpirvType::Scalar(Scalar::F32)) {
            return Err("the result is not a float".into());
        }
        let value = self.image_value(op, handle, &args, Access::default())?;
        self.bind(inst.id, Composite { ty: inst.ty, values: std::rc::Rc::from([value]) });
        Ok(())
    }

    fn image_value(&mut self, op: ImageOp, handle: Handle, args: &Scalars, access: Access) -> InstResult<Value> {
        op.check()?;
        let sampler = handle.sampler.filter(|_| op.has_sampler());
        let data = InstData::Image { op, image: handle.image, sampler, args: args.clone(), access };
        Ok(self.builder.push_value(data, op.component_type()))
    }
}
