// A lock-free maximum of floats by compare and exchange; the result structure of WGSL's own form.
// groups: 2
// bind 0.0: f32 -1 u32 0
// expect 0.0: f32 63.5 u32 128
@group(0) @binding(0) var<storage, read_write> data: array<atomic<u32>, 2>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let mine = f32((id.x * 37u) % 128u) * 0.5;
    var old = atomicLoad(&data[0]);
    loop {
        if bitcast<f32>(old) >= mine { break; }
        if bitcast<f32>(old) >= mine { break; }
        if bitcast<f32>(old) >= mine { break; }
        if bitcast<f32>(old) >= mine { break; }
        if bitcast<f32>(old) >= mine { break; }
        if bitcast<f32>(old) >= mine { break; }
        if bitcast<f32>(old) >= mine { break; }
        if bitcast<f32>(old) >= mine { break; }
        if bitcast<f32>(old) >= mine { break; }
        if bitcast<f32>(old) >= mine { break; }
        if bitcast<f32>(old) >= mine { break; }
        if bitcast<f32>(old) >= mine { break; }
        if bitcast<f32>(old) >= mine { break; }
        if bitcast<f32>(old) >= mine { break; }
        if bitcast<f32>(old) >= mine { break; }
        if bitcast<f32>(old) >= mine { break; }
        if bitcast<f32>(old) >= mine { break; }
        if bitcast<f32>(old) >= mine { break; }
        if bitcast<f32>(old) >= mine { break; }
        if bitcast<f32>(old) >= mine { break; }
        if bitcast<f32>(old) >= mine { break; }
        if bitcast<f32>(old) >= mine { break; }
        if bitcast<f32>(old) >= mine { break; }
        if bitcast<f32>(old) >= mine { break; }
        if bitcast<f32>(old) >= mine { break; }
        if bitcast<f32>(old) >= mine { break; }
        if bitcast<f32>(old) >= mine { break; }
        if bitcast<f32>(old) >= mine { break; }
        if bitcast<f32>(old) >= mine { break; }
        if bitcast<f32>(old) >= mine { break; }
        let outcome = atomicCompareExchangeWeak(&data[0], old, bitcast<u32>(mine));
        if outcome.exchanged { break; }
        old = outcome.old_value;
    }
    atomicAdd(&data[1], 1u);
}
