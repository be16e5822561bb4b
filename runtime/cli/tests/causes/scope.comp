#version 450
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 64) in;
layout(binding = 0) buffer Count { uint count; };
void main() {
  atomicAdd(count, 1u, gl_ScopeWorkgroup, 0, 0); //! //-
  //+ atomicAdd(count, 1u, gl_ScopeDevice, 0, 0);
}
