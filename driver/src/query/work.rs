//! Commands on queries, run when their phase is reached.

use std::ops::Range;
use std::sync::Arc;

use ash::vk::QueryResultFlags as Flags;
use spelter_shaders::guest::GuestSlice;

use super::Queries;

/// A command on queries of one pool.
#[derive(Clone, Debug)]
pub(crate) struct QueryWork {
    /// The pool's values.
    pub(crate) queries: Arc<Queries>,
    /// The first query.
    pub(crate) first: u32,
    /// What to do with it, or with it and the following ones.
    pub(crate) what: QueryCommand,
}

/// The kinds of commands on queries.
#[derive(Clone, Debug)]
pub(crate) enum QueryCommand {
    /// `vkCmdWriteTimestamp`.
    Timestamp,
    /// `vkCmdResetQueryPool`, with the number of queries.
    Reset(u32),
    /// `vkCmdCopyQueryPoolResults`.
    Copy {
        /// Number of queries.
        count: u32,
        /// The bytes to write, beginning with the first query.
        to: GuestSlice,
        /// Bytes from one query to the next.
        stride: u64,
        /// Width of the values, and whether the availability follows each.
        flags: Flags,
    },
}

impl QueryWork {
    /// The command's name in timelines.
    pub(crate) fn name(&self) -> &'static str {
        match self.what {
            QueryCommand::Timestamp => "timestamp",
            QueryCommand::Reset(_) => "reset queries",
            QueryCommand::Copy { .. } => "copy queries",
        }
    }

    /// The addresses that a copy of results may write, and that it writes if all are available.
    pub(crate) fn written(&self) -> Vec<Range<u64>> {
        let QueryCommand::Copy { count, to, stride, flags } = self.what else { return Vec::new() };
        let word = if flags.contains(Flags::TYPE_64) { 8 } else { 4 };
        let bytes = if flags.contains(Flags::WITH_AVAILABILITY) { 2 * word } else { word };
        let start = to.address() as u64;
        (0..u64::from(count)).map(|at| start + at * stride..start + at * stride + bytes).collect()
    }

    /// Runs the command. All commands before it must be done.
    pub(crate) fn run(&self) {
        match self.what {
            QueryCommand::Timestamp => self.queries.set(self.first, now()),
            QueryCommand::Reset(count) => self.queries.reset(self.first, count),
            QueryCommand::Copy { count, to, stride, flags } => {
                for at in 0..count {
                    let value = self.queries.get(self.first + at);
                    write(value, flags, |offset, bytes| to.write(u64::from(at) * stride + offset, bytes));
                }
            }
        }
    }
}

/// Writes a result in the form that `VkQueryResultFlags` asks for. An unavailable value is not written, except as 0
/// with `PARTIAL`.
fn write(value: Option<u64>, flags: Flags, mut put: impl FnMut(u64, &[u8])) {
    let wide = flags.contains(Flags::TYPE_64);
    let width = if wide { 8 } else { 4 };
    let mut word = |at: u64, value: u64| put(at * width, &value.to_le_bytes()[..width as usize]);
    if let Some(value) = value.or(flags.contains(Flags::PARTIAL).then_some(0)) {
        word(0, value);
    }
    if flags.contains(Flags::WITH_AVAILABILITY) {
        word(1, u64::from(value.is_some()));
    }
}

/// Nanoseconds of the monotonic clock (`VK_TIME_DOMAIN_CLOCK_MONOTONIC_KHR`).
#[cfg(unix)]
pub(crate) fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// Nanoseconds since the first call.
#[cfg(not(unix))]
pub(crate) fn now() -> u64 {
    static START: spelter_locks::Computed<std::time::Instant> = spelter_locks::Computed::new();
    START.get_or_compute(std::time::Instant::now).elapsed().as_nanos() as u64
}
