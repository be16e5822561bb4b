@group(0) @binding(0) var<storage, read> src: array<u32>;
@group(0) @binding(1) var<storage, read_write> partial: array<u32>;
@group(0) @binding(3) var<storage, read_write> dst: array<u32>;
var<workgroup> sh: array<u32, 64>;
@compute @workgroup_size(64)
fn parts(@builtin(local_invocation_index) l: u32, @builtin(workgroup_id) w: vec3<u32>) {
  sh[l] = src[w.x * 64u + l];
  workgroupBarrier();
  if l == 0u {
    var s = 0u;
    for (var i = 0u; i < 64u; i += 1u) { s += sh[i]; }
    partial[w.x] = s;
  }
}
@compute @workgroup_size(64)
fn total(@builtin(local_invocation_index) l: u32) {
  var sum = 0u;
  for (var i = l; i < arrayLength(&partial); i += 64u) { sum += partial[i]; }
  dst[l] = sum;
}
