@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> to: array<u32>;
//+ @id(0) override part = 0u;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = id.x;
  data[i] = i * i; //! //-
  storageBarrier(); //-
  to[i] = data[127u - i]; //! //-
  //+ if part == 0u { data[i] = i * i; }
  //+ else { to[i] = data[127u - i]; }
}
