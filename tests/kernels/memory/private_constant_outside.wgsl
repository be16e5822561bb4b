// An index that is known to be far outside of a private array only once values have been followed: the store writes nothing, the
// load gives 0, and there is machine code.
// bind 0.0: u32 9,9,9,9,9
// expect 0.0: u32 100,101,102,103,104
@group(0) @binding(0) var<storage, read_write> out: array<u32>;

@compute @workgroup_size(5)
fn main(@builtin(local_invocation_index) index: u32) {
    var words: array<u32, 5>;
    var at = 4294967295u;
    words[at] = 6u;
    words[index % 5u] = 100u + index;
    out[index] = words[(index + 5u) % 5u] + words[at];
}
