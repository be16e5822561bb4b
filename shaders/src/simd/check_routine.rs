//! Calls by which a kernel with checks tells an observer what its active lanes do.
//!
//! The first row has scalars of 8 bytes each: a bit for each active lane, the number of the subgroup, and a bit for
//! each lane with a compare-exchange that wrote. The other rows are operands, a word for each lane.

use crate::image::ImageOp;
use crate::ir::{Observed, ObservedKind, ObservedVariable, Site};

/// What is reported to an observer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CheckRoutine {
    /// An access or atomic on a buffer. Operands: numbers of buffers, byte offsets.
    Buffer(Observed),
    /// An access or atomic on a workgroup variable. Operands: byte offsets.
    Variable(Observed, ObservedVariable),
    /// An image instruction. Operands: numbers of images and samplers, the operands of [`ImageOp::params`].
    Image(Site, ImageOp),
    /// A memory barrier.
    Fence(Site),
    /// A control barrier at which the whole workgroup meets. The first row is not read.
    Barrier(Site),
    /// A control barrier of the subgroup.
    SubgroupBarrier(Site),
}

impl CheckRoutine {
    /// Place of the active lanes in the first row, in bytes.
    pub const ACTIVE: u32 = 0;
    /// Place of the subgroup's number.
    pub const SUBGROUP: u32 = 8;
    /// Place of the lanes that wrote.
    pub const WROTE: u32 = 16;

    /// Number of rows.
    pub fn rows(&self) -> u32 {
        match self {
            Self::Buffer(_) => 3,
            Self::Variable(..) => 2,
            Self::Image(_, op) => 3 + op.operands().len() as u32,
            Self::Fence(_) | Self::Barrier(_) | Self::SubgroupBarrier(_) => 1,
        }
    }

    /// The name in the text form: `buffer.plain.3.4`, with the site and the bytes.
    pub(super) fn name(&self) -> String {
        let of = |Observed { site, bytes, kind }: &Observed| format!("{}.{}.{bytes}", kind_name(*kind), site.as_u32());
        match self {
            Self::Buffer(what) => format!("buffer.{}", of(what)),
            Self::Variable(what, ObservedVariable { number, first, bytes }) => {
                format!("variable.{}.{number}.{first}.{bytes}", of(what))
            }
            Self::Image(site, op) => format!("image.{}.{}", site.as_u32(), op.name()),
            Self::Fence(site) => format!("fence.{}", site.as_u32()),
            Self::Barrier(site) => format!("barrier.{}", site.as_u32()),
            Self::SubgroupBarrier(site) => format!("subgroup_barrier.{}", site.as_u32()),
        }
    }

    /// The routine with this name.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        let (chapter, detail) = name.split_once('.')?;
        let site = |text: &str| text.parse().ok().filter(|&number| number < u32::MAX).map(Site::from_u32);
        let found = match chapter {
            "fence" => Self::Fence(site(detail)?),
            "barrier" => Self::Barrier(site(detail)?),
            "subgroup_barrier" => Self::SubgroupBarrier(site(detail)?),
            "image" => {
                let (number, op) = detail.split_once('.')?;
                Self::Image(site(number)?, ImageOp::from_name(op)?)
            }
            _ => {
                let (kind, numbers) = detail.split_once('.')?;
                let kind = KINDS.into_iter().find(|(_, name)| *name == kind)?.0;
                let (number, rest) = numbers.split_once('.')?;
                let rest: Vec<u32> = rest.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
                let observed = |bytes| Some(Observed { site: site(number)?, bytes, kind });
                match (chapter, &rest[..]) {
                    ("buffer", &[bytes]) => Self::Buffer(observed(bytes)?),
                    ("variable", &[of, number, first, bytes]) => {
                        Self::Variable(observed(of)?, ObservedVariable { number, first, bytes })
                    }
                    _ => return None,
                }
            }
        };
        (found.name() == name).then_some(found)
    }

    /// Checks that its parameters are valid.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        match self {
            Self::Image(_, op) => op.check(),
            Self::Buffer(what) | Self::Variable(what, _) if !matches!(what.bytes, 1 | 2 | 4 | 8) => {
                Err("a check is of 1, 2, 4 or 8 bytes")
            }
            Self::Variable(_, variable) if variable.first.checked_add(variable.bytes).is_none() => {
                Err("a variable is outside of workgroup memory")
            }
            _ => Ok(()),
        }
    }
}

/// Names of what an access does.
const KINDS: [(ObservedKind, &str); 4] = [
    (ObservedKind::Plain, "plain"),
    (ObservedKind::AtomicRead, "atomic_read"),
    (ObservedKind::AtomicWrite, "atomic_write"),
    (ObservedKind::CompareExchange, "compare_exchange"),
];

fn kind_name(kind: ObservedKind) -> &'static str {
    KINDS.into_iter().find(|(other, _)| *other == kind).map_or("", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for name in [
            "buffer.plain.3.4",
            "variable.compare_exchange.0.8.1.16.32",
            "image.7.read.2d.float.0",
            "fence.0",
            "barrier.12",
            "subgroup_barrier.1",
        ] {
            assert_eq!(CheckRoutine::from_name(name).map(|routine| routine.name()).as_deref(), Some(name));
        }
        for name in
            ["buffer.plain.3", "buffer.plain.3.4.5", "fence.x", "fence.4294967295", "barrier", "variable.plain.1.4"]
        {
            assert_eq!(CheckRoutine::from_name(name), None, "{name}");
        }
    }
}
