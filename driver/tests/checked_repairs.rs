//! The repairs of races between commands: what the text says silences the report.
#![allow(clippy::unwrap_used)]

use crate::common::checked::{self, RANGE, RAW, Side2 as Side, WAR, WAW, barrier2 as barrier, device, findings, rules};
use crate::common::{ANY_USE, COUNT, Kernel, STORAGE, Words, recorded};
use spelter_driver::check::Finding;
use spelter_driver::vk::{self, AccessFlags2 as A, PipelineStageFlags2 as S};
use spelter_driver::{
    Barrier2, BarrierMemory, ClearColor, CommandBuffer, Device, Image, Semaphore, SemaphoreSubmit, SubmitInfo,
};

const NONE: Side = (S::NONE, A::NONE);
const CLEAR: Side = (S::CLEAR, A::TRANSFER_WRITE);
const COPY: Side = (S::COPY, A::TRANSFER_READ);

/// The repair of the only finding.
fn repair(found: &[Finding]) -> &str {
    let [one] = found else { panic!("{found:#?}") };
    let [repair] = &one.repairs[..] else { panic!("{one}") };
    &repair.text
}

/// A colour image.
fn image(device: &Device) -> Image {
    let usage = vk::ImageUsageFlags::TRANSFER_DST | vk::ImageUsageFlags::TRANSFER_SRC;
    checked::image(device, vk::Format::R32_UINT, vk::ImageTiling::LINEAR, usage)
}

fn clear(command: &CommandBuffer, image: &Image) {
    command.clear_color_image(image, ClearColor::Uint([1; 4]), &[RANGE]).unwrap();
}

fn transition(command: &CommandBuffer, image: &Image, src: Side, dst: Side) {
    let layouts = [vk::ImageLayout::UNDEFINED, vk::ImageLayout::GENERAL];
    let memory = BarrierMemory::Image { image, layouts, range: RANGE };
    command.pipeline_barrier2(&[barrier(src, dst, memory)]).unwrap();
}

#[test]
fn a_layout_transition_is_repaired_in_its_own_barrier() {
    let device = device();
    let image = image(&device);
    let run = |src: Side, dst: Side| {
        findings(&device, |command| {
            clear(command, &image);
            transition(command, &image, src, dst);
            clear(command, &image);
        })
    };
    assert_eq!(run(CLEAR, CLEAR), []);
    let early = run((S::COPY, A::TRANSFER_WRITE), CLEAR);
    assert_eq!(early[0].reasons, ["the barrier of the layout transition has COPY before it, not CLEAR"]);
    assert_eq!(
        repair(&early),
        "srcStageMask CLEAR (TRANSFER in vkCmdPipelineBarrier), srcAccessMask TRANSFER_WRITE in the barrier of the \
         `layout transition before clear image` (command 1 of command buffer 0 in submission 2 of queue 0)"
    );
    let late = run(CLEAR, COPY);
    assert_eq!(late[0].reasons, ["the barrier of the layout transition has COPY after it, not CLEAR"]);
    assert_eq!(
        repair(&late),
        "dstStageMask CLEAR (TRANSFER in vkCmdPipelineBarrier), dstAccessMask TRANSFER_WRITE in the barrier of the \
         `layout transition before clear image` (command 1 of command buffer 0 in submission 3 of queue 0)"
    );
    // All that follows is available, and the next write needs visibility.
    let unseen = run(CLEAR, (S::CLEAR, A::NONE));
    assert!(repair(&unseen).starts_with("dstStageMask CLEAR"), "{unseen:#?}");
}

#[test]
fn a_layout_transition_of_another_queue_waits_for_a_semaphore_in_all_commands() {
    let run = |semaphore: bool| {
        let device = device();
        let image = image(&device);
        let flags = vk::CommandBufferUsageFlags::empty();
        let first = recorded(&device, flags, |command| clear(command, &image));
        let second = recorded(&device, flags, |command| transition(command, &image, NONE, NONE));
        let (queues, done) = (device.queues(), device.create_timeline_semaphore(0));
        let all = [SemaphoreSubmit { stages: S::ALL_COMMANDS, ..SemaphoreSubmit::new(&done, 1) }];
        let all = if semaphore { &all[..] } else { &[] };
        queues[0].submit_all(&[SubmitInfo { waits: &[], commands: &[&first], signals: all }], None).unwrap();
        queues[1].submit_all(&[SubmitInfo { waits: all, commands: &[&second], signals: &[] }], None).unwrap();
        queues.iter().for_each(|queue| queue.wait_idle().unwrap());
        device.take_findings()
    };
    assert_eq!(run(true), []);
    let found = run(false);
    assert!(repair(&found).ends_with(" of queue 1) waits for in stage ALL_COMMANDS"), "{found:#?}");
}

#[test]
fn a_layout_transition_becomes_visible_to_the_host_by_its_own_barrier() {
    let run = |dst: Side| {
        let device = device();
        let image = device.create_image(image(&device).info()).unwrap();
        let memory = device.allocate_memory(image.requirements().size, 0).unwrap();
        image.bind_memory(&memory, 0).unwrap();
        crate::common::run(&device, |command| transition(command, &image, NONE, dst));
        memory.read(0, &mut [0; 4]).unwrap();
        device.take_findings()
    };
    assert_eq!(run((S::HOST, A::HOST_READ)), []);
    let found = run(NONE);
    let text = "dstStageMask HOST, dstAccessMask HOST_READ in the barrier of the `layout transition before end`";
    assert!(repair(&found).starts_with(text), "{found:#?}");
}

/// `b[i] = a[i] + 1` for 16 words.
const STEP: &str = "
    @group(0) @binding(0) var<storage, read> a: array<u32>;
    @group(0) @binding(1) var<storage, read_write> b: array<u32>;
    @compute @workgroup_size(16) fn main(@builtin(global_invocation_id) id: vec3<u32>) { b[id.x] = a[id.x] + 1u; }";

/// A step from one buffer to another one and a step back, with a barrier between the two.
fn there_and_back(between: &[Barrier2<'_>]) -> Vec<Finding> {
    let device = device();
    let kernel = Kernel::new(&device, STEP, &[(STORAGE, 1), (STORAGE, 1)], 0);
    let words = [0; 2].map(|_| Words::zeros(&device, 16));
    let sets = [[0, 1], [1, 0]].map(|of| kernel.set(&device, STORAGE, &of.map(|at: usize| &words[at])));
    findings(&device, |command| {
        command.bind_pipeline(&kernel.pipeline).unwrap();
        for set in &sets {
            command.bind_descriptor_sets(&kernel.layout, 0, &[set], &[]).unwrap();
            command.dispatch(1, 1, 1).unwrap();
            command.pipeline_barrier2(between).unwrap();
        }
    })
}

#[test]
fn one_barrier_mends_all_races_of_two_commands() {
    let found = there_and_back(&[]);
    let mut all = rules(&found);
    all.sort_unstable();
    assert_eq!(all, [RAW, WAR]);
    let text = "vkCmdPipelineBarrier2 before `main` (command 1 of command buffer 0 in submission 1 of queue 0), with \
                srcStageMask COMPUTE_SHADER, srcAccessMask SHADER_STORAGE_WRITE, dstStageMask COMPUTE_SHADER, \
                dstAccessMask SHADER_STORAGE_READ";
    for finding in &found {
        let more = if finding.rule == RAW { "" } else { ", for all races of the two commands" };
        assert_eq!(finding.repairs[0].text, format!("{text}{more}"));
    }
    let (write, read) = (A::SHADER_STORAGE_WRITE, A::SHADER_STORAGE_READ);
    let compute = S::COMPUTE_SHADER;
    assert_eq!(there_and_back(&[barrier((compute, write), (compute, read), BarrierMemory::All)]), []);
}

/// Fills of one buffer, of which an event orders the second one after the first one unless it is set before that.
fn with_event(early: bool, stages: S) -> Vec<Finding> {
    let device = device();
    let words = Words::zeros(&device, 16);
    let event = device.create_event();
    let scope = [barrier((stages, A::TRANSFER_WRITE), CLEAR, BarrierMemory::All)];
    findings(&device, |command| {
        let set = |now: bool| {
            if now {
                command.set_event2(&event, &scope).unwrap();
            }
        };
        set(early);
        command.fill_buffer(&words.buffer, 0, 64, 1).unwrap();
        set(!early);
        command.wait_events2(&[(&event, &scope)]).unwrap();
        command.fill_buffer(&words.buffer, 0, 64, 2).unwrap();
    })
}

#[test]
fn an_event_that_is_set_too_early_is_set_later() {
    assert_eq!(with_event(false, S::CLEAR), []);
    let found = with_event(true, S::CLEAR);
    let first = "`fill` (command 1 of command buffer 0 in submission 1 of queue 0)";
    assert_eq!(repair(&found), format!("move vkCmdSetEvent after {first}"));
    // The picture has the event that was set too early, before the first access.
    let steps: Vec<_> = found[0].between.iter().map(|step| (step.precedes, &*step.text)).collect();
    assert_eq!(steps[0], (true, "vkCmdSetEvent after CLEAR"), "{steps:?}");
    let wait = &found[0].between[1];
    assert!(!wait.precedes && wait.after == [found[0].between[0].number], "{:?}", found[0].between);
    // Its scopes lack the fill: moving it is not enough.
    let found = with_event(true, S::COPY);
    assert!(repair(&found).starts_with("vkCmdPipelineBarrier2 before"), "{found:#?}");
}

#[test]
fn an_event_that_something_else_waits_for_is_not_set_later() {
    let device = device();
    let words = [0; 2].map(|_| Words::zeros(&device, 16));
    let event = device.create_event();
    let scope = [barrier(CLEAR, CLEAR, BarrierMemory::All)];
    let found = findings(&device, |command| {
        command.set_event2(&event, &scope).unwrap();
        for words in [&words[1], &words[0]] {
            command.wait_events2(&[(&event, &scope)]).unwrap();
            command.fill_buffer(&words.buffer, 0, 64, 1).unwrap();
        }
        command.wait_events2(&[(&event, &scope)]).unwrap();
        command.fill_buffer(&words[0].buffer, 0, 64, 2).unwrap();
    });
    // The first wait would be for ever.
    assert!(repair(&found).starts_with("vkCmdPipelineBarrier2 before"), "{found:#?}");
}

#[test]
fn a_host_that_waits_for_some_stages_needs_a_fence_for_its_barrier() {
    let run = |stages: S| {
        let device = device();
        let words = Words::zeros(&device, 16);
        let flags = vk::CommandBufferUsageFlags::empty();
        let fill = recorded(&device, flags, |command| command.fill_buffer(&words.buffer, 0, 64, 1).unwrap());
        let timeline = device.create_timeline_semaphore(0);
        let signals = [SemaphoreSubmit { stages, ..SemaphoreSubmit::new(&timeline, 1) }];
        device.queue().submit_all(&[SubmitInfo { waits: &[], commands: &[&fill], signals: &signals }], None).unwrap();
        Semaphore::wait_all(&[(&timeline, 1)], None).unwrap();
        let _ = words.read();
        device.queue().wait_idle().unwrap();
        let found = device.take_findings();
        repair(&found).to_owned()
    };
    let (all, some) = (run(S::ALL_COMMANDS), run(S::CLEAR));
    assert!(all.starts_with("vkCmdPipelineBarrier2 after `fill`") && all.ends_with("HOST_READ"), "{all}");
    assert_eq!(some, all + ", and wait for a fence of that submission");
}

#[test]
fn a_condition_is_repaired_before_it_begins() {
    let device = device();
    let words = Words::zeros(&device, 4);
    let flag = device.create_buffer(4, ANY_USE | vk::BufferUsageFlags::CONDITIONAL_RENDERING_EXT).unwrap();
    let memory = device.allocate_memory(flag.requirements().size, 0).unwrap();
    flag.bind_memory(&memory, 0).unwrap();
    let count = Kernel::new(&device, COUNT, &[(STORAGE, 1)], 0);
    let set = count.set(&device, STORAGE, &[&words]);
    let found = findings(&device, |command| {
        command.fill_buffer(&flag, 0, 4, 1).unwrap();
        command.begin_conditional(&flag, 0, false).unwrap();
        command.bind_pipeline(&count.pipeline).unwrap();
        command.bind_descriptor_sets(&count.layout, 0, &[&set], &[]).unwrap();
        command.dispatch(1, 1, 1).unwrap();
        command.end_conditional().unwrap();
    });
    let text = "vkCmdPipelineBarrier2 before vkCmdBeginConditionalRenderingEXT of `main`";
    assert!(repair(&found).starts_with(text), "{found:#?}");
}

#[test]
fn the_regions_of_a_call_have_one_number_and_must_not_write_the_same_bytes() {
    let device = device();
    let [from, to] = [0; 2].map(|_| Words::zeros(&device, 64));
    let region = |at: u64, to: u64, size: u64| vk::BufferCopy { src_offset: at, dst_offset: to, size };
    let apart = findings(&device, |command| {
        let regions = [region(0, 0, 16), region(16, 64, 16), region(32, 128, 16)];
        command.copy_buffer(&from.buffer, &to.buffer, &regions).unwrap();
        command.fill_buffer(&to.buffer, 128, 16, 1).unwrap();
    });
    let commands = [apart[0].first.as_ref().unwrap(), &apart[0].second];
    let numbers = commands.map(|access| access.command.as_ref().unwrap().number);
    assert_eq!((rules(&apart), numbers), (vec![WAW], [0, 1]));
    assert_eq!(device.check_stats().transfers, 2, "the copy is one of them");
    let both = findings(&device, |command| {
        let regions = [region(0, 0, 32), region(64, 16, 32)];
        command.copy_buffer(&from.buffer, &to.buffer, &regions).unwrap();
    });
    assert_eq!(rules(&both), [WAW]);
    assert_eq!(both[0].memory.as_ref().unwrap().bytes, 16..32);
    assert_eq!(both[0].reasons, ["both are regions of one call, which nothing orders"]);
    assert_eq!(repair(&both), "write each byte in one region only, or in two calls with a barrier between them");
}

#[test]
fn a_finding_counts_pairs_of_commands() {
    let device = device();
    let words = Words::zeros(&device, 64);
    let evens = "
        @group(0) @binding(0) var<storage, read_write> words: array<u32>;
        @compute @workgroup_size(16) fn main(@builtin(local_invocation_index) i: u32) { words[2u * i] = 1u; }";
    let kernel = Kernel::new(&device, evens, &[(STORAGE, 1)], 0);
    let set = kernel.set(&device, STORAGE, &[&words]);
    let run = |dispatches: u32| {
        let found = findings(&device, |command| {
            command.bind_pipeline(&kernel.pipeline).unwrap();
            command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
            (0..dispatches).for_each(|_| command.dispatch(1, 1, 1).unwrap());
        });
        assert_eq!(rules(&found), [WAW], "{found:#?}");
        (found[0].count, spelter_driver::check::report::text(&found[0], &[], false))
    };
    let (count, text) = run(2);
    assert!(count == 1 && !text.contains("observed"), "16 words race: {text}");
    let (count, text) = run(3);
    assert!(count == 2 && text.contains("observed between 2 pairs of commands"), "{count}: {text}");
}

#[test]
fn a_command_buffer_that_a_submission_has_twice_has_two_indices() {
    let device = device();
    let words = Words::zeros(&device, 16);
    let flags = vk::CommandBufferUsageFlags::SIMULTANEOUS_USE;
    let frame = recorded(&device, flags, |command| {
        command.set_debug_name(Some("frame"));
        command.fill_buffer(&words.buffer, 0, 64, 1).unwrap();
    });
    device.queue().submit(&[&frame, &frame], None).unwrap();
    device.queue().wait_idle().unwrap();
    let found = device.take_findings();
    let [first, second] = [found[0].first.as_ref().unwrap(), &found[0].second].map(ToString::to_string);
    assert_eq!(first, "write by `fill` (command 0 of command buffer `frame` in submission 1 of queue 0)");
    assert_eq!(second, "write by `fill` (command 0 of command buffer `frame` (index 1) in submission 1 of queue 0)");
}

#[test]
fn buffers_and_images_without_a_name_have_a_number() {
    let device = device();
    let _image = image(&device);
    let words = [0; 3].map(|_| Words::zeros(&device, 16));
    let large = Words::zeros(&device, 16384);
    let found = findings(&device, |command| {
        command.fill_buffer(&large.buffer, 0, 64, 1).unwrap();
        command.fill_buffer(&large.buffer, 0, 64, 1).unwrap();
    });
    assert_eq!(found[0].title(), "data race (write after write) in buffer 3 (of 65,536 bytes), bytes 0..64");
    let json = spelter_driver::check::report::json(&found[0]);
    let memory = ["resource", "number", "resource_bytes"].map(|member| json["memory"][member].to_string());
    assert_eq!(memory, ["\"buffer\"", "3", "65536"]);
    let kernel = Kernel::new(&device, STEP, &[(STORAGE, 1), (STORAGE, 1)], 0);
    let set = kernel.set(&device, STORAGE, &[&words[1], &words[2]]);
    let found = findings(&device, |command| {
        command.fill_buffer(&words[1].buffer, 0, 64, 1).unwrap();
        command.bind_pipeline(&kernel.pipeline).unwrap();
        command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
        command.dispatch(1, 1, 1).unwrap();
    });
    let title = "data race (read after write) in `a` (set 0, binding 0) of buffer 1 (of 64 bytes), bytes 0..64";
    assert_eq!(found[0].title(), title);
    let json = spelter_driver::check::report::json(&found[0]);
    assert_eq!(json["memory"]["resource_number"].to_string(), "1");
}
