//! Supported capabilities of naga's language.

use naga::valid::Capabilities;

/// Capabilities of naga that are supported beyond the base language.
pub(super) fn accepted() -> Capabilities {
    // Capabilities of other stages: their entry points are never translated.
    let other_stages = Capabilities::PRIMITIVE_INDEX
        | Capabilities::CLIP_DISTANCES
        | Capabilities::CULL_DISTANCE
        | Capabilities::MULTIVIEW
        | Capabilities::EARLY_DEPTH_TEST
        | Capabilities::MULTISAMPLED_SHADING
        | Capabilities::DUAL_SOURCE_BLENDING
        | Capabilities::SUBGROUP_VERTEX_STAGE
        | Capabilities::SHADER_BARYCENTRICS;
    let numbers = Capabilities::FLOAT64
        | Capabilities::SHADER_FLOAT16
        | Capabilities::SHADER_INT16
        | Capabilities::SHADER_INT64
        | Capabilities::SHADER_INT64_ATOMIC_MIN_MAX
        | Capabilities::SHADER_INT64_ATOMIC_ALL_OPS
        | Capabilities::SHADER_FLOAT32_ATOMIC;
    let not_uniform = Capabilities::TEXTURE_AND_SAMPLER_BINDING_ARRAY_NON_UNIFORM_INDEXING
        | Capabilities::BUFFER_BINDING_ARRAY_NON_UNIFORM_INDEXING
        | Capabilities::STORAGE_TEXTURE_BINDING_ARRAY_NON_UNIFORM_INDEXING
        | Capabilities::STORAGE_BUFFER_BINDING_ARRAY_NON_UNIFORM_INDEXING;
    other_stages
        | numbers
        | not_uniform
        | Capabilities::STORAGE_TEXTURE_BINDING_ARRAY
        | Capabilities::IMMEDIATES
        | Capabilities::SHADER_FLOAT16_IN_FLOAT32
        | Capabilities::BUFFER_BINDING_ARRAY
        | Capabilities::STORAGE_BUFFER_BINDING_ARRAY
        | Capabilities::MEMORY_DECORATION_COHERENT
        | Capabilities::MEMORY_DECORATION_VOLATILE
        | Capabilities::CUBE_ARRAY_TEXTURES
        | Capabilities::STORAGE_TEXTURE_16BIT_NORM_FORMATS
        | Capabilities::TEXTURE_AND_SAMPLER_BINDING_ARRAY
        | Capabilities::TEXTURE_ATOMIC
        | Capabilities::SUBGROUP
        | Capabilities::SUBGROUP_BARRIER
}
