#version 450
layout(local_size_x = 1) in;
layout(binding = 0) coherent buffer Data { uint data; };
layout(binding = 1) buffer Flag { uint flag; };
layout(binding = 2) buffer To { uint to; };
void main() {
  if (gl_WorkGroupID.x == 0) {
    data = 7; //!
    //+ memoryBarrierBuffer();
    atomicExchange(flag, 1);
  } else if (atomicOr(flag, 0) == 1) {
    //+ memoryBarrierBuffer();
    to = data; //!
  }
}
