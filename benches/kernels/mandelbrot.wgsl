// How many steps each point of a square grid takes to escape: a loop that ends at a different time everywhere.

struct View {
    // Points in a row: a multiple of 16.
    size: u32,
    limit: u32,
    left: f32,
    top: f32,
    step: f32,
}

var<immediate> view: View;
@group(0) @binding(0) var<storage, read_write> counts: array<u32>;

@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let cx = view.left + f32(id.x) * view.step;
    let cy = view.top + f32(id.y) * view.step;
    var x = 0.0;
    var y = 0.0;
    var xx = 0.0;
    var yy = 0.0;
    var count = 0u;
    while count < view.limit && xx + yy <= 4.0 {
        y = 2.0 * (x * y) + cy;
        x = xx - yy + cx;
        xx = x * x;
        yy = y * y;
        count++;
    }
    counts[id.y * view.size + id.x] = count;
}
