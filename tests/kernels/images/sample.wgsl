// A sampled image through two samplers: between texels, beyond the edges, levels, gathers, fetches and sizes.
// groups: 1,1,1
// image 0.0: 2d r32_sfloat 4x2 levels=2
// bind 0.0: f32 0,1,2,3, 4,5,6,7, 100,200
// sampler 0.1: linear mip=linear clamp_to_edge
// sampler 0.2: nearest repeat
// bind 0.3: zeros 64
// expect 0.3: f32 3.5,0,7,1.5,50,100,150,42,7,3,4,4,5,1,0,200
@group(0) @binding(0) var image: texture_2d<f32>;
@group(0) @binding(1) var mixed: sampler;
@group(0) @binding(2) var near: sampler;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;
@compute @workgroup_size(1) fn main() {
    out[0] = textureSampleLevel(image, mixed, vec2(0.5, 0.5), 0.0).x;
    out[1] = textureSampleLevel(image, mixed, vec2(-3.0, -3.0), 0.0).x;
    out[2] = textureSampleLevel(image, mixed, vec2(9.0, 1.0), 0.0).x;
    out[3] = textureSampleLevel(image, mixed, vec2(0.5, 0.25), 0.0).x;
    out[4] = textureSampleLevel(image, mixed, vec2(0.0, 0.0), 0.5).x;
    out[5] = textureSampleLevel(image, mixed, vec2(0.0, 0.0), 7.0).x;
    out[6] = textureSampleLevel(image, mixed, vec2(0.5, 0.5), 1.0).x;
    out[7] = 42.0;
    out[8] = textureSampleLevel(image, near, vec2(1.99, 1.6), 0.0).x;
    out[9] = textureSampleLevel(image, near, vec2(-0.1, 0.1), 0.0).x;
    let four = textureGather(0, image, mixed, vec2(0.25, 0.5));
    out[10] = four.x;
    out[11] = f32(textureDimensions(image).x);
    out[12] = four.y;
    out[13] = four.z;
    out[14] = four.w;
    out[15] = textureLoad(image, vec2(1, 0), 1).x;
}
