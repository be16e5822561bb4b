//! Short words for the layouts that tests of this folder compare.

use super::{DataLayout, DataMember, ScalarType};

pub(super) const F32: ScalarType = ScalarType::Float(32);

pub(super) fn member(name: &str, offset: u64, layout: DataLayout) -> DataMember {
    DataMember { name: name.into(), offset, layout }
}

pub(super) fn structure(members: Vec<DataMember>) -> DataLayout {
    DataLayout::Struct { name: "Params".into(), members }
}
