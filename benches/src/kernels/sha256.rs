//! SHA-256 of many short messages: integers, rotations, and a schedule in private memory.

use rayon::prelude::*;
use spelter::{Buffer, Context, Program};

use crate::unit::{Limit, Target, Unit, Yardstick};
use crate::work::{Cost, Kernel, Size, Work, bound, shader};
use crate::{Error, check, data};

pub(super) const SHA256: Kernel = Kernel {
    name: "sha256",
    unit: Unit::Things("block"),
    limit: Limit::Unknown,
    target: Target { factor: 3.0, of: Yardstick::Plain },
    prepare: |context, size| Ok(Box::new(Sha256::new(context, size)?)),
};

/// Messages per task of plain Rust.
const CHUNK: usize = 1024;

struct Sha256 {
    context: Context,
    program: Program,
    buffers: [Buffer; 2],
    messages: Vec<[u32; 16]>,
    digests: Vec<[u32; 8]>,
}

impl Sha256 {
    fn new(context: &Context, size: Size) -> Result<Self, Error> {
        let count = size.pick(100, 256 << 10);
        let words = data::words(18, 16 * count);
        let buffers = [context.buffer_from(&words)?, context.buffer_zeroed(32 * count as u64)?];
        let program = context.program_wgsl(shader!("sha256"))?;
        let (messages, digests) = (words.as_chunks().0.to_vec(), vec![[0; 8]; count]);
        Ok(Self { context: context.clone(), program, buffers, messages, digests })
    }
}

impl Work for Sha256 {
    /// Two blocks for each message: its own and the padding.
    fn cost(&self) -> Cost {
        let working_set = self.messages.len() * (64 + 32);
        Cost { amount: 2.0 * self.messages.len() as f64, bytes: working_set as f64, working_set }
    }

    fn record(&self) -> Result<(), Error> {
        let count = self.messages.len() as u32;
        let dispatch = bound(&self.context, &self.program, &self.buffers.each_ref());
        Ok(dispatch.push(&count).invocations([count, 1, 1])?)
    }

    fn plain(&mut self) {
        let chunks = self.digests.par_chunks_mut(CHUNK).zip(self.messages.par_chunks(CHUNK));
        chunks.for_each(|(digests, messages)| hash(digests, messages));
    }

    fn compare(&self) -> Result<(), Error> {
        check::equal(&self.context.read(&self.buffers[1])?, self.digests.as_flattened())
    }
}

native! {
    fn hash(digests: &mut [[u32; 8]], messages: &[[u32; 16]]) {
        for (digest, message) in digests.iter_mut().zip(messages) {
            *digest = compress(compress(INITIAL_HASH, message), &PADDING);
        }
    }
}

/// The block that follows a message of 64 bytes.
const PADDING: [u32; 16] = [1 << 31, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 512];

const INITIAL_HASH: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// The fractional parts of the cube roots of the first 64 primes.
const ROUND_CONSTANTS: [u32; 64] = round_constants();

/// Computed by integer roots: 2³² ∛p is ∛(2⁹⁶ p).
const fn round_constants() -> [u32; 64] {
    let mut constants = [0; 64];
    let (mut index, mut candidate) = (0, 2u128);
    while index < 64 {
        if is_prime(candidate) {
            constants[index] = cube_root(candidate << 96) as u32;
            index += 1;
        }
        candidate += 1;
    }
    constants
}

const fn is_prime(number: u128) -> bool {
    let mut divisor = 2;
    while divisor * divisor <= number {
        if number.is_multiple_of(divisor) {
            return false;
        }
        divisor += 1;
    }
    true
}

/// Rounded down; the root is below 2³⁶.
const fn cube_root(number: u128) -> u128 {
    let (mut root, mut bit) = (0u128, 1u128 << 35);
    while bit > 0 {
        let with = root | bit;
        if with * with * with <= number {
            root = with;
        }
        bit >>= 1;
    }
    root
}

#[inline(always)]
fn compress(state: [u32; 8], block: &[u32; 16]) -> [u32; 8] {
    let mut words = *block;
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
    for round in 0..64 {
        if round >= 16 {
            words[round % 16] = schedule_word(&words, round);
        }
        let sum1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let t1 = [sum1, choice, ROUND_CONSTANTS[round], words[round % 16]].into_iter().fold(h, u32::wrapping_add);
        let sum0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let majority = (a & b) ^ (a & c) ^ (b & c);
        let t2 = sum0.wrapping_add(majority);
        [a, b, c, d, e, f, g, h] = [t1.wrapping_add(t2), a, b, c, d.wrapping_add(t1), e, f, g];
    }
    let rounds = [a, b, c, d, e, f, g, h];
    std::array::from_fn(|i| state[i].wrapping_add(rounds[i]))
}

/// The word of a round from the sixteen before it.
#[inline(always)]
fn schedule_word(words: &[u32; 16], round: usize) -> u32 {
    let (sigma0, sigma1) = (words[(round + 1) % 16], words[(round + 14) % 16]);
    let sigma0 = sigma0.rotate_right(7) ^ sigma0.rotate_right(18) ^ (sigma0 >> 3);
    let sigma1 = sigma1.rotate_right(17) ^ sigma1.rotate_right(19) ^ (sigma1 >> 10);
    words[round % 16].wrapping_add(words[(round + 9) % 16]).wrapping_add(sigma0).wrapping_add(sigma1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180's example: "abc", padded by hand.
    #[test]
    fn the_example_of_the_standard() {
        let mut block = [0; 16];
        (block[0], block[15]) = (0x6162_6380, 24);
        let digest =
            [0xba78_16bf, 0x8f01_cfea, 0x4141_40de, 0x5dae_2223, 0xb003_61a3, 0x9617_7a9c, 0xb410_ff61, 0xf200_15ad];
        assert_eq!(compress(INITIAL_HASH, &block), digest);
    }
}
