#version 450
layout(local_size_x = 64) in;
layout(binding = 0) coherent buffer Data { uint data[]; };
layout(binding = 1) buffer To { uint to[]; };
void main() {
  uint l = gl_LocalInvocationID.x;
  data[l] = l * l; //!
  memoryBarrierBuffer(); barrier(); //-
  //+ memoryBarrierBuffer(); barrier(); memoryBarrierBuffer();
  to[l] = data[63 - l]; //!
}
