#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer Count { uint count; };
layout(binding = 1) buffer To { uint to[]; };
void main() {
  atomicAdd(count, 1u); //!
  to[gl_LocalInvocationID.x] = count; //! //-
  //+ to[gl_LocalInvocationID.x] = atomicOr(count, 0u);
}
