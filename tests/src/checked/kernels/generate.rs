//! Makes random kernels: few places in memory, so that accesses meet, and barriers that all invocations reach.

use cranelift_entity::PrimaryMap;
use spelter_memory_model::event::{Class, Scope};
use spelter_shaders::ir::{Site, SiteAction};

use super::super::generate::{MAX_EVENTS, SHAPES};
use super::super::operations::{Rules, Style};
use super::super::{Effect, Shape};
use super::{Agents, Home, Instruction, PUSH_WORDS, Part, Place, RandomKernel, Second};
use crate::mutate::Rng;

/// The most events that do not depend on push constants.
const MAX_STATIC_EVENTS: usize = MAX_EVENTS - 30;

impl RandomKernel {
    /// The kernel of a seed.
    pub(super) fn random(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x006b_6572_6e65_6c73);
        let (workgroups, invocations, subgroup_size) = rng.pick(&SHAPES);
        let shape = Shape { workgroups, invocations, subgroup_size };
        // In one kernel of six two buffers are one memory, or overlap, and one of them is only read.
        let read_and_written = rng.below(6) == 0;
        let homes: &[Home] = match rng.below(9) {
            _ if read_and_written => &[Home::First, Home::Second],
            0 | 1 => &[Home::First],
            2 => &[Home::First, Home::First, Home::Second],
            3 => &[Home::Tile],
            4 => &[Home::Tile, Home::Tile, Home::Other],
            5 => &[Home::First, Home::Tile],
            6 => &[Home::Texels],
            7 => &[Home::First, Home::Texels],
            _ => &Home::ALL,
        };
        let mut classes: Vec<_> = homes.iter().map(|&home| class_of(home)).collect();
        classes.dedup();
        let style = Style {
            rules: rng.pick(&[Rules::Vulkan, Rules::Glsl450]),
            strong: rng.pick(if read_and_written { &[90, 100, 100] } else { &[40, 75, 90, 97, 100, 100] }),
            classes,
        };
        let seconds: &[Second] = match read_and_written {
            true => &[Second::Alias, Second::Alias, Second::Overlap],
            false => &[
                Second::Apart,
                Second::Alias,
                Second::Overlap,
                Second::Elements(1),
                Second::Elements(2),
                Second::Elements(8),
                Second::ElementsApart(1),
                Second::ElementsApart(2),
            ],
        };
        let coherent = [(); 3].map(|()| rng.below(4) > 0);
        let kernel = Self {
            shape,
            rules: style.rules,
            second: rng.pick(seconds),
            only_read: read_and_written.then(|| rng.pick(homes)),
            texel_buffer: rng.below(2) == 0,
            coherent: if read_and_written { [coherent[0]; 3] } else { coherent },
            parts: Vec::new(),
            instructions: PrimaryMap::new(),
        };
        let (atomics, fences) = (rng.below(3) > 0, rng.below(2) == 0 && !read_and_written);
        let mut maker = Maker { rng, style, homes, kernel, atomics, fences, events: 0, pushed: 0 };
        maker.parts();
        maker.returns();
        maker.kernel
    }
}

fn class_of(home: Home) -> Class {
    match home {
        Home::First | Home::Second => Class::Uniform,
        Home::Texels => Class::Image,
        Home::Tile | Home::Other => Class::Workgroup,
    }
}

struct Maker {
    rng: Rng,
    style: Style,
    homes: &'static [Home],
    kernel: RandomKernel,
    /// Whether the kernel has atomics, and memory barriers.
    atomics: bool,
    fences: bool,
    /// Events that do not depend on push constants.
    events: usize,
    /// Words of push constants so far.
    pushed: u32,
}

impl Maker {
    fn parts(&mut self) {
        let count = 1 + self.rng.below(5);
        for number in 0..count {
            let rounds = if self.rng.below(3) == 0 { 2 + self.rng.below(2) as u32 } else { 1 };
            let mut part = Part { rounds, instructions: Vec::new(), returns: None };
            let accesses = 1 + self.rng.below(5);
            for access in 0..accesses {
                if access > 0 && self.rng.below(8) == 0 {
                    self.barrier(Scope::Subgroup, &mut part);
                }
                if self.fences && self.rng.below(5) == 0 {
                    self.fence(&mut part);
                } else {
                    self.access(&mut part);
                }
            }
            if rounds > 1 && self.rng.below(4) > 0 || number + 1 < count && self.rng.below(8) > 0 {
                self.meeting(&mut part);
            }
            self.push_words(&mut part);
            self.kernel.parts.push(part);
        }
    }

    /// A barrier of the workgroup; a third of them is between two memory barriers, as in GLSL.
    fn meeting(&mut self, part: &mut Part) {
        let fenced = self.fences && self.rng.below(3) == 0;
        if fenced && self.rng.below(3) > 0 {
            let (effect, action) = self.style.fence(&mut self.rng);
            self.add((effect, action), None, Agents::Everything, part);
        }
        self.barrier(Scope::Workgroup, part);
        if fenced && self.rng.below(3) > 0 {
            let (effect, action) = self.style.fence(&mut self.rng);
            self.add((effect, action), None, Agents::Everything, part);
        }
    }

    fn barrier(&mut self, execution: Scope, part: &mut Part) {
        let made = self.style.barrier(&mut self.rng, execution);
        self.add(made, None, Agents::Everything, part);
    }

    fn fence(&mut self, part: &mut Part) {
        let made = self.style.fence(&mut self.rng);
        let agents = self.agents();
        self.add(made, None, agents, part);
    }

    fn access(&mut self, part: &mut Part) {
        let home = self.rng.pick(self.homes);
        let class = class_of(home);
        let bytes = self.kernel.element_bytes(home);
        let only_read = self.kernel.only_read == Some(home);
        let atomic = self.atomics && bytes >= 4 && self.rng.below(5) < 2 && !only_read;
        let made = if atomic {
            self.style.atomic_of(&mut self.rng, &[class])
        } else {
            let coherent = match home {
                Home::First => self.kernel.coherent[0],
                Home::Second => self.kernel.coherent[1],
                Home::Texels => self.kernel.coherent[2],
                Home::Tile | Home::Other => true,
            };
            let writes = self.rng.below(2) == 0 && !only_read;
            let mut made = self.style.plain_of(&mut self.rng, class, coherent, writes);
            if let SiteAction::Read(site) | SiteAction::Write(site) = &mut made.1 {
                // By the rules of GLSL450 a volatile access is coherent.
                site.volatile &= site.non_private && self.style.rules == Rules::Vulkan;
            }
            made
        };
        let agents = self.agents();
        let apart = self.rng.below(4) > 0;
        // What all write in one place races, and most programs should not.
        let all_write = agents == Agents::All && matches!(made.1, SiteAction::Write(_)) && self.rng.below(8) > 0;
        let place = match self.rng.below(10) {
            0..=4 if !all_write => Place::Pushed,
            5 | 6 if !all_write => Place::Element(element(&mut self.rng, atomic, bytes)),
            7 => Place::Lane { further: 1 + self.rng.below(2) as u32, apart },
            _ => Place::Lane { further: 0, apart },
        };
        self.add(made, Some((home, place)), agents, part);
    }

    fn agents(&mut self) -> Agents {
        match self.rng.below(5) {
            0..=2 => Agents::Pushed,
            3 => Agents::One(self.rng.below(self.kernel.shape.invocations as usize) as u32),
            _ => Agents::All,
        }
    }

    /// Some agents return after parts that no barrier follows: one that they do not reach would be an error of its own.
    fn returns(&mut self) {
        for part in self.kernel.parts.iter_mut().rev() {
            let action = |site: &Site| self.kernel.instructions[*site].action;
            if part.instructions.iter().any(|site| matches!(action(site), SiteAction::Barrier { .. })) {
                return;
            }
            if self.pushed + part.rounds <= PUSH_WORDS as u32 && self.rng.below(3) == 0 {
                part.returns = Some((self.pushed, 1));
                self.pushed += part.rounds;
            }
        }
    }

    /// Adds an instruction if there is room for its events.
    fn add(
        &mut self,
        (effect, action): (Effect, SiteAction),
        access: Option<(Home, Place)>,
        agents: Agents,
        part: &mut Part,
    ) {
        let Shape { workgroups, invocations, .. } = self.kernel.shape;
        let executions = match agents {
            Agents::Pushed => 0,
            Agents::One(_) => workgroups as usize,
            Agents::All | Agents::Everything => workgroups as usize * invocations as usize,
        };
        let events = executions * part.rounds as usize * self.kernel.accesses(action, access);
        if self.events + events > MAX_STATIC_EVENTS {
            return;
        }
        self.events += events;
        let value = self.rng.below(3) as u32;
        let instruction = Instruction { action, effect, access, agents, value, push: None };
        part.instructions.push(self.kernel.instructions.push(instruction));
    }

    /// Gives words of push constants to the instructions that need some; without any left they are not part of it.
    fn push_words(&mut self, part: &mut Part) {
        let instructions = &mut self.kernel.instructions;
        let needs = |instruction: &Instruction| {
            instruction.agents == Agents::Pushed || matches!(instruction.access, Some((_, Place::Pushed)))
        };
        let mut left = (PUSH_WORDS as u32 - self.pushed) / part.rounds;
        part.instructions.retain(|&site| {
            let fits = !needs(&instructions[site]) || left > 0;
            left -= u32::from(needs(&instructions[site]) && fits);
            fits
        });
        let pushed: Vec<Site> = part.instructions.iter().copied().filter(|&site| needs(&instructions[site])).collect();
        let step = pushed.len() as u32;
        for (number, &site) in pushed.iter().enumerate() {
            instructions[site].push = Some((self.pushed + number as u32, step));
        }
        self.pushed += step * part.rounds;
    }
}

/// An element that any invocation may access: two words of data and two of flags; plain accesses mostly touch data,
/// atomics mostly flags.
pub(super) fn element(rng: &mut Rng, atomic: bool, bytes: u32) -> u32 {
    let flag = if rng.below(8) == 0 { !atomic } else { atomic };
    let word = 2 * u32::from(flag) + u32::from(rng.below(4) == 0);
    match bytes {
        1 => 4 * word + rng.below(4) as u32,
        2 => 2 * word + rng.below(2) as u32,
        4 => word,
        _ => word / 2,
    }
}
