//! The numbers from which a program is generated: drawn from a seed and recorded, or replayed.
//!
//! A program is a function of its tape. Small numbers mean simple choices and an empty tape the simplest program, so
//! removing and reducing numbers makes a program smaller.

use crate::mutate::Rng;

/// A source of choices.
#[derive(Clone, Debug)]
pub struct Tape {
    words: Vec<u32>,
    at: usize,
    rng: Option<Rng>,
}

impl Tape {
    /// An endless tape of random numbers.
    pub fn random(seed: u64) -> Self {
        Self { words: Vec::new(), at: 0, rng: Some(Rng::new(seed)) }
    }

    /// These numbers, then zeros.
    pub fn fixed(words: Vec<u32>) -> Self {
        Self { words, at: 0, rng: None }
    }

    /// The next number.
    pub fn word(&mut self) -> u32 {
        if let (Some(rng), true) = (&mut self.rng, self.at == self.words.len()) {
            self.words.push((rng.bits() >> 32) as u32);
        }
        let word = self.words.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        word
    }

    /// The next number, below `limit`.
    pub fn pick(&mut self, limit: u32) -> u32 {
        self.word() % limit.max(1)
    }

    /// True with probability 1/`n`; false at the end of the tape.
    pub fn chance(&mut self, n: u32) -> bool {
        self.pick(n) == n - 1
    }

    /// An element of a list that is not empty; the first at the end of the tape.
    pub fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.pick(list.len() as u32) as usize]
    }

    /// The numbers that were used.
    pub fn into_words(mut self) -> Vec<u32> {
        self.words.truncate(self.at);
        self.words
    }
}
