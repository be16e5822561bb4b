#version 450
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model
layout(local_size_x = 1) in;
layout(binding = 0) workgroupcoherent buffer Data { uint data; }; //-
//+ layout(binding = 0) devicecoherent buffer Data { uint data; };
layout(binding = 1) buffer Flag { uint flag; };
layout(binding = 2) buffer To { uint to; };
const int B = gl_StorageSemanticsBuffer;
void main() {
  if (gl_WorkGroupID.x == 0) {
    data = 7; //!
    atomicStore(flag, 1u, gl_ScopeDevice, B, gl_SemanticsRelease);
  } else if (atomicLoad(flag, gl_ScopeDevice, B, gl_SemanticsAcquire) == 1u) {
    to = data; //!
  }
}
