#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data { uint data[]; };
layout(binding = 1) buffer To { uint to[]; };
//+ layout(constant_id = 0) const uint part = 0;
void main() {
  uint i = gl_GlobalInvocationID.x;
  data[i] = i * i; //! //-
  memoryBarrierBuffer(); barrier(); //-
  to[i] = data[127 - i]; //! //-
  //+ if (part == 0) data[i] = i * i;
  //+ else to[i] = data[127 - i];
}
