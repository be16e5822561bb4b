//! Descriptor sets: the state that a program finds bound, and the cached set for that state.

mod cache;
mod key;
mod state;

pub(crate) use cache::{SetCache, allocate, write_one};
pub(crate) use state::{ProgramState, ProgramStates, check_mapped, checked, next_number, resolve, used, wrong_kind};
