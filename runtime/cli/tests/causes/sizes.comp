#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_atomic_int64 : require
layout(local_size_x = 64) in;
layout(binding = 0) buffer Halves { uint low, high; }; //-
layout(binding = 0) buffer Whole { uint64_t whole; };
void main() {
  atomicAdd(low, 1u); //! //-
  //+ atomicAdd(whole, 1ul);
  atomicMax(whole, 5ul); //!
}
