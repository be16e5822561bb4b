// A square matrix with rows and columns exchanged, by way of tiles in shared memory. Their rows are padded, so that
// a column's elements lie in different banks of a GPU.

const TILE: u32 = 32;
const ROWS: u32 = 8;

// Rows and columns: a multiple of 32.
var<immediate> size: u32;
@group(0) @binding(0) var<storage, read> source: array<f32>;
@group(0) @binding(1) var<storage, read_write> result: array<f32>;

var<workgroup> tile: array<array<f32, TILE + 1>, TILE>;

@compute @workgroup_size(TILE, ROWS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) lane: vec3<u32>) {
    for (var i = lane.y; i < TILE; i += ROWS) {
        tile[i][lane.x] = source[(group.y * TILE + i) * size + group.x * TILE + lane.x];
    }
    workgroupBarrier();
    for (var i = lane.y; i < TILE; i += ROWS) {
        result[(group.x * TILE + i) * size + group.y * TILE + lane.x] = tile[lane.x][i];
    }
}
