//! Optimisation passes on the scalar IR: one module per pass, and their order.
//!
//! A pass preserves everything that [`crate::ir::verify`] checks, including reverse postorder of the layout and merge
//! annotations. It does not change results, except where documented (contraction).

mod aliases;
mod cfg;
mod constant_arrays;
mod contract;
mod dce;
mod editor;
mod forward;
mod gvn;
mod if_conversion;
mod licm;
mod meld;
mod mem2reg;
mod peephole;
mod range_simplify;
mod unroll;

use crate::ir::Kernel;

/// One pass.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Name in timings and dumps.
    pub name: &'static str,
    /// Changes the kernel in place.
    pub run: fn(&mut Kernel),
}

impl Pass {
    /// Runs the pass. The result is verified (`VERIFIES`), so that a pass that breaks a rule is named.
    pub fn apply(&self, kernel: &mut Kernel) {
        (self.run)(kernel);
        debug_verify(self.name, kernel);
    }
}

/// Panics with the name of the pass that made an invalid kernel, in builds that verify.
pub(crate) fn debug_verify(pass: &str, kernel: &Kernel) {
    if crate::ir::VERIFIES
        && let Err(error) = crate::ir::verify(kernel)
    {
        panic!("after {pass}: {error}\n{kernel}");
    }
}

/// Global value numbering.
pub const GVN: Pass = Pass { name: "gvn", run: gvn::run };
/// Dead code elimination.
pub const DCE: Pass = Pass { name: "dce", run: dce::run };
/// Algebraic simplification of single instructions.
pub const PEEPHOLE: Pass = Pass { name: "peephole", run: peephole::run };
/// Replaces short selections by selects.
pub const IF_CONVERSION: Pass = Pass { name: "if_conversion", run: if_conversion::run };
/// Loop-invariant code motion.
pub const LICM: Pass = Pass { name: "licm", run: licm::run };
/// Simplification by integer ranges, and reassociation of offset sums.
pub const RANGE_SIMPLIFY: Pass = Pass { name: "range_simplify", run: range_simplify::run };
/// Control flow graph simplification.
pub const CFG: Pass = Pass { name: "cfg", run: cfg::run };
/// Promotes words of private variables to SSA values.
pub const MEM2REG: Pass = Pass { name: "mem2reg", run: mem2reg::run };
/// Moves private variables with constant contents to constant memory.
pub const CONSTANT_ARRAYS: Pass = Pass { name: "constant_arrays", run: constant_arrays::run };
/// Fully unrolls loops with small trip counts.
pub const UNROLL: Pass = Pass { name: "unroll", run: unroll::run };
/// Control-flow melding: executes common code at the start of both sides of a branch once.
pub const MELD: Pass = Pass { name: "meld", run: meld::run };
/// Store-to-load forwarding and dead store elimination.
pub const FORWARD: Pass = Pass { name: "forward", run: forward::run };

/// Fuses products with sums. Changes results, so it is not among [`PASSES`].
pub const CONTRACT: Pass = Pass { name: "contract", run: contract::run };

/// All passes, in order. [`CFG`] runs again after the last pass that makes branch conditions constant.
pub const PASSES: &[Pass] = &[
    CFG,
    MEM2REG,
    CONSTANT_ARRAYS,
    CFG,
    PEEPHOLE,
    GVN,
    MELD,
    UNROLL,
    FORWARD,
    IF_CONVERSION,
    CFG,
    RANGE_SIMPLIFY,
    PEEPHOLE,
    GVN,
    PEEPHOLE,
    CFG,
    LICM,
    IF_CONVERSION,
    CFG,
    PEEPHOLE,
    DCE,
];

/// Passes to repeat after [`UNROLL`] if it unrolled a loop: counters, and indices computed from them, are constants
/// now.
const UNROLLED: &[Pass] = &[MEM2REG, CFG, PEEPHOLE, GVN];

/// Passes to repeat after [`MELD`] if it melded a loop: the sides may start with equal code again.
const MELDED: &[Pass] = &[CFG, MELD];

/// Passes after which places that are equal have equal values, as far as value numbering shows it.
pub const NUMBERING: &[Pass] = &[CFG, MEM2REG, PEEPHOLE, GVN];

/// Passes to repeat after lowering.
pub const CLEANUP: &[Pass] = &[PEEPHOLE, GVN, LICM, DCE];

/// Runs these passes.
pub(crate) fn run_all(passes: &[Pass], kernel: &mut Kernel) {
    passes.iter().for_each(|pass| run_within_budget(pass, kernel, &mut |_, _| {}));
}

/// Once the compile-time budget is spent, passes are skipped; the kernel is valid anyway.
fn run_within_budget(pass: &Pass, kernel: &mut Kernel, after: &mut impl FnMut(&Pass, &Kernel)) {
    kernel.work.visit(kernel.size());
    if !kernel.work.is_spent() {
        pass.apply(kernel);
        after(pass, kernel);
    }
}

/// Runs all passes; `after` is called with the kernel after each, for timings and dumps.
pub fn optimize(kernel: &mut Kernel, mut after: impl FnMut(&Pass, &Kernel)) {
    let mut run = |pass: &Pass, kernel: &mut Kernel| run_within_budget(pass, kernel, &mut after);
    for pass in PASSES {
        let blocks = kernel.blocks.len();
        run(pass, kernel);
        // Unrolling adds copies of blocks, and melding a loop adds a block after it: a count that grew means success.
        let again = match pass.name {
            _ if kernel.blocks.len() == blocks => &[],
            name if name == UNROLL.name => UNROLLED,
            name if name == MELD.name => MELDED,
            _ => &[],
        };
        again.iter().for_each(|pass| run(pass, kernel));
    }
}
