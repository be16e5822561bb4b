#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data { uint data[]; };
shared uint tile[64];
void main() {
  uint l = gl_LocalInvocationID.x;
  tile[l] = data[l]; //!
  //+ barrier();
  data[l] = tile[63 - l]; //!
}
