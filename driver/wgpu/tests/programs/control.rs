//! Control flow: loops, switches, calls, short circuits.

use crate::programs::{Program, each, word};

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

/// The prime number of this index, from 0.
fn prime(index: u32) -> u32 {
    let is_prime = |n: &u32| (2..*n).take_while(|d| d * d <= *n).all(|d| !n.is_multiple_of(d));
    (2..).filter(is_prime).nth(index as usize).unwrap()
}

/// A program whose result is a function of the element and its index.
fn of(name: &'static str, call: &str, function: &str, expected: impl Fn(u32, u32) -> u32) -> Program {
    each(name, ["u32", "u32"], call, word, expected).with(function)
}

pub(crate) fn programs() -> Vec<Program> {
    vec![
        of(
            "loops of different lengths",
            "steps(i + 1u)",
            "fn steps(start: u32) -> u32 {
                var n = start;
                var count = 0u;
                loop {
                    if n <= 1u { break; }
                    if n % 2u == 0u { n /= 2u; } else { n = 3u * n + 1u; }
                    count++;
                }
                return count;
            }",
            |i, _| collatz(i + 1),
        ),
        of(
            "a switch with shared and default cases",
            "way(x)",
            "fn way(x: u32) -> u32 {
                switch x % 6u {
                    case 0u, 3u: { return 10u; }
                    case 1u: { return x; }
                    default: { return x + 1u; }
                }
            }",
            |_, x| match x % 6 {
                0 | 3 => 10,
                1 => x,
                _ => x.wrapping_add(1),
            },
        ),
        of(
            "continue",
            "odd(i)",
            "fn odd(n: u32) -> u32 {
                var sum = 0u;
                for (var k = 0u; k < n; k++) {
                    if k % 2u == 0u { continue; }
                    sum += k;
                }
                return sum;
            }",
            |i, _| (0..i).filter(|k| k % 2 == 1).sum(),
        ),
        of(
            "break if at the end of a loop",
            "power(x % 100u)",
            "fn power(x: u32) -> u32 {
                var p = 1u;
                loop { continuing { p *= 2u; break if p > x; } }
                return p;
            }",
            |_, x| (x % 100 + 1).next_power_of_two().max(2),
        ),
        of(
            "nested loops with an outer exit",
            "prime(i + 2u)",
            "fn prime(n: u32) -> u32 {
                var found = 0u;
                var at = 1u;
                while found < n {
                    at++;
                    var is_prime = true;
                    for (var d = 2u; d * d <= at; d++) {
                        if at % d == 0u { is_prime = false; break; }
                    }
                    if is_prime { found++; }
                }
                return at;
            }",
            |i, _| prime(i + 1),
        ),
        of(
            "short circuits do not evaluate the right side",
            "count(x)",
            "var<private> calls: u32;
            fn called() -> bool { calls++; return true; }
            fn count(x: u32) -> u32 {
                let a = x % 2u == 0u && called();
                let b = x % 3u == 0u || called();
                return calls * 4u + u32(a) * 2u + u32(b);
            }",
            |_, x| {
                let (even, third) = (x % 2 == 0, x % 3 == 0);
                4 * (u32::from(even) + u32::from(!third)) + 2 * u32::from(even) + 1
            },
        ),
        of(
            "early returns",
            "first(x)",
            "fn first(x: u32) -> u32 {
                for (var bit = 0u; bit < 32u; bit++) {
                    if (x >> bit & 1u) == 1u { return bit; }
                }
                return 99u;
            }",
            |_, x| if x == 0 { 99 } else { x.trailing_zeros() },
        ),
        of(
            "the same floats as Rust",
            "mandelbrot(i)",
            "fn mandelbrot(i: u32) -> u32 {
                let c = vec2(f32(i % 8u) * 0.375 - 2.0, f32(i / 8u) * 0.25 - 1.0);
                var z = vec2(0.0);
                var n = 0u;
                while n < 50u && z.x * z.x + z.y * z.y <= 4.0 {
                    z = vec2(z.x * z.x - z.y * z.y + c.x, 2.0 * z.x * z.y + c.y);
                    n++;
                }
                return n;
            }",
            |i, _| mandelbrot(i),
        ),
    ]
}
