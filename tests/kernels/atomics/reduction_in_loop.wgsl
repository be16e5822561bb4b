// A sum that invocations add to in a loop, each as often as it likes, of words that are only read.
// groups: 2
// bind 0.0: u32 5
// bind 0.1: u32 1 2 3 4
// expect 0.0: u32 325
@group(0) @binding(0) var<storage, read_write> sum: atomic<u32>;
@group(0) @binding(1) var<storage, read> words: array<u32, 4>;
@compute @workgroup_size(8, 8)
fn main(@builtin(local_invocation_index) index: u32) {
    for (var i = 0u; i < index % 4u; i++) { atomicAdd(&sum, words[i]); }
}
