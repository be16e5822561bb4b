#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data { uint data[]; };
shared uint tile[64];
void main() {
  uint l = gl_LocalInvocationID.x, sum = 0;
  for (uint i = 0; i < 4; i++) {
    tile[l] = data[64 * i + l]; //!
    barrier();
    sum += tile[63 - l]; //!
    //+ barrier();
  }
  data[l] = sum;
}
