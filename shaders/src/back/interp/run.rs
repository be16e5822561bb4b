//! Runs one workgroup: one invocation after another, or from barrier to barrier.

use std::cmp::Ordering;

use smallvec::SmallVec;

use super::Program;
use super::code::{End, Wait};
use super::env::Env;
use crate::abi::{DispatchArgs, Outcome, SUBGROUP_SIZE, Stop};
use crate::back::watch::Watch;
use crate::back::{Scratch, grow};
use crate::schedule::{Order, Schedule};

/// Why an invocation releases the register file.
enum Pause {
    Ended,
    Stopped,
    At { wait: Wait, next: u32, live: u32 },
}

/// Words of a frame before the saved registers: the state; the number of saved registers, with the index of the sync
/// point in the high half; two words for the operands at the sync point.
const FRAME_HEAD: usize = 4;

/// State of a suspended invocation, in the first word of its frame; in states from [`AT_SYNC_POINT`] and
/// [`AT_WORKGROUP`] on, the low half is the code block at which it resumes.
const ENDED: u64 = 0;
const AT_SYNC_POINT: u64 = 1 << 32;
const AT_WORKGROUP: u64 = 2 << 32;
const STATE: u64 = 3 << 32;

/// Runs all invocations of a workgroup.
pub(super) fn workgroup<'a>(
    program: &'a Program,
    args: &DispatchArgs<'a>,
    (workgroup, schedule): ([u32; 3], Schedule),
    Scratch { words, host, stopped, .. }: &'a mut Scratch,
    watch: Option<Watch<'a>>,
) -> Outcome {
    let invocations = program.invocations();
    let copies = if program.kept.is_some() { invocations as usize } else { 1 };
    let frame = program.kept.map_or(0, |kept| FRAME_HEAD + kept);
    let memory_words = program.shared_words + program.private_words * copies;
    let needed = program.registers + frame * copies + memory_words.div_ceil(2);
    if words.len() < needed && grow(words, needed).is_none() {
        return Outcome::OutOfMemory;
    }
    let (registers, rest) = words[..needed].split_at_mut(program.registers);
    let (frames, memory) = rest.split_at_mut(frame * copies);
    registers[..program.constants.len()].copy_from_slice(&program.constants);
    let memory = bytemuck::cast_slice_mut(memory);
    memory[..program.shared_words].fill(0);
    let mut env = Env::new(args, (&program.tables, host), memory, workgroup, invocations);
    env.watch = watch;
    let subgroups = schedule.subgroups(workgroup, invocations.div_ceil(SUBGROUP_SIZE));
    let lanes = schedule.lanes(workgroup);
    let mut run = WorkgroupRun { program, registers, frames, frame, env, invocations, subgroups, lanes, stopped: None };
    let finished = if program.kept.is_some() { run.run_with_barriers() } else { run.run_without_barriers() };
    if finished {
        return Outcome::Done;
    }
    *stopped = run.stopped;
    Outcome::Stopped
}

struct WorkgroupRun<'a> {
    program: &'a Program,
    registers: &'a mut [u64],
    frames: &'a mut [u64],
    /// Words of a frame.
    frame: usize,
    env: Env<'a>,
    invocations: u32,
    subgroups: Order,
    /// The order of lanes.
    lanes: [u32; SUBGROUP_SIZE as usize],
    /// Where an invocation was stopped, if that was in a loop.
    stopped: Option<Stop>,
}

impl WorkgroupRun<'_> {
    /// Runs each invocation from start to end, without barriers. `false` if stopped.
    fn run_without_barriers(&mut self) -> bool {
        let private = self.program.shared_words;
        self.subgroups().all(|subgroup| {
            self.invocations_of(subgroup).all(|index| {
                self.begin(index, private);
                let ended = matches!(self.execute(0), Pause::Ended);
                if ended && let Some(watch) = &mut self.env.watch {
                    watch.end(index);
                }
                ended
            })
        })
    }

    /// Starts an invocation.
    fn begin(&mut self, index: u32, private: usize) {
        self.env.enter(index, self.program.workgroup_size, private);
        self.env.memory[private..private + self.program.private_words].fill(0);
    }

    /// Runs with barriers, in rounds: each invocation runs until it waits. `false` if stopped.
    ///
    /// A barrier does not wait for invocations that have returned, and does not check at which barrier the others wait:
    /// a barrier in divergent control flow is undefined in Vulkan and must not hang here.
    fn run_with_barriers(&mut self) -> bool {
        for subgroup in self.subgroups() {
            for index in self.invocations_of(subgroup.clone()) {
                self.begin(index, self.private_of(index));
                if !self.run_until_pause(index, 0) {
                    return false;
                }
            }
            if !self.until_workgroup_barrier(subgroup) {
                return false;
            }
        }
        loop {
            if self.env.watch.is_some() {
                self.release_workgroup();
            }
            let mut waiting = false;
            for subgroup in self.subgroups() {
                match self.round(subgroup.clone(), AT_WORKGROUP) {
                    None => return false,
                    Some(any) => waiting |= any,
                }
                if !self.until_workgroup_barrier(subgroup) {
                    return false;
                }
            }
            if !waiting {
                return true;
            }
        }
    }

    /// Runs a subgroup until its invocations wait only for the workgroup. `false` if stopped.
    fn until_workgroup_barrier(&mut self, subgroup: std::ops::Range<u32>) -> bool {
        loop {
            let group = self.first_group(subgroup.clone());
            if group.is_empty() {
                return true;
            }
            if !self.run_sync_point(subgroup.start, &group) {
                return false;
            }
        }
    }

    /// The invocations that wait at the earliest sync point.
    fn first_group(&self, subgroup: std::ops::Range<u32>) -> SmallVec<[u32; SUBGROUP_SIZE as usize]> {
        let mut group: SmallVec<[u32; SUBGROUP_SIZE as usize]> = SmallVec::new();
        let place = |index: u32| {
            let frame = self.frame_of(index);
            ((frame[1] >> 32) as u32, &frame[FRAME_HEAD..])
        };
        for index in self.invocations_of(subgroup).filter(|&index| self.frame_of(index)[0] & STATE == AT_SYNC_POINT) {
            let order = group.first().map(|&first| self.program.sync_points.order(place(index), place(first)));
            match order {
                Some(Ordering::Greater) => continue,
                Some(Ordering::Less) => group.clear(),
                Some(Ordering::Equal) | None => {}
            }
            group.push(index);
        }
        group
    }

    /// Executes the operation of a sync point for a group, then resumes the group. `false` if stopped.
    fn run_sync_point(&mut self, first: u32, group: &[u32]) -> bool {
        let sync_point = self.program.sync_points.all[(self.frame_of(group[0])[1] >> 32) as usize];
        let mut operands = [[0; SUBGROUP_SIZE as usize]; 2];
        let mut active = 0;
        for &index in group {
            let lane = (index - first) as usize;
            active |= 1 << lane;
            [operands[0][lane], operands[1][lane]] = [self.frame_of(index)[2], self.frame_of(index)[3]];
        }
        if let (Some(watch), Some(site)) = (&mut self.env.watch, sync_point.site) {
            watch.release_subgroup(site, group, first..(first + SUBGROUP_SIZE).min(self.invocations));
        }
        let results = sync_point.op.map(|op| op.run(active, &operands[0], &operands[1]));
        group.iter().all(|&index| {
            let next = self.frame_of(index)[0] as u32;
            self.resume(index);
            if let Some(results) = &results {
                self.registers[sync_point.dest as usize] = results[(index - first) as usize];
            }
            self.run_until_pause(index, next)
        })
    }

    /// Tells what listens that the invocations which wait for the workgroup go on.
    fn release_workgroup(&mut self) {
        let frames = &self.frames;
        let waits = |index: u32| frames[index as usize * self.frame] & STATE == AT_WORKGROUP;
        if let Some(watch) = &mut self.env.watch
            && (0..self.invocations).any(waits)
        {
            watch.release_workgroup(self.invocations, waits);
        }
    }

    fn frame_of(&self, index: u32) -> &[u64] {
        &self.frames[index as usize * self.frame..][..self.frame]
    }

    /// Runs each invocation of a subgroup that is in `state`. Returns whether there were any; `None` if stopped.
    fn round(&mut self, subgroup: std::ops::Range<u32>, state: u64) -> Option<bool> {
        let mut any = false;
        for index in self.invocations_of(subgroup) {
            let now = self.frames[index as usize * self.frame];
            if now & STATE == state {
                any = true;
                self.resume(index);
                if !self.run_until_pause(index, now as u32) {
                    return None;
                }
            }
        }
        Some(any)
    }

    /// The invocations of each subgroup, in the order of the schedule.
    fn subgroups(&self) -> impl Iterator<Item = std::ops::Range<u32>> + use<> {
        let (invocations, order) = (self.invocations, self.subgroups);
        (0..invocations.div_ceil(SUBGROUP_SIZE)).map(move |position| {
            let first = order.at(position.into()) as u32 * SUBGROUP_SIZE;
            first..(first + SUBGROUP_SIZE).min(invocations)
        })
    }

    /// The invocations of a subgroup, in the order of the schedule.
    fn invocations_of(&self, subgroup: std::ops::Range<u32>) -> impl Iterator<Item = u32> + use<> {
        let lanes = self.lanes.into_iter();
        lanes.map(move |lane| subgroup.start + lane).filter(move |&index| index < subgroup.end)
    }

    fn private_of(&self, index: u32) -> usize {
        self.program.shared_words + self.program.private_words * index as usize
    }

    /// Restores the registers of an invocation from its frame.
    fn resume(&mut self, index: u32) {
        self.env.enter(index, self.program.workgroup_size, self.private_of(index));
        let frame = &self.frames[index as usize * self.frame..][..self.frame];
        let live = frame[1] as u32 as usize;
        let first = self.program.constants.len() + 1;
        self.registers[first..first + live].copy_from_slice(&frame[FRAME_HEAD..FRAME_HEAD + live]);
    }

    /// Runs an invocation from a code block until it waits or returns, and saves its state in the frame. `false` if
    /// stopped.
    fn run_until_pause(&mut self, index: u32, at: u32) -> bool {
        let pause = self.execute(at);
        let frame = &mut self.frames[index as usize * self.frame..][..self.frame];
        match pause {
            Pause::Stopped => return false,
            Pause::Ended => {
                frame[0] = ENDED;
                if let Some(watch) = &mut self.env.watch {
                    watch.end(index);
                }
            }
            Pause::At { wait, next, live } => {
                let (first, live) = (self.program.constants.len() + 1, live as usize);
                frame[1] = live as u64;
                let state = match wait {
                    Wait::Workgroup => AT_WORKGROUP,
                    Wait::SyncPoint(number) => {
                        frame[1] |= u64::from(number) << 32;
                        let sync_point = &self.program.sync_points.all[number as usize];
                        frame[2..FRAME_HEAD].copy_from_slice(&sync_point.args.map(|arg| self.registers[arg as usize]));
                        AT_SYNC_POINT
                    }
                };
                frame[0] = state | u64::from(next);
                frame[FRAME_HEAD..FRAME_HEAD + live].copy_from_slice(&self.registers[first..first + live]);
            }
        }
        true
    }

    /// The interpreter's main loop: runs from a code block until the invocation returns, waits or is stopped.
    fn execute(&mut self, at: u32) -> Pause {
        // One that goes on after a barrier is stopped at a back edge, whose loop is known.
        if at == 0 && self.env.stopped() {
            return Pause::Stopped;
        }
        let (registers, env) = (&mut *self.registers, &mut self.env);
        let mut at = at;
        loop {
            let block = &self.program.blocks[at as usize];
            for step in &block.steps {
                (step.run)(step, registers, env);
            }
            at = match block.end {
                End::Jump(to) => to,
                End::Loop { at, .. } if env.stopped() => {
                    self.stopped = Some(env.stop_at(at));
                    return Pause::Stopped;
                }
                End::Loop { to, .. } => to,
                End::Branch { condition, then, otherwise } => {
                    if registers[condition as usize] != 0 {
                        then
                    } else {
                        otherwise
                    }
                }
                End::Switch { selector, default, ref cases } => {
                    let literal = registers[selector as usize] as u32;
                    match cases.binary_search_by_key(&literal, |case| case.0) {
                        Ok(found) => cases[found].1,
                        Err(_) => default,
                    }
                }
                End::Barrier { wait, next, live } => return Pause::At { wait, next, live },
                End::Return => return Pause::Ended,
            };
        }
    }
}
