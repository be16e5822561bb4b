// SHA-256 of "", "abc", the quick brown fox and 55 times "a", each one block, padded by the host.
// bind 0.0: u32 0x80000000,0x00000000,0x00000000,0x00000000,0x00000000,0x00000000,0x00000000,0x00000000
// bind 0.0: u32 0x00000000,0x00000000,0x00000000,0x00000000,0x00000000,0x00000000,0x00000000,0x00000000
// bind 0.0: u32 0x61626380,0x00000000,0x00000000,0x00000000,0x00000000,0x00000000,0x00000000,0x00000000
// bind 0.0: u32 0x00000000,0x00000000,0x00000000,0x00000000,0x00000000,0x00000000,0x00000000,0x00000018
// bind 0.0: u32 0x54686520,0x71756963,0x6b206272,0x6f776e20,0x666f7820,0x6a756d70,0x73206f76,0x65722074
// bind 0.0: u32 0x6865206c,0x617a7920,0x646f6780,0x00000000,0x00000000,0x00000000,0x00000000,0x00000158
// bind 0.0: u32 0x61616161,0x61616161,0x61616161,0x61616161,0x61616161,0x61616161,0x61616161,0x61616161
// bind 0.0: u32 0x61616161,0x61616161,0x61616161,0x61616161,0x61616161,0x61616180,0x00000000,0x000001b8
// bind 0.1: zeros 128
// expect 0.1: u32 0xe3b0c442,0x98fc1c14,0x9afbf4c8,0x996fb924,0x27ae41e4,0x649b934c,0xa495991b,0x7852b855
// expect 0.1: u32 0xba7816bf,0x8f01cfea,0x414140de,0x5dae2223,0xb00361a3,0x96177a9c,0xb410ff61,0xf20015ad
// expect 0.1: u32 0xd7a8fbb3,0x07d78094,0x69ca9abc,0xb0082e4f,0x8d5651e4,0x6d3cdb76,0x2d02d0bf,0x37c9e592
// expect 0.1: u32 0x9f4390f8,0xd30c2dd9,0x2ec9f095,0xb65e2b9a,0xe9b0a925,0xa5258e24,0x1c9f1e91,0x0f734318

const K = array<u32, 64>(
    0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u, 0xab1c5ed5u,
    0xd807aa98u, 0x12835b01u, 0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu, 0x9bdc06a7u, 0xc19bf174u,
    0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu, 0x2de92c6fu, 0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau,
    0x983e5152u, 0xa831c66du, 0xb00327c8u, 0xbf597fc7u, 0xc6e00bf3u, 0xd5a79147u, 0x06ca6351u, 0x14292967u,
    0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu, 0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u,
    0xa2bfe8a1u, 0xa81a664bu, 0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u,
    0x19a4c116u, 0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu, 0x682e6ff3u,
    0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u, 0x90befffau, 0xa4506cebu, 0xbef9a3f7u, 0xc67178f2u,
);

@group(0) @binding(0) var<storage> blocks: array<array<u32, 16>>;
@group(0) @binding(1) var<storage, read_write> digests: array<array<u32, 8>>;

fn rotate(x: u32, n: u32) -> u32 {
    return (x >> n) | (x << (32u - n));
}

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) at: u32) {
    var w: array<u32, 64>;
    for (var t = 0u; t < 16u; t++) {
        w[t] = blocks[at][t];
    }
    for (var t = 16u; t < 64u; t++) {
        let s0 = rotate(w[t - 15u], 7u) ^ rotate(w[t - 15u], 18u) ^ (w[t - 15u] >> 3u);
        let s1 = rotate(w[t - 2u], 17u) ^ rotate(w[t - 2u], 19u) ^ (w[t - 2u] >> 10u);
        w[t] = w[t - 16u] + s0 + w[t - 7u] + s1;
    }
    let start = array<u32, 8>(
        0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au, 0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u,
    );
    var v = start;
    var k = K;
    for (var t = 0u; t < 64u; t++) {
        let s1 = rotate(v[4], 6u) ^ rotate(v[4], 11u) ^ rotate(v[4], 25u);
        let choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        let first = v[7] + s1 + choice + k[t] + w[t];
        let s0 = rotate(v[0], 2u) ^ rotate(v[0], 13u) ^ rotate(v[0], 22u);
        let majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        for (var n = 7u; n > 0u; n--) {
            v[n] = v[n - 1u];
        }
        v[4] += first;
        v[0] = first + s0 + majority;
    }
    for (var n = 0u; n < 8u; n++) {
        digests[at][n] = start[n] + v[n];
    }
}
