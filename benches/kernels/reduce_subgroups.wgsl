// The wrapping sum of an array, by sums of subgroups.
//
// A workgroup turns 2048 elements into one: each subgroup its own, then one subgroup what all of them found. Dispatched again on
// its own results until one element is left.

const WIDTH: u32 = 256;
const EACH: u32 = 8;

var<immediate> count: u32;
@group(0) @binding(0) var<storage, read> elements: array<u32>;
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;

// Enough for subgroups of four.
var<workgroup> partial: array<u32, WIDTH / 4u>;

@compute @workgroup_size(WIDTH)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(num_subgroups) subgroups: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    var at = group.x * WIDTH * EACH + index;
    var sum = 0u;
    for (var i = 0u; i < EACH; i++) {
        var element = 0u;
        if at < count {
            element = elements[at];
        }
        sum += subgroupAdd(element);
        at += WIDTH;
    }
    if lane == 0u {
        partial[subgroup] = sum;
    }
    workgroupBarrier();
    if index < subgroups {
        let all = subgroupAdd(partial[index]);
        if index == 0u {
            sums[group.x] = all;
        }
    }
}
