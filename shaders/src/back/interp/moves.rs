//! Sequentialization of parallel moves: the arguments of a branch are assigned all at once.

use std::collections::{BTreeMap, HashMap};

/// Orders parallel `(to, from)` moves with distinct targets. `spare` is a scratch register for breaking cycles. Linear
/// time, apart from map accesses.
pub(super) fn sequence(moves: &[(u32, u32)], spare: u32) -> Vec<(u32, u32)> {
    let mut pending: BTreeMap<u32, u32> = moves.iter().copied().filter(|(to, from)| to != from).collect();
    let mut readers: HashMap<u32, usize> = HashMap::new();
    for &from in pending.values() {
        *readers.entry(from).or_default() += 1;
    }
    let mut ready: Vec<u32> = pending.keys().copied().filter(|to| !readers.contains_key(to)).collect();
    let mut ordered = Vec::with_capacity(pending.len());
    loop {
        while let Some(to) = ready.pop() {
            let Some(from) = pending.remove(&to) else { continue };
            ordered.push((to, from));
            let left = readers.entry(from).or_default();
            *left -= 1;
            if *left == 0 && pending.contains_key(&from) {
                ready.push(from);
            }
        }
        // Every register that is still to be written is read by exactly one other move: only cycles are left.
        let Some((&first, _)) = pending.first_key_value() else { return ordered };
        ordered.push((spare, first));
        let mut to = first;
        while let Some(from) = pending.remove(&to) {
            ordered.push((to, if from == first { spare } else { from }));
            to = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::sequence;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn order_does_not_matter(from in proptest::collection::vec(0u32..8, 8), used in 0u32..256) {
            let moves: Vec<(u32, u32)> =
                from.iter().enumerate().map(|(to, &from)| (to as u32, from)).filter(|(to, _)| used >> to & 1 != 0).collect();
            let before: Vec<u32> = (100..109).collect();
            let mut expected = before.clone();
            for &(to, from) in &moves {
                expected[to as usize] = before[from as usize];
            }
            let mut registers = before;
            for (to, from) in sequence(&moves, 8) {
                registers[to as usize] = registers[from as usize];
            }
            prop_assert_eq!(&registers[..8], &expected[..8]);
        }
    }
}
