//! Queries in command buffers. Each of these commands runs after all earlier commands.

use std::sync::Arc;

use ash::vk::{BufferUsageFlags, QueryResultFlags as Flags};

use super::CommandBuffer;
use crate::error::{Error, Misuse, require};
use crate::exec::Work;
use crate::query::{QueryCommand, QueryWork};
use crate::resource::{Buffer, BufferRules, QueryPool};

const COPY: &str = "vkCmdCopyQueryPoolResults";

const COPY_TO: BufferRules = BufferRules {
    at: "dstBuffer",
    usage: BufferUsageFlags::TRANSFER_DST,
    usage_vuid: "VUID-vkCmdCopyQueryPoolResults-dstBuffer-00825",
    memory_vuid: "VUID-vkCmdCopyQueryPoolResults-dstBuffer-00826",
    parent_vuid: "VUID-vkCmdCopyQueryPoolResults-commonparent",
};

impl CommandBuffer {
    /// `vkCmdWriteTimestamp`, `vkCmdWriteTimestamp2`: the time when all earlier commands are done, whatever the stage.
    pub fn write_timestamp(&self, pool: &QueryPool, query: u32) -> Result<(), Error> {
        let vuid = "VUID-vkCmdWriteTimestamp-query-04904";
        self.query("vkCmdWriteTimestamp", [vuid; 2], pool, query, 1, QueryCommand::Timestamp)
    }

    /// `vkCmdResetQueryPool`.
    pub fn reset_query_pool(&self, pool: &QueryPool, first: u32, count: u32) -> Result<(), Error> {
        let vuids = ["VUID-vkCmdResetQueryPool-firstQuery-09436", "VUID-vkCmdResetQueryPool-firstQuery-09437"];
        self.query("vkCmdResetQueryPool", vuids, pool, first, count, QueryCommand::Reset(count))
    }

    /// `vkCmdCopyQueryPoolResults`: writes the values in the format that the flags select, `stride` bytes apart. All
    /// timestamps written earlier on this queue are available.
    #[expect(clippy::too_many_arguments, reason = "Vulkan's own")]
    pub fn copy_query_pool_results(
        &self,
        pool: &QueryPool,
        first: u32,
        count: u32,
        to: &Buffer,
        offset: u64,
        stride: u64,
        flags: Flags,
    ) -> Result<(), Error> {
        let target = {
            let mut recorder = self.recorder(COPY, "VUID-vkCmdCopyQueryPoolResults-commandBuffer-recording")?;
            let target = to.checked(&recorder.device, &COPY_TO)?;
            check_place(count, to.size(), offset, stride, flags)?;
            recorder.keep(&target.allocation);
            target.slice.slice(offset, to.size() - offset)
        };
        let vuids =
            ["VUID-vkCmdCopyQueryPoolResults-firstQuery-09436", "VUID-vkCmdCopyQueryPoolResults-firstQuery-09437"];
        self.query(COPY, vuids, pool, first, count, QueryCommand::Copy { count, to: target, stride, flags })
    }

    fn query(
        &self,
        at: &'static str,
        vuids: [&'static str; 2],
        pool: &QueryPool,
        first: u32,
        count: u32,
        what: QueryCommand,
    ) -> Result<(), Error> {
        let mut recorder = self.recorder(at, "VUID-vkCmdResetQueryPool-commandBuffer-recording")?;
        let same = pool.device().is(&recorder.device);
        require(same, at, "VUID-vkCmdResetQueryPool-commonparent", || "a query pool of another device".into())?;
        pool.check(at, vuids, first, count)?;
        recorder.add_alone(Work::Query(QueryWork { queries: Arc::clone(pool.queries()), first, what }), &[]);
        Ok(())
    }
}

/// Checks that the results fit into the destination.
fn check_place(count: u32, size: u64, offset: u64, stride: u64, flags: Flags) -> Result<(), Misuse> {
    let wide = flags.contains(Flags::TYPE_64);
    let (word, vuid) = if wide {
        (8, "VUID-vkCmdCopyQueryPoolResults-flags-00823")
    } else {
        (4, "VUID-vkCmdCopyQueryPoolResults-flags-00822")
    };
    require(offset < size, COPY, "VUID-vkCmdCopyQueryPoolResults-dstOffset-00819", || {
        format!("dstOffset {offset} in a buffer of {size} bytes")
    })?;
    let aligned = offset.is_multiple_of(word) && (count <= 1 || stride.is_multiple_of(word));
    require(aligned, COPY, vuid, || format!("dstOffset {offset} and stride {stride} for results of {word} bytes"))?;
    let one = word * if flags.contains(Flags::WITH_AVAILABILITY) { 2 } else { 1 };
    let needed = u64::from(count.saturating_sub(1)).checked_mul(stride).and_then(|last| last.checked_add(one));
    let fits = needed.is_some_and(|needed| needed <= size - offset);
    require(fits, COPY, "VUID-vkCmdCopyQueryPoolResults-dstBuffer-00824", || {
        format!("{count} results, {stride} bytes apart, at offset {offset} in a buffer of {size} bytes")
    })
}
