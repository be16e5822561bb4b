//! The programs that are dispatched: what they are in WGSL, and what they do in plain Rust, word by word.
//!
//! All take a uniform buffer at binding 0 and storage buffers at 1 and 2. A word that is not defined makes what is
//! computed from it undefined.

/// A word, if it is defined.
pub(crate) type Word = Option<u32>;

const HEAD: &str = "
@group(0) @binding(0) var<uniform> u: u32;
@group(0) @binding(1) var<storage, read> a: array<u32>;
@group(0) @binding(2) var<storage, read_write> b: array<u32>;
@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;";

/// Mixes all three.
pub(crate) const MIX: usize = 0;
/// Overwrites one.
pub(crate) const SET: usize = 1;
/// Writes both storage buffers.
pub(crate) const BOTH: usize = 2;

/// The programs' texts, by number.
pub(crate) fn texts() -> [String; 3] {
    [
        format!("{HEAD} if i < min(arrayLength(&a), arrayLength(&b)) {{ b[i] = b[i] * 3u + a[i] + u; }} }}"),
        format!("{HEAD} if i < arrayLength(&b) {{ b[i] = u + i + min(a[0], 0u); }} }}"),
        format!("{HEAD} if i < min(arrayLength(&a), arrayLength(&b)) {{ a[i] += u; b[i] ^= i; }} }}")
            .replace("var<storage, read> a", "var<storage, read_write> a"),
    ]
}

/// Whether the program writes the buffer at binding 1.
pub(crate) fn writes_a(program: usize) -> bool {
    program == BOTH
}

/// What a dispatch with an invocation for each word does.
pub(crate) fn run(program: usize, u: Word, a: &mut [Word], b: &mut [Word]) {
    let both = a.len().min(b.len());
    match program {
        MIX => {
            for (a, b) in a.iter().zip(&mut *b).take(both) {
                *b = (|| Some((*b)?.wrapping_mul(3).wrapping_add((*a)?).wrapping_add(u?)))();
            }
        }
        SET => b.iter_mut().enumerate().for_each(|(i, b)| *b = u.map(|u| u.wrapping_add(i as u32))),
        _ => {
            for (i, (a, b)) in a.iter_mut().zip(&mut *b).enumerate() {
                *a = (|| Some((*a)?.wrapping_add(u?)))();
                *b = b.map(|b| b ^ i as u32);
            }
        }
    }
}
