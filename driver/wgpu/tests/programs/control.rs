//! Control flow: loops, switches, calls, short circuits.

use crate::{Program, each, word};

fn collatz(mut n: u32) -> u32 {
    let mut steps = 0;
    while n > 1 {
        n = if n.is_multiple_of(2) { n / 2 } else { 3 * n + 1 };
        steps += 1;
    }
    steps
}

fn mandelbrot(i: u32) -> u32 {
    let (cx, cy) = ((i % 8) as f32 * 0.375 - 2.0, (i / 8) as f32 * 0.25 - 1.0);
    let (mut x, mut y, mut n) = (0f32, 0f32, 0);
    while n < 50 && x * x + y * y <= 4.0 {
        (x, y) = (x * x - y * y + cx, 2.0 * x * y + cy);
        n += 1;
    }
    n
}

pub(crate) fn programs() -> Vec<Program> {
    const U: [&str; 2] = ["u32", "u32"];
    vec![
        each("loops of different lengths", U, "steps(i + 1u)\n; } \n
            fn steps(start: u32) -> u32 { var n = start; var c = 0u;
                loop { if n <= 1u { break; } if n % 2u == 0u { n /= 2u; } else { n = 3u * n + 1u; } c++; } return c",
            word, |i, _| collatz(i + 1)),
        each("a switch with shared and default cases", U, "way(x)\n; } \n
            fn way(x: u32) -> u32 { switch x % 6u { case 0u, 3u: { return 10u; } case 1u: { return x; } default: { return x + 1u; } }",
            word, |_, x| match x % 6 { 0 | 3 => 10, 1 => x, _ => x.wrapping_add(1) }),
        each("continue", U, "odd(i)\n; } \n
            fn odd(n: u32) -> u32 { var sum = 0u; for (var k = 0u; k < n; k++) { if k % 2u == 0u { continue; } sum += k; } return sum",
            word, |i, _| (0..i).filter(|k| k % 2 == 1).sum()),
        each("break if at the end of a loop", U, "power(x % 100u)\n; } \n
            fn power(x: u32) -> u32 { var p = 1u; loop { continuing { p *= 2u; break if p > x; } } return p",
            word, |_, x| (x % 100 + 1).next_power_of_two().max(2)),
        each("nested loops with an outer exit", U, "prime(i + 2u)\n; } \n
            fn prime(n: u32) -> u32 { var found = 0u; var at = 1u;
                while found < n { at++; var is = true; for (var d = 2u; d * d <= at; d++) { if at % d == 0u { is = false; break; } }
                    if is { found++; } } return at",
            word, |i, _| (2..).filter(|n: &u32| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0)).nth(i as usize + 1).unwrap()),
        each("short circuits do not evaluate the right side", U, "count(x)\n; } \n
            var<private> calls: u32; fn called() -> bool { calls++; return true; }
            fn count(x: u32) -> u32 { let a = x % 2u == 0u && called(); let b = x % 3u == 0u || called();
                return calls * 4u + u32(a) * 2u + u32(b)",
            word, |_, x| {
                let (even, third) = (x % 2 == 0, x % 3 == 0);
                4 * (u32::from(even) + u32::from(!third)) + 2 * u32::from(even) + 1
            }),
        each("early returns", U, "first(x)\n; } \n
            fn first(x: u32) -> u32 { for (var bit = 0u; bit < 32u; bit++) { if (x >> bit & 1u) == 1u { return bit; } } return 99u",
            word, |_, x| if x == 0 { 99 } else { x.trailing_zeros() }),
        each("the same floats as Rust", U, "mandelbrot(i)\n; } \n
            fn mandelbrot(i: u32) -> u32 { let c = vec2(f32(i % 8u) * 0.375 - 2.0, f32(i / 8u) * 0.25 - 1.0); var z = vec2(0.0); var n = 0u;
                while n < 50u && z.x * z.x + z.y * z.y <= 4.0 { z = vec2(z.x * z.x - z.y * z.y + c.x, 2.0 * z.x * z.y + c.y); n++; } return n",
            word, |i, _| mandelbrot(i)),
    ]
}
