// Three invocations sort sixteen numbers each, with a stack of ranges in private memory.
// bind 0.0: i32 246,-814,-281,681,829,355,-999,-218,-779,-333,158,876,259,104,-712,-334
// bind 0.0: i32 289,795,825,155,-231,-121,-116,-537,10,-404,-18,991,450,-223,-214,968
// bind 0.0: i32 750,871,-675,220,216,-468,517,-384,16,-486,-150,-960,-347,935,-371,7
// expect 0.0: i32 -999,-814,-779,-712,-334,-333,-281,-218,104,158,246,259,355,681,829,876
// expect 0.0: i32 -537,-404,-231,-223,-214,-121,-116,-18,10,155,289,450,795,825,968,991
// expect 0.0: i32 -960,-675,-486,-468,-384,-371,-347,-150,7,16,216,220,517,750,871,935

@group(0) @binding(0) var<storage, read_write> data: array<array<i32, 16>, 3>;
var<private> stack: array<vec2i, 16>;

fn swap(part: u32, a: i32, b: i32) {
    let kept = data[part][a];
    data[part][a] = data[part][b];
    data[part][b] = kept;
}

@compute @workgroup_size(3)
fn main(@builtin(local_invocation_index) part: u32) {
    var depth = 1;
    stack[0] = vec2i(0, 15);
    loop {
        if depth == 0 { break; }
        depth--;
        let range = stack[depth];
        if range.x >= range.y { continue; }
        let pivot = data[part][range.y];
        var end = range.x;
        for (var i = range.x; i < range.y; i++) {
            if data[part][i] < pivot {
                swap(part, i, end);
                end++;
            }
        }
        swap(part, end, range.y);
        stack[depth] = vec2i(range.x, end - 1);
        stack[depth + 1] = vec2i(end + 1, range.y);
        depth += 2;
    }
}
