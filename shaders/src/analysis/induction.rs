//! Induction variables: loop-carried values to which every iteration adds the same constant, and the trip counts that
//! follow from comparing them with a limit.

use smallvec::SmallVec;

use super::Predecessors;
use crate::ir::{Block, InstData, Kernel, Op, Value};

/// Values of a conjunction that are looked at, at most.
const MAX_CONJUNCTS: usize = 32;

/// A basic induction variable: `param` is `param + step` in the next iteration, modulo 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Induction {
    /// The header's parameter.
    pub param: Value,
    /// Its index among the parameters of the header.
    pub index: usize,
    /// What an iteration adds.
    pub step: u32,
    header: Block,
    latch: Block,
}

impl Induction {
    /// The induction variables of a loop with one latch, in the order of the header's parameters.
    pub fn all(kernel: &Kernel, header: Block, latch: Block) -> SmallVec<[Self; 4]> {
        let back_edge = kernel.targets(latch).into_iter().find(|call| call.block == header);
        let args = back_edge.map(|call| &call.args[..]).unwrap_or_default();
        let params = kernel.blocks[header].params.iter().zip(args).enumerate();
        let step_of = |param: Value, next: Value| sum(kernel, next).filter(|&(from, _)| from == param);
        params
            .filter_map(|(index, (&param, &next))| {
                step_of(param, next).map(|(_, step)| Self { param, index, step, header, latch })
            })
            .collect()
    }

    /// The constant with which the loop starts, the same on all entry edges.
    pub fn start(&self, kernel: &Kernel, predecessors: &Predecessors) -> Option<u32> {
        let mut start = None;
        for &block in predecessors[self.header].iter().filter(|&&block| block != self.latch) {
            for call in kernel.targets(block).into_iter().filter(|call| call.block == self.header) {
                let bits = kernel.constant(*call.args.get(self.index)?)? as u32;
                if start.is_some_and(|other| other != bits) {
                    return None;
                }
                start = Some(bits);
            }
        }
        start
    }
}

/// The operands of an addition.
pub fn terms(kernel: &Kernel, value: Value) -> Option<[Value; 2]> {
    binary(kernel, value, Op::IAdd)
}

/// A value and the constant that is added to it.
pub fn sum(kernel: &Kernel, value: Value) -> Option<(Value, u32)> {
    let [a, b] = terms(kernel, value)?;
    let constant = |value| kernel.constant(value).map(|bits| bits as u32);
    constant(b).map(|bits| (a, bits)).or_else(|| constant(a).map(|bits| (b, bits)))
}

/// The operands of an operation with two.
fn binary(kernel: &Kernel, value: Value, wanted: Op) -> Option<[Value; 2]> {
    match kernel.definition(value)? {
        InstData::Pure { op, args } if *op == wanted => args[..].try_into().ok(),
        _ => None,
    }
}

/// Upper bound of the number of tests `variable + offset < limit`, or of a conjunction with such a test, that a loop
/// passes before one fails; the limit is a constant. Of a conjunction the first 32 values count.
pub fn max_trip_count(
    kernel: &Kernel,
    predecessors: &Predecessors,
    inductions: &[Induction],
    condition: Value,
) -> Option<u64> {
    let mut conjuncts: SmallVec<[Value; 8]> = SmallVec::from_slice(&[condition]);
    let mut least = None;
    let mut next = 0;
    while let Some(&conjunct) = conjuncts.get(next) {
        next += 1;
        match binary(kernel, conjunct, Op::LAnd) {
            // Conjunctions may share their operands, as often as there are paths to them.
            Some(sides) => {
                for side in sides {
                    if conjuncts.len() < MAX_CONJUNCTS && !conjuncts.contains(&side) {
                        conjuncts.push(side);
                    }
                }
            }
            None => {
                let passed = max_passes(kernel, predecessors, inductions, conjunct);
                least = passed.map_or(least, |passed| Some(least.map_or(passed, |least: u64| least.min(passed))));
            }
        }
    }
    least
}

/// Upper bound of the number of times that a loop passes one test `variable + offset < limit`.
fn max_passes(kernel: &Kernel, predecessors: &Predecessors, inductions: &[Induction], condition: Value) -> Option<u64> {
    let (signed, [compared, limit]) = match binary(kernel, condition, Op::ULt) {
        Some(args) => (false, args),
        None => (true, binary(kernel, condition, Op::SLt)?),
    };
    let limit = kernel.constant(limit)? as u32;
    let (variable, offset) = sum(kernel, compared).unwrap_or((compared, 0));
    let induction = inductions.iter().find(|induction| induction.param == variable)?;
    // The compared value exceeds the limit by one step at most, so it does not wrap.
    if induction.step == 0 || i32::try_from(limit.checked_add(induction.step)?).is_err() {
        return None;
    }
    // A signed one must not start negative: it could take 2^31 iterations to reach the limit.
    if signed && i32::try_from(induction.start(kernel, predecessors)?.checked_add(offset)?).is_err() {
        return None;
    }
    Some(u64::from(limit / induction.step) + 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{Dominators, Loops, predecessors};

    /// The induction variables of a loop with that start, step, comparison and limit, and its trip count.
    fn of(start: u32, step: &str, compare: &str, limit: u32) -> (SmallVec<[Induction; 4]>, Option<u32>, Option<u64>) {
        let text = format!(
            "kernel \"test\" 8, 1, 1
            block0:
                v0 = const.i32 {start}
                v1 = const.i32 3
                v2 = const.i32 {limit}
                jump block1(v0, v0)
            block1(v3: i32, v4: i32):
                v5 = {compare} v3, v2
                loop block3, block2
                branch v5, block2, block3
            block2:
                v6 = {step}
                v7 = imul v4, v1
                jump block1(v6, v7)
            block3:
                return
            "
        );
        let kernel = Kernel::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let loops = Loops::new(&kernel, &Dominators::new(&kernel));
        let found = &loops.all[0];
        let inductions = Induction::all(&kernel, found.header, found.latches[0]);
        let Some(InstData::Branch { condition, .. }) = kernel.terminator(found.header) else { panic!("a test") };
        let predecessors = predecessors(&kernel);
        let trip_count = max_trip_count(&kernel, &predecessors, &inductions, *condition);
        let start = inductions.first().and_then(|induction| induction.start(&kernel, &predecessors));
        (inductions, start, trip_count)
    }

    #[test]
    fn a_sum_with_a_constant_in_either_order_is_one_and_a_product_is_none() {
        for step in ["iadd v3, v1", "iadd v1, v3"] {
            let (inductions, start, _) = of(5, step, "ult", 20);
            let [only] = inductions[..] else { panic!("{inductions:?}") };
            assert_eq!((only.index, only.step, start), (0, 3, Some(5)));
        }
        assert!(of(5, "isub v3, v1", "ult", 20).0.is_empty());
    }

    #[test]
    fn trip_counts_are_bounded_where_the_comparison_cannot_wrap() {
        // The bound ignores the start: 20 / 3 steps, one test more, and one for an offset.
        assert_eq!(of(0, "iadd v3, v1", "ult", 20).2, Some(8));
        assert_eq!(of(0, "iadd v3, v1", "slt", 20).2, Some(8));
        assert_eq!(of(u32::MAX, "iadd v3, v1", "slt", 20).2, None, "a signed counter that starts negative");
        assert_eq!(of(0, "iadd v3, v1", "ult", u32::MAX).2, None, "the counter passes the limit by wrapping");
        assert_eq!(of(0, "iadd v3, v1", "ieq", 20).2, None);
    }

    /// Each level of the condition has both halves of the one before twice: a search of all paths takes 2^64 steps.
    #[test]
    fn conjunctions_that_share_operands_are_looked_at_once() {
        let levels: String = (0..64)
            .map(|level| {
                let (first, both, last) = (100 + 3 * level, 101 + 3 * level, 102 + 3 * level);
                let before = if level == 0 { 5 } else { last - 3 };
                format!(
                    "v{first} = land v{before}, v6\nv{both} = land v{before}, v7\nv{last} = land v{first}, v{both}\n"
                )
            })
            .collect();
        let text = format!(
            "kernel \"test\" 8, 1, 1
            block0:
                v0 = const.i32 0
                v1 = const.i32 1
                v2 = const.i32 20
                v6 = ult v0, v2
                v7 = ult v1, v2
                jump block1(v0)
            block1(v3: i32):
                v5 = ult v3, v2
                {levels}
                loop block3, block2
                branch v291, block2, block3
            block2:
                v8 = iadd v3, v1
                jump block1(v8)
            block3:
                return
            "
        );
        let kernel = Kernel::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let loops = Loops::new(&kernel, &Dominators::new(&kernel));
        let inductions = Induction::all(&kernel, loops.all[0].header, loops.all[0].latches[0]);
        let Some(InstData::Branch { condition, .. }) = kernel.terminator(loops.all[0].header) else { panic!("a test") };
        // The test is below more conjunctions than are looked at.
        assert_eq!(max_trip_count(&kernel, &predecessors(&kernel), &inductions, *condition), None);
    }
}
