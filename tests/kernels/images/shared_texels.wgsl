// Texels at coordinates that the subgroup shares, looked at while lanes are inactive: after an early return, which lane 0 takes, in a
// branch, in a loop that lanes leave one after the other, in a subgroup of four. Inactive lanes hold no texel.
// groups: 1,1,1
// image 0.0: 2d r32_sfloat 4x2
// bind 0.0: f32 123,5,7,9, 1,2,3,4
// image 0.1: 2d r8g8b8a8_unorm 4x2
// bind 0.1: u32 0xff0000ff,0,1,2, 3,4,5,6
// image 0.2: 2d r32_sfloat 4x2
// bind 0.2: f32 123,5,7,9, 1,2,3,4
// image 0.3: 2d r8g8b8a8_unorm 4x2
// bind 0.3: u32 0xff0000ff,0,1,2, 3,4,5,6
// sampler 0.4: nearest repeat
// bind 0.5: zeros 80
// expect 0.5: u32 1000,7936,8384,9024,9856,17792,18240,18880,19712,27648,28096,28736,29568,37504,37952,38592,1000,47360,47808,48448
@group(0) @binding(0) var floats: texture_2d<f32>;
@group(0) @binding(1) var codes: texture_2d<f32>;
@group(0) @binding(2) var stored_floats: texture_storage_2d<r32float, read>;
@group(0) @binding(3) var stored_codes: texture_storage_2d<rgba8unorm, read>;
@group(0) @binding(4) var near: sampler;
@group(0) @binding(5) var<storage, read_write> out: array<u32>;
@compute @workgroup_size(20) fn main(@builtin(local_invocation_index) l: u32) {
    if (l & 15u) == 0u {
        out[l] = 1000u;
        return;
    }
    var wrong = 0u;
    if (l & 3u) == 1u {
        if textureLoad(floats, vec2(0, 0), 0).x != 123.0 { wrong |= 1u; }
        if textureLoad(codes, vec2(0, 0), 0).x != 1.0 { wrong |= 2u; }
        if textureLoad(stored_floats, vec2(0, 0)).x != 123.0 { wrong |= 4u; }
        if textureLoad(stored_codes, vec2(0, 0)).w != 1.0 { wrong |= 8u; }
        if textureSampleLevel(floats, near, vec2(0.1, 0.1), 0.0).x != 123.0 { wrong |= 16u; }
        if textureSampleLevel(codes, near, vec2(0.1, 0.1), 0.0).y != 0.0 { wrong |= 32u; }
    }
    var total = 0u;
    for (var i = 0u; i < l; i++) {
        let x = i32(i & 3u);
        total += u32(textureLoad(floats, vec2(x, 0), 0).x) + u32(textureLoad(stored_floats, vec2(x, 1)).x);
    }
    out[l] = total * 64u + wrong;
}
