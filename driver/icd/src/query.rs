//! Queries: timestamps.

use std::ffi::c_void;

use ash::vk;
use spelter_driver as driver;

use crate::buffer::Buffer;
use crate::c::entry::entry_points;
use crate::c::{In, InOut, Many, Out, OutMany, list};
use crate::command::CommandBuffer;
use crate::device::Device;
use crate::error::{Error, require};
use crate::physical_device::PhysicalDevice;
use crate::table::{Object, Ref, object};

entry_points! {
    PFN_vkCreateQueryPool(
        device: vk::Device, p_create_info: *const vk::QueryPoolCreateInfo<'_>,
        p_allocator: *const vk::AllocationCallbacks<'_>, p_query_pool: *mut vk::QueryPool,
    ) -> vk::Result => create;
    PFN_vkDestroyQueryPool(
        device: vk::Device, query_pool: vk::QueryPool, p_allocator: *const vk::AllocationCallbacks<'_>,
    ) => destroy;
    PFN_vkResetQueryPool(device: vk::Device, query_pool: vk::QueryPool, first_query: u32, query_count: u32) => reset;
    PFN_vkGetQueryPoolResults(
        device: vk::Device, query_pool: vk::QueryPool, first_query: u32, query_count: u32, data_size: usize,
        p_data: *mut c_void, stride: vk::DeviceSize, flags: vk::QueryResultFlags,
    ) -> vk::Result => results;
    PFN_vkCmdResetQueryPool(
        command_buffer: vk::CommandBuffer, query_pool: vk::QueryPool, first_query: u32, query_count: u32,
    ) => cmd_reset;
    PFN_vkCmdWriteTimestamp(
        command_buffer: vk::CommandBuffer, pipeline_stage: vk::PipelineStageFlags, query_pool: vk::QueryPool,
        query: u32,
    ) => cmd_timestamp;
    PFN_vkCmdWriteTimestamp2(
        command_buffer: vk::CommandBuffer, stage: vk::PipelineStageFlags2, query_pool: vk::QueryPool, query: u32,
    ) => cmd_timestamp2;
    PFN_vkCmdCopyQueryPoolResults(
        command_buffer: vk::CommandBuffer, query_pool: vk::QueryPool, first_query: u32, query_count: u32,
        dst_buffer: vk::Buffer, dst_offset: vk::DeviceSize, stride: vk::DeviceSize, flags: vk::QueryResultFlags,
    ) => cmd_copy;
    PFN_vkCmdBeginQuery(
        command_buffer: vk::CommandBuffer, query_pool: vk::QueryPool, query: u32, flags: vk::QueryControlFlags,
    ) => cmd_begin;
    PFN_vkGetPhysicalDeviceCalibrateableTimeDomainsKHR(
        physical_device: vk::PhysicalDevice, p_time_domain_count: *mut u32, p_time_domains: *mut vk::TimeDomainKHR,
    ) -> vk::Result => time_domains;
    PFN_vkGetCalibratedTimestampsKHR(
        device: vk::Device, timestamp_count: u32, p_timestamp_infos: *const vk::CalibratedTimestampInfoKHR<'_>,
        p_timestamps: *mut u64, p_max_deviation: *mut u64,
    ) -> vk::Result => calibrated;
    PFN_vkCmdEndQuery(command_buffer: vk::CommandBuffer, query_pool: vk::QueryPool, query: u32) => cmd_end;
}

/// The time domains that can be read together: all are the same clock.
const DOMAINS: [vk::TimeDomainKHR; 2] = [vk::TimeDomainKHR::DEVICE, vk::TimeDomainKHR::CLOCK_MONOTONIC];

fn time_domains(
    _: Ref<PhysicalDevice>,
    count: InOut<'_, u32>,
    out: OutMany<'_, vk::TimeDomainKHR>,
) -> Result<vk::Result, Error> {
    Ok(list(count, out, DOMAINS.into_iter()))
}

/// Reads the clock once for all time domains.
fn calibrated(
    device: Ref<Device>,
    count: u32,
    infos: Many<'_, vk::CalibratedTimestampInfoKHR<'_>>,
    times: OutMany<'_, u64>,
    mut deviation: Out<'_, u64>,
) -> Result<(), Error> {
    let infos = infos.of(count as usize);
    for info in infos.iter() {
        let domain = info.time_domain;
        let vuid = "VUID-VkCalibratedTimestampInfoKHR-timeDomain-02354";
        require(DOMAINS.contains(&domain), "vkGetCalibratedTimestampsKHR", vuid, || format!("timeDomain {domain:?}"))?;
    }
    times.put(infos.len(), std::iter::repeat(device.driver.timestamp()));
    deviation.put(1);
    Ok(())
}

/// `VkQueryPool`.
pub(crate) struct QueryPool {
    driver: driver::QueryPool,
}

object!(QueryPool: vk::QueryPool);

fn create(
    device: Ref<Device>,
    info: In<'_, vk::QueryPoolCreateInfo<'_>>,
    _: *const vk::AllocationCallbacks<'_>,
    mut out: Out<'_, vk::QueryPool>,
) -> Result<(), Error> {
    out.put(QueryPool { driver: device.driver.create_query_pool(info.query_type, info.query_count)? }.insert()?);
    Ok(())
}

fn destroy(_: Ref<Device>, pool: vk::QueryPool, _: *const vk::AllocationCallbacks<'_>) -> Result<(), Error> {
    QueryPool::remove(pool, "vkDestroyQueryPool-queryPool").map(|_| ())
}

fn reset(_: Ref<Device>, pool: Ref<QueryPool>, first: u32, count: u32) -> Result<(), Error> {
    Ok(pool.driver.reset(first, count)?)
}

#[expect(clippy::too_many_arguments, reason = "the prototype is Vulkan's")]
fn results(
    _: Ref<Device>,
    pool: Ref<QueryPool>,
    first: u32,
    count: u32,
    size: usize,
    out: OutMany<'_, c_void>,
    stride: u64,
    flags: vk::QueryResultFlags,
) -> Result<vk::Result, Error> {
    let values = pool.driver.results(first, count, flags.contains(vk::QueryResultFlags::WAIT))?;
    let width = if flags.contains(vk::QueryResultFlags::TYPE_64) { 8 } else { 4 };
    let fields = if flags.contains(vk::QueryResultFlags::WITH_AVAILABILITY) { 2 } else { 1 };
    let (stride, at) = (usize::try_from(stride).unwrap_or(usize::MAX), "vkGetQueryPoolResults");
    let needed = (count as usize).saturating_sub(1).saturating_mul(stride).saturating_add(fields * width);
    require(needed <= size || count == 0, at, "VUID-vkGetQueryPoolResults-dataSize-00817", || {
        format!("dataSize is {size}, {needed} bytes are needed")
    })?;
    let complete = values.iter().all(Option::is_some);
    for (index, value) in values.into_iter().enumerate() {
        let partial = flags.contains(vk::QueryResultFlags::PARTIAL).then_some(0);
        if let Some(known) = value.or(partial) {
            out.put_bytes_at(index * stride, &known.to_le_bytes()[..width]);
        }
        if fields == 2 {
            let available = u64::from(value.is_some());
            out.put_bytes_at(index * stride + width, &available.to_le_bytes()[..width]);
        }
    }
    Ok(if complete { vk::Result::SUCCESS } else { vk::Result::NOT_READY })
}

fn cmd_reset(commands: Ref<CommandBuffer>, pool: vk::QueryPool, first: u32, count: u32) -> Result<(), Error> {
    commands.add(|into| {
        let pool = QueryPool::get(pool, "vkCmdResetQueryPool-queryPool")?;
        Ok(into.reset_query_pool(&pool.driver, first, count)?)
    })
}

fn cmd_timestamp(
    commands: Ref<CommandBuffer>,
    _: vk::PipelineStageFlags,
    pool: vk::QueryPool,
    query: u32,
) -> Result<(), Error> {
    commands.add(|into| {
        let pool = QueryPool::get(pool, "vkCmdWriteTimestamp-queryPool")?;
        Ok(into.write_timestamp(&pool.driver, query)?)
    })
}

fn cmd_timestamp2(
    commands: Ref<CommandBuffer>,
    _: vk::PipelineStageFlags2,
    pool: vk::QueryPool,
    query: u32,
) -> Result<(), Error> {
    cmd_timestamp(commands, vk::PipelineStageFlags::empty(), pool, query)
}

#[expect(clippy::too_many_arguments, reason = "the prototype is Vulkan's")]
fn cmd_copy(
    commands: Ref<CommandBuffer>,
    pool: vk::QueryPool,
    first: u32,
    count: u32,
    to: vk::Buffer,
    offset: u64,
    stride: u64,
    flags: vk::QueryResultFlags,
) -> Result<(), Error> {
    commands.add(|into| {
        let pool = QueryPool::get(pool, "vkCmdCopyQueryPoolResults-queryPool")?;
        let to = Buffer::get(to, "vkCmdCopyQueryPoolResults-dstBuffer")?;
        Ok(into.copy_query_pool_results(&pool.driver, first, count, &to.driver, offset, stride, flags)?)
    })
}

/// Queries with a begin and an end count graphics work only.
fn cmd_begin(commands: Ref<CommandBuffer>, _: vk::QueryPool, _: u32, _: vk::QueryControlFlags) -> Result<(), Error> {
    commands.add(|_| Err(Error::graphics("vkCmdBeginQuery")))
}

fn cmd_end(commands: Ref<CommandBuffer>, _: vk::QueryPool, _: u32) -> Result<(), Error> {
    commands.add(|_| Err(Error::graphics("vkCmdEndQuery")))
}
