// A variable begins with a value that waits for an override, and that naga cannot compute: 64 bits, a remainder.
// spec: 0=1234567
// bind 0.0: u32 0,0,0,0
// expect 0.0: u32 67,7,67,3

@id(0) override N: u32 = 7u;
override M: u32 = 1u + N % 100u;
@group(0) @binding(0) var<storage, read_write> o: array<u32>;

fn last(n: u64) -> u32 {
    var digit: u64 = u64(N) % 10lu;
    return u32(digit) + u32(n);
}

@compute @workgroup_size(1)
fn main() {
    var v: u64 = u64(N) % 100lu;
    o[0] = u32(v);
    o[1] = last(0lu);
    for (var i = 0u; i < 3u; i++) {
        var w: u64 = u64(N) % 100lu;
        w += u64(i);
        o[3] += 1u;
    }
    var parts = array<u64, 2>(u64(M - 1u) % 100lu, 1lu);
    o[2] = u32(parts[0]);
}
