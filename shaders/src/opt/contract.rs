//! Contraction: a product and a sum become one fused multiply-add, which rounds once. The only pass that changes
//! results.
//!
//! A product is contracted if all its uses are sums that can be fused with it, so that the product itself is dead
//! afterwards, and if neither it nor the sum is marked `no_contraction`. Both must be in the same loop: a product that
//! LICM moved out of a loop is not recomputed inside.

use cranelift_entity::{EntitySet, SecondaryMap};
use smallvec::SmallVec;

use super::dce;
use super::editor::{Editor, Replacement, RewriteRules, edit};
use crate::analysis::{Dominators, Loops};
use crate::ir::{Inst, InstData, Kernel, Op, Value, ValueDef};

/// Runs the pass.
pub(super) fn run(kernel: &mut Kernel) {
    let chosen = choose(kernel);
    if !chosen.is_empty() {
        edit(kernel, &mut Fuse { chosen });
        dce::run(kernel);
    }
}

/// A product that can be fused with a sum, as the sum's operand.
#[derive(Clone, Copy)]
struct Product {
    /// The sum's operand: the `fmul`, or its negation.
    operand: Value,
    /// The `fmul`.
    value: Value,
    /// Whether the operand is an `fneg` of the product.
    negated: bool,
}

/// The product that an operand is, looking through one negation.
fn product(kernel: &Kernel, operand: Value) -> Option<Product> {
    let args = |value: Value, wanted: Op| match kernel.values[value] {
        ValueDef::Result { inst, .. } => match &kernel.insts[inst] {
            InstData::Pure { op, args } if *op == wanted && !kernel.no_contraction.contains(inst) => Some(args),
            _ => None,
        },
        ValueDef::Param { .. } => None,
    };
    if args(operand, Op::FMul).is_some() {
        return Some(Product { operand, value: operand, negated: false });
    }
    let inner = args(operand, Op::FNeg)?[0];
    args(inner, Op::FMul).map(|_| Product { operand, value: inner, negated: true })
}

/// Products that are fused with every sum that uses them.
fn choose(kernel: &Kernel) -> EntitySet<Value> {
    let loops = Loops::new(kernel, &Dominators::new(kernel));
    // Uses of each product, sums that would fuse with it, and the loop that it is in.
    let mut uses: SecondaryMap<Value, u32> = SecondaryMap::new();
    let mut loops_of: SecondaryMap<Value, Option<usize>> = SecondaryMap::new();
    let mut sums: Vec<(SmallVec<[Product; 2]>, Option<usize>)> = Vec::new();
    for &block in &kernel.layout {
        for &inst in &kernel.blocks[block].insts {
            kernel.insts[inst].for_each_use(|value| uses[value] += 1);
            if let Some(result) = kernel.results[inst] {
                loops_of[result] = loops.of(block);
            }
            if let Some(terms) = terms(kernel, inst) {
                let products: SmallVec<_> = terms.iter().filter_map(|&term| product(kernel, term)).collect();
                if !products.is_empty() {
                    sums.push((products, loops.of(block)));
                }
            }
        }
    }
    // A sum fuses with one product: the first with no other use, else the first.
    let mut merged: SecondaryMap<Value, u32> = SecondaryMap::new();
    for (products, number) in &sums {
        let fits =
            |product: &&Product| loops_of[product.value] == *number && !(product.negated && uses[product.operand] > 1);
        let mut candidates = products.iter().filter(fits);
        let first = candidates.clone().next();
        if let Some(product) = candidates.find(|product| uses[product.value] == 1).or(first) {
            merged[product.value] += 1;
        }
    }
    let all = sums.iter().flat_map(|(products, _)| products.iter().map(|product| product.value));
    let mut chosen = EntitySet::new();
    chosen.extend(all.filter(|&value| merged[value] == uses[value]));
    chosen
}

/// The terms of a sum or difference that may be contracted.
fn terms(kernel: &Kernel, inst: Inst) -> Option<[Value; 2]> {
    match &kernel.insts[inst] {
        InstData::Pure { op: Op::FAdd | Op::FSub, args } if !kernel.no_contraction.contains(inst) => {
            args[..].try_into().ok()
        }
        _ => None,
    }
}

struct Fuse {
    chosen: EntitySet<Value>,
}

impl RewriteRules for Fuse {
    fn rewrite(&mut self, e: &mut Editor<'_>, data: &InstData) -> Option<Replacement> {
        let &InstData::Pure { op: op @ (Op::FAdd | Op::FSub), ref args } = data else { return None };
        if e.is_precise() {
            return None;
        }
        let mut found: SmallVec<[(Product, Value, bool); 2]> = SmallVec::new();
        for (position, other) in [(0, 1), (1, 0)] {
            let product = product(e.kernel(), args[position]).filter(|product| self.chosen.contains(product.value));
            found.extend(product.map(|product| (product, args[other], position == 1)));
        }
        let &(product, other, is_second) = found.first()?;
        let [a, b] = e.args(product.value, Op::FMul)?;
        // In a difference the second term is negated, whether it is the product or the other term.
        let is_difference = op == Op::FSub;
        let a = if product.negated != (is_difference && is_second) { e.pure(Op::FNeg, [a]) } else { a };
        let other = if is_difference && !is_second { e.pure(Op::FNeg, [other]) } else { other };
        e.becomes(Op::Fma, [a, b, other])
    }
}
