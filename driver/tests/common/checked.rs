//! A device in checked mode, and what it finds.

use spelter_driver::check::{CheckOptions, Finding, Hazard, Rule};
use spelter_driver::vk::{self, AccessFlags, AccessFlags2, PipelineStageFlags, PipelineStageFlags2};
use spelter_driver::{Barrier2, BarrierMemory, CommandBuffer, Device, DeviceOptions, Image, ImageInfo, MemoryBarrier};

/// Stages and accesses of one side of a barrier.
pub type Side = (PipelineStageFlags, AccessFlags);
pub type Side2 = (PipelineStageFlags2, AccessFlags2);

/// All of a colour image with one level and one layer.
pub const RANGE: vk::ImageSubresourceRange = vk::ImageSubresourceRange {
    aspect_mask: vk::ImageAspectFlags::COLOR,
    base_mip_level: 0,
    level_count: 1,
    base_array_layer: 0,
    layer_count: 1,
};

pub const RAW: Rule = Rule::Race(Hazard::ReadAfterWrite);
pub const WAR: Rule = Rule::Race(Hazard::WriteAfterRead);
pub const WAW: Rule = Rule::Race(Hazard::WriteAfterWrite);

pub fn options() -> DeviceOptions {
    DeviceOptions { check: Some(CheckOptions::default()), ..super::options() }
}

pub fn device() -> Device {
    Device::new(options()).unwrap()
}

/// The findings of one command buffer.
pub fn findings(device: &Device, record: impl FnOnce(&CommandBuffer)) -> Vec<Finding> {
    super::run(device, record);
    device.take_findings()
}

pub fn rules(of: &[Finding]) -> Vec<Rule> {
    of.iter().map(|finding| finding.rule).collect()
}

/// Records a barrier of all memory.
pub fn barrier(command: &CommandBuffer, src: Side, dst: Side) {
    let memory = [MemoryBarrier { src_access: src.1, dst_access: dst.1 }];
    command.pipeline_barrier(src.0, dst.0, &memory, &[]).unwrap();
}

/// A barrier of some memory, to be recorded.
pub fn barrier2<'a>(src: Side2, dst: Side2, memory: BarrierMemory<'a>) -> Barrier2<'a> {
    let ((src_stages, src_access), (dst_stages, dst_access)) = (src, dst);
    Barrier2 { src_stages, src_access, dst_stages, dst_access, memory, ownership: None }
}

/// A colour image of 4 × 4 texels, with memory.
pub fn image(device: &Device, format: vk::Format, tiling: vk::ImageTiling, usage: vk::ImageUsageFlags) -> Image {
    let info = ImageInfo {
        flags: vk::ImageCreateFlags::empty(),
        ty: vk::ImageType::TYPE_2D,
        format,
        extent: vk::Extent3D { width: 4, height: 4, depth: 1 },
        levels: 1,
        layers: 1,
        tiling,
        usage,
    };
    let image = device.create_image(&info).unwrap();
    let memory = device.allocate_memory(image.requirements().size, 0).unwrap();
    image.bind_memory(&memory, 0).unwrap();
    image
}
