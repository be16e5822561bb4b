// Structures in arrays in structures, copied whole, with the padding that WGSL's layout asks for.
// bind 0.0: f32 1,2,3 u32 7 f32 4,5,6 u32 8 f32 10,11,0,0,12,13,0,0,14,15,0,0 u32 99,0,0,0
// bind 0.1: zeros 144
// expect 0.1: f32 4,5,6 u32 8 f32 1,2,3 u32 7 f32 10,11,0,0,12,13,0,0,14,15,0,0 u32 100
struct Item { position: vec3<f32>, tag: u32 }
struct Padded { @size(16) xy: vec2<f32> }
struct All { items: array<Item, 2>, padded: array<Padded, 3>, count: u32 }
@group(0) @binding(0) var<storage, read> source: All;
@group(0) @binding(1) var<storage, read_write> target_all: All;
@compute @workgroup_size(1)
fn main() {
    var all = source;
    let first = all.items[0];
    all.items[0] = all.items[1];
    all.items[1] = first;
    all.count += 1u;
    target_all = all;
}
