@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> bins: array<u32>; //-
//+ @group(0) @binding(1) var<storage, read_write> bins: array<atomic<u32>>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let bin = data[id.x] % 4u;
  bins[bin] += 1u; //! //-
  //+ atomicAdd(&bins[bin], 1u);
}
