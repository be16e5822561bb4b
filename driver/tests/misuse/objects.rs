//! Rules of memory, buffers, descriptors, fences and queues.

use spelter_driver::vk::{self, BufferUsageFlags, CommandBufferUsageFlags, DescriptorType};
use spelter_driver::{
    Binding, BufferInfo, CommandBuffer, DescriptorSet, DescriptorSetLayout, DescriptorSetLayoutInfo, Device, Error,
    Fence, PushRange,
};

use super::common::{Kernel, STORAGE, Words, recorded};
use super::{Rule, World};

const UNIFORM: DescriptorType = DescriptorType::UNIFORM_BUFFER;

fn one(binding: u32, ty: DescriptorType, count: u32) -> Binding {
    Binding { binding, ty, count }
}

/// A set of the given bindings.
fn set(device: &Device, bindings: &[Binding]) -> DescriptorSet {
    let layout = device.create_descriptor_set_layout(bindings).unwrap();
    let sizes: Vec<_> = bindings.iter().filter(|b| b.count > 0).map(|b| (b.ty, b.count)).collect();
    device.create_descriptor_pool(1, &sizes).unwrap().allocate(&layout).unwrap()
}

/// Writes one descriptor of a type into a set that has one.
fn write(world: &World, ty: DescriptorType, info: BufferInfo<'_>) -> Result<(), Error> {
    set(&world.device, &[one(0, ty, 1)]).write(0, 0, ty, &[info])
}

/// A buffer with this size and usage, with memory.
fn with_usage(world: &World, size: u64, usage: BufferUsageFlags) -> spelter_driver::Buffer {
    let buffer = world.device.create_buffer(size, usage).unwrap();
    let memory = world.device.allocate_memory(buffer.requirements().size, 0).unwrap();
    buffer.bind_memory(&memory, 0).unwrap();
    buffer
}

fn layout_of(world: &World, ty: DescriptorType, count: u32) -> Result<(), Error> {
    let layout = world.device.create_descriptor_set_layout(&[one(0, ty, count)])?;
    world.device.create_pipeline_layout(&[&layout, &layout], &[]).map(drop)
}

/// A layout with a variable count of up to 4 descriptors of a type.
fn variable(world: &World, ty: DescriptorType) -> Result<DescriptorSetLayout, Error> {
    let bindings = [one(0, ty, 4)];
    let info = DescriptorSetLayoutInfo { bindings: &bindings, variable_count: true, ..Default::default() };
    world.device.create_descriptor_set_layout_from(&info)
}

fn push_range(world: &World, offset: u32, size: u32) -> Result<(), Error> {
    world.device.create_pipeline_layout(&[], &[PushRange { offset, size }]).map(drop)
}

/// Calls `call` while a submission with the command buffer and the fence is pending.
fn while_busy(world: &World, call: impl FnOnce(&CommandBuffer, &Fence) -> Result<(), Error>) -> Result<(), Error> {
    let device = &world.device;
    let words = Words::zeros(device, 2);
    let kernel = Kernel::new(device, WAITER, &[(STORAGE, 1)], 0);
    let set = kernel.set(device, STORAGE, &[&words]);
    let command = recorded(device, CommandBufferUsageFlags::empty(), |command| {
        command.bind_pipeline(&kernel.pipeline).unwrap();
        command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
        command.dispatch(1, 1, 1).unwrap();
    });
    let fence = device.create_fence(false);
    std::thread::scope(|scope| {
        // A submission may run on the submitting thread.
        scope.spawn(|| device.queue().submit(&[&command], Some(&fence)).unwrap());
        while words.read()[1] == 0 {
            std::thread::yield_now();
        }
        let result = call(&command, &fence);
        words.memory.write(0, &[1]).unwrap();
        assert!(fence.wait(None).unwrap());
        result
    })
}

/// Signals that it runs, then waits for the host.
const WAITER: &str = "
    @group(0) @binding(0) var<storage, read_write> words: array<atomic<u32>>;
    @compute @workgroup_size(1) fn main() {
        atomicStore(&words[1], 1u);
        while atomicLoad(&words[0]) == 0u {}
    }";

pub(crate) const RULES: &[Rule] = &[
    ("VUID-VkBufferDeviceAddressInfo-buffer-02601", |w| w.words.buffer.device_address().map(drop)),
    ("VUID-VkBufferDeviceAddressInfo-buffer-02600", |w| {
        w.device.create_buffer(4, BufferUsageFlags::SHADER_DEVICE_ADDRESS)?.device_address().map(drop)
    }),
    ("VUID-VkDescriptorSetLayoutBindingFlagsCreateInfo-pBindingFlags-03015", |w| {
        variable(w, DescriptorType::STORAGE_BUFFER_DYNAMIC).map(drop)
    }),
    ("VUID-VkDescriptorSetAllocateInfo-pSetLayouts-09380", |w| {
        let pool = w.device.create_descriptor_pool(1, &[(STORAGE, 9)]).unwrap();
        pool.allocate_with_count(&variable(w, STORAGE)?, 5).map(drop)
    }),
    ("VUID-VkMemoryAllocateInfo-allocationSize-07897", |w| w.device.allocate_memory(0, 0).map(drop)),
    ("VUID-vkAllocateMemory-pAllocateInfo-01713", |w| w.device.allocate_memory(1 << 60, 0).map(drop)),
    ("VUID-vkAllocateMemory-pAllocateInfo-01714", |w| w.device.allocate_memory(4, 1).map(drop)),
    ("VUID-vkMapMemory-offset-00679", |w| w.words.memory.read(256, &mut [0])),
    ("VUID-vkMapMemory-size-00681", |w| w.words.memory.write(255, &[0; 2])),
    ("VUID-VkBufferCreateInfo-size-00912", |w| w.device.create_buffer(0, BufferUsageFlags::TRANSFER_SRC).map(drop)),
    ("VUID-VkBufferCreateInfo-size-06409", |w| {
        w.device.create_buffer(u64::MAX, BufferUsageFlags::TRANSFER_SRC).map(drop)
    }),
    ("VUID-VkBufferCreateInfo-None-09500", |w| w.device.create_buffer(4, BufferUsageFlags::empty()).map(drop)),
    ("VUID-vkBindBufferMemory-memory-parent", |w| w.unbound.bind_memory(&w.foreign.memory, 0)),
    ("VUID-vkBindBufferMemory-buffer-07459", |w| w.words.buffer.bind_memory(&w.words.memory, 0)),
    ("VUID-vkBindBufferMemory-memoryOffset-01031", |w| w.unbound.bind_memory(&w.words.memory, 256)),
    ("VUID-vkBindBufferMemory-memoryOffset-01036", |w| w.unbound.bind_memory(&w.words.memory, 4)),
    ("VUID-vkBindBufferMemory-size-01037", |w| {
        let buffer = w.device.create_buffer(193, BufferUsageFlags::TRANSFER_SRC)?;
        buffer.bind_memory(&w.words.memory, 64)
    }),
    ("VUID-VkDescriptorSetLayoutCreateInfo-binding-00279", |w| {
        w.device.create_descriptor_set_layout(&[one(1, STORAGE, 1), one(1, UNIFORM, 1)]).map(drop)
    }),
    ("VUID-VkDescriptorSetLayoutBinding-descriptorType-parameter", |w| {
        w.device.create_descriptor_set_layout(&[one(0, DescriptorType::INPUT_ATTACHMENT, 1)]).map(drop)
    }),
    ("VUID-vkCreateDescriptorSetLayout-support-09582", |w| {
        w.device.create_descriptor_set_layout(&[one(0, STORAGE, u32::MAX)]).map(drop)
    }),
    ("VUID-VkDescriptorPoolCreateInfo-descriptorPoolOverallocation-09227", |w| {
        w.device.create_descriptor_pool(0, &[(STORAGE, 1)]).map(drop)
    }),
    ("VUID-VkDescriptorPoolSize-descriptorCount-00302", |w| {
        w.device.create_descriptor_pool(1, &[(STORAGE, 0)]).map(drop)
    }),
    ("VUID-VkDescriptorPoolSize-type-parameter", |w| {
        w.device.create_descriptor_pool(1, &[(DescriptorType::INPUT_ATTACHMENT, 1)]).map(drop)
    }),
    ("VUID-VkDescriptorSetAllocateInfo-commonparent", |w| {
        let layout = w.other.create_descriptor_set_layout(&[])?;
        w.device.create_descriptor_pool(1, &[])?.allocate(&layout).map(drop)
    }),
    ("VUID-VkWriteDescriptorSet-descriptorCount-arraylength", |w| {
        set(&w.device, &[one(0, STORAGE, 1)]).write(0, 0, STORAGE, &[])
    }),
    ("VUID-VkWriteDescriptorSet-dstBinding-00316", |w| {
        set(&w.device, &[one(0, STORAGE, 1), one(1, STORAGE, 0)]).write(1, 0, STORAGE, &[w.words.whole()])
    }),
    ("VUID-VkWriteDescriptorSet-descriptorType-00319", |w| {
        set(&w.device, &[one(0, STORAGE, 1)]).write(0, 0, UNIFORM, &[w.words.whole()])
    }),
    ("VUID-VkWriteDescriptorSet-dstArrayElement-00321", |w| {
        set(&w.device, &[one(0, STORAGE, 2)]).write(0, 1, STORAGE, &[w.words.whole(), w.words.whole()])
    }),
    ("VUID-VkWriteDescriptorSet-descriptorCount-00317", |w| {
        let set = set(&w.device, &[one(0, STORAGE, 1), one(1, UNIFORM, 1)]);
        set.write(0, 0, STORAGE, &[w.words.whole(), w.words.whole()])
    }),
    ("VUID-VkWriteDescriptorSet-commonparent", |w| write(w, STORAGE, w.foreign.whole())),
    ("VUID-VkDescriptorBufferInfo-offset-00340", |w| write(w, STORAGE, w.words.part(256, 4))),
    ("VUID-VkDescriptorBufferInfo-range-00341", |w| write(w, STORAGE, w.words.part(0, 0))),
    ("VUID-VkDescriptorBufferInfo-range-00342", |w| write(w, STORAGE, w.words.part(16, 241))),
    ("VUID-VkWriteDescriptorSet-descriptorType-00327", |w| write(w, UNIFORM, w.words.part(4, 16))),
    ("VUID-VkWriteDescriptorSet-descriptorType-00328", |w| write(w, STORAGE, w.words.part(8, 16))),
    ("VUID-VkWriteDescriptorSet-descriptorType-00329", |w| {
        write(w, STORAGE, BufferInfo { buffer: &w.unbound, offset: 0, range: vk::WHOLE_SIZE })
    }),
    ("VUID-VkWriteDescriptorSet-descriptorType-00330", |w| {
        let buffer = with_usage(w, 16, BufferUsageFlags::STORAGE_BUFFER);
        write(w, UNIFORM, BufferInfo { buffer: &buffer, offset: 0, range: 16 })
    }),
    ("VUID-VkWriteDescriptorSet-descriptorType-00331", |w| {
        let buffer = with_usage(w, 16, BufferUsageFlags::UNIFORM_BUFFER);
        write(w, STORAGE, BufferInfo { buffer: &buffer, offset: 0, range: 16 })
    }),
    ("VUID-VkWriteDescriptorSet-descriptorType-00332", |w| {
        let buffer = with_usage(w, 65_540, BufferUsageFlags::UNIFORM_BUFFER);
        write(w, UNIFORM, BufferInfo { buffer: &buffer, offset: 0, range: vk::WHOLE_SIZE })
    }),
    ("VUID-VkWriteDescriptorSet-descriptorType-00333", |w| {
        let buffer = w.device.create_buffer(1 << 33, BufferUsageFlags::STORAGE_BUFFER)?;
        write(w, STORAGE, BufferInfo { buffer: &buffer, offset: 0, range: vk::WHOLE_SIZE })
    }),
    ("VUID-VkPipelineLayoutCreateInfo-setLayoutCount-00286", |w| {
        let layout = w.device.create_descriptor_set_layout(&[])?;
        w.device.create_pipeline_layout(&[&layout; 9], &[]).map(drop)
    }),
    ("VUID-VkPipelineLayoutCreateInfo-pSetLayouts-parameter", |w| {
        let layout = w.other.create_descriptor_set_layout(&[])?;
        w.device.create_pipeline_layout(&[&layout], &[]).map(drop)
    }),
    ("VUID-VkPipelineLayoutCreateInfo-descriptorType-03017", |w| layout_of(w, UNIFORM, 2_049)),
    ("VUID-VkPipelineLayoutCreateInfo-descriptorType-03018", |w| layout_of(w, STORAGE, 500_001)),
    ("VUID-VkPipelineLayoutCreateInfo-descriptorType-03016", |w| layout_of(w, DescriptorType::SAMPLER, 500_001)),
    ("VUID-VkPipelineLayoutCreateInfo-descriptorType-06939", |w| {
        layout_of(w, DescriptorType::UNIFORM_TEXEL_BUFFER, 500_001)
    }),
    ("VUID-VkPipelineLayoutCreateInfo-descriptorType-03020", |w| layout_of(w, DescriptorType::STORAGE_IMAGE, 500_001)),
    ("VUID-VkPipelineLayoutCreateInfo-descriptorType-03030", |w| {
        layout_of(w, DescriptorType::UNIFORM_BUFFER_DYNAMIC, 9)
    }),
    ("VUID-VkPipelineLayoutCreateInfo-descriptorType-03032", |w| {
        layout_of(w, DescriptorType::STORAGE_BUFFER_DYNAMIC, 9)
    }),
    ("VUID-VkPipelineLayoutCreateInfo-pPushConstantRanges-00292", |w| {
        let ranges = [PushRange { offset: 0, size: 4 }, PushRange { offset: 4, size: 4 }];
        w.device.create_pipeline_layout(&[], &ranges).map(drop)
    }),
    ("VUID-VkPushConstantRange-offset-00294", |w| push_range(w, 256, 4)),
    ("VUID-VkPushConstantRange-offset-00295", |w| push_range(w, 2, 4)),
    ("VUID-VkPushConstantRange-size-00296", |w| push_range(w, 0, 0)),
    ("VUID-VkPushConstantRange-size-00297", |w| push_range(w, 0, 6)),
    ("VUID-VkPushConstantRange-size-00298", |w| push_range(w, 252, 8)),
    ("VUID-vkQueueSubmit-fence-00063", |w| w.device.queue().submit(&[], Some(&w.device.create_fence(true))).map(drop)),
    ("VUID-vkQueueSubmit-commonparent", |w| w.device.queue().submit(&[], Some(&w.other.create_fence(false))).map(drop)),
    ("VUID-vkQueueSubmit-fence-00064", |w| {
        while_busy(w, |_, fence| w.device.queues()[1].submit(&[], Some(fence)).map(drop))
    }),
    ("VUID-vkResetFences-pFences-01123", |w| while_busy(w, |_, fence| fence.reset())),
    ("VUID-vkResetCommandBuffer-commandBuffer-00045", |w| while_busy(w, |command, _| command.reset())),
    ("VUID-vkBeginCommandBuffer-commandBuffer-00049", |w| {
        while_busy(w, |command, _| command.begin(CommandBufferUsageFlags::empty()))
    }),
    ("VUID-vkQueueSubmit-pCommandBuffers-00071", |w| {
        while_busy(w, |command, _| w.device.queues()[1].submit(&[command], None).map(drop))
    }),
    ("VUID-vkQueueSubmit-pCommandBuffers-00070", |w| w.device.queue().submit(&[&w.command], None).map(drop)),
    ("VUID-vkQueueSubmit-pCommandBuffers-00070", |w| {
        let command = w.empty(CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        w.device.queue().submit(&[&command], None)?;
        w.device.queue().wait_idle()?;
        w.device.queue().submit(&[&command], None).map(drop)
    }),
    ("VUID-vkQueueSubmit-pCommandBuffers-00071", |w| {
        let command = w.empty(CommandBufferUsageFlags::empty());
        w.device.queue().submit(&[&command, &command], None).map(drop)
    }),
    ("VUID-vkQueueSubmit-pCommandBuffers-00074", |w| {
        w.other.queue().submit(&[&w.empty(CommandBufferUsageFlags::empty())], None).map(drop)
    }),
];
