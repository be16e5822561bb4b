// Each word doubled; the invocation past the end writes nothing.
// groups: 2
// bind 0.0: u32 1,2,3,4,0xffffffff
// expect 0.0: u32 2,4,6,8,0xfffffffe

@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(3)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&data) {
        data[id.x] = data[id.x] * 2u;
    }
}
