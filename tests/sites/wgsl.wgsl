// WGSL: storage and workgroup memory is non-private, with the scope of the workgroup, as is that of barriers.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> count: atomic<u32>;
@group(0) @binding(2) var picture: texture_storage_2d<r32uint, write>;
var<workgroup> sums: array<u32, 4>;

fn add(at: u32) {
    data[at] = sums[at];
}

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) index: u32) {
    sums[index] = data[index];
    workgroupBarrier();
    add(3 - index);
    storageBarrier();
    atomicAdd(&count, 1u);
    textureStore(picture, vec2u(index, 0u), vec4u(1u));
}
// expect
// wgsl, generator 28
// read uniform non_private made workgroup by OpLoad
// write workgroup non_private made workgroup by OpStore
// barrier workgroup workgroup acq_rel|workgroup|available|visible by OpControlBarrier
// read workgroup non_private made workgroup by OpLoad via OpFunctionCall
// write uniform non_private made workgroup by OpStore via OpFunctionCall
// barrier workgroup workgroup acq_rel|storage|available|visible by OpControlBarrier
// atomic.iadd uniform device relaxed by OpAtomicIAdd
// write image non_private made workgroup by OpImageWrite
