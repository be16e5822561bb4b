//! Checked mode between commands: which dependency is missing, and which programs are right.
#![allow(clippy::unwrap_used)]

use crate::common::checked::{self, RANGE, RAW, Side, WAR, WAW, barrier, device, findings, rules};
use crate::common::{COUNT, Kernel, STORAGE, Words, recorded};
use spelter_driver::check::{Finding, Rule, Severity};
use spelter_driver::vk::{self, AccessFlags as A, PipelineStageFlags as S};
use spelter_driver::{
    Barrier2, BarrierMemory, BufferMemoryBarrier, CommandBuffer, Device, Fence, MemoryBarrier, OwnershipTransfer,
    SemaphoreSubmit, SubmitInfo,
};

/// `output[i] = input[i] + 1` for the first 16 words.
const STEP: &str = "
    @group(0) @binding(0) var<storage, read> input: array<u32>;
    @group(0) @binding(1) var<storage, read_write> output: array<u32>;
    @compute @workgroup_size(16) fn step(@builtin(global_invocation_id) id: vec3<u32>) { output[id.x] = input[id.x] + 1u; }";

/// A dispatch of `STEP` on pairs of buffers.
struct Steps {
    kernel: Kernel,
    sets: Vec<spelter_driver::DescriptorSet>,
}

impl Steps {
    fn new(device: &Device, pairs: &[[&Words; 2]]) -> Self {
        let kernel = Kernel::named(device, STEP, "step", &[(STORAGE, 1), (STORAGE, 1)], 0);
        let sets = pairs.iter().map(|pair| kernel.set(device, STORAGE, pair)).collect();
        Self { kernel, sets }
    }

    fn record(&self, command: &CommandBuffer, pair: usize) {
        command.bind_pipeline(&self.kernel.pipeline).unwrap();
        command.bind_descriptor_sets(&self.kernel.layout, 0, &[&self.sets[pair]], &[]).unwrap();
        command.dispatch(1, 1, 1).unwrap();
    }
}

const WRITE: Side = (S::COMPUTE_SHADER, A::SHADER_WRITE);
const READ: Side = (S::COMPUTE_SHADER, A::SHADER_READ);

#[test]
fn a_missing_barrier_between_two_dispatches_is_named_with_both_lines() {
    let device = device();
    let words = [0; 3].map(|_| Words::zeros(&device, 16));
    let steps = Steps::new(&device, &[[&words[0], &words[1]], [&words[1], &words[2]]]);
    let found = findings(&device, |command| {
        command.set_label(Some("frame")).unwrap();
        steps.record(command, 0);
        steps.record(command, 1);
    });
    assert_eq!(rules(&found), [RAW], "{found:#?}");
    let text = found[0].to_string();
    let expected = "\
error[SPELTER-RACE-RAW]: data race (read after write) in `input` (set 0, binding 0) of buffer 1 (of 64 bytes), bytes \
0..64
  write at wgsl:4:90 by workgroup (0, 0, 0), invocation (0, 0, 0) of `frame: step` (command 0 of command buffer 0 in \
submission 1 of queue 0)
  read at wgsl:4:105 by workgroup (0, 0, 0), invocation (0, 0, 0) of `frame: step` (command 1 of command buffer 0 in \
submission 1 of queue 0)
  because no barrier is between them
  repair: vkCmdPipelineBarrier2 before `frame: step` (command 1 of command buffer 0 in submission 1 of queue 0), with \
srcStageMask COMPUTE_SHADER, srcAccessMask SHADER_STORAGE_WRITE, dstStageMask COMPUTE_SHADER, dstAccessMask \
SHADER_STORAGE_READ";
    assert_eq!(text, expected);
    let silent = findings(&device, |command| {
        steps.record(command, 0);
        barrier(command, WRITE, READ);
        steps.record(command, 1);
    });
    assert_eq!(silent, []);
}

#[test]
fn buffers_and_pipelines_with_names_are_named_in_findings_about_kernels() {
    let device = device();
    let words = [0; 3].map(|_| Words::zeros(&device, 16));
    words[1].buffer.set_debug_name(Some("blurred"));
    let steps = Steps::new(&device, &[[&words[0], &words[1]], [&words[1], &words[2]]]);
    steps.kernel.pipeline.set_debug_name(Some("step.comp"));
    let found = findings(&device, |command| {
        steps.record(command, 0);
        steps.record(command, 1);
    });
    let text = found[0].to_string();
    for part in [
        "in `input` (set 0, binding 0) of buffer `blurred`, bytes 0..64\n",
        " of `step` (pipeline `step.comp`, command 0 of command buffer 0 in submission 1 of queue 0)\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_barrier_with_wrong_stages_or_accesses_is_said_to_be_why() {
    let device = device();
    let words = [0; 3].map(|_| Words::zeros(&device, 16));
    let steps = Steps::new(&device, &[[&words[0], &words[1]], [&words[1], &words[2]]]);
    let cases: [(Side, Side, &str); 4] = [
        (
            (S::TRANSFER, A::TRANSFER_WRITE),
            READ,
            "orders ALL_TRANSFER before COMPUTE_SHADER, not COMPUTE_SHADER before",
        ),
        ((S::COMPUTE_SHADER, A::SHADER_READ), READ, "srcAccessMask lacks SHADER_STORAGE_WRITE (it has SHADER_SAMPLED"),
        (WRITE, (S::COMPUTE_SHADER, A::UNIFORM_READ), "dstAccessMask lacks SHADER_STORAGE_READ (it has UNIFORM_READ)"),
        (WRITE, (S::TOP_OF_PIPE, A::empty()), "dstAccessMask lacks SHADER_STORAGE_READ (it has NONE)"),
    ];
    for (src, dst, why) in cases {
        let found = findings(&device, |command| {
            steps.record(command, 0);
            barrier(command, src, dst);
            steps.record(command, 1);
        });
        assert_eq!(rules(&found), [RAW], "{src:?} {dst:?}: {found:#?}");
        assert!(found[0].reasons[0].contains(why), "{}", found[0]);
    }
}

#[test]
fn a_buffer_barrier_is_for_its_range() {
    let device = device();
    let words = [0; 3].map(|_| Words::zeros(&device, 16));
    let steps = Steps::new(&device, &[[&words[0], &words[1]], [&words[1], &words[2]]]);
    let run = |buffer: &Words, offset, size| {
        findings(&device, |command| {
            steps.record(command, 0);
            let (src_access, dst_access) = (A::SHADER_WRITE, A::SHADER_READ);
            let range = BufferMemoryBarrier { src_access, dst_access, buffer: &buffer.buffer, offset, size };
            command.pipeline_barrier(WRITE.0, READ.0, &[], &[range]).unwrap();
            steps.record(command, 1);
        })
    };
    assert_eq!(run(&words[1], 0, vk::WHOLE_SIZE), []);
    let part = run(&words[1], 0, 32);
    assert_eq!(rules(&part), [RAW]);
    assert_eq!(part[0].memory.as_ref().unwrap().bytes, 32..64);
    let other = run(&words[0], 0, vk::WHOLE_SIZE);
    assert_eq!(other[0].reasons, ["the barrier between them is for other memory"]);
}

#[test]
fn a_write_after_a_read_needs_an_execution_dependency_only() {
    let device = device();
    let words = [0; 3].map(|_| Words::zeros(&device, 16));
    let steps = Steps::new(&device, &[[&words[0], &words[1]], [&words[2], &words[0]]]);
    let run = |stages: Option<(S, S)>| {
        findings(&device, |command| {
            steps.record(command, 0);
            if let Some((src, dst)) = stages {
                command.pipeline_barrier(src, dst, &[], &[]).unwrap();
            }
            steps.record(command, 1);
        })
    };
    assert_eq!(rules(&run(None)), [WAR]);
    assert_eq!(run(Some((S::COMPUTE_SHADER, S::COMPUTE_SHADER))), []);
    assert_eq!(rules(&run(Some((S::COMPUTE_SHADER, S::TRANSFER)))), [WAR]);
}

#[test]
fn a_command_that_reads_and_writes_waits_for_earlier_reads() {
    let device = device();
    let words = [0; 2].map(|_| Words::zeros(&device, 16));
    let steps = Steps::new(&device, &[[&words[0], &words[1]]]);
    let count = Kernel::new(&device, COUNT, &[(STORAGE, 1)], 0);
    let set = count.set(&device, STORAGE, &[&words[0]]);
    let found = findings(&device, |command| {
        steps.record(command, 0);
        command.bind_pipeline(&count.pipeline).unwrap();
        command.bind_descriptor_sets(&count.layout, 0, &[&set], &[]).unwrap();
        command.dispatch(4, 1, 1).unwrap();
    });
    assert_eq!(rules(&found), [WAR], "{found:#?}");
}

#[test]
fn what_a_command_reads_and_writes_must_be_visible_to_its_reads() {
    let device = device();
    let words = Words::zeros(&device, 64);
    let count = Kernel::new(&device, COUNT, &[(STORAGE, 1)], 0);
    let set = count.set(&device, STORAGE, &[&words]);
    let run = |visible: A| {
        findings(&device, |command| {
            command.fill_buffer(&words.buffer, 0, vk::WHOLE_SIZE, 1).unwrap();
            let memory = [MemoryBarrier { src_access: A::TRANSFER_WRITE, dst_access: visible }];
            command.pipeline_barrier(S::TRANSFER, S::COMPUTE_SHADER, &memory, &[]).unwrap();
            command.bind_pipeline(&count.pipeline).unwrap();
            command.bind_descriptor_sets(&count.layout, 0, &[&set], &[]).unwrap();
            command.dispatch(1, 1, 1).unwrap();
        })
    };
    let found = run(A::SHADER_WRITE);
    assert_eq!(rules(&found), [RAW], "{found:#?}");
    assert_eq!(run(A::SHADER_READ | A::SHADER_WRITE), []);
}

#[test]
fn only_bytes_that_were_touched_count() {
    let device = device();
    let words = Words::zeros(&device, 64);
    let halves = "
        @group(0) @binding(0) var<storage, read_write> words: array<u32>;
        @compute @workgroup_size(16) fn low(@builtin(local_invocation_index) i: u32) { words[i] = 1u; }
        @compute @workgroup_size(16) fn high(@builtin(local_invocation_index) i: u32) { words[16u + i] = 2u; }";
    let kernels = ["low", "high"].map(|entry| Kernel::named(&device, halves, entry, &[(STORAGE, 1)], 0));
    let sets = [0, 1].map(|at: usize| kernels[at].set(&device, STORAGE, &[&words]));
    let record = |command: &CommandBuffer, at: usize| {
        command.bind_pipeline(&kernels[at].pipeline).unwrap();
        command.bind_descriptor_sets(&kernels[at].layout, 0, &[&sets[at]], &[]).unwrap();
        command.dispatch(1, 1, 1).unwrap();
    };
    let apart = findings(&device, |command| {
        record(command, 0);
        record(command, 1);
        command.fill_buffer(&words.buffer, 128, 128, 7).unwrap();
    });
    assert_eq!(apart, []);
    let same = findings(&device, |command| {
        record(command, 1);
        command.fill_buffer(&words.buffer, 124, 8, 7).unwrap();
    });
    assert_eq!(rules(&same), [WAW]);
    let memory = same[0].memory.as_ref().unwrap();
    assert_eq!((memory.bytes.clone(), same[0].second.action.as_str()), (124..128, "write"));
}

#[test]
fn transfers_and_dispatches_wait_for_each_other() {
    let device = device();
    let words = [0; 3].map(|_| Words::zeros(&device, 16));
    let steps = Steps::new(&device, &[[&words[0], &words[1]]]);
    let copy = |command: &CommandBuffer, from: &Words, to: &Words| {
        let whole = vk::BufferCopy { src_offset: 0, dst_offset: 0, size: 64 };
        command.copy_buffer(&from.buffer, &to.buffer, &[whole]).unwrap();
    };
    let upload = |dependency: Option<(Side, Side)>| {
        findings(&device, |command| {
            copy(command, &words[2], &words[0]);
            if let Some((src, dst)) = dependency {
                barrier(command, src, dst);
            }
            steps.record(command, 0);
        })
    };
    assert_eq!(rules(&upload(None)), [RAW]);
    assert_eq!(upload(Some(((S::TRANSFER, A::TRANSFER_WRITE), READ))), []);
    assert_eq!(rules(&upload(Some(((S::COMPUTE_SHADER, A::SHADER_WRITE), READ)))), [RAW]);
    let download = findings(&device, |command| {
        steps.record(command, 0);
        copy(command, &words[1], &words[2]);
    });
    assert_eq!(rules(&download), [RAW]);
    assert_eq!(download[0].second.action, "read");
}

#[test]
fn the_counts_of_an_indirect_dispatch_are_read_in_their_own_stage() {
    let device = device();
    let (counts, words) = (Words::zeros(&device, 3), Words::zeros(&device, 64));
    let count = Kernel::new(&device, COUNT, &[(STORAGE, 1)], 0);
    let set = count.set(&device, STORAGE, &[&words]);
    let run = |dst: Side| {
        findings(&device, |command| {
            command.update_buffer(&counts.buffer, 0, &[4, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]).unwrap();
            barrier(command, (S::TRANSFER, A::TRANSFER_WRITE), dst);
            command.bind_pipeline(&count.pipeline).unwrap();
            command.bind_descriptor_sets(&count.layout, 0, &[&set], &[]).unwrap();
            command.dispatch_indirect(&counts.buffer, 0).unwrap();
        })
    };
    assert_eq!(run((S::DRAW_INDIRECT, A::INDIRECT_COMMAND_READ)), []);
    let found = run(READ);
    assert_eq!(rules(&found), [RAW]);
    assert_eq!(found[0].second.action, "read of the workgroup counts");
}

#[test]
fn the_condition_of_a_dispatch_is_read_in_its_own_stage() {
    let device = device();
    let usage = vk::BufferUsageFlags::TRANSFER_DST | vk::BufferUsageFlags::CONDITIONAL_RENDERING_EXT;
    let condition = device.create_buffer(4, usage).unwrap();
    let memory = device.allocate_memory(condition.requirements().size, 0).unwrap();
    condition.bind_memory(&memory, 0).unwrap();
    let (counts, words) = (Words::zeros(&device, 3), Words::zeros(&device, 64));
    let count = Kernel::new(&device, COUNT, &[(STORAGE, 1)], 0);
    let set = count.set(&device, STORAGE, &[&words]);
    let run = |holds: u8, dst: Side| {
        findings(&device, |command| {
            command.update_buffer(&condition, 0, &[holds, 0, 0, 0]).unwrap();
            barrier(command, (S::TRANSFER, A::TRANSFER_WRITE), dst);
            // No dependency makes the counts visible: that counts if they are read.
            command.update_buffer(&counts.buffer, 0, &[4, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]).unwrap();
            command.begin_conditional(&condition, 0, false).unwrap();
            command.bind_pipeline(&count.pipeline).unwrap();
            command.bind_descriptor_sets(&count.layout, 0, &[&set], &[]).unwrap();
            command.dispatch_indirect(&counts.buffer, 0).unwrap();
            command.end_conditional().unwrap();
        })
    };
    let conditional = (S::CONDITIONAL_RENDERING_EXT, A::CONDITIONAL_RENDERING_READ_EXT);
    assert_eq!(run(0, conditional), []);
    let found = run(0, READ);
    assert_eq!((rules(&found), &*found[0].second.action), (vec![RAW], "read of the condition"));
    let found = run(1, conditional);
    assert_eq!((rules(&found), &*found[0].second.action), (vec![RAW], "read of the workgroup counts"));
}

#[test]
fn uniform_buffers_need_their_own_access() {
    let device = device();
    let source = "
        @group(0) @binding(0) var<uniform> factor: vec4<u32>;
        @group(0) @binding(1) var<storage, read_write> words: array<u32>;
        @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) { words[i] = factor[i & 3u]; }";
    let uniform = vk::DescriptorType::UNIFORM_BUFFER;
    let kernel = Kernel::new(&device, source, &[(uniform, 1), (STORAGE, 1)], 0);
    let (factor, words) = (Words::zeros(&device, 4), Words::zeros(&device, 4));
    let pool = device.create_descriptor_pool(1, &[(uniform, 1), (STORAGE, 1)]).unwrap();
    let set = pool.allocate(&kernel.set_layout).unwrap();
    set.write(0, 0, uniform, &[factor.whole()]).unwrap();
    set.write(1, 0, STORAGE, &[words.whole()]).unwrap();
    let run = |access| {
        findings(&device, |command| {
            command.fill_buffer(&factor.buffer, 0, vk::WHOLE_SIZE, 3).unwrap();
            barrier(command, (S::TRANSFER, A::TRANSFER_WRITE), (S::COMPUTE_SHADER, access));
            command.bind_pipeline(&kernel.pipeline).unwrap();
            command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
            command.dispatch(1, 1, 1).unwrap();
        })
    };
    assert_eq!(run(A::UNIFORM_READ), []);
    assert_eq!(rules(&run(A::SHADER_READ)), [RAW]);
}

#[test]
fn atomics_of_two_dispatches_do_not_race() {
    let device = device();
    let source = "
        @group(0) @binding(0) var<storage, read_write> sum: atomic<u32>;
        @compute @workgroup_size(64) fn main() { atomicAdd(&sum, 1u); }";
    let kernel = Kernel::new(&device, source, &[(STORAGE, 1)], 0);
    let sum = Words::zeros(&device, 1);
    let set = kernel.set(&device, STORAGE, &[&sum]);
    let found = findings(&device, |command| {
        command.bind_pipeline(&kernel.pipeline).unwrap();
        command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
        command.dispatch(2, 1, 1).unwrap();
        command.dispatch(2, 1, 1).unwrap();
    });
    assert_eq!(found, []);
}

/// They overlap, but their locations differ: nothing makes them mutually ordered.
#[test]
fn atomics_of_two_sizes_race_unless_a_barrier_orders_them() {
    let device = device();
    let kernels = ["u32", "u64"].map(|ty| {
        let source = format!(
            "@group(0) @binding(0) var<storage, read_write> sum: atomic<{ty}>;
            @compute @workgroup_size(64) fn main() {{ atomicAdd(&sum, {ty}(1)); }}"
        );
        Kernel::new(&device, &source, &[(STORAGE, 1)], 0)
    });
    let sum = Words::zeros(&device, 2);
    let sets = kernels.each_ref().map(|kernel| kernel.set(&device, STORAGE, &[&sum]));
    let run = |order: &[usize], between: bool| {
        findings(&device, |command| {
            for &at in order {
                command.bind_pipeline(&kernels[at].pipeline).unwrap();
                command.bind_descriptor_sets(&kernels[at].layout, 0, &[&sets[at]], &[]).unwrap();
                command.dispatch(2, 1, 1).unwrap();
                if between {
                    barrier(command, WRITE, (S::COMPUTE_SHADER, A::SHADER_READ | A::SHADER_WRITE));
                }
            }
        })
    };
    assert_eq!(run(&[0, 1], true), []);
    assert_eq!(run(&[1, 1], false), []);
    for order in [&[0, 1][..], &[1, 0], &[0, 0, 1], &[1, 0, 1]] {
        let found = rules(&run(order, false));
        assert!(!found.is_empty() && found.iter().all(|rule| [RAW, WAW, WAR].contains(rule)), "{order:?}: {found:?}");
    }
}

/// A program on two queues: a write on the first, a read on the second.
fn across(signal: Option<vk::PipelineStageFlags2>, wait: vk::PipelineStageFlags2) -> Vec<Finding> {
    let device = device();
    let queues = device.queues();
    let words = [0; 3].map(|_| Words::zeros(&device, 16));
    let steps = Steps::new(&device, &[[&words[0], &words[1]], [&words[1], &words[2]]]);
    let flags = vk::CommandBufferUsageFlags::empty();
    let [first, second] = [0, 1].map(|at| recorded(&device, flags, |command| steps.record(command, at)));
    let done = device.create_timeline_semaphore(0);
    let signals = signal.map(|stages| SemaphoreSubmit { stages, ..SemaphoreSubmit::new(&done, 1) });
    let signals: Vec<_> = signals.into_iter().collect();
    queues[0].submit_all(&[SubmitInfo { waits: &[], commands: &[&first], signals: &signals }], None).unwrap();
    let waits = [SemaphoreSubmit { stages: wait, ..SemaphoreSubmit::new(&done, 1) }];
    let waits = if signal.is_some() { &waits[..] } else { &[] };
    // Without the semaphore the first may run later; but one worker runs the queues in order of submission.
    queues[1].submit_all(&[SubmitInfo { waits, commands: &[&second], signals: &[] }], None).unwrap();
    queues.iter().for_each(|queue| queue.wait_idle().unwrap());
    device.take_findings()
}

#[test]
fn a_semaphore_orders_queues_for_the_stages_that_it_names() {
    use vk::PipelineStageFlags2 as S2;
    assert_eq!(across(Some(S2::ALL_COMMANDS), S2::ALL_COMMANDS), []);
    assert_eq!(across(Some(S2::COMPUTE_SHADER), S2::COMPUTE_SHADER), []);
    assert_eq!(rules(&across(Some(S2::COMPUTE_SHADER), S2::ALL_TRANSFER)), [RAW]);
    assert_eq!(rules(&across(Some(S2::ALL_TRANSFER), S2::ALL_COMMANDS)), [RAW]);
    let none = across(None, S2::ALL_COMMANDS);
    assert_eq!(none.len(), 1, "{none:#?}");
    assert!(none[0].reasons[0].contains("different queues"), "{}", none[0]);
}

/// What a write on the first queue and a read on the second one are reported as if they run in the other order: the
/// write waits for a semaphore, until the read has run.
fn overtaken(wait: vk::PipelineStageFlags2, is_known: bool) -> Finding {
    let device = device();
    let queues = device.queues();
    let words = [0; 3].map(|_| Words::zeros(&device, 16));
    let steps = Steps::new(&device, &[[&words[0], &words[1]], [&words[1], &words[2]]]);
    let flags = vk::CommandBufferUsageFlags::empty();
    let [write, read] = [0, 1].map(|at| recorded(&device, flags, |command| steps.record(command, at)));
    let (go, done) = (device.create_timeline_semaphore(0), device.create_fence(false));
    let waits = [SemaphoreSubmit { stages: wait, ..SemaphoreSubmit::new(&go, 1) }];
    queues[0].submit_all(&[SubmitInfo { waits: &waits, commands: &[&write], signals: &[] }], None).unwrap();
    let signals = [SemaphoreSubmit::new(&go, 1)];
    let signals = if is_known { &signals[..] } else { &[] };
    queues[1].submit_all(&[SubmitInfo { waits: &[], commands: &[&read], signals }], Some(&done)).unwrap();
    if !is_known {
        // It does not wait: that it is done says nothing to the checker.
        while done.reset().is_err() {}
        go.signal(1).unwrap();
    }
    queues.iter().for_each(|queue| queue.wait_idle().unwrap());
    let found = device.take_findings();
    assert_eq!(found.len(), 1, "{found:#?}");
    found.into_iter().next().unwrap()
}

#[test]
fn what_nothing_orders_is_reported_in_the_order_of_submission() {
    use vk::PipelineStageFlags2 as S2;
    let usual = across(None, S2::ALL_COMMANDS).remove(0);
    let found = overtaken(S2::ALL_COMMANDS, false);
    assert_eq!((found.rule, found.identity()), (RAW, usual.identity()), "{found:#?}");
    assert_eq!((&found.reasons, &found.repairs), (&usual.reasons, &usual.repairs));
    let queues = [found.first.as_ref().unwrap(), &found.second].map(|access| access.command.as_ref().unwrap().queue);
    assert_eq!(queues, [0, 1]);
    let steps: Vec<_> = found.between.iter().map(|step| step.text.split(" of ").next().unwrap()).collect();
    assert_eq!(steps, ["vkQueueSubmit"]);
    // A wait lets the read come first, though not in the stage of the write.
    let late = overtaken(S2::ALL_TRANSFER, true);
    assert_eq!(late.rule, WAR, "{late:#?}");
    assert!(late.reasons[0].contains("only in ALL_TRANSFER"), "{late}");
}

#[test]
fn submissions_of_one_queue_do_not_order_memory_but_a_wait_of_the_host_does() {
    let device = device();
    let words = [0; 3].map(|_| Words::zeros(&device, 16));
    let steps = Steps::new(&device, &[[&words[0], &words[1]], [&words[1], &words[2]]]);
    let flags = vk::CommandBufferUsageFlags::empty();
    let commands = [0, 1].map(|at| recorded(&device, flags, |command| steps.record(command, at)));
    let queue = device.queue();
    let run = |between: fn(&Fence)| {
        let fence = device.create_fence(false);
        queue.submit(&[&commands[0]], Some(&fence)).unwrap();
        between(&fence);
        queue.submit(&[&commands[1]], None).unwrap();
        queue.wait_idle().unwrap();
        device.take_findings()
    };
    assert_eq!(rules(&run(|_| ())), [RAW]);
    assert_eq!(run(|fence| assert!(fence.wait(None).unwrap())), []);
    // A reset, which succeeds when the submission is done, tells the host nothing.
    let reset = |fence: &Fence| while fence.reset().is_err() {};
    assert_eq!(rules(&run(reset)), [RAW]);
}

#[test]
fn the_host_reads_what_was_made_visible_to_it() {
    let device = device();
    let words = [0; 2].map(|_| Words::zeros(&device, 16));
    let steps = Steps::new(&device, &[[&words[0], &words[1]]]);
    let run = |host: bool| {
        let flags = vk::CommandBufferUsageFlags::empty();
        let command = recorded(&device, flags, |command| {
            steps.record(command, 0);
            if host {
                barrier(command, WRITE, (S::HOST, A::HOST_READ));
            }
        });
        let fence = device.create_fence(false);
        device.queue().submit(&[&command], Some(&fence)).unwrap();
        assert!(fence.wait(None).unwrap());
        let _ = words[1].read();
        let found = device.take_findings();
        device.queue().wait_idle().unwrap();
        found
    };
    assert_eq!(run(true), []);
    let invisible = run(false);
    assert_eq!(rules(&invisible), [Rule::Host]);
    assert!(invisible[0].repairs[0].text.contains("dstStageMask HOST"), "{}", invisible[0]);
}

#[test]
fn the_host_waits_for_the_queue_that_made_values_visible_to_it() {
    let device = device();
    let words = [0; 2].map(|_| Words::zeros(&device, 16));
    let steps = Steps::new(&device, &[[&words[0], &words[1]]]);
    let flags = vk::CommandBufferUsageFlags::empty();
    let (queues, all) = (device.queues(), vk::PipelineStageFlags2::ALL_COMMANDS);
    let run = |awaited: usize| {
        let semaphore = device.create_semaphore();
        let there = SemaphoreSubmit { semaphore: &semaphore, value: 0, stages: all };
        let write = recorded(&device, flags, |command| steps.record(command, 0));
        let show = recorded(&device, flags, |command| barrier(command, WRITE, (S::HOST, A::HOST_READ)));
        let fences = [0; 2].map(|_| device.create_fence(false));
        let signals = SubmitInfo { waits: &[], commands: &[&write], signals: &[there] };
        queues[0].submit_all(&[signals], None).unwrap();
        let waits = SubmitInfo { waits: &[there], commands: &[&show], signals: &[] };
        queues[1].submit_all(&[waits], Some(&fences[1])).unwrap();
        queues[0].submit(&[], Some(&fences[0])).unwrap();
        assert!(fences[awaited].wait(None).unwrap());
        let _ = words[1].read();
        let found = device.take_findings();
        queues.iter().for_each(|queue| queue.wait_idle().unwrap());
        found
    };
    assert_eq!(run(1), []);
    let found = run(0);
    assert_eq!(rules(&found), [Rule::Host], "the fence is of the queue that wrote");
    // The barrier has run when the host reads, or not.
    assert!(found[0].reasons[0].contains("visible to the host"), "{}", found[0]);
}

#[test]
fn ownership_transfers_are_named_where_something_else_is_missing() {
    let device = device();
    let words = [0; 3].map(|_| Words::zeros(&device, 16));
    let steps = Steps::new(&device, &[[&words[0], &words[1]], [&words[1], &words[2]]]);
    let run = |dst_access| {
        findings(&device, |command| {
            steps.record(command, 0);
            let compute = vk::PipelineStageFlags2::COMPUTE_SHADER;
            let release = Barrier2 {
                src_stages: compute,
                src_access: vk::AccessFlags2::SHADER_STORAGE_WRITE,
                dst_stages: compute,
                dst_access,
                memory: BarrierMemory::Buffer { buffer: &words[1].buffer, offset: 0, size: vk::WHOLE_SIZE },
                ownership: OwnershipTransfer::of(0, vk::QUEUE_FAMILY_EXTERNAL),
            };
            command.pipeline_barrier2(&[release]).unwrap();
            steps.record(command, 1);
        })
    };
    assert_eq!(run(vk::AccessFlags2::SHADER_STORAGE_READ), [], "it has no effect of its own");
    let found = run(vk::AccessFlags2::NONE);
    assert_eq!(rules(&found), [RAW]);
    let reason = "; a barrier between them transfers ownership from queue family 0 to VK_QUEUE_FAMILY_EXTERNAL";
    assert!(found[0].reasons[0].ends_with(reason), "{}", found[0]);
    assert_eq!(OwnershipTransfer::of(vk::QUEUE_FAMILY_IGNORED, vk::QUEUE_FAMILY_IGNORED), None);
}

#[test]
fn mapped_memory_that_was_waited_for_should_be_visible_to_the_host() {
    let device = device();
    let words = [0; 2].map(|_| Words::zeros(&device, 16));
    let steps = Steps::new(&device, &[[&words[0], &words[1]]]);
    let run = |host: bool| {
        findings(&device, |command| {
            steps.record(command, 0);
            if host {
                barrier(command, WRITE, (S::HOST, A::HOST_READ));
            }
        })
    };
    assert_eq!(run(false), [], "it is not mapped");
    words[1].memory.note_mapping(16..64, true);
    let expect = |advice: &[Finding]| {
        assert_eq!(rules(advice), [Rule::Host]);
        assert_eq!((advice[0].severity, &advice[0].memory.as_ref().unwrap().bytes), (Severity::Note, &(16..64)));
    };
    // It was waited for before the memory was mapped.
    expect(&device.take_findings());
    expect(&run(false));
    assert_eq!(run(true), []);
    words[1].memory.note_mapping(16..64, false);
    words[1].memory.note_mapping(16..64, true);
    assert_eq!(device.take_findings(), [], "it is visible to the host");
    words[1].memory.note_mapping(16..64, false);
    assert_eq!(run(false), []);
}

#[test]
fn the_host_waits_before_it_reads() {
    let device = device();
    let words = [0; 2].map(|_| Words::zeros(&device, 16));
    let steps = Steps::new(&device, &[[&words[0], &words[1]]]);
    let flags = vk::CommandBufferUsageFlags::empty();
    let command = recorded(&device, flags, |command| steps.record(command, 0));
    device.queue().submit(&[&command], None).unwrap();
    let _ = words[1].read();
    device.queue().wait_idle().unwrap();
    // The dispatch has run when the host reads, or not.
    let found = device.take_findings();
    assert_eq!(rules(&found), [RAW], "{found:#?}");
    assert_eq!(found[0].reasons, ["the host has not waited for the command"]);
}

/// A colour image.
fn image(device: &Device) -> spelter_driver::Image {
    let usage = vk::ImageUsageFlags::TRANSFER_DST | vk::ImageUsageFlags::TRANSFER_SRC;
    checked::image(device, vk::Format::R32_UINT, vk::ImageTiling::OPTIMAL, usage)
}

#[test]
fn a_layout_transition_by_the_host_waits_for_the_users_of_the_image() {
    let device = device();
    let image = image(&device);
    let command = recorded(&device, vk::CommandBufferUsageFlags::empty(), |command| {
        command.clear_color_image(&image, spelter_driver::ClearColor::Uint([1; 4]), &[RANGE]).unwrap();
    });
    device.queue().submit(&[&command], None).unwrap();
    image.transition_on_host(&device, &RANGE);
    device.queue().wait_idle().unwrap();
    assert_eq!(rules(&device.take_findings()), [WAW], "the clear has run when the host accesses the image, or not");
    device.queue().submit(&[&command], None).unwrap();
    device.queue().wait_idle().unwrap();
    image.transition_on_host(&device, &RANGE);
    assert_eq!(device.take_findings(), []);
}

#[test]
fn a_layout_transition_accesses_the_image_between_its_scopes() {
    let device = device();
    let image = image(&device);
    let clear = |command: &CommandBuffer| {
        command.clear_color_image(&image, spelter_driver::ClearColor::Uint([1; 4]), &[RANGE]).unwrap();
    };
    let transition = |command: &CommandBuffer, src: Side, dst: Side| {
        let barrier = spelter_driver::ImageMemoryBarrier {
            src_access: src.1,
            dst_access: dst.1,
            old_layout: vk::ImageLayout::UNDEFINED,
            new_layout: vk::ImageLayout::GENERAL,
            image: &image,
            range: RANGE,
        };
        command.pipeline_barrier_with_images(src.0, dst.0, &[], &[], &[barrier]).unwrap();
    };
    let transfer = (S::TRANSFER, A::TRANSFER_WRITE);
    let right = findings(&device, |command| {
        transition(command, (S::TOP_OF_PIPE, A::empty()), transfer);
        clear(command);
        transition(command, transfer, transfer);
        clear(command);
    });
    assert_eq!(right, []);
    let late = findings(&device, |command| {
        transition(command, (S::TOP_OF_PIPE, A::empty()), READ);
        clear(command);
    });
    assert_eq!(rules(&late), [WAW], "the clear does not wait for the transition");
    let early = findings(&device, |command| {
        clear(command);
        transition(command, (S::TOP_OF_PIPE, A::empty()), transfer);
    });
    assert_eq!(rules(&early), [WAW], "the transition does not wait for the clear");
}

#[test]
fn an_event_orders_what_precedes_it_and_nothing_else() {
    let device = device();
    let words = [0; 3].map(|_| Words::zeros(&device, 16));
    let steps = Steps::new(&device, &[[&words[0], &words[1]], [&words[1], &words[2]]]);
    let event = device.create_event();
    let run = |early: bool| {
        findings(&device, |command| {
            command.reset_event(&event).unwrap();
            if early {
                command.set_event(&event).unwrap();
            }
            steps.record(command, 0);
            if !early {
                command.set_event(&event).unwrap();
            }
            command.wait_events(&[&event]).unwrap();
            steps.record(command, 1);
        })
    };
    assert_eq!(run(false), []);
    assert_eq!(rules(&run(true)), [RAW]);
}

#[test]
fn very_many_commands_and_dependencies_are_forgotten_once_the_host_has_waited() {
    let device = device();
    let words = Words::zeros(&device, 16);
    let mut all = Vec::new();
    for round in 0..40 {
        let found = findings(&device, |command| {
            for _ in 0..1000 {
                command.fill_buffer(&words.buffer, 0, 16, round).unwrap();
                barrier(command, (S::TRANSFER, A::TRANSFER_WRITE), (S::TRANSFER, A::TRANSFER_WRITE));
            }
        });
        all.extend(found);
    }
    assert_eq!(all, []);
    assert_eq!(device.check_stats().commands_forgotten, 0);
    let found = findings(&device, |command| {
        command.fill_buffer(&words.buffer, 0, 16, 1).unwrap();
        command.fill_buffer(&words.buffer, 8, 16, 2).unwrap();
    });
    assert_eq!(rules(&found), [WAW]);
}

#[test]
fn what_is_between_two_commands_is_listed_in_order() {
    let device = device();
    let words = [0; 3].map(|_| Words::zeros(&device, 16));
    let steps = Steps::new(&device, &[[&words[0], &words[1]], [&words[1], &words[2]]]);
    let found = findings(&device, |command| {
        steps.record(command, 0);
        barrier(command, WRITE, (S::HOST, A::HOST_READ));
        steps.record(command, 1);
    });
    assert_eq!(rules(&found), [RAW], "{found:#?}");
    let between: Vec<_> = found[0].between.iter().map(|step| (step.queue, step.text.as_str())).collect();
    let text = "vkCmdPipelineBarrier\nfrom COMPUTE_SHADER: SHADER_STORAGE_WRITE\nto HOST: HOST_READ";
    assert_eq!(between, [(Some(0), text)]);
    // A wait names the signal of the step before it.
    let flags = vk::CommandBufferUsageFlags::empty();
    let commands = [0, 1].map(|pair| recorded(&device, flags, |command| steps.record(command, pair)));
    let (semaphore, queues) = (device.create_semaphore(), device.queues());
    let signal = [SemaphoreSubmit { semaphore: &semaphore, value: 0, stages: vk::PipelineStageFlags2::ALL_COMMANDS }];
    let wait = [SemaphoreSubmit { semaphore: &semaphore, value: 0, stages: vk::PipelineStageFlags2::COPY }];
    let submits = [
        SubmitInfo { waits: &[], commands: &[&commands[0]], signals: &signal },
        SubmitInfo { waits: &wait, commands: &[&commands[1]], signals: &[] },
    ];
    for (queue, submit) in queues.iter().zip(&submits) {
        queue.submit_all(std::slice::from_ref(submit), None).unwrap();
    }
    queues[1].wait_idle().unwrap();
    let found = device.take_findings();
    let race = found.iter().find(|finding| finding.rule == RAW).unwrap();
    let wait = race.between.iter().find(|step| step.text == "wait in COPY").unwrap();
    assert_eq!((wait.queue, wait.after.len()), (Some(1), 1), "{race:#?}");
    assert!(race.between.iter().any(|step| [step.number] == wait.after[..] && step.queue == Some(0)), "{race:#?}");
}
