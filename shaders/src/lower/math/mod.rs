//! Replaces pure operations that the machine lacks by operations that it has: divisions, bit fields, packing, and the
//! transcendental functions as polynomials within Vulkan's error bounds.
//!
//! A chapter holds the expansions of related operations; `emit` inserts their instructions in place of the operation.
//! The result is scalar IR, so the interpreter can run it and machine code must agree with it bit for bit. Expansions
//! have no branches, except for the reduction of very large angles.

mod angle;
mod arc;
mod divide;
mod emit;
mod exp;
mod field;
mod float;
mod hyperbolic;
mod int;
mod log;
mod long;
mod pack;
mod parts;
mod pow;
mod trig;

use crate::ir::op::{is_basic, works_on_exponents};
use crate::ir::{Kernel, Op, Value};
use emit::Emit;

/// Requirements of the back end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MathOptions {
    /// Keeps `inverse_sqrt` for the machine's estimate and a Newton step; otherwise it becomes a square root and a
    /// division.
    pub fast_inverse_sqrt: bool,
    /// Keeps `significand`, `exponent` and `scale`, and uses them for exponentials and logarithms.
    pub exponents: bool,
}

/// Expands every operation that is not basic, in the whole kernel.
pub fn run(kernel: &mut Kernel, options: MathOptions) {
    let stays = |op| match op {
        Op::InverseSqrt => options.fast_inverse_sqrt,
        _ => is_basic(op) || options.exponents && works_on_exponents(op),
    };
    emit::expand(kernel, |op| !stays(op), expansion, options.exponents);
}

/// Expands the operations of a chapter; `None` for others.
type MathChapter = fn(&mut Emit<'_>, Op, &[Value]) -> Option<Value>;

/// Emits the expansion of an operation; returns the value that replaces its result.
fn expansion(e: &mut Emit<'_>, op: Op, args: &[Value]) -> Value {
    const CHAPTERS: &[MathChapter] = &[
        int::expand,
        divide::expand,
        field::expand,
        float::expand,
        parts::expand,
        pack::expand,
        exp::expand,
        log::expand,
        pow::expand,
        trig::expand,
        arc::expand,
        hyperbolic::expand,
        long::expand,
    ];
    let found = CHAPTERS.iter().find_map(|chapter| chapter(e, op, args));
    found.unwrap_or_else(|| unreachable!("no chapter expands {}", op.name()))
}
