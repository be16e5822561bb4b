// Overrides by id: a workgroup size, the length of a workgroup array, and values derived from others.
// spec: 1=8 2=2.5 3=true
// bind 0.0: zeros 32
// expect 0.0: f32 20,17.5,15,12.5,10,7.5,5,2.5
@id(1) override size: u32 = 4;
@id(2) override scale: f32 = 1.0;
@id(3) override reverse: bool = false;
override last = size - 1u;
@group(0) @binding(0) var<storage, read_write> data: array<f32>;
var<workgroup> shared_values: array<f32, size>;
@compute @workgroup_size(size)
fn main(@builtin(local_invocation_index) i: u32) {
    shared_values[i] = f32(i + 1u) * scale;
    workgroupBarrier();
    data[i] = shared_values[select(i, last - i, reverse)];
}
