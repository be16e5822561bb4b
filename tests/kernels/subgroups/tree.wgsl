// Sums of a workgroup: of each subgroup first, then of those in workgroup memory. 40 invocations fill two subgroups and a half.
// bind 0.0: u32 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40
// bind 0.1: zeros 480
// expect 0.1: u32 820*40
// expect 0.1: u32 0,1,3,6,10,15,21,28,36,45,55,66,78,91,105,120,0,17,35,54,74,95,117,140,164,189,215,242,270,299,329,360,0,33,67,102,138,175,213,252
// expect 0.1: u32 16*16 32*16 40*8
@group(0) @binding(0) var<storage> values: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
var<workgroup> sums: array<u32, 4>;

@compute @workgroup_size(40)
fn main(
    @builtin(local_invocation_index) i: u32,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    let value = values[i];
    let sum = subgroupAdd(value);
    out[40u + i] = subgroupExclusiveAdd(value);
    out[80u + i] = subgroupMax(value);
    if lane == 0u {
        sums[subgroup] = sum;
    }
    workgroupBarrier();
    var part = 0u;
    if lane < 3u {
        part = sums[lane];
    }
    out[i] = subgroupBroadcastFirst(subgroupAdd(part));
}
