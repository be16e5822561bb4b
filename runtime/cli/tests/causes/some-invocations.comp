#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data { uint data[]; };
layout(push_constant) uniform Push { uint count; };
shared uint tile[64];
void main() {
  uint l = gl_LocalInvocationID.x;
  if (l >= count) return; //-
  tile[l] = data[l]; //-
  //+ if (l < count) tile[l] = data[l];
  barrier(); //!
  data[l] = tile[0]; //-
  //+ if (l < count) data[l] = tile[0];
}
