//! Queries: timestamps that command buffers write, and that the host or buffers receive.

mod pool;
mod work;

pub(crate) use pool::Queries;
pub use pool::QueryPool;
pub(crate) use work::{QueryCommand, QueryWork, now};
