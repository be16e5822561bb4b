// Each iteration counts the invocations with the first one's number: what stands before a `break` is in the loop.
// bind 0.0: u32 3,1,3,2,1,1,3,9,9,9,9,2,3,1,1,1,5,5,6
// bind 0.1: zeros 152
// expect 0.1: u32 4,6,4,2,6,6,4,4,4,4,4,2,4,6,6,6,2,2,1
// expect 0.1: u32 0,1,0,2,1,1,0,3,3,3,3,2,0,1,1,1,0,0,1
@group(0) @binding(0) var<storage> values: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;

@compute @workgroup_size(19)
fn main(@builtin(local_invocation_index) i: u32) {
    let value = values[i];
    var iteration = 0u;
    var count = 0u;
    loop {
        if subgroupBroadcastFirst(value) == value {
            count = subgroupAdd(1u);
            break;
        }
        iteration += 1u;
    }
    out[i] = count;
    out[19u + i] = iteration;
}
