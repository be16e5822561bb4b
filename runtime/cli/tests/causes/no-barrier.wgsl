@group(0) @binding(0) var<storage, read_write> data: array<u32>;
var<workgroup> tile: array<u32, 64>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
  tile[l] = data[l]; //!
  //+ workgroupBarrier();
  data[l] = tile[63 - l]; //!
}
