//! The table: `Variant "name" chapter::function;`. Add an operation here and its function in the chapter.

macro_rules! for_each_op {
    ($callback:ident) => {
        $callback! {
            IAdd "iadd" int::iadd;
            ISub "isub" int::isub;
            IMul "imul" int::imul;
            UMulHigh "umul_high" int::umul_high;
            SMulHigh "smul_high" int::smul_high;
            UDiv "udiv" int::udiv;
            SDiv "sdiv" int::sdiv;
            UMod "umod" int::umod;
            SRem "srem" int::srem;
            SMod "smod" int::smod;
            INeg "ineg" int::ineg;
            SAbs "sabs" int::sabs;
            SSign "ssign" int::ssign;
            UMin "umin" int::umin;
            UMax "umax" int::umax;
            SMin "smin" int::smin;
            SMax "smax" int::smax;
            UCarry "ucarry" int::ucarry;
            UBorrow "uborrow" int::uborrow;
            IEq "ieq" int::ieq;
            INe "ine" int::ine;
            ULt "ult" int::ult;
            ULe "ule" int::ule;
            SLt "slt" int::slt;
            SLe "sle" int::sle;

            And "and" bits::and;
            Or "or" bits::or;
            Xor "xor" bits::xor;
            Not "not" bits::not;
            Shl "shl" bits::shl;
            LShr "lshr" bits::lshr;
            AShr "ashr" bits::ashr;
            LAnd "land" bits::land;
            LOr "lor" bits::lor;
            LXor "lxor" bits::lxor;
            LNot "lnot" bits::lnot;

            FAdd "fadd" float::fadd;
            FSub "fsub" float::fsub;
            FMul "fmul" float::fmul;
            FDiv "fdiv" float::fdiv;
            FNeg "fneg" float::fneg;
            FOrdEq "ford_eq" float::ford_eq;
            FOrdLt "ford_lt" float::ford_lt;

            BoolToInt "bool_to_int" convert::bool_to_int;
            FloatBits "float_bits" convert::float_bits;
            FloatFromBits "float_from_bits" convert::float_from_bits;

            Sqrt "sqrt" math::sqrt;
        }
    };
}
pub(crate) use for_each_op;
