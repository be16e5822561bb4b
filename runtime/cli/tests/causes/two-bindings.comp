#version 450
layout(local_size_x = 64) in;
layout(binding = 0) coherent buffer A { uint a[]; };
layout(binding = 1) coherent buffer B { uint b[]; };
layout(binding = 2) buffer To { uint to[]; };
void main() {
  uint l = gl_LocalInvocationID.x;
  a[l] = l * l; //!
  memoryBarrierBuffer(); barrier(); memoryBarrierBuffer();
  to[l] = b[63 - l]; //! //-
  //+ to[l] = a[63 - l];
}
