// Inclusive prefix sums over several workgroups.
//
// `scan` makes the sums inside blocks of 1024 elements and the total of each block. The totals are scanned by `scan`
// again, then `add` adds to each block what all blocks before it hold.

const WIDTH: u32 = 256;
const EACH: u32 = 4;

var<immediate> count: u32;
@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
@group(0) @binding(2) var<storage, read_write> totals: array<u32>;

var<workgroup> shared_sums: array<u32, WIDTH>;

@compute @workgroup_size(WIDTH)
fn scan(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    // Each invocation sums four neighbours on its own.
    let first = (group.x * WIDTH + lane) * EACH;
    var own: array<u32, EACH>;
    var sum = 0u;
    for (var i = 0u; i < EACH; i++) {
        if first + i < count {
            sum += input[first + i];
        }
        own[i] = sum;
    }

    // Then the workgroup adds up from neighbours at distance 1, 2, 4 and so on.
    shared_sums[lane] = sum;
    workgroupBarrier();
    for (var distance = 1u; distance < WIDTH; distance *= 2u) {
        var left = 0u;
        if lane >= distance {
            left = shared_sums[lane - distance];
        }
        workgroupBarrier();
        shared_sums[lane] += left;
        workgroupBarrier();
    }

    let before = shared_sums[lane] - sum;
    for (var i = 0u; i < EACH; i++) {
        if first + i < count {
            output[first + i] = before + own[i];
        }
    }
    if lane == WIDTH - 1u {
        totals[group.x] = shared_sums[lane];
    }
}

@compute @workgroup_size(WIDTH)
fn add(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    if group.x == 0u {
        return;
    }
    let before = totals[group.x - 1u];
    let first = (group.x * WIDTH + lane) * EACH;
    for (var i = 0u; i < EACH; i++) {
        if first + i < count {
            output[first + i] += before;
        }
    }
}
