//! Queries: timestamps that command buffers write, and that the host or buffers receive.

mod pool;
mod values;
mod work;

pub use pool::QueryPool;
pub(crate) use values::Queries;
pub(crate) use work::{QueryCommand, QueryWork, now};
