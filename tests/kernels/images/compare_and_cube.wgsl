// Depth comparisons, cubes with layers, 3D images and arrays, and textures of integers.
// groups: 1,1,1
// image 0.0: 2d d32_sfloat 2x1
// bind 0.0: f32 0.25,0.75
// sampler 0.1: linear clamp_to_edge compare=less
// image 0.2: cube r32_sfloat 1x1 layers=12
// bind 0.2: f32 0,1,2,3,4,5,6,7,8,9,10,11
// sampler 0.3: nearest clamp_to_edge
// image 0.4: 3d r32_uint 2x2x2
// bind 0.4: u32 10,11,12,13,14,15,16,17
// image 0.5: 2d r16_sint 3x1 layers=2 swizzle=rrr1
// bind 0.5: u32 0xfffe0001,0x00030003,0x00050004
// bind 0.6: zeros 64
// expect 0.6: f32 0,0.5,1,0, 4,7,2,3, 17,10,-2,5, 2,1,2,12
@group(0) @binding(0) var depth: texture_depth_2d;
@group(0) @binding(1) var less: sampler_comparison;
@group(0) @binding(2) var cubes: texture_cube_array<f32>;
@group(0) @binding(3) var near: sampler;
@group(0) @binding(4) var volume: texture_3d<u32>;
@group(0) @binding(5) var words: texture_2d_array<i32>;
@group(0) @binding(6) var<storage, read_write> out: array<f32>;
@compute @workgroup_size(1) fn main() {
    out[0] = textureSampleCompareLevel(depth, less, vec2(0.0, 0.5), 0.3);
    out[1] = textureSampleCompareLevel(depth, less, vec2(0.5, 0.5), 0.3);
    out[2] = textureSampleCompareLevel(depth, less, vec2(1.0, 0.5), 0.3);
    out[3] = textureGatherCompare(depth, less, vec2(0.5, 0.5), 0.3).x;
    out[4] = textureSampleLevel(cubes, near, vec3(0.1, 0.2, 3.0), 0, 0.0).x;
    out[5] = textureSampleLevel(cubes, near, vec3(-9.0, 0.2, 3.0), 1, 0.0).x;
    out[6] = textureSampleLevel(cubes, near, vec3(0.1, 0.2, 0.0), 0, 0.0).x;
    out[7] = textureSampleLevel(cubes, near, vec3(0.1, -0.2, 0.1), -5, 0.0).x;
    out[8] = f32(textureLoad(volume, vec3(1, 1, 1), 0).x);
    out[9] = f32(textureLoad(volume, vec3(0, 0, 0), 0).x);
    out[10] = f32(textureLoad(words, vec2(1, 0), 0, 0).z);
    out[11] = f32(textureLoad(words, vec2(2, 0), 1, 0).x);
    out[12] = f32(textureNumLayers(words));
    out[13] = f32(textureLoad(words, vec2(2, 0), 1, 0).w);
    out[14] = f32(textureNumLayers(cubes));
    out[15] = f32(textureDimensions(volume, 0).z * 6u);
}
