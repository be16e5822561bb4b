//! Benchmark of the names that checked mode's log needs, in programs that run without it: recording and submission of a
//! program that does little but call the API, with and without what only the log uses (the memory of each barrier, its
//! scopes, names of objects). Ratios within one run, on a device without checking and, to compare, on a checked one.
//!
//! `cargo bench -p spelter-benches --bench overhead` prints the table; `-- --test` runs everything once.

#![allow(clippy::print_stdout, reason = "a bench prints its table")]

use std::time::Duration;

use spelter_benches::Error;
use spelter_benches::measure::best_within;
use spelter_driver::check::CheckOptions;
use spelter_driver::vk::{AccessFlags2, BufferUsageFlags, CommandBufferUsageFlags, PipelineStageFlags2};
use spelter_driver::{Barrier2, BarrierMemory, Buffer, CommandBuffer, Device, DeviceMemory, DeviceOptions};

/// Commands of a command buffer, each after a barrier.
const COMMANDS: usize = 1000;
const BUFFERS: usize = 64;
/// Buffers that a barrier names.
const NAMED: usize = 4;
const BYTES: u64 = 1024;

/// Time for the runs of one row in one mode.
const PERIOD: Duration = Duration::from_millis(500);

/// A device, and buffers with memory.
struct Stage {
    device: Device,
    buffers: Vec<Buffer>,
    _memories: Vec<DeviceMemory>,
}

impl Stage {
    fn new(check: Option<CheckOptions>) -> Result<Self, Error> {
        let device = Device::new(DeviceOptions { check, ..DeviceOptions::default() })?;
        let (mut buffers, mut memories) = (Vec::new(), Vec::new());
        for _ in 0..BUFFERS {
            let buffer = device.create_buffer(BYTES, BufferUsageFlags::TRANSFER_DST)?;
            let memory = device.allocate_memory(buffer.requirements().size, 0)?;
            buffer.bind_memory(&memory, 0)?;
            buffers.push(buffer);
            memories.push(memory);
        }
        Ok(Self { device, buffers, _memories: memories })
    }

    /// Records the fills, each after a barrier for all of it, or one that names buffers.
    fn record(&self, names: bool) -> Result<CommandBuffer, Error> {
        let command = self.device.create_command_pool().allocate();
        if names {
            command.set_debug_name(Some("frame"));
        }
        command.begin(CommandBufferUsageFlags::empty())?;
        for number in 0..COMMANDS {
            let barrier = |memory| Barrier2 {
                src_stages: PipelineStageFlags2::CLEAR,
                src_access: AccessFlags2::TRANSFER_WRITE,
                dst_stages: PipelineStageFlags2::CLEAR,
                dst_access: AccessFlags2::TRANSFER_WRITE,
                memory,
                ownership: None,
            };
            if names {
                let of = |other| &self.buffers[(number + other) % BUFFERS];
                let named: [_; NAMED] = std::array::from_fn(|other| {
                    barrier(BarrierMemory::Buffer { buffer: of(other), offset: 0, size: BYTES })
                });
                command.pipeline_barrier2(&named)?;
            } else {
                command.pipeline_barrier2(&[barrier(BarrierMemory::All)])?;
            }
            command.fill_buffer(&self.buffers[number % BUFFERS], 0, 4, number as u32)?;
        }
        command.end()?;
        Ok(command)
    }

    fn submit(&self, command: &CommandBuffer) -> Result<(), Error> {
        self.device.queue().submit(&[command], None)?;
        Ok(self.device.queue().wait_idle()?)
    }
}

/// Nanoseconds for each command: of recording and of a submission that runs, without and with names.
fn measure(check: Option<CheckOptions>, period: Duration) -> Result<[[f64; 2]; 2], Error> {
    let stage = Stage::new(check)?;
    let mut result = [[0.0; 2]; 2];
    for (names, column) in [false, true].into_iter().zip(0..) {
        let command = stage.record(names)?;
        stage.submit(&command)?;
        let mut problem = None;
        let mut time = |run: &dyn Fn() -> Result<(), Error>| {
            let seconds = best_within(period, || problem = run().err().or(problem.take()));
            seconds * 1e9 / COMMANDS as f64
        };
        result[0][column] = time(&|| stage.record(names).map(drop));
        result[1][column] = time(&|| stage.submit(&command));
        if let Some(problem) = problem {
            return Err(problem);
        }
    }
    let findings = stage.device.take_findings();
    if findings.is_empty() { Ok(result) } else { Err(format!("the program is wrong: {findings:?}").into()) }
}

fn main() -> Result<(), Error> {
    // `cargo bench` passes `--bench`; else it is a test whether everything runs.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let period = if has("--bench") && !has("--test") { PERIOD } else { Duration::ZERO };
    println!("{COMMANDS} fills, each after a barrier; with names the barrier has {NAMED} buffers:");
    println!("{:>22}  {:>10} {:>10} {:>7}", "", "ns/command", "with names", "ratio");
    for (mode, check) in [("unchecked", None), ("checked", Some(CheckOptions::default()))] {
        let [record, submit] = measure(check, period)?;
        for (what, [without, with]) in [("record", record), ("submit and run", submit)] {
            let name = format!("{mode}, {what}");
            println!("{name:>22}  {without:>10.0} {with:>10.0} {:>7.3}", with / without);
        }
    }
    Ok(())
}
