// Atomics on workgroup memory and on a buffer together: each workgroup counts, then adds its counts.
// groups: 4
// bind 0.0: zeros 32
// expect 0.0: u32 64,0,64,0,64,0,64,0
@group(0) @binding(0) var<storage, read_write> counts: array<atomic<u32>, 8>;
var<workgroup> local: array<atomic<u32>, 8>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) i: u32) {
    atomicAdd(&local[(id.x * id.x + 3u * id.x) % 8u], 1u);
    workgroupBarrier();
    if i < 8u { atomicAdd(&counts[i], atomicLoad(&local[i])); }
}
