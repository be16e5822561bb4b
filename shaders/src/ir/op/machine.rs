//! Which operations back ends implement. Lowering replaces all others by these, the SIMD verifier rejects all others,
//! and selection has code for each.

use super::Op;

/// Whether back ends may implement the operation with the exact bits of its function in this folder: AVX-512 does.
pub fn works_on_exponents(op: Op) -> bool {
    matches!(op, Op::Significand | Op::Exponent | Op::Scale)
}

/// Whether back ends implement the operation with the exact bits of its function in this folder (`inverse_sqrt`: within
/// 2 units in the last place).
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
