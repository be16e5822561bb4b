// A tree of sums in workgroup memory, which starts as 0, with barriers in a uniform loop.
// groups: 2
// bind 0.0: u32 11,48,85,21,58,95,31,68,4,41,78,14,51,88,24,61,98,34,71,7,44,81,17,54,91,27,64,0,37,74,10,47,84,20,57,94,30,67,3,40,77,13,50,87,23,60,97,33,70,6,43,80,16,53,90,26,63,100,36,73,9,46,83,19,56,93,29,66,2,39,76,12,49,86,22,59,96,32,69,5,42,79,15,52,89,25,62,99,35,72,8,45,82,18,55,92,28,65,1,38,75,11,48,85,21,58,95,31,68,4,41,78,14,51,88,24,61,98,34,71,7,44,81,17,54,91,27,64
// bind 0.1: zeros 8
// expect 0.1: u32 3182,3234
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;
var<workgroup> part: array<u32, 64>;
var<workgroup> untouched: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) group: vec3<u32>) {
    part[i] = data[group.x * 64u + i] + untouched[63u - i];
    for (var width = 32u; width > 0u; width /= 2u) {
        workgroupBarrier();
        if i < width { part[i] += part[i + width]; }
    }
    if i == 0u { sums[group.x] = part[0]; }
}
