@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@group(0) @binding(1) var<storage, read_write> b: array<u32>;
@group(0) @binding(2) var<storage, read_write> to: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
  a[l] = l * l; //!
  storageBarrier();
  to[l] = b[63 - l]; //! //-
  //+ to[l] = a[63 - l];
}
