// Lanes leave a loop in different iterations, and access a private array at the index with which they left: the offset
// of the last access in the loop is used after it.
// bind 0.0: u32 9,9,9,1,9,9,0,9
// bind 0.1: zeros 80
// expect 0.1: u32 1033,2034,4068,36,2070,3071,72,1073,1041,2042,4076,44,2078,3079,80,1081,1049,2050,4084,52
@group(0) @binding(0) var<storage, read> limits: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;

@compute @workgroup_size(20)
fn main(@builtin(local_invocation_index) index: u32) {
    var words: array<u32, 8>;
    for (var k = 0u; k < 8u; k++) { words[k] = 10u * k + index; }
    var at = index % 8u;
    var rounds = 0u;
    loop {
        if limits[at] <= 1u { break; }
        at = (at * 5u + 3u) % 8u;
        rounds++;
    }
    words[at] += 1000u * rounds;
    out[index] = words[at] + at;
}
