//! The table: `Variant "name" chapter::function;`. A new operation needs an entry here and a function in the chapter.

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
            UClamp "uclamp" int::uclamp;
            SClamp "sclamp" int::sclamp;

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

            BitInsert "bit_insert" field::bit_insert;
            BitUExtract "bit_uextract" field::bit_uextract;
            BitSExtract "bit_sextract" field::bit_sextract;
            BitReverse "bit_reverse" field::bit_reverse;
            BitCount "bit_count" field::bit_count;
            FindLsb "find_lsb" field::find_lsb;
            FindUMsb "find_umsb" field::find_umsb;
            FindSMsb "find_smsb" field::find_smsb;

            FAdd "fadd" float::fadd;
            FSub "fsub" float::fsub;
            FMul "fmul" float::fmul;
            FDiv "fdiv" float::fdiv;
            FNeg "fneg" float::fneg;
            FRem "frem" float::frem;
            FMod "fmod" float::fmod;
            Fma "fma" float::fma;
            FAbs "fabs" float::fabs;
            FSign "fsign" float::fsign;
            FMin "fmin" float::fmin;
            FMax "fmax" float::fmax;
            FClamp "fclamp" float::fclamp;

            FOrdEq "ford_eq" compare::ford_eq;
            FOrdNe "ford_ne" compare::ford_ne;
            FOrdLt "ford_lt" compare::ford_lt;
            FOrdLe "ford_le" compare::ford_le;
            FUnordEq "funord_eq" compare::funord_eq;
            FUnordNe "funord_ne" compare::funord_ne;
            FUnordLt "funord_lt" compare::funord_lt;
            FUnordLe "funord_le" compare::funord_le;
            IsNan "is_nan" compare::is_nan;
            IsInf "is_inf" compare::is_inf;

            RoundEven "round_even" round::round_even;
            Trunc "trunc" round::trunc;
            Floor "floor" round::floor;
            Ceil "ceil" round::ceil;
            Fract "fract" round::fract;
            ModfFract "modf_fract" round::modf_fract;
            FrexpSignificand "frexp_significand" round::frexp_significand;
            FrexpExponent "frexp_exponent" round::frexp_exponent;
            Ldexp "ldexp" round::ldexp;
            Significand "significand" round::significand;
            Exponent "exponent" round::exponent;
            Scale "scale" round::scale;

            BoolToInt "bool_to_int" convert::bool_to_int;
            FloatBits "float_bits" convert::float_bits;
            FloatFromBits "float_from_bits" convert::float_from_bits;
            FloatToUInt "float_to_uint" convert::float_to_uint;
            FloatToSInt "float_to_sint" convert::float_to_sint;
            FloorToSInt "floor_to_sint" convert::floor_to_sint;
            RoundToSInt "round_to_sint" convert::round_to_sint;
            UIntToFloat "uint_to_float" convert::uint_to_float;
            SIntToFloat "sint_to_float" convert::sint_to_float;
            QuantizeF16 "quantize_f16" convert::quantize_f16;
            RoundHalf "round_half" convert::round_half;
            HalfBits "half_bits" convert::half_bits;
            HalfFromBits "half_from_bits" convert::half_from_bits;

            PackSnorm8 "pack_snorm8" pack::pack_snorm8;
            PackSnorm16 "pack_snorm16" pack::pack_snorm16;
            PackUnorm8 "pack_unorm8" pack::pack_unorm8;
            PackUnorm16 "pack_unorm16" pack::pack_unorm16;
            UnpackSnorm8 "unpack_snorm8" pack::unpack_snorm8;
            UnpackSnorm16 "unpack_snorm16" pack::unpack_snorm16;
            UnpackUnorm8 "unpack_unorm8" pack::unpack_unorm8;
            UnpackUnorm16 "unpack_unorm16" pack::unpack_unorm16;

            BytesEven "bytes_even" packed::bytes_even;
            BytesOdd "bytes_odd" packed::bytes_odd;
            ByteProducts "byte_products" packed::byte_products;
            HalvesScale "halves_scale" packed::halves_scale;
            HalvesMulHigh "halves_mul_high" packed::halves_mul_high;
            HalfFloat "half_float" packed::half_float;
            HalvesAdd "halves_add" packed::halves_add;
            HalvesSub "halves_sub" packed::halves_sub;

            Sqrt "sqrt" math::sqrt;
            InverseSqrt "inverse_sqrt" math::inverse_sqrt;
            Exp "exp" math::exp;
            Exp2 "exp2" math::exp2;
            Log "log" math::log;
            Log2 "log2" math::log2;
            Pow "pow" math::pow;
            FMix "fmix" math::fmix;
            Step "step" math::step;
            SmoothStep "smoothstep" math::smoothstep;

            Sin "sin" trig::sin;
            Cos "cos" trig::cos;
            Tan "tan" trig::tan;
            Asin "asin" trig::asin;
            Acos "acos" trig::acos;
            Atan "atan" trig::atan;
            Sinh "sinh" trig::sinh;
            Cosh "cosh" trig::cosh;
            Tanh "tanh" trig::tanh;
            Asinh "asinh" trig::asinh;
            Acosh "acosh" trig::acosh;
            Atanh "atanh" trig::atanh;
            Atan2 "atan2" trig::atan2;

            UDiv64Low "udiv64_low" long::udiv64_low;
            UDiv64High "udiv64_high" long::udiv64_high;
            UMod64Low "umod64_low" long::umod64_low;
            UMod64High "umod64_high" long::umod64_high;

            DAddLow "dadd_low" double::dadd_low;
            DAddHigh "dadd_high" double::dadd_high;
            DSubLow "dsub_low" double::dsub_low;
            DSubHigh "dsub_high" double::dsub_high;
            DMulLow "dmul_low" double::dmul_low;
            DMulHigh "dmul_high" double::dmul_high;
            DDivLow "ddiv_low" double::ddiv_low;
            DDivHigh "ddiv_high" double::ddiv_high;
            DSqrtLow "dsqrt_low" double::dsqrt_low;
            DSqrtHigh "dsqrt_high" double::dsqrt_high;
            DTruncLow "dtrunc_low" double::dtrunc_low;
            DTruncHigh "dtrunc_high" double::dtrunc_high;
            DFloorLow "dfloor_low" double::dfloor_low;
            DFloorHigh "dfloor_high" double::dfloor_high;
            DCeilLow "dceil_low" double::dceil_low;
            DCeilHigh "dceil_high" double::dceil_high;
            DRoundEvenLow "dround_even_low" double::dround_even_low;
            DRoundEvenHigh "dround_even_high" double::dround_even_high;
            DEq "deq" double::deq;
            DLt "dlt" double::dlt;
            DLe "dle" double::dle;
            DFromFloatLow "dfrom_float_low" double::dfrom_float_low;
            DFromFloatHigh "dfrom_float_high" double::dfrom_float_high;
            DToFloat "dto_float" double::dto_float;
        }
    };
}
pub(crate) use for_each_op;
