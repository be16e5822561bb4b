// Solutions of the eight queens problem by the first queen's column: backtracking with an explicit stack, each invocation
// on its own way. The counts are the well-known 4, 8, 16, 18, mirrored; 92 in all.
// bind 0.0: zeros 36
// expect 0.0: u32 4,8,16,18,18,16,8,4,92

@group(0) @binding(0) var<storage, read_write> counts: array<atomic<u32>, 9>;

fn safe(columns: ptr<function, array<i32, 8>>, row: i32) -> bool {
    for (var other = 0; other < row; other++) {
        let apart = abs((*columns)[row] - (*columns)[other]);
        if apart == 0 || apart == row - other {
            return false;
        }
    }
    return true;
}

@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) first: u32) {
    var columns: array<i32, 8>;
    columns[0] = i32(first);
    columns[1] = -1;
    var row = 1;
    while row > 0 {
        columns[row]++;
        if columns[row] >= 8 {
            row--;
            continue;
        }
        if !safe(&columns, row) {
            continue;
        }
        if row == 7 {
            atomicAdd(&counts[first], 1u);
            atomicAdd(&counts[8], 1u);
            continue;
        }
        row++;
        columns[row] = -1;
    }
}
