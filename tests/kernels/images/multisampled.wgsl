// A multisampled image has one sample here.
// image 0.0: 2d r32_sfloat 2x1
// bind 0.0: f32 1.5,2.5
// bind 0.1: zeros 16
// expect 0.1: f32 2.5,1,2,1
@group(0) @binding(0) var image: texture_multisampled_2d<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@compute @workgroup_size(1) fn main() {
    out[0] = textureLoad(image, vec2(1, 0), 0).x;
    out[1] = f32(textureNumSamples(image));
    let size = textureDimensions(image);
    out[2] = f32(size.x);
    out[3] = f32(size.y);
}
