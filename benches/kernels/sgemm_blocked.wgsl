// C = A * B for square matrices stored row by row: 64 x 64 results for each workgroup, 4 x 4 for each invocation,
// which keeps them in registers.

const TILE: u32 = 64;
// How much of a row of A and a column of B lies in shared memory at once.
const DEPTH: u32 = 16;
const WIDTH: u32 = 16;
const EACH: u32 = 4;

// Rows and columns: a multiple of 64.
var<immediate> size: u32;
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;

var<workgroup> tile_a: array<array<f32, DEPTH>, TILE>;
var<workgroup> tile_b: array<array<f32, TILE>, DEPTH>;

@compute @workgroup_size(WIDTH, WIDTH)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) lane: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
) {
    let row = group.y * TILE;
    let column = group.x * TILE;
    var acc: array<array<f32, EACH>, EACH>;
    for (var first = 0u; first < size; first += DEPTH) {
        for (var i = 0u; i < EACH; i++) {
            let y = lane.y + i * WIDTH;
            tile_a[y][lane.x] = a[(row + y) * size + first + lane.x];
            let x = index % TILE;
            let k = index / TILE + i * (DEPTH / EACH);
            tile_b[k][x] = b[(first + k) * size + column + x];
        }
        workgroupBarrier();
        for (var k = 0u; k < DEPTH; k++) {
            var from_a: array<f32, EACH>;
            var from_b: array<f32, EACH>;
            for (var i = 0u; i < EACH; i++) {
                from_a[i] = tile_a[lane.y * EACH + i][k];
                from_b[i] = tile_b[k][i * WIDTH + lane.x];
            }
            for (var y = 0u; y < EACH; y++) {
                for (var x = 0u; x < EACH; x++) {
                    acc[y][x] += from_a[y] * from_b[x];
                }
            }
        }
        workgroupBarrier();
    }
    for (var y = 0u; y < EACH; y++) {
        for (var x = 0u; x < EACH; x++) {
            c[(row + lane.y * EACH + y) * size + column + x * WIDTH + lane.x] = acc[y][x];
        }
    }
}
