// Atomics at one address for all, with unused results: each operation, some for a part of the invocations.
// groups: 2
// bind 0.0: u32 0 1000 0 5000 256 16 255 3 4294967295 0
// expect 0.0: u32 2709 872 100 210 511 17 240 3 4294967286 4294967286
@group(0) @binding(0) var<storage, read_write> data: array<atomic<u32>, 10>;
@group(0) @binding(1) var<storage, read_write> signed: array<atomic<i32>, 2>;
// bind 0.1: i32 7 -7
// expect 0.1: i32 -63 64
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let x = id.x;
    if x % 3u == 0u { atomicAdd(&data[0], x); }
    atomicSub(&data[1], 1u);
    atomicMax(&data[2], (x * 7u) % 101u);
    if x > 9u { atomicMin(&data[3], 200u + x); }
    atomicOr(&data[4], 1u << (x % 8u));
    if x < 6u { atomicXor(&data[5], x); }
    atomicAnd(&data[6], ~(1u << (x % 4u)));
    if x > 1000u { atomicAdd(&data[7], 1u); }
    // In this order, whatever it is for others: 10 less, then at most that.
    if x == 77u { atomicAdd(&data[8], 4294967287u); atomicMax(&data[9], 4294967286u); }
    atomicMin(&signed[0], 64 - i32(x));
    atomicMax(&signed[1], i32(x) - 63);
}
