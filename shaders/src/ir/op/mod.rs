//! Pure operations: one table, and one small Rust function per operation that defines it.
//!
//! `table.rs` lists every operation once. Its name in the text form, the signature that the verifier checks, the
//! constant folder and the interpreter are all generated from that list and from the function of each entry, so they
//! cannot disagree. The code-generating back ends are tested against the same functions.

pub mod bits;
pub mod compare;
pub mod convert;
pub mod double;
pub mod field;
pub mod float;
pub mod int;
pub mod long;
mod machine;
pub mod math;
pub mod pack;
pub mod packed;
pub mod round;
mod table;
pub mod trig;

use super::{ScalarValue, Type};
pub use machine::{is_basic, works_on_doubles, works_on_exponents, works_on_subwords};

/// Operands of an operation, at most.
pub const MAX_ARGS: usize = 4;

/// Registers that a step of the interpreter reads, at most: those of a 64-bit exchange.
pub const MAX_STEP_ARGS: usize = 6;

/// A Rust function of scalars as an operation on registers.
pub trait PureFn<Args> {
    /// Types of the operands.
    fn params(&self) -> &'static [Type];
    /// Type of the result.
    fn result(&self) -> Type;
    /// Applies the function to the registers that `get` yields by operand number.
    fn call(&self, get: impl Fn(usize) -> u64) -> u64;
}

macro_rules! pure_fn {
    ($($param:ident $index:tt),+) => {
        impl<F, R: ScalarValue, $($param: ScalarValue),+> PureFn<($($param,)+)> for F
        where
            F: Fn($($param),+) -> R,
        {
            fn params(&self) -> &'static [Type] {
                &[$($param::TYPE),+]
            }
            fn result(&self) -> Type {
                R::TYPE
            }
            #[inline(always)]
            fn call(&self, get: impl Fn(usize) -> u64) -> u64 {
                self($($param::from_bits(get($index))),+).to_bits()
            }
        }
    };
}
pure_fn!(A 0);
pure_fn!(A 0, B 1);
pure_fn!(A 0, B 1, C 2);
pure_fn!(A 0, B 1, C 2, D 3);

macro_rules! define_op {
    ($($(#[$doc:meta])* $variant:ident $name:literal $chapter:ident :: $function:ident;)*) => {
        /// A pure operation, defined by the function of the same name in its module.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Op {
            $(#[doc = concat!("`", $name, "`: [`", stringify!($chapter), "::", stringify!($function), "`]")] $variant,)*
        }

        impl Op {
            /// Every operation, in the table's order.
            pub const ALL: &[Op] = &[$(Op::$variant),*];

            /// The name in the text form.
            pub fn name(self) -> &'static str {
                match self {
                    $(Op::$variant => $name,)*
                }
            }

            /// Types of the operands.
            pub fn params(self) -> &'static [Type] {
                match self {
                    $(Op::$variant => PureFn::params(&$chapter::$function),)*
                }
            }

            /// Type of the result.
            pub fn result(self) -> Type {
                match self {
                    $(Op::$variant => PureFn::result(&$chapter::$function),)*
                }
            }

            /// The result of the operation: used by the constant folder, and the reference for all back ends. `args`
            /// has one register for each type of [`Op::params`].
            pub fn fold(self, args: &[u64]) -> u64 {
                match self {
                    $(Op::$variant => PureFn::call(&$chapter::$function, |i| args[i]),)*
                }
            }
        }
    };
}
table::for_each_op!(define_op);

/// Passes the whole table to a macro: `for_each_op!(callback)` calls it with `Variant "name" chapter::function;`
/// entries.
pub(crate) use table::for_each_op;

impl Op {
    /// The operation with this name in the text form.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|op| op.name() == name)
    }

    /// Whether swapping the first two operands preserves the result's bits. Not for `fmin` and `fmax`, which return the
    /// first of two zeros.
    pub fn is_commutative(self) -> bool {
        use Op::*;
        let integers =
            matches!(self, IAdd | IMul | UMulHigh | SMulHigh | UMin | UMax | SMin | SMax | UCarry | IEq | INe);
        let bits = matches!(self, And | Or | Xor | LAnd | LOr | LXor);
        integers || bits || matches!(self, FAdd | FMul | Fma | FOrdEq | FOrdNe | FUnordEq | FUnordNe)
    }
}
