// One time step of bodies that attract each other: every pair is computed, positions pass through shared memory.

const WIDTH: u32 = 64;

struct Parameters {
    // A multiple of 64.
    count: u32,
    time_step: f32,
    // Added to each squared distance, so that close bodies do not fly apart.
    softening: f32,
}

var<immediate> parameters: Parameters;
// xyz is the position, w the mass.
@group(0) @binding(0) var<storage, read> positions: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> velocities: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> moved: array<vec4<f32>>;

var<workgroup> tile: array<vec4<f32>, WIDTH>;

@compute @workgroup_size(WIDTH)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let own = positions[id.x];
    var acceleration = vec3<f32>(0.0);
    for (var first = 0u; first < parameters.count; first += WIDTH) {
        tile[lane] = positions[first + lane];
        workgroupBarrier();
        for (var i = 0u; i < WIDTH; i++) {
            let other = tile[i];
            let way = other.xyz - own.xyz;
            let inverse = inverseSqrt(dot(way, way) + parameters.softening);
            acceleration += way * (other.w * inverse * inverse * inverse);
        }
        workgroupBarrier();
    }
    let velocity = velocities[id.x].xyz + acceleration * parameters.time_step;
    velocities[id.x] = vec4<f32>(velocity, 0.0);
    moved[id.x] = vec4<f32>(own.xyz + velocity * parameters.time_step, own.w);
}
