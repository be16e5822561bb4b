// C = A * B for square matrices stored row by row, in tiles of 16 x 16 kept in shared memory.

const TILE: u32 = 16;

// Rows and columns: a multiple of 16.
var<immediate> size: u32;
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;

var<workgroup> tile_a: array<array<f32, TILE>, TILE>;
var<workgroup> tile_b: array<array<f32, TILE>, TILE>;

@compute @workgroup_size(TILE, TILE)
fn main(@builtin(global_invocation_id) at: vec3<u32>, @builtin(local_invocation_id) lane: vec3<u32>) {
    var sum = 0.0;
    for (var first = 0u; first < size; first += TILE) {
        tile_a[lane.y][lane.x] = a[at.y * size + first + lane.x];
        tile_b[lane.y][lane.x] = b[(first + lane.y) * size + at.x];
        workgroupBarrier();
        for (var k = 0u; k < TILE; k++) {
            sum += tile_a[lane.y][k] * tile_b[k][lane.x];
        }
        workgroupBarrier();
    }
    c[at.y * size + at.x] = sum;
}
