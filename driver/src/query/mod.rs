//! Queries: timestamps that command buffers write, and that the host or buffers receive. Their pools are in
//! `resource/`.

mod values;
mod work;

pub(crate) use values::Queries;
pub(crate) use work::{QueryCommand, QueryWork, now};
