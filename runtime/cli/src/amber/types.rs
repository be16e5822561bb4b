//! Data types of buffers: scalars, vectors, matrices, arrays, structures, and texels of an image format.

use std::collections::HashMap;
use std::rc::Rc;

use super::number::AmberScalar;
use super::texel::Texel;

/// The data type of a buffer or of a structure's member.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Type {
    /// `int32`.
    Scalar(AmberScalar),
    /// `vec3<int32>`.
    Vector(AmberScalar, u32),
    /// `mat2x3<float>`: columns, then rows; column-major.
    Matrix {
        /// The type of its elements.
        scalar: AmberScalar,
        /// Columns.
        columns: u32,
        /// Scalars of a column.
        rows: u32,
    },
    /// `float[4]`, or `float[]`, whose length is that of the buffer.
    Array(Box<Type>, Option<u32>),
    /// A `STRUCT`.
    Struct(Rc<Struct>),
    /// `R8G8B8A8_UNORM`.
    Texel(Texel),
}

/// A `STRUCT`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Struct {
    /// `STRIDE`: the distance between two of them, in bytes.
    pub(crate) stride: Option<u32>,
    /// In order.
    pub(crate) members: Vec<Member>,
}

/// A member of a `STRUCT`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    /// Its name.
    pub(crate) name: String,
    /// Its type.
    pub(crate) ty: Type,
    /// `OFFSET` in bytes.
    pub(crate) offset: Option<u32>,
    /// `ARRAY_STRIDE` in bytes.
    pub(crate) array_stride: Option<u32>,
    /// `MATRIX_STRIDE` in bytes.
    pub(crate) matrix_stride: Option<u32>,
}

impl Type {
    /// A type by its name; structures are looked up.
    pub(crate) fn parse(text: &str, structs: &HashMap<String, Rc<Struct>>) -> Option<Self> {
        if let Some((element, count)) = text.strip_suffix(']').and_then(|text| text.rsplit_once('[')) {
            let count = if count.is_empty() { None } else { Some(count.parse().ok().filter(|n| *n > 0)?) };
            return Some(Self::Array(Box::new(Self::parse(element, structs)?), count));
        }
        if let Some(found) = structs.get(text) {
            return Some(Self::Struct(Rc::clone(found)));
        }
        if let Some(scalar) = AmberScalar::named(text) {
            return Some(Self::Scalar(scalar));
        }
        if let Some((shape, scalar)) = text.strip_suffix('>').and_then(|text| text.split_once('<')) {
            let scalar = AmberScalar::named(scalar)?;
            if let Some(count) = shape.strip_prefix("vec") {
                return Some(Self::Vector(scalar, extent(count)?));
            }
            let (columns, rows) = shape.strip_prefix("mat")?.split_once('x')?;
            return Some(Self::Matrix { scalar, columns: extent(columns)?, rows: extent(rows)? });
        }
        Texel::named(text).map(Self::Texel)
    }

    /// The image format that has these components, for images that are declared with a data type.
    pub(crate) fn texel(&self) -> Option<Texel> {
        match self {
            Self::Texel(texel) => Some(texel.clone()),
            Self::Scalar(scalar) => Texel::of(*scalar, 1),
            Self::Vector(scalar, count) => Texel::of(*scalar, *count),
            Self::Array(element, _) => element.texel(),
            _ => None,
        }
    }
}

/// 2, 3 or 4.
fn extent(text: &str) -> Option<u32> {
    text.parse().ok().filter(|count| (2..=4).contains(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amber::number::Kind;

    const FLOAT: AmberScalar = AmberScalar { kind: Kind::Float, bits: 32 };

    fn parse(text: &str) -> Option<Type> {
        Type::parse(text, &HashMap::new())
    }

    #[test]
    fn types_have_names() {
        assert_eq!(parse("float"), Some(Type::Scalar(FLOAT)));
        assert_eq!(parse("vec3<float>"), Some(Type::Vector(FLOAT, 3)));
        assert_eq!(parse("mat2x3<float>"), Some(Type::Matrix { scalar: FLOAT, columns: 2, rows: 3 }));
        assert_eq!(parse("float[]"), Some(Type::Array(Box::new(Type::Scalar(FLOAT)), None)));
        assert_eq!(parse("vec2<float>[7]"), Some(Type::Array(Box::new(Type::Vector(FLOAT, 2)), Some(7))));
        assert!(matches!(parse("R8G8B8A8_UNORM"), Some(Type::Texel(_))));
    }

    #[test]
    fn other_names_are_no_types() {
        for wrong in [
            "",
            "int",
            "vec5<float>",
            "vec2<vec2<float>>",
            "mat2<float>",
            "mat1x2<float>",
            "float[0]",
            "float[-1]",
            "]",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn images_may_be_declared_by_data_type() {
        let name = |text| parse(text).and_then(|ty| ty.texel()).map(|texel| texel.name);
        assert_eq!(name("vec4<float>").as_deref(), Some("R32G32B32A32_SFLOAT"));
        assert_eq!(name("uint8").as_deref(), Some("R8_UINT"));
        assert_eq!(name("mat2x2<float>"), None);
    }
}
