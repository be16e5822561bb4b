// CRC-32 by a table that the workgroup makes together in shared memory, over messages of different length.
// bind 0.0: u32 875770417,943142453,57,1684234849,1751606885,1818978921,0,0,0,4294967295,4294967295,4294967295
// bind 0.1: u32 9,12,12,5
// bind 0.2: zeros 16
// expect 0.2: u32 0xcbf43926,0xf6781b24,0x7bd5c66f,0xd2fd1072

@group(0) @binding(0) var<storage> words: array<u32>;
@group(0) @binding(1) var<storage> lengths: array<u32>;
@group(0) @binding(2) var<storage, read_write> sums: array<u32>;
var<workgroup> table: array<u32, 256>;

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) at: u32) {
    for (var n = at; n < 256u; n += 4u) {
        var c = n;
        for (var bit = 0; bit < 8; bit++) {
            c = select(c >> 1u, (c >> 1u) ^ 0xedb88320u, (c & 1u) != 0u);
        }
        table[n] = c;
    }
    workgroupBarrier();
    var sum = 0xffffffffu;
    for (var n = 0u; n < lengths[at]; n++) {
        let byte = words[at * 3u + n / 4u] >> (n % 4u * 8u) & 0xffu;
        sum = table[(sum ^ byte) & 0xffu] ^ (sum >> 8u);
    }
    sums[at] = ~sum;
}
