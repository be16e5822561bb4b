@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> to: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
  data[l] = l * l; //!
  workgroupBarrier(); //-
  //+ storageBarrier();
  to[l] = data[63 - l]; //!
}
