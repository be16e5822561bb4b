//! Synchronisation bugs that shipped, between commands and with the host, re-created as small programs: each is
//! reported as its project describes it, and is silent with the repair that its project chose.
//!
//! | case | project | rule | test |
//! |---|---|---|---|
//! | 23 | llama.cpp, pull request 23770 | `HOST` | `values_are_made_visible_to_the_host` |
//! | 25 | executorch, pull request 17309 | `RACE-WAW` | `two_buffers_share_their_memory` |
//! | 27 | ncnn, issue 932 | `RACE-WAR`, `RACE-WAW` | `a_copy_waits_for_what_used_its_target` |
//! | 29 | wgpu, pull request 2810 | `RACE-RAW` | `workgroup_counts_are_written_in_the_same_pass` |
//! | 31 | Godot, pull request 88548 | `RACE-RAW` | `an_image_is_written_and_then_read` |
//! | 33 | ByroRedux, issue 192 | none | `a_submission_makes_what_the_host_wrote_visible` |
#![allow(clippy::unwrap_used)]

use crate::common::checked::{self, RANGE, RAW, Side, WAR, WAW, barrier, device, findings, rules};
use crate::common::{ANY_USE, Kernel, STORAGE, Words, recorded};
use spelter_driver::check::{Rule, Severity};
use spelter_driver::vk::{self, AccessFlags as A, PipelineStageFlags as S};
use spelter_driver::{
    CommandBuffer, DescriptorImageInfo, DescriptorSet, Device, Image, ImageMemoryBarrier, ImageViewInfo,
};

const SHADER_WRITE: Side = (S::COMPUTE_SHADER, A::SHADER_WRITE);
const SHADER_READ: Side = (S::COMPUTE_SHADER, A::SHADER_READ);

/// `output[i] = input[i] + 1` for the first 16 words.
const STEP: &str = "
    @group(0) @binding(0) var<storage, read> input: array<u32>;
    @group(0) @binding(1) var<storage, read_write> output: array<u32>;
    @compute @workgroup_size(16) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        output[id.x] = input[id.x] + 1u;
    }";

fn step(device: &Device) -> Kernel {
    Kernel::new(device, STEP, &[(STORAGE, 1), (STORAGE, 1)], 0)
}

fn dispatch(command: &CommandBuffer, kernel: &Kernel, set: &DescriptorSet) {
    command.bind_pipeline(&kernel.pipeline).unwrap();
    command.bind_descriptor_sets(&kernel.layout, 0, &[set], &[]).unwrap();
    command.dispatch(1, 1, 1).unwrap();
}

/// Case 23: no dependency from SHADER_WRITE to HOST_READ. A matrix is computed into memory that the host has mapped;
/// the host waits for the fence and copies it out.
#[test]
fn values_are_made_visible_to_the_host() {
    let device = device();
    let words = [0; 2].map(|_| Words::zeros(&device, 16));
    let kernel = step(&device);
    let set = kernel.set(&device, STORAGE, &[&words[0], &words[1]]);
    let run = |repaired: bool, reads: bool| {
        let command = recorded(&device, vk::CommandBufferUsageFlags::empty(), |command| {
            dispatch(command, &kernel, &set);
            if repaired {
                barrier(command, SHADER_WRITE, (S::HOST, A::HOST_READ));
            }
        });
        let fence = device.create_fence(false);
        device.queue().submit(&[&command], Some(&fence)).unwrap();
        assert!(fence.wait(None).unwrap());
        if reads {
            assert_eq!(words[1].read(), [1; 16]);
        }
        device.take_findings()
    };
    // The host reads by a call.
    assert_eq!(rules(&run(false, true)), [Rule::Host]);
    assert_eq!(run(true, true), []);
    // It reads through a pointer, which is not seen: an advice.
    words[1].memory.note_mapping(0..64, true);
    let advice = run(false, false);
    assert_eq!((rules(&advice), advice[0].severity), (vec![Rule::Host], Severity::Note));
    assert_eq!(run(true, false), []);
}

/// Case 25: two tensors share memory, one after the other; before the first access to the second one is the barrier for
/// memory that nothing used, from TOP_OF_PIPE.
#[test]
fn two_buffers_share_their_memory() {
    let device = device();
    let input = Words::zeros(&device, 16);
    let first = Words::zeros(&device, 16);
    let second = device.create_buffer(64, ANY_USE).unwrap();
    second.bind_memory(&first.memory, 0).unwrap();
    let second = Words { buffer: second, memory: first.memory.clone() };
    let kernel = step(&device);
    let sets = [&first, &second].map(|output| kernel.set(&device, STORAGE, &[&input, output]));
    let run = |src: Side| {
        findings(&device, |command| {
            dispatch(command, &kernel, &sets[0]);
            barrier(command, src, SHADER_WRITE);
            dispatch(command, &kernel, &sets[1]);
        })
    };
    let found = run((S::TOP_OF_PIPE, A::empty()));
    assert_eq!(rules(&found), [WAW]);
    assert!(found[0].reasons[0].contains("orders NONE before COMPUTE_SHADER"), "{}", found[0]);
    assert_eq!(run(SHADER_WRITE), []);
}

/// Case 27: a copy has a barrier for what it reads. What it writes is memory of a pool that a dispatch before still
/// reads, or writes.
#[test]
fn a_copy_waits_for_what_used_its_target() {
    let device = device();
    let words = [0; 3].map(|_| Words::zeros(&device, 16));
    let [source, pooled, other] = &words;
    let kernel = step(&device);
    let run = |uses: [&Words; 2], repaired: bool| {
        let set = kernel.set(&device, STORAGE, &uses);
        findings(&device, |command| {
            command.fill_buffer(&source.buffer, 0, vk::WHOLE_SIZE, 1).unwrap();
            dispatch(command, &kernel, &set);
            barrier(command, (S::TRANSFER, A::TRANSFER_WRITE), (S::TRANSFER, A::TRANSFER_READ));
            if repaired {
                barrier(command, SHADER_WRITE, (S::TRANSFER, A::TRANSFER_WRITE));
            }
            let whole = vk::BufferCopy { src_offset: 0, dst_offset: 0, size: 64 };
            command.copy_buffer(&source.buffer, &pooled.buffer, &[whole]).unwrap();
        })
    };
    assert_eq!(rules(&run([pooled, other], false)), [WAR]);
    assert_eq!(rules(&run([other, pooled], false)), [WAW]);
    assert_eq!(run([pooled, other], true), []);
    assert_eq!(run([other, pooled], true), []);
}

/// Case 29: a dispatch writes the workgroup counts of an indirect dispatch in the same pass.
#[test]
fn workgroup_counts_are_written_in_the_same_pass() {
    let device = device();
    let source = "
        @group(0) @binding(0) var<storage, read_write> counts: array<u32>;
        @compute @workgroup_size(1) fn prepare() { for (var i = 0; i < 3; i++) { counts[i] = 1u; } }";
    let prepare = Kernel::named(&device, source, "prepare", &[(STORAGE, 1)], 0);
    let (counts, words) = (Words::zeros(&device, 3), [0; 2].map(|_| Words::zeros(&device, 16)));
    let (kernel, set) = (step(&device), prepare.set(&device, STORAGE, &[&counts]));
    let work = kernel.set(&device, STORAGE, &[&words[0], &words[1]]);
    let run = |dependency: Option<Side>| {
        findings(&device, |command| {
            dispatch(command, &prepare, &set);
            if let Some(dst) = dependency {
                barrier(command, SHADER_WRITE, dst);
            }
            command.bind_pipeline(&kernel.pipeline).unwrap();
            command.bind_descriptor_sets(&kernel.layout, 0, &[&work], &[]).unwrap();
            command.dispatch_indirect(&counts.buffer, 0).unwrap();
        })
    };
    let found = run(None);
    assert_eq!(rules(&found), [RAW]);
    assert_eq!(found[0].second.action, "read of the workgroup counts");
    assert!(found[0].repairs[0].text.contains("dstAccessMask INDIRECT_COMMAND_READ"), "{}", found[0]);
    assert_eq!(run(Some((S::DRAW_INDIRECT, A::INDIRECT_COMMAND_READ))), []);
    // The barrier that the pass had for its other buffers does not do.
    assert_eq!(rules(&run(Some(SHADER_READ))), [RAW]);
}

fn image(device: &Device) -> Image {
    checked::image(device, vk::Format::R32_SFLOAT, vk::ImageTiling::OPTIMAL, vk::ImageUsageFlags::STORAGE)
}

/// Case 31: one pass writes an image, the next one reads it; a setting leaves out the barrier with the pass between
/// them.
#[test]
fn an_image_is_written_and_then_read() {
    let device = device();
    let write = "
        @group(0) @binding(0) var image: texture_storage_2d<r32float, write>;
        @compute @workgroup_size(4, 4) fn main(@builtin(local_invocation_id) id: vec3<u32>) {
            textureStore(image, id.xy, vec4(1.0));
        }";
    let read = "
        @group(0) @binding(0) var image: texture_storage_2d<r32float, read>;
        @group(0) @binding(1) var<storage, read_write> output: array<f32>;
        @compute @workgroup_size(4, 4) fn main(@builtin(local_invocation_id) id: vec3<u32>) {
            output[id.y * 4u + id.x] = textureLoad(image, id.xy).x;
        }";
    let storage = vk::DescriptorType::STORAGE_IMAGE;
    let write = Kernel::new(&device, write, &[(storage, 1)], 0);
    let read = Kernel::new(&device, read, &[(storage, 1), (STORAGE, 1)], 0);
    let (image, words) = (image(&device), Words::zeros(&device, 16));
    image.set_debug_name(Some("occlusion"));
    let view = ImageViewInfo {
        image: &image,
        ty: vk::ImageViewType::TYPE_2D,
        format: vk::Format::R32_SFLOAT,
        components: vk::ComponentMapping::default(),
        range: RANGE,
    };
    let view = device.create_image_view(&view).unwrap();
    let info = [DescriptorImageInfo { view: Some(&view), sampler: None }];
    let pool = device.create_descriptor_pool(2, &[(storage, 2), (STORAGE, 1)]).unwrap();
    let sets = [&write, &read].map(|kernel| pool.allocate(&kernel.set_layout).unwrap());
    sets.iter().for_each(|set| set.write_images(0, 0, storage, &info).unwrap());
    sets[1].write(1, 0, STORAGE, &[words.whole()]).unwrap();
    let run = |repaired: bool| {
        findings(&device, |command| {
            dispatch(command, &write, &sets[0]);
            if repaired {
                let (old_layout, new_layout) = (vk::ImageLayout::GENERAL, vk::ImageLayout::GENERAL);
                let (src_access, dst_access) = (SHADER_WRITE.1, SHADER_READ.1);
                let image =
                    ImageMemoryBarrier { src_access, dst_access, old_layout, new_layout, image: &image, range: RANGE };
                command.pipeline_barrier_with_images(SHADER_WRITE.0, SHADER_READ.0, &[], &[], &[image]).unwrap();
            }
            dispatch(command, &read, &sets[1]);
        })
    };
    assert_eq!(rules(&run(false)), [RAW]);
    assert_eq!(run(true), []);
}

/// Case 33: "missing barrier from HOST to COMPUTE_SHADER". There is none missing.
#[test]
fn a_submission_makes_what_the_host_wrote_visible() {
    let device = device();
    let words = [0; 2].map(|_| Words::zeros(&device, 16));
    let kernel = step(&device);
    let set = kernel.set(&device, STORAGE, &[&words[0], &words[1]]);
    for frame in 0..3u32 {
        words[0].memory.write(0, &frame.to_le_bytes().repeat(16)).unwrap();
        let found = findings(&device, |command| {
            dispatch(command, &kernel, &set);
            barrier(command, SHADER_WRITE, (S::HOST, A::HOST_READ));
        });
        assert_eq!(found, []);
        assert_eq!(words[1].read(), [frame + 1; 16]);
    }
    assert_eq!(device.take_findings(), []);
}
