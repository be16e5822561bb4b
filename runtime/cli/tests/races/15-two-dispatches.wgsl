@group(0) @binding(0) var<storage, read_write> data: array<u32>;
fn order(a: u32) {
  let n = arrayLength(&data);
  if a + 1u < n && data[a] > data[a + 1u] { let t = data[a]; data[a] = data[a + 1u]; data[a + 1u] = t; }
}
@compute @workgroup_size(64) fn odd(@builtin(global_invocation_id) g: vec3<u32>) { order(g.x * 2u + 1u); }
@compute @workgroup_size(64) fn even(@builtin(global_invocation_id) g: vec3<u32>) { order(g.x * 2u); }
