// Invocations that return from a function in a loop reconverge after the call: ballots in the loop do not count them.
// bind 0.0: zeros 128
// expect 0.0: u32 0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3
// expect 0.0: u32 16*16
@group(0) @binding(0) var<storage, read_write> out: array<u32>;

fn rounds(i: u32) -> u32 {
    for (var round = 0u; ; round++) {
        // Four leave each time.
        let here = subgroupAdd(1u);
        if i % 4u == round {
            if here == 16u - 4u * round && subgroupAdd(1u) == 4u {
                return round;
            }
            return 100u;
        }
    }
    return 200u;
}

@compute @workgroup_size(16)
fn main(@builtin(local_invocation_index) i: u32) {
    out[i] = rounds(i);
    out[16u + i] = countOneBits(subgroupBallot(true).x);
}
