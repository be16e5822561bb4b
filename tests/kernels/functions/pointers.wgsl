// Pointers to variables of functions, to elements and to private memory, through two calls.
// bind 0.0: u32 3,4,0
// expect 0.0: u32 303,400,7
@group(0) @binding(0) var<storage, read_write> data: array<u32, 3>;
var<private> total: u32;
fn add(to: ptr<function, u32>, n: u32) { *to += n; }
fn count(n: u32) { total += n; }
fn twice(pair: ptr<function, vec2<u32>>, k: u32) {
    var x = (*pair)[k];
    for (var i = 0u; i < 99u; i++) { add(&x, (*pair)[k]); }
    (*pair)[k] = x;
    count((*pair)[k] / 100u);
}
@compute @workgroup_size(1)
fn main() {
    var pair = vec2<u32>(data[0], data[1]);
    twice(&pair, 0u);
    twice(&pair, 1u);
    data[0] = pair.x + 3u;
    data[1] = pair.y;
    data[2] = total;
}
