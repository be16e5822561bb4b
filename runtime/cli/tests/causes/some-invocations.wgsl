@group(0) @binding(0) var<storage, read_write> data: array<u32>;
var<workgroup> tile: array<u32, 64>;
var<push_constant> count: u32;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
  if l >= count { return; } //-
  tile[l] = data[l]; //-
  //+ if l < count { tile[l] = data[l]; }
  workgroupBarrier(); //!
  data[l] = tile[0]; //-
  //+ if l < count { data[l] = tile[0]; }
}
