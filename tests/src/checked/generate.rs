//! Random programs: few places in memory, so that accesses meet, and barriers that all invocations reach.

use std::sync::Arc;

use cranelift_entity::PrimaryMap;
use spelter_memory_model::event::Scope;
use spelter_shaders::check::observer::{Memory, Target};
use spelter_shaders::ir::{AtomicOp, Site, SiteAction, SiteData, StorageClass};

use super::operations::Style;
use super::{Effect, Program, Shape, Step};
use crate::mutate::Rng;

/// The most events that a program executes: the rows of its relations are 128 bits.
pub(super) const MAX_EVENTS: usize = 120;

/// Workgroups, invocations of each, subgroup size.
pub(super) const SHAPES: [(u64, u32, u32); 16] = [
    (1, 2, 2),
    (1, 2, 1),
    (2, 1, 1),
    (1, 3, 2),
    (3, 1, 1),
    (1, 4, 2),
    (1, 4, 4),
    (2, 2, 2),
    (2, 2, 1),
    (4, 1, 1),
    (1, 5, 2),
    (1, 6, 2),
    (1, 6, 3),
    (2, 3, 2),
    (3, 2, 2),
    (6, 1, 1),
];

/// Where device memory begins: any address with zeros at its end.
const BUFFER: u64 = 0x7000_0000_1000;
const IMAGE: u64 = 0x7000_0001_0000;

impl Program {
    /// The program of a seed: 2 to 6 invocations, at most 120 events.
    pub fn random(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x5eed_c0de);
        let style = Style::random(&mut rng);
        let (workgroups, invocations, subgroup_size) = rng.pick(&SHAPES);
        let shape = Shape { workgroups, invocations, subgroup_size };
        let (sites, effects) = (PrimaryMap::new(), PrimaryMap::new());
        let mut maker = Maker { rng, style, sites, effects, pool: Vec::new(), fences: [None; 2] };
        maker.fill_pool();
        maker.fence_barriers(&mut Rng::new(seed ^ 0xfe_4ced));
        let steps = maker.steps(shape);
        Self { shape, sites: maker.sites, effects: maker.effects, steps }
    }
}

struct Maker {
    rng: Rng,
    style: Style,
    sites: PrimaryMap<Site, SiteData>,
    effects: PrimaryMap<Site, Effect>,
    /// Accesses and fences, which any invocation may execute at any time.
    pool: Vec<Site>,
    /// The fences that all invocations execute just before and after barriers of the workgroup.
    fences: [Option<Site>; 2],
}

impl Maker {
    fn site(&mut self, (effect, action): (Effect, SiteAction)) -> Site {
        self.effects.push(effect);
        let word = 100 + 5 * self.sites.len() as u32;
        self.sites.push(SiteData { action, word, inlined_at: Arc::new([]) })
    }

    fn fill_pool(&mut self) {
        for _ in 0..4 + self.rng.below(10) {
            let made = match self.rng.below(12) {
                0..=2 => self.style.plain(&mut self.rng, false),
                3..=5 => self.style.plain(&mut self.rng, true),
                6..=9 => self.style.atomic(&mut self.rng),
                _ => self.style.fence(&mut self.rng),
            };
            let site = self.site(made);
            self.pool.push(site);
        }
    }

    /// A third of the programs has fences around barriers, as in GLSL. They come from numbers of their own.
    fn fence_barriers(&mut self, rng: &mut Rng) {
        if rng.below(3) == 0 {
            for side in 0..2 {
                let made = (rng.below(3) > 0).then(|| self.style.fence(rng));
                self.fences[side] = made.map(|made| self.site(made));
            }
        }
    }

    /// The steps of all invocations.
    fn steps(&mut self, shape: Shape) -> Vec<Vec<Step>> {
        // The same phase in all workgroups often ends with the same barrier, as in a loop.
        let looped = self.rng.below(3) == 0;
        let phases = if looped { 1 + self.rng.below(8) } else { 1 + self.rng.below(4) };
        let share = MAX_EVENTS / (shape.workgroups as usize * shape.invocations as usize);
        let wide: Vec<_> = (0..phases).map(|_| self.barrier(Scope::Workgroup)).collect();
        let narrow: Vec<_> = (0..2).map(|_| self.barrier(Scope::Subgroup)).collect();
        // An update that many execute, as of a ticket or a counter.
        let updates = |site: &Site| match self.sites[*site].action {
            SiteAction::Atomic { op, .. } => !matches!(op, AtomicOp::Load | AtomicOp::Store),
            _ => false,
        };
        let counted = self.pool.iter().copied().find(updates);
        let counter = counted.filter(|_| self.rng.below(3) == 0);
        let counter = counter.map(|site| Step { equal: true, ..self.step_of(site) });
        let busy = 1 + self.rng.below(4);
        let mut all = Vec::new();
        for _ in 0..shape.workgroups {
            let mut members = vec![Vec::new(); shape.invocations as usize];
            for (phase, &barrier) in wide.iter().enumerate() {
                for subgroup in members.chunks_mut(shape.subgroup_size as usize) {
                    let parts = if self.rng.below(3) == 0 { 2 + self.rng.below(2) } else { 1 };
                    for part in 0..parts {
                        let meet = (part > 0).then(|| self.meet(self.narrow_of(&narrow, part)));
                        for member in &mut *subgroup {
                            member.extend(meet);
                            for _ in 0..self.rng.below(busy + 1) {
                                member.push(self.step());
                            }
                            member.extend(counter.filter(|_| self.rng.below(2) == 0));
                        }
                    }
                }
                if phase + 1 < phases {
                    let barrier = if looped { wide[0] } else { barrier };
                    let meet = [self.fences[0], Some(barrier), self.fences[1]].into_iter().flatten();
                    let meet: Vec<_> = meet.map(|site| self.meet(site)).collect();
                    members.iter_mut().for_each(|member| member.extend(&meet));
                }
            }
            for member in &mut members {
                // Some invocations return early; the others go on without them.
                let length = if self.rng.below(12) == 0 { self.rng.below(member.len() + 1) } else { member.len() };
                member.truncate(length.min(share));
            }
            all.extend(members);
        }
        all
    }

    fn narrow_of(&self, narrow: &[Site], part: usize) -> Site {
        narrow[part % narrow.len()]
    }

    fn barrier(&mut self, execution: Scope) -> Site {
        let made = self.style.barrier(&mut self.rng, execution);
        self.site(made)
    }

    fn meet(&self, site: Site) -> Step {
        Step { site, target: None, equal: false }
    }

    /// An access or a fence.
    fn step(&mut self) -> Step {
        let site = self.rng.pick(&self.pool);
        self.step_of(site)
    }

    fn step_of(&mut self, site: Site) -> Step {
        let target = self.sites[site].action.class().map(|class| self.target(class, site));
        Step { site, target, equal: self.rng.below(2) == 0 }
    }

    /// Two words of data and two of flags for each class; plain accesses mostly touch data, atomics mostly flags.
    fn target(&mut self, class: StorageClass, site: Site) -> Target {
        let rng = &mut self.rng;
        let atomic = matches!(self.sites[site].action, SiteAction::Atomic { .. });
        let flag = if rng.below(8) == 0 { !atomic } else { atomic };
        let word = 2 * u64::from(flag) + u64::from(rng.below(4) == 0);
        let (mut offset, mut bytes) = (4 * word, 4);
        if rng.below(8) == 0 {
            // Atomics are aligned to their size, plain accesses need not be.
            bytes = if atomic { rng.pick(&[2, 8]) } else { rng.pick(&[1, 2, 3, 8]) };
            offset = if atomic { offset / u64::from(bytes) * u64::from(bytes) } else { offset + rng.below(3) as u64 };
        }
        let second = u32::from(rng.below(10) == 0);
        let (memory, reference) = match class {
            StorageClass::Workgroup => (Memory::Workgroup(offset as u32), second),
            StorageClass::Uniform => (Memory::Device(BUFFER + offset), second),
            // A texel buffer of the storage buffer is another class for the same memory.
            StorageClass::Image if rng.below(10) == 0 => (Memory::Device(BUFFER + offset), 4),
            StorageClass::Image => (Memory::Device(IMAGE + offset), 2 + second),
        };
        Target { memory, bytes, reference }
    }
}
