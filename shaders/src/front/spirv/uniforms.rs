//! The scalars of uniform blocks, for tools that fill the buffers by themselves.

use std::collections::BTreeMap;

use spirv::{Op, StorageClass};

use super::layout::{Layout, Pointee};
use super::types::{Type, Types};
use super::variables::block_of;
use super::words::{Checked, Id};
use super::{Module, constants};
use crate::front::{Error, UniformScalar};

/// Scalars of a block, at most: a uniform buffer has 64 KiB.
const MAX_SCALARS: u32 = 1 << 16;

impl Module {
    /// By set and binding, the scalars of the uniform blocks that the module declares. Blocks with more than 65536 are
    /// left out.
    pub fn uniform_scalars(
        &self,
        specialization: &BTreeMap<u32, u64>,
    ) -> Result<BTreeMap<(u32, u32), Vec<UniformScalar>>, Error> {
        let sections = &self.sections;
        let (types, _) = constants::declare(sections, specialization)?;
        let mut all = BTreeMap::new();
        for inst in sections.declarations.iter().filter(|inst| inst.op == Op::Variable) {
            let place = sections.annotations.of(inst.id).and_then(|of| Some((of.set?, of.binding?)));
            let (Some(place), Ok(Some(block))) = (place, uniform_block(&types, inst.ty)) else { continue };
            let is_block = sections.annotations.of(block).is_some_and(|of| of.block);
            if is_block && types.get(block).is_ok_and(|info| info.scalars <= MAX_SCALARS) {
                let scalars = scalars(&types, block);
                all.insert(place, scalars.map_err(|message| sections.error(inst.word, message))?);
            }
        }
        Ok(all)
    }
}

/// The structure type of a pointer to a uniform block, or to an array of them.
fn uniform_block(types: &Types, pointer: Id) -> Checked<Option<Id>> {
    match types.get(pointer)?.ty {
        Type::Pointer { class: StorageClass::Uniform, pointee } => block_of(types, pointee).map(Some),
        _ => Ok(None),
    }
}

fn scalars(types: &Types, block: Id) -> Checked<Vec<UniformScalar>> {
    let mut spots = Vec::new();
    Pointee::new(block, Layout::Explicit).spots(types, 0, &mut spots)?;
    let mut scalars = Vec::with_capacity(spots.len());
    let mut spots = spots.into_iter();
    while let Some((offset, scalar)) = spots.next() {
        if scalar.words() == 2 {
            // The second word of the same scalar.
            spots.next();
        }
        scalars.push(UniformScalar { offset, bytes: scalar.bytes(), is_float: scalar.is_float() });
    }
    Ok(scalars)
}
