#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer Data { uint data[]; };
layout(binding = 1) buffer Bins { uint bins[]; };
void main() {
  uint bin = data[gl_GlobalInvocationID.x] % 4;
  bins[bin] += 1u; //! //-
  //+ atomicAdd(bins[bin], 1u);
}
