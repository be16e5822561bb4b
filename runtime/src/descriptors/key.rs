//! Keys of descriptors: what a descriptor holds, as numbers that can be compared and hashed.

use spelter_driver::Sampler;

use crate::slot_state::SlotState;

/// The contents of a descriptor as numbers: two keys are equal if and only if the descriptors are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DescriptorKey {
    /// The object's number; 0 for a sampler, or a descriptor that was never written.
    pub(super) object: u64,
    /// The part of the object and its format ([`Part::words`](crate::view::Part::words)).
    pub(super) part: [u64; 3],
    /// The sampler's unique number.
    pub(super) sampler: u64,
}

impl DescriptorKey {
    pub(super) fn of(bound: &SlotState) -> Self {
        Self {
            object: bound.object.as_ref().map_or(0, |object| object.id().0),
            part: bound.part.words(),
            sampler: bound.sampler.as_ref().map_or(0, Sampler::number),
        }
    }

    /// The summand of this key in the hash of its set, different for each place. The hash is the sum, so a change of
    /// one place costs one subtraction and one addition.
    pub(super) fn hash(self, place: usize) -> u64 {
        let mut hash = (place as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for word in [self.object, self.part[0], self.part[1], self.part[2], self.sampler] {
            let product = u128::from(hash ^ word) * 0xa076_1d64_78bd_642f;
            hash = (product as u64) ^ (product >> 64) as u64 ^ word.rotate_left(23);
        }
        hash
    }
}

#[cfg(test)]
mod tests {
    use super::DescriptorKey;

    #[test]
    fn shares_of_a_hash_tell_places_and_words_apart() {
        let mut seen = std::collections::HashSet::new();
        for place in 0..40 {
            for object in 0..20 {
                for start in [0, 16, 64] {
                    assert!(seen.insert(DescriptorKey { object, part: [start, 16, 0], sampler: 0 }.hash(place)));
                }
            }
        }
    }
}
