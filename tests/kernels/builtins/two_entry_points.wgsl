// Either entry point of a file can be run; each has its own bindings and workgroup size.
// entry: second
// bind 1.2: zeros 24
// expect 1.2: u32 0,1,2,10,11,12
@group(0) @binding(0) var<storage, read_write> unused: array<u32>;
@group(1) @binding(2) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(4) fn first() { unused[0] = 1u; }
@compute @workgroup_size(3, 2) fn second(@builtin(local_invocation_id) id: vec3<u32>) {
    data[id.y * 3u + id.x] = id.y * 10u + id.x;
}
