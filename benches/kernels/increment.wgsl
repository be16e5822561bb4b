// One invocation adds one.

@group(0) @binding(0) var<storage, read_write> count: u32;

@compute @workgroup_size(1)
fn main() {
    count += 1u;
}
