//! Buffer device addresses: kernels access addressable buffers and no other memory.
#![allow(clippy::unwrap_used)]

use crate::common::{ANY_USE, STORAGE, Words, device, recorded, run};
use spelter_driver::vk::{self, BufferUsageFlags};
use spelter_driver::{Binding, Buffer, ComputePipeline, DescriptorSet, Device, PipelineLayout, Specialization};
use spelter_shaders::front::spvasm::assemble;

/// Invocation `i` reads address `i` of the table at binding 0, copies the word at that address to word `i` of binding
/// 1, and adds 1000 to it.
const VISIT: &str = "OpCapability Shader
    OpCapability Int64
    OpCapability PhysicalStorageBufferAddresses
    OpExtension \"SPV_KHR_physical_storage_buffer\"
    OpMemoryModel PhysicalStorageBuffer64 GLSL450
    OpEntryPoint GLCompute %main \"main\" %gid
    OpExecutionMode %main LocalSize 4 1 1
    OpDecorate %gid BuiltIn GlobalInvocationId
    OpDecorate %words ArrayStride 4
    OpDecorate %longs ArrayStride 8
    OpDecorate %Block Block
    OpMemberDecorate %Block 0 Offset 0
    OpDecorate %Table Block
    OpMemberDecorate %Table 0 Offset 0
    OpDecorate %table DescriptorSet 0
    OpDecorate %table Binding 0
    OpDecorate %out DescriptorSet 0
    OpDecorate %out Binding 1
    %void = OpTypeVoid
    %fn = OpTypeFunction %void
    %u32 = OpTypeInt 32 0
    %u64 = OpTypeInt 64 0
    %v3u = OpTypeVector %u32 3
    %ptr_v3u = OpTypePointer Input %v3u
    %gid = OpVariable %ptr_v3u Input
    %words = OpTypeRuntimeArray %u32
    %longs = OpTypeRuntimeArray %u64
    %Block = OpTypeStruct %words
    %Table = OpTypeStruct %longs
    %ptr_Block = OpTypePointer StorageBuffer %Block
    %ptr_Table = OpTypePointer StorageBuffer %Table
    %ptr_word = OpTypePointer StorageBuffer %u32
    %ptr_long = OpTypePointer StorageBuffer %u64
    %table = OpVariable %ptr_Table StorageBuffer
    %out = OpVariable %ptr_Block StorageBuffer
    %pword = OpTypePointer PhysicalStorageBuffer %u32
    %c0 = OpConstant %u32 0
    %c1000 = OpConstant %u32 1000
    %main = OpFunction %void None %fn
    %entry = OpLabel
    %id = OpLoad %v3u %gid
    %i = OpCompositeExtract %u32 %id 0
    %at = OpAccessChain %ptr_long %table %c0 %i
    %address = OpLoad %u64 %at
    %p = OpConvertUToPtr %pword %address
    %x = OpLoad %u32 %p Aligned 4
    %to = OpAccessChain %ptr_word %out %c0 %i
    OpStore %to %x
    %y = OpIAdd %u32 %x %c1000
    OpStore %p %y Aligned 4
    OpReturn
    OpFunctionEnd";

fn addressable(device: &Device, words: &[u32]) -> Words {
    let usage = ANY_USE | BufferUsageFlags::SHADER_DEVICE_ADDRESS;
    let buffer = device.create_buffer(words.len() as u64 * 4, usage).unwrap();
    let memory = device.allocate_memory(buffer.requirements().size, 0).unwrap();
    buffer.bind_memory(&memory, 0).unwrap();
    Words { buffer, memory }.write(words)
}

struct Visit {
    layout: PipelineLayout,
    pipeline: ComputePipeline,
    table: Words,
    out: Words,
    set: DescriptorSet,
}

impl Visit {
    fn new(device: &Device) -> Self {
        let bindings = [0, 1].map(|binding| Binding { binding, ty: STORAGE, count: 1 });
        let set_layout = device.create_descriptor_set_layout(&bindings).unwrap();
        let layout = device.create_pipeline_layout(&[&set_layout], &[]).unwrap();
        let module = device.create_shader_module(&assemble(VISIT).unwrap()).unwrap();
        let pipeline = device.create_compute_pipeline(&module, "main", &Specialization::new(), &layout).unwrap();
        let (table, out) = (Words::zeros(device, 8), Words::zeros(device, 4));
        let set = device.create_descriptor_pool(1, &[(STORAGE, 2)]).unwrap().allocate(&set_layout).unwrap();
        for (binding, words) in [(0, &table), (1, &out)] {
            set.write(binding, 0, STORAGE, &[words.whole()]).unwrap();
        }
        Self { layout, pipeline, table, out, set }
    }

    fn put(&self, addresses: [u64; 4]) {
        let bytes: Vec<u8> = addresses.iter().flat_map(|address| address.to_le_bytes()).collect();
        self.table.memory.write(0, &bytes).unwrap();
    }

    /// Runs the kernel on these addresses. Returns the words that were there.
    fn visit(&self, device: &Device, addresses: [u64; 4]) -> Vec<u32> {
        self.put(addresses);
        run(device, |command| {
            command.bind_pipeline(&self.pipeline).unwrap();
            command.bind_descriptor_sets(&self.layout, 0, &[&self.set], &[]).unwrap();
            command.dispatch(1, 1, 1).unwrap();
        });
        self.out.read()
    }
}

#[test]
fn kernels_reach_live_buffers_and_nothing_else() {
    let device = device();
    let visit = Visit::new(&device);
    let (one, two) = (addressable(&device, &[1, 2, 3]), addressable(&device, &[10, 20]));
    let plain = Words::new(&device, &[7; 4]);
    let [a, b] = [&one, &two].map(|words| words.buffer.device_address().unwrap());
    assert_eq!(visit.visit(&device, [a, a + 8, b + 4, a + 4]), [1, 3, 20, 2]);
    assert_eq!((one.read(), two.read()), (vec![1001, 1002, 1003], vec![10, 1020]));
    // Past the end; far away; no buffer; memory that belongs to a buffer without an address.
    let [past, far] = [a + 12, a ^ (1 << 45)];
    assert_eq!(visit.visit(&device, [past, far, 0, u64::MAX]), [0; 4]);
    assert_eq!((one.read(), two.read(), plain.read()), (vec![1001, 1002, 1003], vec![10, 1020], vec![7; 4]));
}

#[test]
fn freed_memory_reads_as_zero_and_is_not_written_to() {
    let device = device();
    let visit = Visit::new(&device);
    let gone = addressable(&device, &[5, 6]);
    let address = gone.buffer.device_address().unwrap();
    assert_eq!(visit.visit(&device, [address, 0, 0, 0])[0], 5);
    drop(gone);
    assert_eq!(visit.visit(&device, [address, address + 4, 0, 0]), [0; 4]);
    // The next buffer in that memory reads as zero, and is addressable.
    let next = addressable(&device, &[0, 0]);
    assert_eq!(next.buffer.device_address().unwrap(), address, "the heap is first fit");
    assert_eq!(next.read(), [0, 0]);
    assert_eq!(visit.visit(&device, [address + 4, 0, 0, 0]), [0; 4]);
    assert_eq!(next.read(), [0, 1000]);
}

#[test]
fn shared_memory_is_addressable_as_long_as_one_buffer_in_it_lives() {
    let device = device();
    let visit = Visit::new(&device);
    let usage = ANY_USE | BufferUsageFlags::SHADER_DEVICE_ADDRESS;
    let memory = device.allocate_memory(256, 0).unwrap();
    let make = |offset| -> Buffer {
        let buffer = device.create_buffer(128, usage).unwrap();
        buffer.bind_memory(&memory, offset).unwrap();
        buffer
    };
    let (low, high) = (make(0), make(64));
    let base = low.device_address().unwrap();
    assert_eq!(high.device_address().unwrap(), base + 64);
    memory.write(0, &[1; 256]).unwrap();
    let ones = 0x0101_0101;
    assert_eq!(visit.visit(&device, [base, base + 100, base + 188, base + 192]), [ones, ones, ones, 0]);
    drop(low);
    assert_eq!(visit.visit(&device, [base, base + 60, base + 128, base + 64]), [0, 0, ones, ones]);
}

#[test]
fn a_recording_accesses_buffers_created_after_it() {
    let device = device();
    let visit = Visit::new(&device);
    let command = recorded(&device, vk::CommandBufferUsageFlags::empty(), |command| {
        command.bind_pipeline(&visit.pipeline).unwrap();
        command.bind_descriptor_sets(&visit.layout, 0, &[&visit.set], &[]).unwrap();
        command.dispatch(1, 1, 1).unwrap();
    });
    let late = addressable(&device, &[42]);
    visit.put([late.buffer.device_address().unwrap(), 0, 0, 0]);
    device.queue().submit(&[&command], None).unwrap();
    device.queue().wait_idle().unwrap();
    assert_eq!((visit.out.read(), late.read()), (vec![42, 0, 0, 0], vec![1042]));
}
