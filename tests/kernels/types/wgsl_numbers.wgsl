// Numbers of 16 and 64 bits in WGSL, and an override of 16.
// spec: 3=0x4200
// bind 0.0: u32 0xffffffff,1,5,0 0,0x3ff80000 0x40003e00,0
// bind 0.1: zeros 32
// expect 0.1: u32 0xfffffffd,5,15,0 0,0x400e0000 0x46004480,0
// bind 0.2: u32 2,0
// expect 0.2: u32 22,20
enable f16;

struct Numbers {
    long: array<u64, 2>,
    double: f64,
    halves: array<f16, 2>,
}

@id(3) override scale: f16 = 1.0h;
@group(0) @binding(0) var<storage> given: Numbers;
@group(0) @binding(1) var<storage, read_write> results: Numbers;
@group(0) @binding(2) var<storage, read_write> total: atomic<u64>;

@compute @workgroup_size(20)
fn main(@builtin(local_invocation_index) index: u32) {
    atomicAdd(&total, 0x100000001lu);
    if index < 2 {
        results.long[index] = given.long[index] * 3lu;
        results.halves[index] = given.halves[index] * scale;
    }
    if index == 2 {
        results.double = given.double * 2.5lf;
    }
}
