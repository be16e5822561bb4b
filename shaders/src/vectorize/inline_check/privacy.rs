//! Whether the plain accesses to a memory are private. Cells do not say it, so machine code may settle accesses only
//! where all are alike.

use crate::ir::{SiteAction, StorageClass};

/// Whether plain accesses are private.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Privacy {
    /// There are none.
    NoAccess,
    /// All are alike.
    Alike(bool),
    Mixed,
}

impl Privacy {
    /// That of an instruction. Images have attributes of their own.
    pub(super) fn of(action: &SiteAction) -> Self {
        match action {
            SiteAction::Read(access) | SiteAction::Write(access) if access.class != StorageClass::Image => {
                Self::Alike(access.is_private())
            }
            _ => Self::NoAccess,
        }
    }

    /// That of the accesses of both.
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (known, Self::NoAccess) | (Self::NoAccess, known) => known,
            (one, other) if one == other => one,
            _ => Self::Mixed,
        }
    }

    /// Whether all accesses are private; `None` if they differ.
    fn known(self) -> Option<bool> {
        match self {
            Self::NoAccess => Some(false),
            Self::Alike(private) => Some(private),
            Self::Mixed => None,
        }
    }
}

/// The privacy of the accesses that a kernel reports.
#[derive(Debug)]
pub(super) struct Privacies {
    /// Of each descriptor of the checks.
    pub(super) descriptors: Vec<Privacy>,
    /// Of each variable of the checks.
    pub(super) variables: Vec<Privacy>,
    /// Of what may access any descriptor's memory.
    pub(super) anywhere: Privacy,
}

impl Privacies {
    pub(super) fn new() -> Self {
        Self { descriptors: Vec::new(), variables: Vec::new(), anywhere: Privacy::NoAccess }
    }

    /// Of each descriptor whether all accesses that may be to its memory are private; `None` if they differ.
    pub(super) fn of_descriptors(&self) -> Vec<Option<bool>> {
        self.descriptors.iter().map(|privacy| privacy.and(self.anywhere).known()).collect()
    }

    /// The same of each variable.
    pub(super) fn of_variables(&self) -> Vec<Option<bool>> {
        self.variables.iter().map(|privacy| privacy.known()).collect()
    }
}
