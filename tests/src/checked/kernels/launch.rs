//! A launch of a random kernel: its push constants, and what each invocation does with them.

use std::sync::Arc;

use cranelift_entity::PrimaryMap;
use spelter_shaders::abi::MAX_PUSH_BYTES;
use spelter_shaders::check::observer::{Memory, Target};
use spelter_shaders::ir::{Site, SiteAction, SiteData};
use spelter_shaders::schedule::Schedule;

use super::super::generate::MAX_EVENTS;
use super::super::{Program, Shape, Step};
use super::generate::element;
use super::{Agents, Home, Instruction, PUSH_WORDS, Place, RandomKernel, WORDS};
use crate::mutate::Rng;

/// Where a program has the first buffer, and where the second and the texels if they are apart: offsets of the engine's
/// memory.
pub(super) const FIRST: u64 = 0;
pub(super) const APART: u64 = 0x1000;
pub(super) const TEXELS: u64 = 0x2000;

/// Where the second buffer begins in the first one if they overlap.
pub(super) const OVERLAP: u64 = 8;

/// Agents of all workgroups.
const MAX_AGENTS: usize = 6;

/// A launch.
#[derive(Debug)]
pub(super) struct Launch {
    /// What the agents do. Its targets are offsets of the engine's memory.
    pub(super) program: Program,
    pub(super) push: [u8; MAX_PUSH_BYTES],
    pub(super) schedule: Schedule,
}

/// The bits of a word of push constants: a bit for each agent, then its place.
pub(super) const PLACE_SHIFT: u32 = MAX_AGENTS as u32;
pub(super) const PLACE_BITS: u32 = 4;

/// A program without steps.
pub(super) fn program(kernel: &RandomKernel) -> Program {
    let site = |(site, instruction): (Site, &Instruction)| SiteData {
        action: instruction.action,
        word: line(site),
        inlined_at: Arc::new([]),
    };
    let instructions = &kernel.instructions;
    let mut sites = PrimaryMap::new();
    instructions.iter().for_each(|each| _ = sites.push(site(each)));
    let mut effects = PrimaryMap::new();
    instructions.values().for_each(|instruction| _ = effects.push(instruction.effect.clone()));
    Program { shape: kernel.shape, sites, effects, steps: Vec::new() }
}

/// The source line of an instruction.
pub(super) fn line(site: Site) -> u32 {
    site.as_u32() + 1
}

/// The words of a target.
fn words_of(target: Target) -> impl Iterator<Item = Target> {
    (0..target.bytes / 4).map(move |word| {
        let memory = match target.memory {
            Memory::Device(address) => Memory::Device(address + 4 * u64::from(word)),
            Memory::Workgroup(offset) => Memory::Workgroup(offset + 4 * word),
        };
        Target { memory, bytes: 4, ..target }
    })
}

impl RandomKernel {
    /// The launch of a seed. `program` is the kernel's, without steps.
    pub(super) fn launch(&self, program: &Program, seed: u64) -> Launch {
        let mut rng = Rng::new(seed ^ 0x6c61_756e_6368);
        let words = self.words(&mut rng);
        let mut push = [0; MAX_PUSH_BYTES];
        for (bytes, word) in push.chunks_exact_mut(4).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        let schedule = match rng.below(8) {
            0 => Schedule::Ascending,
            1 => Schedule::Reverse,
            _ => Schedule::Random(seed),
        };
        let steps = self.steps(&words);
        Launch { program: Program { steps, ..program.clone() }, push, schedule }
    }

    /// The push constants, with which there are not too many events.
    fn words(&self, rng: &mut Rng) -> [u32; PUSH_WORDS] {
        let Shape { workgroups, invocations, .. } = self.shape;
        let agents = workgroups as usize * invocations as usize;
        let executions = |instruction: &Instruction| match instruction.agents {
            Agents::Pushed => 0,
            Agents::One(_) => workgroups as usize,
            Agents::All | Agents::Everything => agents,
        };
        let known: usize = self
            .parts
            .iter()
            .flat_map(|part| part.instructions.iter().map(|&site| (part.rounds as usize, site)))
            .map(|(rounds, site)| (rounds, &self.instructions[site]))
            .map(|(rounds, at)| rounds * executions(at) * self.accesses(at.action, at.access))
            .sum();
        let mut left = MAX_EVENTS.saturating_sub(known);
        let busy = 1 + rng.below(3);
        // In most launches invocations take turns with plain accesses.
        let free = rng.below(3) == 0;
        let one_workgroup = rng.below(workgroups as usize) as u32;
        let mut words = [0; PUSH_WORDS];
        for part in &self.parts {
            let turn = rng.below(invocations as usize) as u32;
            if let Some((first, step)) = part.returns {
                for round in 0..part.rounds {
                    let returns = (0..agents).map(|agent| u32::from(rng.below(6) == 0) << agent);
                    words[(first + round * step) as usize] = returns.sum();
                }
            }
            for (round, &site) in (0..part.rounds).flat_map(|round| part.instructions.iter().map(move |at| (round, at)))
            {
                let instruction = &self.instructions[site];
                let Some((first, step)) = instruction.push else { continue };
                let atomic = matches!(instruction.action, SiteAction::Atomic { .. });
                let of_device = instruction.access.is_some_and(|(home, _)| home.is_of_device());
                let any = free || atomic || instruction.access.is_none();
                let mut word = 0;
                for agent in 0..agents as u32 {
                    let (workgroup, local) = (agent / invocations, agent % invocations);
                    let may = any || local == turn && (workgroup == one_workgroup || !of_device);
                    let each = self.accesses(instruction.action, instruction.access);
                    if rng.below(if any { 4 } else { 3 }) < busy && may && left >= each {
                        word |= 1 << agent;
                        left -= if instruction.agents == Agents::Pushed { each } else { 0 };
                    }
                    let bytes = instruction.access.map_or(4, |(home, _)| self.element_bytes(home));
                    word |= element(rng, atomic, bytes) << (PLACE_SHIFT + PLACE_BITS * agent);
                }
                words[(first + round * step) as usize] = word;
            }
        }
        words
    }

    /// The steps of all agents.
    fn steps(&self, words: &[u32; PUSH_WORDS]) -> Vec<Vec<Step>> {
        let Shape { workgroups, invocations, .. } = self.shape;
        let agents = (0..workgroups as u32).flat_map(|workgroup| (0..invocations).map(move |agent| (workgroup, agent)));
        let mut all = Vec::new();
        for (workgroup, agent) in agents {
            let number = workgroup * invocations + agent;
            let mut steps = Vec::new();
            let word = |(first, step): (u32, u32), round: u32| words[(first + round * step) as usize];
            'agent: for part in &self.parts {
                for round in 0..part.rounds {
                    for &site in &part.instructions {
                        let instruction = &self.instructions[site];
                        let word = instruction.push.map_or(0, |push| word(push, round));
                        let executes = match instruction.agents {
                            Agents::Pushed => word >> number & 1 != 0,
                            Agents::One(one) => one == agent,
                            Agents::All | Agents::Everything => true,
                        };
                        if executes {
                            let pushed = word >> (PLACE_SHIFT + PLACE_BITS * number) & ((1 << PLACE_BITS) - 1);
                            let target = instruction
                                .access
                                .map(|(home, place)| self.target(home, place, pushed, (workgroup, agent)));
                            if self.accesses(instruction.action, instruction.access) == 1 {
                                steps.push(Step { site, target, equal: false });
                            } else {
                                let words = target.into_iter().flat_map(words_of);
                                steps.extend(words.map(|word| Step { site, target: Some(word), equal: false }));
                            }
                        }
                    }
                    if part.returns.is_some_and(|push| word(push, round) >> number & 1 != 0) {
                        break 'agent;
                    }
                }
            }
            all.push(steps);
        }
        all
    }

    /// The memory that an agent accesses.
    fn target(&self, home: Home, place: Place, pushed: u32, (workgroup, agent): (u32, u32)) -> Target {
        let bytes = self.element_bytes(home);
        let element = match place {
            Place::Pushed => pushed,
            Place::Element(element) => element,
            Place::Lane { further, apart } => {
                let lane = (self.local_index(agent) + further) % self.size();
                self.first_of_lanes(home) + lane + if apart { workgroup * self.size() } else { 0 }
            }
        };
        let (memory, reference) = match home {
            Home::First | Home::Second | Home::Texels => {
                // Descriptors are in the order of their bindings.
                let before = Home::ALL.into_iter().take_while(|&other| other != home);
                let reference = before.filter(|&other| self.uses(other)).count() as u32;
                (Memory::Device(self.start(home) + u64::from(bytes * element)), reference)
            }
            Home::Tile | Home::Other => {
                // Workgroup variables are in the order of their first uses.
                let is_first = self.homes().find(|home| !home.is_of_device()) == Some(home);
                let number = u32::from(!is_first);
                (Memory::Workgroup(4 * WORDS * number + bytes * element), number)
            }
        };
        Target { memory, bytes, reference }
    }
}
