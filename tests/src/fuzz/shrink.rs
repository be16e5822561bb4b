//! Delta debugging: shortens and simplifies a tape as long as its program fails.

use super::maker::Options;
use super::program::Program;
use super::setup::generate;
use super::tape::Tape;

/// Searches the simplest tape whose program still `fails`, in at most `most` attempts.
pub fn shrink(tape: Vec<u32>, options: Options, most: u32, fails: &mut dyn FnMut(&Program) -> bool) -> Vec<u32> {
    let cost = cost_of(&tape, options);
    let mut shrinker = Shrinker { best: tape, cost, options, left: most, fails };
    shrinker.run();
    shrinker.best
}

/// Smaller is better: instructions, then numbers on the tape, then their sum.
type Cost = (usize, usize, u64);

fn cost_of(tape: &[u32], options: Options) -> Cost {
    cost(&generate(Tape::fixed(tape.to_vec()), options).0.program, tape)
}

fn cost(program: &Program, tape: &[u32]) -> Cost {
    let kernel = &program.kernel;
    let insts: usize = kernel.layout.iter().map(|&block| kernel.blocks[block].insts.len()).sum();
    let memory: usize = program.buffers.iter().map(|buffer| buffer.bytes.len()).sum();
    let invocations = kernel.invocations() * program.groups.iter().product::<u32>();
    (insts * 8 + memory / 64 + invocations as usize, tape.len(), tape.iter().map(|&word| u64::from(word)).sum())
}

struct Shrinker<'a> {
    best: Vec<u32>,
    cost: Cost,
    options: Options,
    left: u32,
    fails: &'a mut dyn FnMut(&Program) -> bool,
}

impl Shrinker<'_> {
    fn run(&mut self) {
        loop {
            let before = self.cost;
            self.cut();
            self.remove();
            self.lower();
            if self.cost >= before || self.left == 0 {
                return;
            }
        }
    }

    /// Accepts a tape if it is better and still fails.
    fn accept(&mut self, tape: Vec<u32>) -> bool {
        if self.left == 0 {
            return false;
        }
        let (generated, used) = generate(Tape::fixed(tape), self.options);
        let mut tape = used.into_words();
        while tape.last() == Some(&0) {
            tape.pop();
        }
        let cost = cost(&generated.program, &tape);
        if cost >= self.cost {
            return false;
        }
        self.left -= 1;
        let fails = (self.fails)(&generated.program);
        if fails {
            (self.best, self.cost) = (tape, cost);
        }
        fails
    }

    /// Shorter and shorter prefixes of the tape.
    fn cut(&mut self) {
        let mut keep = 0;
        while keep < self.best.len() && self.left > 0 {
            let middle = keep + (self.best.len() - keep) / 2;
            if !self.accept(self.best[..middle].to_vec()) {
                keep = middle + 1;
            }
        }
    }

    /// Runs of numbers removed or set to 0.
    fn remove(&mut self) {
        let mut size = self.best.len() / 2;
        while size > 0 {
            let mut at = 0;
            while at < self.best.len() && self.left > 0 {
                let end = (at + size).min(self.best.len());
                let mut without = self.best.clone();
                without.drain(at..end);
                let mut zeros = self.best.clone();
                zeros[at..end].fill(0);
                if !self.accept(without) && !self.accept(zeros) {
                    at += size;
                }
            }
            size /= 2;
        }
    }

    /// Single numbers reduced.
    fn lower(&mut self) {
        for at in 0..self.best.len() {
            let Some(&word) = self.best.get(at) else { return };
            for smaller in [0, 1, 2, 3, word % 16, word % 256, word / 2] {
                let mut tape = self.best.clone();
                tape[at] = smaller;
                if smaller < word && self.accept(tape) {
                    break;
                }
            }
        }
    }
}
