//! Timestamps of a submission. The commands of a command buffer are shared by its submissions, so those that write
//! timestamps are recorded for each submission, to a query pool of its own.

use std::sync::Arc;

use spelter_driver::{CommandBuffer, Device, QueryPool, vk};

use crate::error::Error;

/// The time at a point of a submission: see [`Recorder::timestamp`](crate::Recorder::timestamp).
///
/// ```
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let commands = context.record(|commands| {
///     commands.timestamp("only");
///     Ok(())
/// })?;
/// let [first, second] = [context.submit(&commands)?.timestamps()?, context.submit(&commands)?.timestamps()?];
/// assert_eq!(&*first[0].label, "only");
/// assert!(first[0].nanoseconds <= second[0].nanoseconds);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timestamp {
    /// Its name.
    pub label: Arc<str>,
    /// Nanoseconds of the system's monotonic clock.
    pub nanoseconds: u64,
}

/// The timestamps of a submission.
#[derive(Debug)]
pub(crate) struct Timestamps {
    pool: QueryPool,
    labels: Vec<Arc<str>>,
}

impl Timestamps {
    /// A query for each label, and the command buffers that write them.
    pub(crate) fn new(device: &Device, labels: Vec<Arc<str>>) -> Result<(Self, Vec<CommandBuffer>), Error> {
        let count = labels.len() as u32;
        let pool = device.create_query_pool(vk::QueryType::TIMESTAMP, count)?;
        let commands_pool = device.create_command_pool();
        let write = |query| {
            let commands = commands_pool.allocate();
            commands.begin(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT)?;
            commands.write_timestamp(&pool, query)?;
            commands.end()?;
            Ok::<_, Error>(commands)
        };
        let commands = (0..count).map(write).collect::<Result<Vec<_>, _>>()?;
        Ok((Self { pool, labels }, commands))
    }

    /// Their values, in order. The submission is done.
    pub(crate) fn read(&self) -> Result<Vec<Timestamp>, Error> {
        let values = self.pool.results(0, self.labels.len() as u32, false)?;
        let written = self.labels.iter().zip(values);
        let written =
            written.filter_map(|(label, value)| Some(Timestamp { label: label.clone(), nanoseconds: value? }));
        Ok(written.collect())
    }
}
