@group(0) @binding(0) var<storage, read_write> data: u32;
@group(0) @binding(1) var<storage, read_write> flag: atomic<u32>; //-
@group(0) @binding(2) var<storage, read_write> to: u32;
//+ @id(0) override part = 0u;
@compute @workgroup_size(1) fn main(@builtin(workgroup_id) w: vec3<u32>) {
  if w.x == 0u { //-
    data = 7u; //! //-
    atomicStore(&flag, 1u); //-
  } else if atomicLoad(&flag) == 1u { //-
    to = data; //! //-
  } //-
  //+ if w.x == 0u && part == 0u { data = 7u; }
  //+ if w.x == 1u && part == 1u { to = data; }
}
