//! Names of context fields and 64-bit operations in the text form, shared by printer and parser.

use std::fmt::{self, Display, Formatter};

use super::{ContextField, WideOp};

impl WideOp {
    /// The operation with this [`WideOp::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.name() == name)
    }
}

impl ContextField {
    /// The field with this printed name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "row_end" => return Some(Self::RowEnd),
            "push" => return Some(Self::Push),
            "shared" => return Some(Self::Shared),
            "private" => return Some(Self::Private),
            "frames" => return Some(Self::Frames),
            "calls" => return Some(Self::Calls),
            "tables" => return Some(Self::Tables),
            "subgroup_order" => return Some(Self::SubgroupOrder),
            _ => {}
        }
        let (name, digits) = name.split_once('.')?;
        // Only the printed spelling is accepted.
        let component: u8 = digits.parse().ok()?;
        (digits == "0" || !digits.starts_with(['0', '+'])).then_some(())?;
        match name {
            "num_workgroups" => Some(Self::NumWorkgroups(component)),
            "workgroup_id" => Some(Self::WorkgroupId(component)),
            _ => None,
        }
    }
}

impl Display for ContextField {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NumWorkgroups(component) => write!(f, "num_workgroups.{component}"),
            Self::WorkgroupId(component) => write!(f, "workgroup_id.{component}"),
            Self::RowEnd => f.write_str("row_end"),
            Self::Push => f.write_str("push"),
            Self::Shared => f.write_str("shared"),
            Self::Private => f.write_str("private"),
            Self::Frames => f.write_str("frames"),
            Self::Calls => f.write_str("calls"),
            Self::Tables => f.write_str("tables"),
            Self::SubgroupOrder => f.write_str("subgroup_order"),
        }
    }
}
