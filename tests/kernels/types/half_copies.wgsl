// Halves that are only copied keep their bits, those of signaling NaNs, too.
// bind 0.0: u32 0x7d01fc01 0x3c00fe00 0x7e017c01 0xffff8001
// bind 0.1: zeros 16
// expect 0.1: u32 0x7d01fc01 0x3c00fe00 0x7e017c01 0xffff8001
enable f16;

@group(0) @binding(0) var<storage> given: array<f16>;
@group(0) @binding(1) var<storage, read_write> results: array<f16>;

@compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) {
    results[i] = given[i];
}
