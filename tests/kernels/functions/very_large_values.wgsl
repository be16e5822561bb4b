// An array of more scalars than a value may have goes by value through functions, in memory.
// bind 0.0: zeros 4
// expect 0.0: u32 139999

alias Many = array<u32, 70000>;
@group(0) @binding(0) var<storage, read_write> result: u32;

fn add(many: Many, n: u32) -> Many {
    var own = many;
    own[69999] += n;
    return own;
}

@compute @workgroup_size(1) fn main() {
    var a: Many;
    a[69999] = 69999u;
    let b = add(a, 70000u);
    var c = b;
    result = c[69999];
}
