@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;
var<workgroup> tile: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) l: u32, @builtin(global_invocation_id) g: vec3<u32>) {
  var sum = 0u;
  for (var k = 0u; k < 256u; k += 64u) {
    tile[l] = a[k + l];
    workgroupBarrier();
    for (var i = 0u; i < 64u; i += 1u) { sum += tile[(l + i) & 63u]; }
    // fixed: workgroupBarrier();
  }
  sums[g.x] = sum;
}
