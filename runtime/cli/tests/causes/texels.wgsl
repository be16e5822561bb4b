@group(0) @binding(0) var picture: texture_storage_2d<r32uint, read_write>;
@group(0) @binding(1) var<storage, read_write> to: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
  textureStore(picture, vec2(l, 0u), vec4(l)); //!
  workgroupBarrier(); //-
  //+ textureBarrier();
  to[l] = textureLoad(picture, vec2(63u - l, 0u)).x; //!
}
