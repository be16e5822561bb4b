// Storage formats of all kinds of numbers, read and written: each stage reads what the one before wrote.
// groups: 1,1,1
// image 0.0: 2d r8g8b8a8_unorm 4x1
// bind 0.0: u32 0x00ff0080,0xffffffff,0x01020304,0
// expect 0.0: u32 0x00ff0080,0xffffffff,0x01020304,0
// image 0.1: 2d r8g8b8a8_snorm 4x1
// expect 0.1: u32 0x7f0040,0x7f7f7f7f,0x10102,0x0
// image 0.2: 2d r16g16b16a16_sfloat 4x1
// expect 0.2: u32 0x3804,0x3c00,0x3c00,0x3c003c00,0x2404,0x1c042004,0x0,0x0
// image 0.3: 2d r32g32b32a32_uint 4x1
// expect 0.3: u32 128,0,255,0,255,255,255,255,4,3,2,1,0,0,0,0
// image 0.4: 2d r8g8b8a8_sint 4x1
// expect 0.4: u32 0x17f007f,0x17f7f7f,0x1020304,0x1000000
@group(0) @binding(0) var a: texture_storage_2d<rgba8unorm, read>;
@group(0) @binding(1) var b: texture_storage_2d<rgba8snorm, write>;
@group(0) @binding(2) var c: texture_storage_2d<rgba16float, write>;
@group(0) @binding(3) var d: texture_storage_2d<rgba32uint, write>;
@group(0) @binding(4) var e: texture_storage_2d<rgba8sint, write>;
@compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let at = vec2<i32>(id.xy);
    let texel = textureLoad(a, at);
    textureStore(b, at, texel);
    textureStore(c, at, vec4(texel.x, 0.0, texel.z, texel.w));
    let whole = vec4<u32>(texel * 255.0 + 0.5);
    textureStore(d, at, whole);
    textureStore(e, at, vec4<i32>(vec4(whole.xyz, 1u)));
}
