//! Types of the operands and of the results of image instructions.

use smallvec::SmallVec;

use super::Type;
use crate::image::{Class, ImageOp, Kind};

impl ImageOp {
    /// Type of the texels' components.
    pub fn component_type(&self) -> Type {
        type_of(self.class)
    }

    /// Type of the result; `None` for writes.
    pub fn result(&self) -> Option<Type> {
        (self.kind != Kind::Write).then(|| self.component_type())
    }

    /// Types of the operands after image and sampler: coordinates, layer, reference, gathered component, level of
    /// detail or derivatives (all along x first), offsets, minimum level, texel.
    pub fn params(&self) -> SmallVec<[Type; 16]> {
        self.operands().into_iter().map(type_of).collect()
    }
}

fn type_of(class: Class) -> Type {
    if class == Class::Float { Type::F32 } else { Type::I32 }
}
