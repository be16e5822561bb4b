// A sparse matrix in compressed rows times a vector: one row for each invocation.

var<immediate> rows: u32;
// Where each row starts, and after the last where it ends.
@group(0) @binding(0) var<storage, read> starts: array<u32>;
@group(0) @binding(1) var<storage, read> columns: array<u32>;
@group(0) @binding(2) var<storage, read> values: array<f32>;
@group(0) @binding(3) var<storage, read> x: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(128)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.x;
    if row >= rows {
        return;
    }
    var sum = 0.0;
    for (var k = starts[row]; k < starts[row + 1u]; k++) {
        sum += values[k] * x[columns[k]];
    }
    y[row] = sum;
}
