//! Bulk access to guest memory, word by word: reads, writes, copies and fills.
//!
//! Words are 32 bits, as everywhere in guest memory, since atomics of two sizes must not race. Copies load several
//! words before they store them; single bytes are accessed only at the ends, at most three at each. Long reads, writes,
//! copies and fills use the machine's string instructions.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::GuestSlice;

impl GuestSlice {
    /// Reads bytes from `offset` on; bytes outside the range read as 0.
    pub fn read(self, offset: u64, into: &mut [u8]) {
        let part = self.slice(offset, into.len() as u64);
        let (inside, outside) = into.split_at_mut(part.len as usize);
        outside.fill(0);
        if part.len >= MIN_BULK_BYTES && part.move_out(inside) {
            return;
        }
        let (head, words) = part.whole_words();
        let (first, rest) = inside.split_at_mut(head);
        let (middle, last) = rest.split_at_mut(words.len() * 4);
        part.read_bytes(0, first);
        for (bytes, word) in middle.as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *bytes = word.load(Relaxed).to_ne_bytes();
        }
        part.read_bytes(head + words.len() * 4, last);
    }

    fn read_bytes(self, offset: usize, into: &mut [u8]) {
        for (i, byte) in into.iter_mut().enumerate() {
            *byte = self.load_u8((offset + i) as u64);
        }
    }

    /// Writes bytes from `offset` on; bytes outside the range are dropped.
    pub fn write(self, offset: u64, from: &[u8]) {
        let part = self.slice(offset, from.len() as u64);
        if part.len >= MIN_BULK_BYTES && part.move_in(from) {
            return;
        }
        let (head, words) = part.whole_words();
        let (first, rest) = from[..part.len as usize].split_at(head);
        let (middle, last) = rest.split_at(words.len() * 4);
        part.write_bytes(0, first);
        for (bytes, word) in middle.as_chunks::<4>().0.iter().zip(words) {
            word.store(u32::from_ne_bytes(*bytes), Relaxed);
        }
        part.write_bytes(head + words.len() * 4, last);
    }

    fn write_bytes(self, offset: usize, from: &[u8]) {
        for (i, byte) in from.iter().enumerate() {
            self.store_u8((offset + i) as u64, *byte);
        }
    }

    /// Copies `len` bytes from `source` at `from` to this range at `to`, in ascending order; cut at the end of either
    /// range.
    pub fn copy_from(self, to: u64, source: Self, from: u64, len: u64) {
        let source = source.slice(from, len);
        let into = self.slice(to, source.len);
        let source = source.slice(0, into.len);
        if into.len >= MIN_BULK_BYTES && into.move_bytes(source) {
            return;
        }
        let (into_head, into_words) = into.whole_words();
        let (source_head, source_words) = source.whole_words();
        // The first target word whose source word starts at or before it.
        let late = usize::from(into_head < source_head);
        let into_words = into_words.get(late..).unwrap_or_default();
        let start = (into_head + late * 4).min(into.len as usize);
        let ahead = start.saturating_sub(source_head);
        let source_words = source_words.get(ahead / 4..).unwrap_or_default();
        into.copy_bytes(source, 0, start);
        let words = copy_words(into_words, source_words, ahead % 4);
        into.copy_bytes(source, start + words * 4, into.len as usize);
    }

    fn copy_bytes(self, source: Self, start: usize, end: usize) {
        for at in start..end {
            self.store_u8(at as u64, source.load_u8(at as u64));
        }
    }

    /// Fills `offset .. offset + len` with a repeated word; a remainder of less than a word is left unchanged.
    pub fn fill(self, offset: u64, len: u64, word: u32) {
        let part = self.slice(offset, len);
        let part = part.slice(0, part.len / 4 * 4);
        if part.len >= MIN_BULK_BYTES && part.fill_words(word) {
            return;
        }
        let (head, words) = part.whole_words();
        let bytes = word.to_le_bytes();
        let pattern: [u8; 4] = std::array::from_fn(|i| bytes[(head + i) % 4]);
        let byte = |at: usize| part.store_u8(at as u64, bytes[at % 4]);
        (0..head).for_each(byte);
        for word in words {
            word.store(u32::from_ne_bytes(pattern), Relaxed);
        }
        (head + words.len() * 4..part.len as usize).for_each(byte);
    }
}

/// Minimum bytes for string instructions: below, their start-up cost dominates.
const MIN_BULK_BYTES: u64 = 512;

/// Words that a copy loads before it stores them.
const BLOCK: usize = 8;

/// Copies to words from words that start `shift` bytes later; returns how many words were copied.
fn copy_words(into: &[AtomicU32], source: &[AtomicU32], shift: usize) -> usize {
    if shift == 0 {
        let count = into.len().min(source.len());
        copy_aligned(&into[..count], &source[..count]);
        return count;
    }
    let Some((first, source)) = source.split_first() else { return 0 };
    let mut low = u32::from_le(first.load(Relaxed));
    for (into, source) in into.iter().zip(source) {
        let high = u32::from_le(source.load(Relaxed));
        into.store((low >> (shift * 8) | high << (32 - shift * 8)).to_le(), Relaxed);
        low = high;
    }
    into.len().min(source.len())
}

/// Copies words to the same number of words.
fn copy_aligned(into: &[AtomicU32], source: &[AtomicU32]) {
    let (into_blocks, into_rest) = into.as_chunks::<BLOCK>();
    let (source_blocks, source_rest) = source.as_chunks::<BLOCK>();
    for (into, source) in into_blocks.iter().zip(source_blocks) {
        let words: [u32; BLOCK] = std::array::from_fn(|at| source[at].load(Relaxed));
        for (into, word) in into.iter().zip(words) {
            into.store(word, Relaxed);
        }
    }
    for (into, source) in into_rest.iter().zip(source_rest) {
        into.store(source.load(Relaxed), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A range of 96 bytes at an unaligned address, filled with ascending bytes.
    fn range(base: u64) -> (GuestSlice, Vec<u8>) {
        let slice = GuestSlice::leak(128).slice(base, 96);
        let bytes: Vec<u8> = (100..196).collect();
        (0..96).for_each(|i| slice.store_u8(i, bytes[i as usize]));
        (slice, bytes)
    }

    fn bytes(slice: GuestSlice) -> Vec<u8> {
        (0..slice.len()).map(|i| slice.load_u8(i)).collect()
    }

    /// The expected bytes after a write, cut at the end.
    fn replace(vec: &mut [u8], at: u64, with: &[u8]) {
        for (i, byte) in with.iter().enumerate() {
            if let Some(old) = vec.get_mut(at as usize + i) {
                *old = *byte;
            }
        }
    }

    proptest! {
        #[test]
        fn whole_ranges_agree_with_single_bytes(
            (a, b) in (0..16u64, 0..16u64), (to, from, len) in (0..100u64, 0..100u64, 0..100u64), word: u32,
        ) {
            let (target, mut expected) = range(a);
            let source = GuestSlice::leak(128).slice(b, 90);
            (0..90).for_each(|i| source.store_u8(i, i as u8));

            let source_bytes = bytes(source);
            let part: Vec<u8> = source_bytes.iter().copied().skip(from as usize).take(len as usize).collect();
            target.copy_from(to, source, from, len);
            replace(&mut expected, to, &part);
            prop_assert_eq!(bytes(target), expected.clone());

            let mut read = vec![0xEE; len as usize];
            source.read(from, &mut read);
            let mut zeros = vec![0; len as usize];
            replace(&mut zeros, 0, &part);
            prop_assert_eq!(read, zeros);

            target.write(from, &part);
            replace(&mut expected, from, &part);
            prop_assert_eq!(bytes(target), expected.clone());

            target.fill(to, len, word);
            let words = len.min(96u64.saturating_sub(to)) / 4;
            replace(&mut expected, to, &word.to_le_bytes().repeat(words as usize));
            prop_assert_eq!(bytes(target), expected);
            prop_assert_eq!(bytes(source), source_bytes);
        }

        #[test]
        fn long_ranges_agree_with_single_bytes(
            (a, b) in (0..64u64, 0..64u64), len in 400..1500u64, word: u32, seed: u8,
        ) {
            let (source, target) = (GuestSlice::leak(1600), GuestSlice::leak(1600));
            (0..1600).for_each(|i| source.store_u8(i, (i as u8).wrapping_mul(31) ^ seed));
            let (source_bytes, mut expected) = (bytes(source), vec![0; 1600]);
            target.copy_from(a, source, b, len);
            replace(&mut expected, a, &source_bytes[b as usize..][..len as usize]);
            prop_assert_eq!(bytes(target), expected.clone());
            target.fill(b, len, word);
            replace(&mut expected, b, &word.to_le_bytes().repeat(len as usize / 4));
            prop_assert_eq!(bytes(target), expected.clone());
            let mut read = vec![0xEE; 1600];
            source.read(b, &mut read);
            let mut rest = source_bytes[b as usize..].to_vec();
            rest.resize(1600, 0);
            prop_assert_eq!(read, rest, "bytes outside of the range read as 0");
            let part = &source_bytes[..len as usize];
            target.write(b, part);
            replace(&mut expected, b, part);
            prop_assert_eq!(bytes(target), expected.clone());
            target.write(1600 - 600, part);
            replace(&mut expected, 1600 - 600, part);
            prop_assert_eq!(bytes(target), expected, "bytes outside of the range are dropped");
        }

        #[test]
        fn stores_at_word_edges_leave_their_neighbours(base in 0..8u64, at in 0..40u64, value: u32) {
            let around = GuestSlice::leak(64);
            around.fill(0, 64, 0xA5A5_A5A5);
            let slice = around.slice(base, 32);
            let mut expected = bytes(around);

            slice.store_u32(at, value);
            let whole = at + 4 <= 32;
            if whole {
                replace(&mut expected, base + at, &value.to_le_bytes());
            }
            prop_assert_eq!(slice.load_u32(at), if whole { value } else { 0 });
            prop_assert_eq!(bytes(around), expected.clone());

            slice.store_u8(at, 0x3C);
            if at < 32 {
                replace(&mut expected, base + at, &[0x3C]);
            }
            prop_assert_eq!(bytes(around), expected.clone());
            prop_assert_eq!(slice.load_u8(at), if at < 32 { 0x3C } else { 0 });
            prop_assert_eq!(slice.atomic_u32(at).is_some(), whole && (base + at) % 4 == 0);
        }

        #[test]
        fn bulk_stores_leave_their_neighbours(
            (to, from) in (0..64u64, 0..64u64), len in 0..60u64, base in 0..8u64, word: u32,
        ) {
            let around = GuestSlice::leak(160);
            (0..160).for_each(|i| around.store_u8(i, i as u8));
            let slice = around.slice(base, 128);
            let mut expected = bytes(around);

            // In ascending order, an overlapping copy to a lower address is exact; one to a higher address has
            // unspecified bytes inside.
            slice.copy_from(to, slice, from, len);
            let (start, end) = ((base + to) as usize, (base + to + len) as usize);
            if to <= from || to >= from + len {
                let first = (base + from) as usize;
                expected.copy_within(first..first + len as usize, start);
            } else {
                expected[start..end].copy_from_slice(&bytes(around)[start..end]);
            }
            prop_assert_eq!(bytes(around), expected.clone());

            slice.write(to, &vec![0xEE; len as usize]);
            expected[start..end].fill(0xEE);
            prop_assert_eq!(bytes(around), expected.clone());

            slice.fill(from, len, word);
            replace(&mut expected, base + from, &word.to_le_bytes().repeat(len as usize / 4));
            prop_assert_eq!(bytes(around), expected);
        }
    }

    #[test]
    fn halves_are_replaced_in_one_step() {
        let slice = GuestSlice::leak(16).slice(0, 6);
        let orders = [Relaxed; 2];
        let add = |at: u64, by: u16| slice.update_u16(at, orders, |old| Some(old.wrapping_add(by)));
        std::thread::scope(|scope| {
            for at in [0, 2, 0, 2] {
                scope.spawn(move || (0..500).filter_map(|_| add(at, 77)).count());
            }
        });
        assert_eq!([add(0, 0), add(2, 0), add(4, 9), add(4, 0)], [Some(11_464), Some(11_464), Some(0), Some(9)]);
        assert_eq!(slice.update_u16(0, orders, |_| None), Some(11_464), "nothing new");
        // Across its words, past the end, or partly past the end.
        assert_eq!([add(1, 1), add(6, 1), add(5, 1), add(u64::MAX, 1)], [None; 4]);
        assert_eq!([slice.load_u16(0), slice.load_u16(2), slice.load_u16(4)], [11_464, 11_464, 9]);
    }

    #[test]
    fn neighbouring_bytes_of_a_word_from_two_threads() {
        const TIMES: u32 = 50_000;
        let word = GuestSlice::leak(4);
        let count = |at: u64| {
            for i in 0..TIMES {
                assert_eq!(word.load_u8(at), i as u8, "byte {at} was lost");
                word.store_u8(at, (i + 1) as u8);
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| count(1));
            scope.spawn(|| count(2));
        });
        assert_eq!(bytes(word), [0, TIMES as u8, TIMES as u8, 0]);
    }

    #[test]
    fn offsets_far_outside_do_nothing() {
        let (slice, expected) = range(3);
        slice.fill(u64::MAX, u64::MAX, 7);
        slice.write(u64::MAX, &[1, 2]);
        slice.copy_from(u64::MAX, slice, 0, u64::MAX);
        slice.copy_from(0, slice, u64::MAX, u64::MAX);
        GuestSlice::EMPTY.copy_from(0, slice, 0, 96);
        slice.copy_from(0, GuestSlice::EMPTY, 0, 96);
        let mut read = [1; 3];
        slice.read(u64::MAX - 1, &mut read);
        assert_eq!((read, bytes(slice)), ([0; 3], expected));
    }
}
