//! Observed properties of an access in checked mode, whatever engine runs it: all that its check says, apart from the
//! address.

use super::{AtomicOp, Kernel, Site, Variable, VariableData, VariableSpace, Width};

/// What is observed of an access or atomic, whatever its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Observed {
    /// The instruction.
    pub site: Site,
    /// Bytes that are accessed.
    pub bytes: u32,
    /// What it does to them.
    pub kind: ObservedKind,
}

/// Whether an access is atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObservedKind {
    /// A load or store.
    Plain,
    /// An atomic that never writes.
    AtomicRead,
    /// An atomic that always writes.
    AtomicWrite,
    /// A compare-exchange: an operand says whether it wrote.
    CompareExchange,
}

/// A workgroup variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObservedVariable {
    /// Its number among the workgroup variables, which passes do not change.
    pub number: u32,
    /// Where it begins in workgroup memory, in bytes.
    pub first: u32,
    /// Its size.
    pub bytes: u32,
}

impl ObservedVariable {
    /// A workgroup variable of a kernel that begins at a byte of workgroup memory.
    pub fn new(kernel: &Kernel, variable: Variable, first: u32) -> Self {
        let of_workgroup = |data: &&VariableData| data.space == VariableSpace::Workgroup;
        let before = kernel.variables.values().take(variable.as_u32() as usize).filter(of_workgroup);
        Self { number: before.count() as u32, first, bytes: kernel.variables[variable].bytes }
    }
}

impl Observed {
    /// A load or store.
    pub fn access(site: Site, width: Width) -> Self {
        Self { site, bytes: width.bytes(), kind: ObservedKind::Plain }
    }

    /// An atomic.
    pub fn atomic(site: Site, op: AtomicOp, bytes: u32) -> Self {
        let kind = match op {
            AtomicOp::CompareExchange => ObservedKind::CompareExchange,
            op if op.is_load() => ObservedKind::AtomicRead,
            _ => ObservedKind::AtomicWrite,
        };
        Self { site, bytes, kind }
    }
}
