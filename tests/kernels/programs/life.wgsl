// A glider on a torus: after four generations it has moved by one cell down and right.
// push: u32 4
// bind 0.0: u32 0,1,0,0,0,0,0,0
// bind 0.0: u32 0,0,1,0,0,0,0,0
// bind 0.0: u32 1,1,1,0,0,0,0,0
// bind 0.0: u32 0,0,0,0,0,0,0,0
// bind 0.0: u32 0,0,0,0,0,0,0,0
// bind 0.0: u32 0,0,0,0,0,0,0,0
// bind 0.0: u32 0,0,0,0,0,0,0,0
// bind 0.0: u32 0,0,0,0,0,0,0,0
// expect 0.0: u32 0,0,0,0,0,0,0,0
// expect 0.0: u32 0,0,1,0,0,0,0,0
// expect 0.0: u32 0,0,0,1,0,0,0,0
// expect 0.0: u32 0,1,1,1,0,0,0,0
// expect 0.0: u32 0,0,0,0,0,0,0,0
// expect 0.0: u32 0,0,0,0,0,0,0,0
// expect 0.0: u32 0,0,0,0,0,0,0,0
// expect 0.0: u32 0,0,0,0,0,0,0,0

var<immediate> generations: u32;
@group(0) @binding(0) var<storage, read_write> cells: array<u32, 64>;
var<workgroup> alive: array<array<u32, 8>, 8>;

@compute @workgroup_size(8, 8)
fn main(@builtin(local_invocation_id) at: vec3u) {
    alive[at.y][at.x] = cells[at.y * 8u + at.x];
    for (var n = 0u; n < generations; n++) {
        workgroupBarrier();
        var around = 0u;
        for (var d = 0u; d < 9u; d++) {
            if d == 4u { continue; }
            around += alive[(at.y + d / 3u + 7u) % 8u][(at.x + d % 3u + 7u) % 8u];
        }
        workgroupBarrier();
        switch around {
            case 2u: {}
            case 3u: { alive[at.y][at.x] = 1u; }
            default: { alive[at.y][at.x] = 0u; }
        }
    }
    cells[at.y * 8u + at.x] = alive[at.y][at.x];
}
