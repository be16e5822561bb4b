//! Breaks every rule that the device checks once: the call must fail with the rule's VUID. The last test finds rules
//! without a case.
#![allow(clippy::unwrap_used)]

use crate::common;
mod commands;
mod host_copies;
mod image_commands;
mod images;
mod objects;
mod pipelines;
mod samples;
mod sync;
mod transfers;
mod views;

use std::collections::BTreeSet;
use std::path::Path;

use crate::common::{Kernel, STORAGE, Words, device};
use spelter_driver::{Buffer, CommandBuffer, DescriptorSet, Device, Error, PipelineLayout, vk};

/// A rule and a way to break it.
type Rule = (&'static str, fn(&World) -> Result<(), Error>);

/// Objects for the cases.
pub(crate) struct World {
    device: Device,
    other: Device,
    /// 64 words, with all usages.
    words: Words,
    /// The same, on the other device.
    foreign: Words,
    /// Without memory.
    unbound: Buffer,
    /// In the recording state.
    command: CommandBuffer,
    /// In the initial state.
    idle: CommandBuffer,
}

/// A kernel with push constants and one binding, and a set for it.
pub(crate) struct Ready {
    kernel: Kernel,
    set: DescriptorSet,
    _words: Words,
}

const PUSHER: &str = "
    var<immediate> value: u32;
    @group(0) @binding(0) var<storage, read_write> words: array<u32>;
    @compute @workgroup_size(1) fn main() { words[0] = value; }";

impl World {
    fn new() -> Self {
        let (device, other) = (device(), device());
        let command = device.create_command_pool().allocate();
        command.begin(vk::CommandBufferUsageFlags::empty()).unwrap();
        Self {
            words: Words::zeros(&device, 64),
            foreign: Words::zeros(&other, 64),
            unbound: device.create_buffer(64, common::ANY_USE).unwrap(),
            idle: device.create_command_pool().allocate(),
            command,
            device,
            other,
        }
    }

    fn ready(&self) -> Ready {
        let kernel = Kernel::new(&self.device, PUSHER, &[(STORAGE, 1)], 4);
        let words = Words::zeros(&self.device, 4);
        let set = kernel.set(&self.device, STORAGE, &[&words]);
        Ready { kernel, set, _words: words }
    }

    /// Binds pipeline, set and push constants, so that a dispatch would be valid.
    fn all_bound(&self) -> Ready {
        let ready = self.ready();
        self.command.bind_pipeline(&ready.kernel.pipeline).unwrap();
        self.command.bind_descriptor_sets(&ready.kernel.layout, 0, &[&ready.set], &[]).unwrap();
        self.command.push_constants(&ready.kernel.layout, 0, &[0; 4]).unwrap();
        ready
    }

    /// A layout without sets and with `size` bytes of push constants.
    fn push_layout(&self, size: u32) -> PipelineLayout {
        self.device.create_pipeline_layout(&[], &[spelter_driver::PushRange { offset: 0, size }]).unwrap()
    }

    /// A command buffer without commands.
    fn empty(&self, flags: vk::CommandBufferUsageFlags) -> CommandBuffer {
        common::recorded(&self.device, flags, |_| {})
    }
}

fn rules() -> impl Iterator<Item = &'static Rule> {
    [
        objects::RULES,
        pipelines::RULES,
        commands::RULES,
        transfers::RULES,
        images::RULES,
        image_commands::RULES,
        host_copies::RULES,
        sync::RULES,
        samples::RULES,
        views::RULES,
    ]
    .into_iter()
    .flatten()
}

#[test]
fn every_rule_that_is_broken_is_named() {
    let mut wrong = Vec::new();
    for (vuid, misuse) in rules() {
        match misuse(&World::new()) {
            Err(Error::Misuse(found)) if found.vuid == *vuid => {}
            other => wrong.push(format!("{vuid}: {other:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_command_that_failed_leaves_the_recording_usable() {
    let world = World::new();
    let ready = world.all_bound();
    for (_, misuse) in [commands::RULES, transfers::RULES, image_commands::RULES].into_iter().flatten() {
        let _ = misuse(&world);
    }
    let command = world.device.create_command_pool().allocate();
    command.begin(vk::CommandBufferUsageFlags::empty()).unwrap();
    command.fill_buffer(&world.words.buffer, 0, 8, 1).unwrap();
    command.fill_buffer(&world.words.buffer, 2, 8, 2).unwrap_err();
    command.dispatch(1, 1, 1).unwrap_err();
    command.bind_pipeline(&ready.kernel.pipeline).unwrap();
    command.fill_buffer(&world.words.buffer, 4, 4, 3).unwrap();
    command.end().unwrap();
    world.device.queue().submit(&[&command], None).unwrap();
    world.device.queue().wait_idle().unwrap();
    assert_eq!(world.words.read()[..3], [1, 3, 0]);
}

/// VUIDs in the source, including those that `dispatch_rules!` composes.
fn ids_in_source(folder: &Path, ids: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            ids_in_source(&path, ids);
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        let is_id = |text: &&str| (text.starts_with("VUID-") && text.len() > 5) || text.starts_with("Undefined-Value-");
        ids.extend(source.split('"').filter(is_id).map(str::to_owned));
        for (_, call) in source.match_indices("= dispatch_rules!(\"").map(|(at, text)| (at, &source[at + text.len()..]))
        {
            let command = call.split('"').next().unwrap();
            let rules = [
                "commandBuffer-recording",
                "None-08606",
                "None-08600",
                "None-08601",
                "viewType-07752",
                "format-07753",
                "magFilter-04553",
                "mipmapMode-04770",
            ];
            ids.extend(rules.map(|rule| format!("VUID-{command}-{rule}")));
        }
    }
}

/// Rules that other tests break: those of shaders and of imported memory (`resource/import.rs`).
fn elsewhere(id: &str) -> bool {
    let imports =
        ["VUID-VkImportMemoryHostPointerInfoEXT-pHostPointer-01749", "VUID-VkMemoryAllocateInfo-allocationSize-01745"];
    pipelines::READERS.contains(&id) || imports.contains(&id)
}

#[test]
fn every_rule_has_a_case() {
    let mut ids = BTreeSet::new();
    ids_in_source(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut ids);
    assert!(ids.len() > 100, "{} ids in the source", ids.len());
    let cases: BTreeSet<String> = rules().map(|(vuid, _)| (*vuid).to_owned()).collect();
    let missing: Vec<_> = ids.difference(&cases).filter(|id| !elsewhere(id)).collect();
    assert!(missing.is_empty(), "no case for {missing:#?}");
    let gone: Vec<_> = cases.difference(&ids).collect();
    assert!(gone.is_empty(), "no such rule: {gone:#?}");
}
