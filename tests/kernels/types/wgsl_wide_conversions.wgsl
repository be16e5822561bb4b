// Conversions to 64-bit integers extend by the signedness of what is converted, in constants and at run time.
// bind 0.0: u32 3000000000,4294967295
// bind 0.1: zeros 48
// expect 0.1: u32 3000000000,0,3000000000,0,4294967295,4294967295,4294967295,4294967295,4294967295,0,4294967295,4294967295
@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<u64>;

const K: i64 = i64(3000000000u);

@compute @workgroup_size(1)
fn main() {
    const minus_one = u64(i32(-1));
    out[0] = u64(K);
    out[1] = u64(i64(words[0]));
    out[2] = minus_one;
    out[3] = u64(i32(words[1]));
    out[4] = u64(i64(words[1]));
    out[5] = u64(i64(i32(words[1])));
}
