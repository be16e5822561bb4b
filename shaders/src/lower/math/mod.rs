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

/// Whether back ends may implement the operation with the exact bits of its function in `ir/op/`: AVX-512 does.
pub fn works_on_exponents(op: Op) -> bool {
    matches!(op, Op::Significand | Op::Exponent | Op::Scale)
}

/// Whether back ends implement the operation with the exact bits of its function in `ir/op/` (`inverse_sqrt`: within 2
/// units in the last place).
pub fn is_basic(op: Op) -> bool {
    is_basic_integer(op) || is_basic_float(op) || works_on_doubles(op) || works_on_subwords(op)
}

/// Whether the operation has double operands, as pairs of words: back ends implement it only for vectors.
pub fn works_on_doubles(op: Op) -> bool {
    use Op::*;
    let arithmetic = matches!(op, DAddLow | DAddHigh | DSubLow | DSubHigh | DMulLow | DMulHigh | DDivLow | DDivHigh);
    let roots = matches!(op, DSqrtLow | DSqrtHigh);
    let rounding = matches!(
        op,
        DTruncLow | DTruncHigh | DFloorLow | DFloorHigh | DCeilLow | DCeilHigh | DRoundEvenLow | DRoundEvenHigh
    );
    arithmetic || roots || rounding || matches!(op, DEq | DLt | DLe | DFromFloatLow | DFromFloatHigh | DToFloat)
}

/// Whether the operation has sub-word operands (bytes or 16-bit halves): back ends implement it only for vectors.
pub fn works_on_subwords(op: Op) -> bool {
    use Op::*;
    matches!(op, BytesEven | BytesOdd | ByteProducts | HalfFloat | HalvesScale | HalvesMulHigh | HalvesAdd | HalvesSub)
}

fn is_basic_integer(op: Op) -> bool {
    use Op::*;
    let arithmetic = matches!(op, IAdd | ISub | IMul | UMulHigh | SMulHigh | INeg | SAbs | UMin | UMax | SMin | SMax);
    let comparison = matches!(op, IEq | INe | ULt | ULe | SLt | SLe);
    let bits = matches!(op, And | Or | Xor | Not | Shl | LShr | AShr | BitCount | FindUMsb);
    let bools = matches!(op, LAnd | LOr | LXor | LNot | BoolToInt);
    arithmetic || comparison || bits || bools
}

fn is_basic_float(op: Op) -> bool {
    use Op::*;
    let arithmetic = matches!(op, FAdd | FSub | FMul | FDiv | FNeg | Fma | FAbs | FMin | FMax | Sqrt | InverseSqrt);
    let ordered = matches!(op, FOrdEq | FOrdNe | FOrdLt | FOrdLe | IsNan | IsInf);
    let unordered = matches!(op, FUnordEq | FUnordNe | FUnordLt | FUnordLe);
    let rounding = matches!(op, RoundEven | Trunc | Floor | Ceil);
    let integers = matches!(op, FloatToSInt | FloatToUInt | FloorToSInt | RoundToSInt | SIntToFloat | UIntToFloat);
    let bits = matches!(op, FloatBits | FloatFromBits | HalfBits | HalfFromBits | RoundHalf);
    arithmetic || ordered || unordered || rounding || integers || bits
}

/// Expands the operations of a chapter; `None` for others.
type Chapter = fn(&mut Emit<'_>, Op, &[Value]) -> Option<Value>;

/// Emits the expansion of an operation; returns the value that replaces its result.
fn expansion(e: &mut Emit<'_>, op: Op, args: &[Value]) -> Value {
    const CHAPTERS: &[Chapter] = &[
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
