// How often each byte value occurs: a workgroup counts in shared memory, then adds its counts to the result.

const WIDTH: u32 = 256;
const EACH: u32 = 16;

// Words of four bytes.
var<immediate> count: u32;
@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> bins: array<atomic<u32>, 256>;

var<workgroup> local_bins: array<atomic<u32>, 256>;

@compute @workgroup_size(WIDTH)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    atomicStore(&local_bins[lane], 0u);
    workgroupBarrier();

    var at = group.x * WIDTH * EACH + lane;
    for (var i = 0u; i < EACH; i++) {
        if at < count {
            let word = words[at];
            atomicAdd(&local_bins[word & 0xffu], 1u);
            atomicAdd(&local_bins[(word >> 8u) & 0xffu], 1u);
            atomicAdd(&local_bins[(word >> 16u) & 0xffu], 1u);
            atomicAdd(&local_bins[word >> 24u], 1u);
        }
        at += WIDTH;
    }
    workgroupBarrier();

    let seen = atomicLoad(&local_bins[lane]);
    if seen != 0u {
        atomicAdd(&bins[lane], seen);
    }
}
