// Arrays of 300 words go by value through functions: taken, changed, passed on, returned from two places, in a loop.
// bind 0.0: zeros 64
// expect 0.0: u32 135000,136105,137111,1597,22000,135004,136110,1596,22000,23004,135008,1595,22000,23004,24008,900

alias Many = array<u32, 300>;
@group(0) @binding(0) var<storage, read_write> result: array<u32, 16>;

fn make(n: u32) -> Many {
    var own: Many;
    for (var i = 0u; i < 300u; i++) { own[i] = i * n; }
    return own;
}

fn add(many: Many, n: u32) -> Many {
    var own = many;
    for (var i = 0u; i < 300u; i++) { own[i] += n; }
    return own;
}

fn choose(a: Many, b: Many, first: bool) -> Many {
    if first { return a; }
    return add(b, 100u);
}

fn at(many: Many, i: u32) -> u32 { return many[i]; }

fn last(many: Many) -> u32 { return many[299]; }

@compute @workgroup_size(4) fn main(@builtin(local_invocation_index) index: u32) {
    var a = make(3u);
    let b = make(5u);
    for (var turn = 0u; turn < 3u; turn++) {
        let before = a;
        a = choose(add(before, 1u), b, turn != index);
        result[index * 4u + turn] = at(before, turn) + at(a, 7u) * 1000u;
    }
    result[index * 4u + 3u] = last(a);
}
