//! The constant pool: words and vectors, placed before the code.

use foldhash::HashMap;

/// Deduplicated constants of one function.
#[derive(Debug, Default)]
pub(super) struct Pool {
    vectors: Vec<[u32; 16]>,
    vector_at: HashMap<[u32; 16], u32>,
    words: Vec<u32>,
    word_at: HashMap<u32, u32>,
    range_masks: Option<PooledConstant>,
}

/// Position of a constant. Words follow all vectors, so their offset is known only when the pool is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PooledConstant(i32);

impl Pool {
    /// A word; broadcast operands read it for all lanes.
    pub(super) fn word(&mut self, bits: u32) -> PooledConstant {
        let next = self.words.len() as u32;
        let at = *self.word_at.entry(bits).or_insert(next);
        if at == next {
            self.words.push(bits);
        }
        PooledConstant(!(at as i32 * 4))
    }

    /// A vector of 64 bytes, 64-byte aligned.
    pub(super) fn vector(&mut self, lanes: [u32; 16]) -> PooledConstant {
        let next = self.vectors.len() as u32;
        let at = *self.vector_at.entry(lanes).or_insert(next);
        if at == next {
            self.vectors.push(lanes);
        }
        PooledConstant(at as i32 * 64)
    }

    /// 16 words of zeros, 16 of ones, 16 of zeros: an unaligned load from it is the mask of a contiguous range of
    /// lanes.
    pub(super) fn range_masks(&mut self) -> PooledConstant {
        *self.range_masks.get_or_insert_with(|| {
            let at = self.vectors.len() as i32 * 64;
            self.vectors.extend([[0; 16], [u32::MAX; 16], [0; 16]]);
            PooledConstant(at)
        })
    }

    /// A table of words, aligned to 64 bytes.
    pub(super) fn table(&mut self, words: &[u32]) -> PooledConstant {
        let at = self.vectors.len() as i32 * 64;
        self.vectors
            .extend(words.chunks(16).map(|chunk| std::array::from_fn(|at| chunk.get(at).copied().unwrap_or(0))));
        PooledConstant(at)
    }

    /// Offset in bytes from the beginning of the pool; only valid once the pool is complete.
    pub(super) fn offset(&self, disp: i32) -> i32 {
        if disp < 0 { self.vectors.len() as i32 * 64 + !disp } else { disp }
    }

    /// The pool's bytes, a multiple of 64.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let words = self.vectors.iter().flatten().chain(&self.words);
        let mut bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
        bytes.resize(bytes.len().next_multiple_of(64), 0);
        bytes
    }
}

impl PooledConstant {
    /// The lower or the upper half of a vector.
    pub(super) fn half(self, half: u8) -> Self {
        Self(self.0 + 32 * i32::from(half))
    }

    /// The displacement of a memory operand on [`super::vcode::Base::Pool`].
    pub(super) fn disp(self) -> i32 {
        self.0
    }
}
