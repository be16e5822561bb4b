//! Whole ranges at a time: reads, writes, copies and fills of guest memory, 64 bits per access where they can be.
//!
//! A relaxed load and store of 64 bits moves bytes about as fast as memory gives them; single bytes are for the ends.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::GuestSlice;

impl GuestSlice {
    /// Copies bytes out from `offset` on; bytes outside the range read as 0.
    pub fn read(self, offset: u64, into: &mut [u8]) {
        let part = self.slice(offset, into.len() as u64);
        let (inside, outside) = into.split_at_mut(part.len as usize);
        outside.fill(0);
        let (head, words) = part.double_words();
        let (first, rest) = inside.split_at_mut(head);
        let (middle, last) = rest.split_at_mut(words.len() * 8);
        part.read_bytes(0, first);
        for (bytes, word) in middle.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *bytes = word.load(Relaxed).to_ne_bytes();
        }
        part.read_bytes(head + words.len() * 8, last);
    }

    fn read_bytes(self, offset: usize, into: &mut [u8]) {
        for (i, byte) in into.iter_mut().enumerate() {
            *byte = self.load_u8((offset + i) as u64);
        }
    }

    /// Copies bytes in from `offset` on; bytes outside the range are dropped.
    pub fn write(self, offset: u64, from: &[u8]) {
        let part = self.slice(offset, from.len() as u64);
        let (head, words) = part.double_words();
        let (first, rest) = from[..part.len as usize].split_at(head);
        let (middle, last) = rest.split_at(words.len() * 8);
        part.write_bytes(0, first);
        for (bytes, word) in middle.as_chunks::<8>().0.iter().zip(words) {
            word.store(u64::from_ne_bytes(*bytes), Relaxed);
        }
        part.write_bytes(head + words.len() * 8, last);
    }

    fn write_bytes(self, offset: usize, from: &[u8]) {
        for (i, byte) in from.iter().enumerate() {
            self.store_u8((offset + i) as u64, *byte);
        }
    }

    /// Copies `len` bytes from `source` at `from` to this range at `to`, in ascending order; cut at either end.
    pub fn copy_from(self, to: u64, source: Self, from: u64, len: u64) {
        let source = source.slice(from, len);
        let into = self.slice(to, source.len);
        let source = source.slice(0, into.len);
        let (into_head, into_words) = into.double_words();
        let (source_head, source_words) = source.double_words();
        // Where the target's words begin that have a source word at or before their own beginning.
        let late = usize::from(into_head < source_head);
        let into_words = into_words.get(late..).unwrap_or_default();
        let start = (into_head + late * 8).min(into.len as usize);
        let ahead = start.saturating_sub(source_head);
        let source_words = source_words.get(ahead / 8..).unwrap_or_default();
        into.copy_bytes(source, 0, start);
        let words = copy_words(into_words, source_words, ahead % 8);
        into.copy_bytes(source, start + words * 8, into.len as usize);
    }

    fn copy_bytes(self, source: Self, start: usize, end: usize) {
        for at in start..end {
            self.store_u8(at as u64, source.load_u8(at as u64));
        }
    }

    /// Fills `offset .. offset + len` with a repeated word; a rest of less than a word is left alone.
    pub fn fill(self, offset: u64, len: u64, word: u32) {
        let part = self.slice(offset, len);
        let part = part.slice(0, part.len / 4 * 4);
        let (head, words) = part.double_words();
        let bytes = word.to_le_bytes();
        let pattern: [u8; 8] = std::array::from_fn(|i| bytes[(head + i) % 4]);
        let byte = |at: usize| part.store_u8(at as u64, bytes[at % 4]);
        (0..head).for_each(byte);
        for word in words {
            word.store(u64::from_ne_bytes(pattern), Relaxed);
        }
        (head + words.len() * 8..part.len as usize).for_each(byte);
    }
}

/// Copies to words from words that begin `shift` bytes later; how many could be copied.
fn copy_words(into: &[AtomicU64], source: &[AtomicU64], shift: usize) -> usize {
    if shift == 0 {
        for (into, source) in into.iter().zip(source) {
            into.store(source.load(Relaxed), Relaxed);
        }
        return into.len().min(source.len());
    }
    let Some((first, source)) = source.split_first() else { return 0 };
    let mut low = u64::from_le(first.load(Relaxed));
    for (into, source) in into.iter().zip(source) {
        let high = u64::from_le(source.load(Relaxed));
        into.store((low >> (shift * 8) | high << (64 - shift * 8)).to_le(), Relaxed);
        low = high;
    }
    into.len().min(source.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A range of 96 bytes at an odd place of its own, counting up.
    fn range(place: u64) -> (GuestSlice, Vec<u8>) {
        let slice = GuestSlice::leak(128).slice(place, 96);
        let bytes: Vec<u8> = (100..196).collect();
        (0..96).for_each(|i| slice.store_u8(i, bytes[i as usize]));
        (slice, bytes)
    }

    fn bytes(slice: GuestSlice) -> Vec<u8> {
        (0..slice.len()).map(|i| slice.load_u8(i)).collect()
    }

    /// What bytes of a vector become, cut at its end.
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
