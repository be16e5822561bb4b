//! Steps for the pure operations: one function for each, generated from the op table.

use super::code::StepFn;
use crate::ir::Op;
use crate::ir::op::{self, PureFn};

macro_rules! define_steps {
    ($($(#[$doc:meta])* $variant:ident $name:literal $chapter:ident :: $function:ident;)*) => {
        /// The function that applies an operation of the table to the operands of a step.
        pub(super) fn step_of(which: Op) -> StepFn {
            match which {
                $(Op::$variant => |step, regs, _| {
                    let bits = PureFn::call(&op::$chapter::$function, |i| step.arg(regs, i));
                    step.set(regs, bits);
                },)*
            }
        }
    };
}
op::for_each_op!(define_steps);
