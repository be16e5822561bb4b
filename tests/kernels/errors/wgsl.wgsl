// An error in WGSL shows the line and what is wrong there.
// error: wgsl:4:13
@compute @workgroup_size(1) fn main() {
    let x = 1u + 1.5f;
}
