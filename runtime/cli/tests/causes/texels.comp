#version 450
layout(local_size_x = 64) in;
layout(binding = 0, r32ui) uniform uimage2D picture; //-
//+ layout(binding = 0, r32ui) coherent uniform uimage2D picture;
layout(binding = 1) buffer To { uint to[]; };
void main() {
  int l = int(gl_LocalInvocationID.x);
  imageStore(picture, ivec2(l, 0), uvec4(l)); //!
  barrier(); //-
  //+ memoryBarrierImage(); barrier(); memoryBarrierImage();
  to[l] = imageLoad(picture, ivec2(63 - l, 0)).x; //!
}
