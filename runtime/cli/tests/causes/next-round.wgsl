@group(0) @binding(0) var<storage, read_write> data: array<u32>;
var<workgroup> tile: array<u32, 64>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
  var sum = 0u;
  for (var i = 0u; i < 4u; i++) {
    tile[l] = data[64u * i + l]; //!
    workgroupBarrier();
    sum += tile[63u - l]; //!
    //+ workgroupBarrier();
  }
  data[l] = sum;
}
