//! Sets of accesses of which many cells have the same: a cell has the number of its set.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::memory::AccessId;

/// Sets of accesses, each stored once.
#[derive(Debug)]
pub(super) struct Sets {
    /// The empty set is the first.
    sets: Vec<Box<[AccessId]>>,
    numbers: HashMap<Box<[AccessId]>, u32, FixedState>,
}

impl Default for Sets {
    fn default() -> Self {
        let mut sets = Self { sets: Vec::new(), numbers: HashMap::default() };
        sets.number([].into());
        sets
    }
}

impl Sets {
    /// The accesses of a set.
    pub(super) fn get(&self, set: u32) -> &[AccessId] {
        self.sets.get(set as usize).map_or(&[], |set| set)
    }

    /// The number of a set.
    pub(super) fn number(&mut self, set: Box<[AccessId]>) -> u32 {
        if let Some(&number) = self.numbers.get(&set) {
            return number;
        }
        let number = self.sets.len() as u32;
        self.numbers.insert(set.clone(), number);
        self.sets.push(set);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sets_are_one() {
        let mut sets = Sets::default();
        let one = sets.number([1, 2].into());
        assert_eq!((sets.number([1, 2].into()), sets.number([].into())), (one, 0));
        assert_eq!(sets.get(one), [1, 2]);
    }
}
