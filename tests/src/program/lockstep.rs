//! The semantics of a program for subgroups in lockstep: 16 invocations at a time, with masks of the invocations at
//! each place.
//!
//! Invocations that a divergent branch separated reconverge where its construct ends, and those that left a loop in
//! different iterations where the loop's construct ends, as `SPV_KHR_maximal_reconvergence` says of structured control
//! flow.

use super::{Block, Gather, Loop, SELECTORS, Statement, Switch};

/// Invocations of a subgroup.
const SIZE: u32 = 16;

/// The masks of a subgroup's invocations after some statements; those that returned are in none.
#[derive(Default)]
struct Out {
    next: u32,
    end_of_switch: u32,
    end_of_loop: u32,
    continuing: u32,
}

impl Out {
    /// Adds the invocations that an inner construct sends further out.
    fn jump_out(&mut self, inner: &Self) {
        self.end_of_switch |= inner.end_of_switch;
        self.end_of_loop |= inner.end_of_loop;
        self.continuing |= inner.continuing;
    }
}

/// The state of a subgroup.
struct Subgroup {
    first: u32,
    s: [u32; SIZE as usize],
    t: [u32; SIZE as usize],
}

/// The results of the program for the indices of this many invocations.
pub fn run(program: &Block, invocations: u32) -> Vec<u32> {
    let mut results = Vec::new();
    for first in (0..invocations).step_by(SIZE as usize) {
        let count = SIZE.min(invocations - first);
        let mut subgroup =
            Subgroup { first, s: std::array::from_fn(|lane| first + lane as u32), t: [0; SIZE as usize] };
        subgroup.block(program, (1 << count) - 1);
        let sums = subgroup.s.iter().zip(&subgroup.t).map(|(s, t)| s.wrapping_add(*t));
        results.extend(sums.take(count as usize));
    }
    results
}

fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..SIZE as usize).filter(move |lane| mask >> lane & 1 != 0)
}

impl Subgroup {
    fn index(&self, lane: usize) -> u32 {
        self.first + lane as u32
    }

    /// The invocations of a mask for which a predicate holds.
    fn those(&self, mask: u32, holds: impl Fn(u32, u32) -> bool) -> u32 {
        lanes(mask).filter(|&lane| holds(self.s[lane], self.index(lane))).map(|lane| 1 << lane).sum()
    }

    fn each(&mut self, mask: u32, f: impl Fn(u32) -> u32) {
        lanes(mask).for_each(|lane| self.s[lane] = f(self.s[lane]));
    }

    fn block(&mut self, statements: &Block, mut on: u32) -> Out {
        let mut out = Out::default();
        for statement in statements {
            match statement {
                Statement::Step(n) => self.each(on, |s| s.wrapping_mul(3).wrapping_add(*n)),
                Statement::Together(n) => {
                    let sum = lanes(on).fold(*n, |sum, lane| sum.wrapping_add(self.s[lane]));
                    self.each(on, |s| s.wrapping_mul(3).wrapping_add(sum));
                }
                Statement::Gather(how, n) => self.gather(*how, *n, on),
                Statement::If(test, then, otherwise) => {
                    let taken = self.those(on, |s, index| test.holds(s, index));
                    let sides = [self.block(then, taken), self.block(otherwise, on & !taken)];
                    on = sides[0].next | sides[1].next;
                    sides.iter().for_each(|side| out.jump_out(side));
                }
                Statement::Switch(switch) => on = self.choose(switch, on, &mut out),
                Statement::Loop(repeated) => on = self.repeat(repeated, on),
                Statement::BreakSwitch => out.end_of_switch |= std::mem::take(&mut on),
                Statement::BreakLoop => out.end_of_loop |= std::mem::take(&mut on),
                Statement::Continue => out.continuing |= std::mem::take(&mut on),
                Statement::Return(n) => {
                    self.each(on, |s| s.wrapping_add(*n));
                    on = 0;
                }
            }
        }
        out.next = on;
        out
    }

    fn gather(&mut self, how: Gather, n: u32, on: u32) {
        let mut below = 0u32;
        let numbers: Vec<(usize, u32)> = lanes(on).map(|lane| (lane, self.s[lane] ^ n)).collect();
        let sum = numbers.iter().fold(0u32, |sum, (_, number)| sum.wrapping_add(*number));
        let odd = numbers.iter().fold(0, |odd, (_, number)| odd ^ number);
        for (lane, number) in numbers {
            let t = &mut self.t[lane];
            match how {
                Gather::Sum => *t = t.wrapping_add(sum),
                Gather::Below => *t = t.wrapping_add(below),
                Gather::Odd => *t ^= odd,
            }
            below = below.wrapping_add(number);
        }
    }

    /// The invocations at the end of the switch.
    fn choose(&mut self, switch: &Switch, on: u32, out: &mut Out) -> u32 {
        let count = switch.cases.len();
        let case_of = |s: u32| {
            let value = (s % SELECTORS) as usize;
            if value < count && value != switch.default { value } else { switch.default.min(count) }
        };
        let chosen: Vec<u32> = (0..=count).map(|case| self.those(on, |s, _| case_of(s) == case)).collect();
        let (mut end, mut falling) = (chosen[count], 0);
        for ((case, falls), chosen) in switch.cases.iter().zip(chosen) {
            let body = self.block(case, chosen | falling);
            end |= body.end_of_switch;
            out.end_of_loop |= body.end_of_loop;
            out.continuing |= body.continuing;
            falling = if *falls { body.next } else { 0 };
            end |= body.next & !falling;
        }
        end | falling
    }

    /// The invocations at the end of the loop.
    fn repeat(&mut self, repeated: &Loop, mut on: u32) -> u32 {
        let (mut end, mut iteration) = (0, 0);
        let more = |subgroup: &Self, on: u32, iteration: u32| {
            subgroup.those(on, |_, index| iteration < repeated.rounds + index % repeated.spread)
        };
        while on != 0 {
            if !repeated.tested_last {
                let inside = more(self, on, iteration);
                end |= on & !inside;
                on = inside;
            }
            self.each(on, |s| s.wrapping_add(iteration));
            let body = self.block(&repeated.body, on);
            end |= body.end_of_loop;
            on = body.next | body.continuing;
            iteration += 1;
            if repeated.tested_last {
                let again = more(self, on, iteration);
                end |= on & !again;
                on = again;
            }
        }
        end
    }
}
