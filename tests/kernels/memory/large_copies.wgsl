// Arrays and structures of hundreds of scalars, copied between functions' variables and buffers, and set to zeros.
// bind 0.0: zeros 11232
// bind 0.1: zeros 16
// expect 0.1: u32 1303,1903,2503,3103
struct Record { head: u32, rows: array<vec2u, 200>, tail: array<u32, 300> }
@group(0) @binding(0) var<storage, read_write> records: array<Record, 4>;
@group(0) @binding(1) var<storage, read_write> result: array<u32, 4>;
@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) id: u32) {
    var a: array<u32, 600>;
    for (var i = 0u; i < 600u; i++) {
        a[i] = i * (id + 1u);
    }
    var b = a;
    a[599] = 7u;
    var c: Record;
    for (var iteration = 0u; iteration < 2u; iteration++) {
        c = Record();
        for (var i = 0u; i < 300u; i++) {
            c.rows[i % 200u] = vec2u(i % 200u, id);
            c.tail[i] = i + id;
        }
        records[id] = c;
    }
    var d = records[id];
    c = Record();
    result[id] = b[599] + a[599] + 2u * d.rows[199].x + d.tail[299] + c.rows[150].x + c.tail[7];
}
