// Half floats exist in packed words only; the arithmetic is on 32-bit floats.
// bind 0.0: f32 1.5,-2,65520,1e-8
// bind 0.1: u32 0,0
// bind 0.2: f32 0,0,0,0
// expect 0.1: u32 0xc0003e00,0x00007c00
// expect 0.2: f32 1.5,-2,1.0009765625,0.333251953125

@group(0) @binding(0) var<storage, read> numbers: array<f32>;
@group(0) @binding(1) var<storage, read_write> packed: array<u32>;
@group(0) @binding(2) var<storage, read_write> back: array<f32>;

@compute @workgroup_size(1)
fn main() {
    packed[0] = pack2x16float(vec2(numbers[0], numbers[1]));
    packed[1] = pack2x16float(vec2(numbers[2], numbers[3]));
    let pair = unpack2x16float(packed[0]);
    back[0] = pair.x;
    back[1] = pair.y;
    back[2] = quantizeToF16(numbers[0] * 0.6673);
    back[3] = quantizeToF16(numbers[0] / 4.5);
}
