//! Of more image samples than a kernel may have inline, those in loops are inline.

use std::collections::BTreeMap;

use spelter_shaders::back::x86::Isa;
use spelter_shaders::compile::{self, Module};
use spelter_shaders::simd::verify;

#[test]
fn a_sample_in_a_loop_is_inlined_before_those_outside_of_it() {
    let samples: String = (0..40)
        .map(|number| format!("sum += textureSampleLevel(often, how, at + vec2f({number}.0), 0.0);\n"))
        .collect();
    let source = format!(
        "@group(0) @binding(0) var often: texture_2d<f32>;
        @group(0) @binding(1) var looped: texture_2d<f32>;
        @group(0) @binding(2) var how: sampler;
        @group(0) @binding(3) var<storage, read> count: u32;
        @group(0) @binding(4) var<storage, read_write> out: array<vec4f>;
        @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) id: u32) {{
            let at = vec2f(f32(id), 0.5);
            var sum = vec4f();
            {samples}
            for (var i = 0u; i < count; i += 1u) {{
                sum += textureSampleLevel(looped, how, at * f32(i), 0.0);
            }}
            out[id] = sum;
        }}"
    );
    let kernel = Module::from_wgsl(&source).unwrap().kernel("main", &BTreeMap::new()).unwrap();
    let lowered = compile::lower_for(&kernel, Isa::Avx512, |_, _| {}).unwrap();
    let wide = compile::widen(&lowered, Isa::Avx512).unwrap();
    assert_eq!(verify(&wide), Ok(()), "{wide}");
    // Inline samples read the format of their image, which calls do not.
    let text = wide.to_string();
    assert_eq!(text.matches("image_field format ").count(), 2, "{text}");
}
