// Storage images of stated formats: texels come in, go out changed, and what is outside is 0 or dropped.
// groups: 1,1,1
// image 0.0: 2d r32_sfloat 5x3
// bind 0.0: f32 0,1,2,3,4, 10,11,12,13,14, 20,21,22,23,24
// image 0.1: 2d r32_sfloat 5x3
// bind 0.1: f32 -1*15
// expect 0.0: f32 0,1,2,3,4, 10,11,12,13,14, 20,21,22,23,24
// expect 0.1: f32 11,13,16,19,17,31,44,48,52,41,31,53,56,59,37
@group(0) @binding(0) var source: texture_storage_2d<r32float, read>;
@group(0) @binding(1) var target_: texture_storage_2d<r32float, write>;
@compute @workgroup_size(16, 4) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let at = vec2<i32>(id.xy);
    let sum = textureLoad(source, at + vec2(-1, 0)).x + textureLoad(source, at + vec2(1, 0)).x
        + textureLoad(source, at + vec2(0, -1)).x + textureLoad(source, at + vec2(0, 1)).x;
    textureStore(target_, at, vec4<f32>(sum, 0.0, 0.0, 0.0));
}
