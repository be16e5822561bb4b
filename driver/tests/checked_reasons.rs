//! What reports on commands say of the events, timeline semaphores and barriers to the host that a program has, and
//! the names by which findings are suppressed.
#![allow(clippy::unwrap_used)]

use crate::common::checked::{WAW, barrier2, device, findings, rules};
use crate::common::{COUNT, Kernel, STORAGE, Words, recorded};
use spelter_driver::check::report::{Filter, Suppression};
use spelter_driver::check::{Finding, FoundPlace, Rule};
use spelter_driver::vk::{self, AccessFlags2 as A, PipelineStageFlags2 as S};
use spelter_driver::{Barrier2, BarrierMemory, CommandBuffer, Device, Semaphore, SemaphoreSubmit, SubmitInfo};

/// A barrier of all memory.
fn barrier(src: (S, A), dst: (S, A)) -> Barrier2<'static> {
    barrier2(src, dst, BarrierMemory::All)
}

/// The reason of the only finding.
fn reason(found: &[Finding], rule: Rule) -> String {
    assert_eq!(rules(found), [rule], "{found:#?}");
    assert_eq!(found[0].reasons.len(), 1, "{}", found[0]);
    found[0].reasons[0].clone()
}

const CLEAR: (S, A) = (S::CLEAR, A::TRANSFER_WRITE);
const COMPUTE: (S, A) = (S::COMPUTE_SHADER, A::SHADER_STORAGE_WRITE);

/// Between two fills of a buffer.
fn between(record: impl FnOnce(&Device, &CommandBuffer)) -> Vec<Finding> {
    let device = device();
    let words = Words::zeros(&device, 16);
    findings(&device, |command| {
        command.fill_buffer(&words.buffer, 0, 64, 1).unwrap();
        record(&device, command);
        command.fill_buffer(&words.buffer, 0, 64, 2).unwrap();
    })
}

#[test]
fn an_event_that_orders_other_commands_is_said_to_be_why() {
    let with = |set: Barrier2<'_>, wait: Barrier2<'_>| {
        reason(
            &between(|device, command| {
                let event = device.create_event();
                command.set_event2(&event, &[set]).unwrap();
                command.wait_events2(&[(&event, &[wait])]).unwrap();
            }),
            WAW,
        )
    };
    assert_eq!(
        with(barrier(COMPUTE, CLEAR), barrier(COMPUTE, CLEAR)),
        "vkCmdSetEvent between them has only DRAW_INDIRECT | COMPUTE_SHADER before it, not CLEAR"
    );
    assert_eq!(
        with(barrier(CLEAR, COMPUTE), barrier(CLEAR, COMPUTE)),
        "vkCmdWaitEvents between them orders CLEAR before COMPUTE_SHADER, not CLEAR before CLEAR"
    );
    let none = (S::CLEAR, A::NONE);
    assert_eq!(
        with(barrier(none, none), barrier(none, none)),
        "vkCmdWaitEvents between them does not make the write available: srcAccessMask lacks TRANSFER_WRITE (it has \
         NONE)"
    );
    let set = |device: &Device, command: &CommandBuffer| command.set_event(&device.create_event()).unwrap();
    assert_eq!(
        reason(&between(set), WAW),
        "no barrier is between them, and nothing waits for the event that is set there"
    );
}

#[test]
fn an_event_that_was_set_too_early_is_said_to_be_why() {
    let device = device();
    let words = Words::zeros(&device, 16);
    let event = device.create_event();
    let found = findings(&device, |command| {
        command.set_event(&event).unwrap();
        command.fill_buffer(&words.buffer, 0, 64, 1).unwrap();
        command.wait_events(&[&event]).unwrap();
        command.fill_buffer(&words.buffer, 0, 64, 2).unwrap();
    });
    assert_eq!(reason(&found, WAW), "vkCmdWaitEvents between them waits for an event that was set before the first");
}

/// The host writes what a command fills once the host has set an event, with these scopes of the wait.
fn after_event_of_host(src: (S, A), dst: (S, A)) -> Vec<Finding> {
    let device = device();
    let words = Words::zeros(&device, 16);
    let event = device.create_event();
    let fill = recorded(&device, vk::CommandBufferUsageFlags::empty(), |command| {
        command.wait_events2(&[(&event, &[barrier(src, dst)])]).unwrap();
        command.fill_buffer(&words.buffer, 0, 64, 1).unwrap();
    });
    device.queue().submit(&[&fill], None).unwrap();
    let words = words.write(&[7; 16]);
    event.set();
    device.queue().wait_idle().unwrap();
    drop(words);
    device.take_findings()
}

#[test]
fn an_event_of_the_host_whose_wait_lacks_it_is_said_to_be_why() {
    let host = (S::HOST, A::HOST_WRITE);
    assert_eq!(after_event_of_host(host, CLEAR), []);
    let found = after_event_of_host(COMPUTE, CLEAR);
    assert_eq!(
        reason(&found, WAW),
        "vkCmdWaitEvents between them orders COMPUTE_SHADER before CLEAR, not HOST before CLEAR"
    );
    assert_eq!(found[0].first.as_ref().unwrap().action, "write by the host");
    let repair = "srcStageMask HOST, srcAccessMask HOST_WRITE, dstStageMask CLEAR (TRANSFER in vkCmdPipelineBarrier), \
                  dstAccessMask TRANSFER_WRITE in the barrier of vkCmdWaitEvents";
    assert_eq!(found[0].repairs[0].text, repair);
}

#[test]
fn an_event_that_is_reset_and_set_again_has_the_last_set_in_the_picture() {
    let device = device();
    let words = Words::zeros(&device, 16);
    let event = device.create_event();
    crate::common::run(&device, |command| command.set_event(&event).unwrap());
    event.reset();
    event.set();
    let found = findings(&device, |command| {
        command.fill_buffer(&words.buffer, 0, 64, 1).unwrap();
        command.wait_events2(&[(&event, &[barrier(CLEAR, CLEAR)])]).unwrap();
        command.fill_buffer(&words.buffer, 0, 64, 2).unwrap();
    });
    let between = &found[0].between;
    let sets: Vec<_> = between.iter().filter(|step| step.precedes).map(|step| (step.queue, &*step.text)).collect();
    assert_eq!(sets, [(None, "vkSetEvent")], "{between:#?}");
    assert_eq!(between[1].after, [between[0].number]);
}

#[test]
fn a_picture_has_few_of_many_events() {
    let device = device();
    let words = Words::zeros(&device, 16);
    let events = [0; 40].map(|_| device.create_event());
    let found = findings(&device, |command| {
        events.iter().for_each(|event| command.set_event(event).unwrap());
        command.fill_buffer(&words.buffer, 0, 64, 1).unwrap();
        for event in &events {
            command.wait_events2(&[(event, &[barrier(CLEAR, COMPUTE)])]).unwrap();
        }
        command.fill_buffer(&words.buffer, 0, 64, 2).unwrap();
    });
    let between = &found[0].between;
    let (sets, waits): (Vec<_>, Vec<_>) = between.iter().partition(|step| step.precedes);
    assert_eq!((sets.len(), waits.len()), (4, 12));
    assert!(sets.iter().all(|set| waits.iter().any(|wait| wait.after == [set.number])), "{between:#?}");
}

#[test]
fn a_buffer_that_is_made_anew_in_each_frame_has_one_finding() {
    let device = device();
    let frame = |words: &Words| {
        crate::common::run(&device, |command| {
            (0..2).for_each(|word| command.fill_buffer(&words.buffer, 0, 64, word).unwrap());
        });
    };
    (0..5).for_each(|_| frame(&Words::zeros(&device, 16)));
    let found = device.take_findings();
    assert_eq!((rules(&found), found[0].count), (vec![WAW], 5), "{found:#?}");
    // Those that are there at once are two, if the program does not call them the same.
    let device = crate::common::checked::device();
    let both = |name: Option<&str>| {
        let words = [0; 2].map(|_| Words::zeros(&device, 16));
        words.iter().for_each(|words| words.buffer.set_debug_name(name));
        let fill = |words: &Words, command: &CommandBuffer| {
            (0..2).for_each(|word| command.fill_buffer(&words.buffer, 0, 64, word).unwrap());
        };
        rules(&findings(&device, |command| words.iter().for_each(|words| fill(words, command))))
    };
    assert_eq!((both(None), both(Some("staging"))), (vec![WAW; 2], vec![WAW]));
}

/// What has no name is known by its kind, its usage and its size.
#[test]
fn buffers_of_different_sizes_one_after_the_other_have_findings_of_their_own() {
    let device = device();
    for words in [16, 32, 16, 32, 32] {
        let words = Words::zeros(&device, words);
        crate::common::run(&device, |command| {
            (0..2).for_each(|word| command.fill_buffer(&words.buffer, 0, 64, word).unwrap());
        });
    }
    let found = device.take_findings();
    let of = |finding: &Finding| match &finding.memory.as_ref().unwrap().place {
        FoundPlace::Resource(resource) => (finding.rule, resource.bytes, finding.count),
        place => panic!("{place}"),
    };
    assert_eq!(found.iter().map(of).collect::<Vec<_>>(), [(WAW, 64, 2), (WAW, 128, 3)], "{found:#?}");
}

/// Fills on two queues: the first one signals value 2 of a timeline semaphore that has 1, after some stages.
fn across(after: S, wait: u64) -> String {
    let device = device();
    let words = Words::zeros(&device, 16);
    let flags = vk::CommandBufferUsageFlags::empty();
    let fill = |word| recorded(&device, flags, |command| command.fill_buffer(&words.buffer, 0, 64, word).unwrap());
    let [first, second] = [1, 2].map(fill);
    let (queues, timeline) = (device.queues(), device.create_timeline_semaphore(1));
    let signals = [SemaphoreSubmit { stages: after, ..SemaphoreSubmit::new(&timeline, 2) }];
    queues[0].submit_all(&[SubmitInfo { waits: &[], commands: &[&first], signals: &signals }], None).unwrap();
    let waits = [SemaphoreSubmit::new(&timeline, wait)];
    queues[1].submit_all(&[SubmitInfo { waits: &waits, commands: &[&second], signals: &[] }], None).unwrap();
    queues.iter().for_each(|queue| queue.wait_idle().unwrap());
    reason(&device.take_findings(), WAW)
}

#[test]
fn a_semaphore_that_orders_nothing_is_said_to_be_why() {
    assert_eq!(
        across(S::ALL_COMMANDS, 1),
        "they are on different queues, and no semaphore or fence orders them; the timeline semaphore that the second \
         waits for had value 1 without the first"
    );
    assert_eq!(
        across(S::COPY, 2),
        "the second waits for a semaphore that is signalled after the first, but only after COPY, not after CLEAR"
    );
}

#[test]
fn a_semaphore_after_other_stages_is_said_to_be_why_the_host_is_not_ordered() {
    let device = device();
    let words = Words::zeros(&device, 16);
    let flags = vk::CommandBufferUsageFlags::empty();
    let fill = recorded(&device, flags, |command| command.fill_buffer(&words.buffer, 0, 64, 1).unwrap());
    let timeline = device.create_timeline_semaphore(0);
    let signals = [SemaphoreSubmit { stages: S::COPY, ..SemaphoreSubmit::new(&timeline, 1) }];
    device.queue().submit_all(&[SubmitInfo { waits: &[], commands: &[&fill], signals: &signals }], None).unwrap();
    Semaphore::wait_all(&[(&timeline, 1)], None).unwrap();
    let words = words.write(&[7; 16]);
    device.queue().wait_idle().unwrap();
    drop(words);
    let found = reason(&device.take_findings(), WAW);
    assert_eq!(found, "the host waited for a semaphore that is signalled after COPY, not after CLEAR");
}

#[test]
fn a_barrier_to_the_host_that_misses_the_write_is_said_to_be_why() {
    let run = |src, dst_access| {
        let device = device();
        let words = Words::zeros(&device, 16);
        crate::common::run(&device, |command| {
            command.fill_buffer(&words.buffer, 0, 64, 1).unwrap();
            command.pipeline_barrier2(&[barrier(src, (S::HOST, dst_access))]).unwrap();
        });
        let _ = words.read();
        let reason = reason(&device.take_findings(), Rule::Host);
        reason.strip_prefix("the host waited for the command, but the barrier to HOST ").unwrap().to_owned()
    };
    assert_eq!(run(COMPUTE, A::HOST_READ), "has COMPUTE_SHADER before it, not CLEAR");
    let lacks = "does not make the write available: srcAccessMask lacks TRANSFER_WRITE (it has NONE)";
    assert_eq!(run((S::CLEAR, A::NONE), A::HOST_READ), lacks);
    let lacks = "does not make the write visible: dstAccessMask lacks HOST_READ (it has HOST_WRITE)";
    assert_eq!(run(CLEAR, A::HOST_WRITE), lacks);
}

#[test]
fn repairs_name_the_stage_of_version_1_too() {
    let found = between(|_, _| ());
    let text = &found[0].repairs[0].text;
    assert_eq!(text.matches("StageMask CLEAR (TRANSFER in vkCmdPipelineBarrier)").count(), 2, "{text}");
}

#[test]
fn a_kernel_is_suppressed_by_each_of_its_names() {
    let device = device();
    let words = Words::zeros(&device, 4);
    let count = Kernel::new(&device, COUNT, &[(STORAGE, 1)], 0);
    count.pipeline.set_debug_name(Some("count"));
    count.pipeline.set_module_name(Some("count.comp"));
    let set = count.set(&device, STORAGE, &[&words]);
    let dispatch = |command: &CommandBuffer| {
        command.set_label(Some("frame")).unwrap();
        command.bind_pipeline(&count.pipeline).unwrap();
        command.bind_descriptor_sets(&count.layout, 0, &[&set], &[]).unwrap();
        command.dispatch(1, 1, 1).unwrap();
    };
    let found = findings(&device, |command| {
        dispatch(command);
        dispatch(command);
    });
    assert!(!found.is_empty());
    let suppressed = |name: &str| {
        let suppressions = vec![format!("kernel:{name}").parse::<Suppression>().unwrap()];
        let filter = Filter { suppressions, ..Filter::default() };
        found.iter().all(|finding| filter.suppresses(finding))
    };
    let names = ["main", "count", "count.comp", "count*", "frame", "coun"];
    assert_eq!(names.map(suppressed), [true, true, true, true, false, false]);
}

#[test]
fn an_empty_name_is_none() {
    let device = device();
    let words = Words::zeros(&device, 4);
    let count = Kernel::new(&device, COUNT, &[(STORAGE, 1)], 0);
    let set = count.set(&device, STORAGE, &[&words]);
    words.buffer.set_debug_name(Some("words"));
    words.buffer.set_debug_name(Some(""));
    count.pipeline.set_debug_name(Some(""));
    let found = findings(&device, |command| {
        command.set_debug_name(Some(""));
        for _ in 0..2 {
            command.bind_pipeline(&count.pipeline).unwrap();
            command.bind_descriptor_sets(&count.layout, 0, &[&set], &[]).unwrap();
            command.dispatch(1, 1, 1).unwrap();
        }
    });
    let text = found[0].to_string();
    assert!(!text.contains("``") && text.contains("command buffer 0") && text.contains("of buffer 0 ("), "{text}");
}
