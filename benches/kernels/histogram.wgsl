// How often each value of the lowest byte occurs: a workgroup counts 4096 words in shared memory, then adds its counts
// to the result.

const WIDTH: u32 = 256;
const BLOCK: u32 = 4096;

var<immediate> count: u32;
@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> bins: array<atomic<u32>, 256>;

var<workgroup> local_bins: array<atomic<u32>, 256>;

@compute @workgroup_size(WIDTH)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    atomicStore(&local_bins[lane], 0u);
    workgroupBarrier();
    let first = group.x * BLOCK;
    for (var i = first + lane; i < first + BLOCK && i < count; i += WIDTH) {
        atomicAdd(&local_bins[words[i] & 255u], 1u);
    }
    workgroupBarrier();
    atomicAdd(&bins[lane], atomicLoad(&local_bins[lane]));
}
