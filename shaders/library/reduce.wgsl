// The wrapping sum of an array, by a tree in shared memory.
//
// A workgroup turns 2048 elements into one. Dispatched again on its own results until one element is left.

const WIDTH: u32 = 256;
const EACH: u32 = 8;

var<immediate> count: u32;
@group(0) @binding(0) var<storage, read> elements: array<u32>;
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;

var<workgroup> partial: array<u32, WIDTH>;

@compute @workgroup_size(WIDTH)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    // Neighbouring invocations read neighbouring elements.
    var at = group.x * WIDTH * EACH + lane;
    var sum = 0u;
    for (var i = 0u; i < EACH; i++) {
        if at < count {
            sum += elements[at];
        }
        at += WIDTH;
    }
    partial[lane] = sum;
    workgroupBarrier();

    for (var half = WIDTH / 2u; half > 0u; half /= 2u) {
        if lane < half {
            partial[lane] += partial[lane + half];
        }
        workgroupBarrier();
    }
    if lane == 0u {
        sums[group.x] = partial[0];
    }
}
