//! Optimisation: scalar IR to better scalar IR, one file per pass, their order here.
//!
//! A pass keeps what [`crate::ir::verify`] asks for, the layout's reverse postorder and the merge annotations included.
//! It may not change what a kernel computes, except for passes that say so (contraction).

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
mod reductions;
mod unroll;

use crate::ir::Kernel;
pub(crate) use licm::Clobbers;

/// One pass.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Name in timings and dumps.
    pub name: &'static str,
    /// Changes the kernel in place.
    pub run: fn(&mut Kernel),
}

/// Of two equal computations keeps the one that dominates the other.
pub const GVN: Pass = Pass { name: "gvn", run: gvn::run };
/// Removes what nobody needs.
pub const DCE: Pass = Pass { name: "dce", run: dce::run };
/// Simplifies single instructions by algebra.
pub const PEEPHOLE: Pass = Pass { name: "peephole", run: peephole::run };
/// Makes small selections choices between values.
pub const FLATTEN: Pass = Pass { name: "flatten", run: if_conversion::run };
/// Moves out of loops what does not change in them.
pub const LICM: Pass = Pass { name: "licm", run: licm::run };
/// Uses what is known about the ranges of integers, and orders the sums of offsets.
pub const OFFSETS: Pass = Pass { name: "offsets", run: range_simplify::run };
/// Straightens control flow.
pub const CFG: Pass = Pass { name: "cfg", run: cfg::run };
/// Makes words of private variables values.
pub const VARIABLES: Pass = Pass { name: "variables", run: mem2reg::run };
/// Makes tables of private variables that always hold the same.
pub const TABLES: Pass = Pass { name: "tables", run: constant_arrays::run };
/// Writes loops of few trips out.
pub const UNROLL: Pass = Pass { name: "unroll", run: unroll::run };
/// Does once what both sides of a branch begin with.
pub const MELD: Pass = Pass { name: "meld", run: meld::run };
/// Lets a subgroup put together sums once, instead of summing up what it put together.
pub const REDUCTIONS: Pass = Pass { name: "reductions", run: reductions::run };
/// Loads what is known not again.
pub const FORWARD: Pass = Pass { name: "forward", run: forward::run };

/// Fuses products with sums. Changes results, so it is not among [`PASSES`].
pub const CONTRACT: Pass = Pass { name: "contract", run: contract::run };

/// All passes, in the order in which they run. After the last that decides branches, control flow is straightened again.
pub const PASSES: &[Pass] = &[
    CFG, VARIABLES, TABLES, CFG, PEEPHOLE, GVN, MELD, UNROLL, REDUCTIONS, FORWARD, FLATTEN, CFG, OFFSETS, PEEPHOLE,
    GVN, PEEPHOLE, CFG, LICM, FLATTEN, CFG, PEEPHOLE, DCE,
];

/// What runs once more after [`UNROLL`], if it found a loop: counters and what they index are constants now.
const UNROLLED: &[Pass] = &[VARIABLES, CFG, PEEPHOLE, GVN];

/// What runs once more after [`MELD`], if it found a loop: sides may begin with the same again.
const MELDED: &[Pass] = &[CFG, MELD];

/// What is worth doing once more after lowering.
pub const CLEANUP: &[Pass] = &[PEEPHOLE, GVN, LICM, DCE];

/// Runs all passes; `after` sees the kernel after each, for timings and dumps.
pub fn optimize(kernel: &mut Kernel, mut after: impl FnMut(&Pass, &Kernel)) {
    let mut run = |pass: &Pass, kernel: &mut Kernel| {
        kernel.work.visit(kernel.size());
        // What has taken too long is left as it is: a kernel all the same.
        if !kernel.work.is_spent() {
            (pass.run)(kernel);
            after(pass, kernel);
        }
    };
    for pass in PASSES {
        let blocks = kernel.blocks.len();
        run(pass, kernel);
        // Trips are copies of blocks, and a loop that was melded has a new one behind it.
        let again = match pass.name {
            _ if kernel.blocks.len() == blocks => &[],
            name if name == UNROLL.name => UNROLLED,
            name if name == MELD.name => MELDED,
            _ => &[],
        };
        again.iter().for_each(|pass| run(pass, kernel));
    }
}
