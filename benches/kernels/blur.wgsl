// Five linear samples of an image around each texel.

@group(0) @binding(0) var source: texture_2d<f32>;
@group(0) @binding(1) var result: texture_storage_2d<rgba8unorm, write>;
@group(0) @binding(2) var mixed: sampler;
@compute @workgroup_size(16, 16) fn main(@builtin(global_invocation_id) id: vec3u) {
    let step = 1.0 / vec2f(textureDimensions(source));
    let at = (vec2f(id.xy) + 0.5) * step;
    var sum = 0.4 * textureSampleLevel(source, mixed, at, 0.0);
    sum += 0.15 * textureSampleLevel(source, mixed, at + vec2(-1.4, 0.0) * step, 0.0);
    sum += 0.15 * textureSampleLevel(source, mixed, at + vec2(1.4, 0.0) * step, 0.0);
    sum += 0.15 * textureSampleLevel(source, mixed, at + vec2(0.0, -1.4) * step, 0.0);
    sum += 0.15 * textureSampleLevel(source, mixed, at + vec2(0.0, 1.4) * step, 0.0);
    textureStore(result, vec2i(id.xy), sum);
}
