//! Mutated WGSL texts: bytes and tokens are removed, inserted and moved, numbers become limits, parts are repeated
//! until a text is long, nested until it is deep, or renamed until there are many, and declarations of two texts are
//! mixed.

use crate::mutate::{self, Rng};

/// Numbers, names and constructs that are difficult for front ends.
const PIECES: [&str; 40] = [
    "0",
    "-1",
    "4294967295",
    "4294967296",
    "2147483648i",
    "0x7fffffffffffffff",
    "18446744073709551615lu",
    "-9223372036854775807li",
    "1e38f",
    "1e400",
    "0x1p-149f",
    "0.0lf",
    "1.0h",
    "u64(7)",
    "i64(3000000000u)",
    "array<u32, 1000000000>()",
    "array(array(1, 2), array(3, 4))",
    "vec4<f64>(1.0lf)",
    "mat4x4<f32>()",
    "bitcast<u32>(1.0)",
    "select(1, 2, true)",
    "@id(0) override n: u32 = 7u;",
    "override m: u64 = 7lu % 3lu;",
    "var<immediate> p: array<vec4<u32>, 999>;",
    "var<workgroup> w: array<u32, n>;",
    "var v: u64 = u64(n) % 100lu;",
    "const c = array(c, c);",
    "const_assert 1 / 0 == 0;",
    "struct S { a: S, @align(16) b: u32 }",
    "alias T = array<T, 4>;",
    "switch 1u { case 1u, 2u: { } default: { } }",
    "for (;;) { }",
    "loop { continuing { break if true; } }",
    "fn f() { f(); }",
    "@workgroup_size(0)",
    "@binding(4294967295)",
    "enable f16;",
    "/*",
    "\u{2028}",
    "\u{0}é\u{200e}",
];

/// A mutant of a text, which grows to at most `most` bytes; `other` is a text whose parts it may use.
pub fn text(source: &str, other: &str, most: usize, seed: u64) -> String {
    let mut rng = Rng::new(seed);
    // Few changes leave more that is understood; many reach rare combinations.
    let changes = [1, 1, 1, 2, 3, 8][rng.below(6)];
    let mut text = source.to_owned();
    for _ in 0..changes {
        text = change(&text, other, most, &mut rng);
        text.truncate(text.floor_char_boundary(most.max(source.len())));
    }
    text
}

fn change(text: &str, other: &str, most: usize, rng: &mut Rng) -> String {
    let (from, to) = range(text, rng);
    let (before, part, after) = (&text[..from], &text[from..to], &text[to..]);
    match rng.below(16) {
        0..=4 => mutate::text(text, rng.bits()),
        5 => {
            let mut bytes = text.as_bytes().to_vec();
            let at = rng.below(bytes.len());
            if let Some(byte) = bytes.get_mut(at) {
                *byte = rng.bits() as u8;
            }
            String::from_utf8_lossy(&bytes).into_owned()
        }
        6 => format!("{before}{after}"),
        7 => format!("{before}{part}{part}{after}"),
        8 => format!("{before}{}{part}{after}", rng.pick(&PIECES)),
        9 => format!("{before}{}{after}", rng.pick(&PIECES)),
        10 => format!("{before} {} {part}{after}", piece_of(other, rng)),
        11 => {
            let part = &part[..part.floor_char_boundary(64)];
            let times = [3, 30, 300, 3000][rng.below(4)].min(most.saturating_sub(text.len()) / part.len().max(1));
            format!("{before}{}{after}", part.repeat(times))
        }
        12 => {
            let (open, close) = rng.pick(&[
                ("(", ")"),
                ("{", "}"),
                ("array(", ")"),
                ("-(", ")"),
                ("vec2(", ",1).x"),
                ("if true {", "}"),
            ]);
            let depth = [2, 20, 150, 600][rng.below(4)];
            format!("{before}{}{part}{}{after}", open.repeat(depth), close.repeat(depth))
        }
        13 => format!("{}{text}", doubled(rng)),
        14 => number(text, rng),
        _ => format!("{text}\n{}", piece_of(other, rng)),
    }
}

/// Constants that name each other, each twice.
fn doubled(rng: &mut Rng) -> String {
    let (links, local) = (rng.below(34), rng.below(2) == 0);
    let zero = rng.pick(&["array(1, 2)", "array(1u, 2u)", "vec2(1)", "mat2x2(1.0, 2.0, 3.0, 4.0)", "array<u32, 9>()"]);
    let mut text = format!("const z0 = {zero};\n");
    for link in 1..=links {
        text += &format!("const z{link} = array(z{}, z{});\n", link - 1, link - 1);
    }
    let way = "[1]".repeat(rng.below(links + 2));
    let uses = format!(
        "let q = z{links}{way}; var r = z{links}; let s = z{links} {} z{links};",
        rng.pick(&["+", "==", "[0] +"])
    );
    if local { format!("fn zz() {{ {text} {uses} }}\n") } else { format!("{text}fn zz() {{ {uses} }}\n") }
}

/// Replaces a number by another one.
fn number(text: &str, rng: &mut Rng) -> String {
    let starts: Vec<usize> = text.match_indices(|c: char| c.is_ascii_digit()).map(|(at, _)| at).collect();
    if starts.is_empty() {
        return text.to_owned();
    }
    let at = rng.pick(&starts);
    let end = text[at..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |length| at + length);
    let numbers = ["0", "1", "3", "17", "65536", "1048577", "2147483647", "4294967295", "99999999999999999999"];
    format!("{}{}{}", &text[..at], rng.pick(&numbers), &text[end..])
}

fn piece_of<'a>(text: &'a str, rng: &mut Rng) -> &'a str {
    let (from, to) = range(text, rng);
    &text[from..to]
}

/// A part of a text, short ones more often; half of them whole lines.
fn range(text: &str, rng: &mut Rng) -> (usize, usize) {
    let from = text.floor_char_boundary(rng.below(text.len() + 1));
    let length = [1, 4, 16, 64, 400][rng.below(5)];
    let to = text.floor_char_boundary(text.len().min(from + rng.below(length) + 1));
    if rng.below(2) == 0 {
        return (from, to.max(from));
    }
    let line = text[..from].rfind('\n').map_or(0, |at| at + 1);
    let end = text[to.max(from)..].find('\n').map_or(text.len(), |length| to.max(from) + length + 1);
    (line, end)
}
