// How bodies attract each other: every pair, in tiles of shared memory.

const WIDTH: u32 = 256;

struct Parameters {
    // A multiple of 256.
    count: u32,
    // Added to each squared distance.
    softening: f32,
}

var<immediate> parameters: Parameters;
// xyz is the position, w the mass.
@group(0) @binding(0) var<storage, read> bodies: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> pulls: array<vec4<f32>>;

var<workgroup> tile: array<vec4<f32>, WIDTH>;

@compute @workgroup_size(WIDTH)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let own = bodies[id.x].xyz;
    var sum = vec3<f32>(0.0);
    for (var first = 0u; first < parameters.count; first += WIDTH) {
        tile[lane] = bodies[first + lane];
        workgroupBarrier();
        for (var i = 0u; i < WIDTH; i++) {
            let way = tile[i].xyz - own;
            let inverse = inverseSqrt(dot(way, way) + parameters.softening);
            sum += way * (tile[i].w * inverse * inverse * inverse);
        }
        workgroupBarrier();
    }
    pulls[id.x] = vec4<f32>(sum, 0.0);
}
