// Stockham's transform of 1024 complex numbers for each workgroup, to and fro in shared memory.

const POINTS: u32 = 1024;
const HALF: u32 = 512;
const WIDTH: u32 = 256;

@group(0) @binding(0) var<storage, read> source: array<vec2<f32>>;
@group(0) @binding(1) var<storage, read_write> result: array<vec2<f32>>;
// The first half of the circle, clockwise.
@group(0) @binding(2) var<storage, read> circle: array<vec2<f32>, HALF>;

var<workgroup> work: array<array<vec2<f32>, POINTS>, 2>;

@compute @workgroup_size(WIDTH)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let base = group.x * POINTS;
    for (var i = lane; i < POINTS; i += WIDTH) {
        work[0][i] = source[base + i];
    }
    var side = 0u;
    for (var span = 1u; span < POINTS; span <<= 1u) {
        workgroupBarrier();
        for (var i = lane; i < HALF; i += WIDTH) {
            let k = i & (span - 1u);
            let to = ((i ^ k) << 1u) | k;
            let turn = circle[k * (HALF / span)];
            let even = work[side][i];
            let odd = work[side][i + HALF];
            let turned = vec2<f32>(turn.x * odd.x - turn.y * odd.y, turn.x * odd.y + turn.y * odd.x);
            work[1u - side][to] = even + turned;
            work[1u - side][to + span] = even - turned;
        }
        side = 1u - side;
    }
    workgroupBarrier();
    for (var i = lane; i < POINTS; i += WIDTH) {
        result[base + i] = work[side][i];
    }
}
