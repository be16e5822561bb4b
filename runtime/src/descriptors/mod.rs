//! Descriptor sets: the state that a program finds bound, and the cached set for that state.

mod cache;
mod key;
mod state;

pub(crate) use cache::SetCache;
pub(crate) use state::{ProgramStates, check_mapped, checked, resolve, used, wrong_kind};
