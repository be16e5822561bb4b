// A small kernel, to be compiled rather than to be run.
@id(0) override salt: u32 = 0;
@group(0) @binding(0) var<storage, read_write> values: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&values) {
        values[id.x] = sqrt(f32(id.x)) * 0.5 + f32(salt);
    }
}
