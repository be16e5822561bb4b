//! Subgroup loops: a loop over a workgroup's subgroups for each set of parallel regions (code between barriers) that
//! share blocks.
//!
//! With uniform barriers, which Vulkan demands, the last subgroup selects the next region, and values that are uniform
//! in the workgroup are carried in loop parameters. If data races nevertheless make subgroups reach different barriers,
//! the workgroup ends: no subgroup may resume at a barrier that it did not reach. Without uniform barriers, each
//! subgroup has a resume index in memory, the number of the region that it waits for, and a loop skips subgroups that
//! wait for regions of other loops.

mod barrier_check;
mod bound;
mod context_slots;
mod latch;
mod regions;
pub(super) mod subgroup;

use cranelift_entity::{EntitySet, SecondaryMap};
use foldhash::HashMap;
use smallvec::SmallVec;

use self::barrier_check::BarrierCheck;
use self::bound::{MaskBounds, trip_count_bound};
use crate::simd::builder::Builder;
use crate::simd::ssa::Carried;
use crate::simd::{Address, Block, BlockCall, BoundedIndex, ContextField, InstData, Kernel, Type, Value};

/// Resume index of a subgroup that has ended.
const ENDED: u32 = u32::MAX;

/// Parallel regions of a kernel without uniform barriers above which the loops share one switch to the next region: a
/// switch for each loop would make the code quadratic in the regions.
const MAX_CASES: usize = 12;

/// A parallel region: code from a subgroup's entry, or a resume point, to the barriers where the subgroup stops.
#[derive(Clone, Debug)]
pub(super) struct ParallelRegion {
    /// Its first block.
    pub(super) block: Block,
    /// The block that ends with the barrier before the region; none for the first region.
    pub(super) stop: Option<Block>,
    /// The check of that barrier.
    pub(super) check: Option<BarrierCheck>,
}

/// The input of the loops.
#[derive(Debug)]
pub(super) struct SubgroupLoops {
    pub(super) regions: Vec<ParallelRegion>,
    /// The block that ends a subgroup.
    pub(super) end: Block,
    pub(super) template: Template,
    pub(super) mask_bounds: MaskBounds,
    /// Subgroups.
    pub(super) count: u32,
    /// Whether all subgroups reach each barrier together.
    pub(super) uniform_barriers: bool,
}

/// The instructions at a subgroup's entry: each loop's header gets a copy of those that it uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Template {
    pub(super) block: Block,
    /// The loop's index, a parameter.
    pub(super) index: Value,
    /// The subgroup's number: the index, unless the order of subgroups is that of a schedule.
    pub(super) number: Value,
}

/// The loop's index and the subgroup's number in one loop.
#[derive(Clone, Copy, Debug)]
struct SubgroupIteration {
    index: Value,
    number: Value,
}

/// The values that are carried to each parallel region, by its first block.
type CarriedByRegion = HashMap<Block, SmallVec<[Carried; 4]>>;

/// One loop over the subgroups, before it is built.
#[derive(Debug)]
struct RegionLoop {
    /// The regions that it runs, ascending.
    regions: Vec<usize>,
    /// In the layout's order.
    blocks: Vec<Block>,
    /// The regions in which subgroups resume after this loop.
    next_regions: Vec<usize>,
    /// Whether subgroups may end in it.
    ends: bool,
    /// The parameters of the preheader are the same for all subgroups.
    preheader: Block,
    header: Block,
    latch: Block,
}

/// All loops over the subgroups, and which of them runs each region.
#[derive(Debug)]
struct RegionLoops {
    loops: Vec<RegionLoop>,
    of_region: Vec<usize>,
}

impl RegionLoop {
    /// A loop without regions.
    fn new(builder: &mut Builder) -> Self {
        let [preheader, header, latch] = std::array::from_fn(|_| builder.create_block());
        let (regions, blocks, next_regions) = (Vec::new(), Vec::new(), Vec::new());
        Self { regions, blocks, next_regions, ends: false, preheader, header, latch }
    }

    /// Whether the header has a parameter for the resume index of earlier subgroups: to find the least one, or to check
    /// that all have the same.
    fn has_states(&self, uniform_barriers: bool) -> bool {
        !uniform_barriers || self.next_regions.len() + usize::from(self.ends) > 1
    }
}

impl SubgroupLoops {
    /// Builds the loops from the blocks of one subgroup, in which barriers are returns. Returns the number of loops
    /// that end before the last subgroup.
    pub(super) fn build(mut self, builder: &mut Builder) -> u64 {
        let mut bounded = 0;
        let mut carried = CarriedByRegion::default();
        let values: Vec<Carried> = builder.variables.carried().collect();
        values.into_iter().for_each(|value| carried.entry(value.resume).or_default().push(value));
        let all = self.find_loops(builder);
        let loops = &all.loops;
        let entry = builder.kernel.layout[0];
        builder.kernel.layout = vec![entry];
        let selectors: Vec<Option<Value>> =
            loops.iter().map(|region_loop| self.add_params(builder, region_loop, &carried)).collect();
        let (nothing, mut shared_switch) = (HashMap::default(), None);
        for (region_loop, selector) in loops.iter().zip(selectors) {
            let (iteration, min) = self.begin(builder, region_loop, selector);
            builder.kernel.layout.extend(&region_loop.blocks);
            let (next, values) = self.leave(builder, region_loop, iteration.number, &carried);
            // The next region and carried values come from the last subgroup, which must run if there are any. In the
            // order of a schedule, subgroups without work are not the last ones.
            let is_ascending = iteration.number == iteration.index;
            let count = if is_ascending && self.uniform_barriers && next.is_none() && values.is_empty() {
                trip_count_bound(builder, (region_loop.header, region_loop.latch), &self.mask_bounds, self.count)
            } else {
                self.count
            };
            bounded += u64::from(count < self.count);
            let next = self.repeat(builder, region_loop, (iteration.index, min), count, next);
            match next {
                Some(state) if !self.uniform_barriers && self.regions.len() > MAX_CASES => {
                    self.jump_to_next_shared(builder, state, &mut shared_switch, |builder, region| {
                        self.call(builder, &all, &carried, region, &nothing)
                    });
                }
                _ => self.jump_to_next(builder, region_loop, next, |builder, region| {
                    let to = self.call(builder, &all, &carried, region, &values);
                    let lanes = builder.kernel.blocks[region_loop.header].exec;
                    self.by_way_of_check(builder, region, lanes, to)
                }),
            }
        }
        let to = self.call(builder, &all, &carried, 0, &nothing);
        builder.terminate_at(entry, InstData::Jump { to });
        bounded
    }

    /// Groups the regions that share blocks, by union-find over the blocks that each region reaches.
    fn find_loops(&self, builder: &mut Builder) -> RegionLoops {
        let mut region_of: SecondaryMap<Block, Option<usize>> = SecondaryMap::new();
        let mut first: Vec<usize> = (0..self.regions.len()).collect();
        let find = |first: &[usize], mut region: usize| {
            while first[region] != region {
                region = first[region];
            }
            region
        };
        for (number, region) in self.regions.iter().enumerate() {
            let mut stack = vec![region.block];
            while let Some(block) = stack.pop() {
                if let Some(other) = region_of[block] {
                    let [a, b] = [other, number].map(|region| find(&first, region));
                    first[a.max(b)] = a.min(b);
                    continue;
                }
                region_of[block] = Some(number);
                stack.extend(targets(&builder.kernel, block).filter(|&target| target != self.end));
            }
        }
        let mut loops = Vec::new();
        let mut of_region: Vec<usize> = Vec::with_capacity(first.len());
        for region in 0..first.len() {
            let of = match find(&first, region) {
                root if root == region => {
                    loops.push(RegionLoop::new(builder));
                    loops.len() - 1
                }
                // The root is the least of them.
                root => of_region[root],
            };
            loops[of].regions.push(region);
            of_region.push(of);
        }
        let of_block = |block: Block| region_of[block].map(|region| of_region[region]);
        for (number, region) in self.regions.iter().enumerate() {
            if let Some(of) = region.stop.and_then(of_block) {
                loops[of].next_regions.push(number);
            }
        }
        for &block in &builder.kernel.layout {
            if let Some(of) = of_block(block) {
                loops[of].blocks.push(block);
                loops[of].ends |= targets(&builder.kernel, block).any(|target| target == self.end);
            }
        }
        RegionLoops { loops, of_region }
    }

    /// Adds the parameters of a loop's preheader: the number of the region to run, if the loop has several, which is
    /// returned, and the values that are carried to its regions.
    fn add_params(&self, builder: &mut Builder, region_loop: &RegionLoop, carried: &CarriedByRegion) -> Option<Value> {
        let several = self.uniform_barriers && region_loop.regions.len() > 1;
        let selector = several.then(|| builder.param(region_loop.preheader, Type::S32));
        for value in self.carried_to(region_loop, carried) {
            builder.adopt_param(region_loop.preheader, value.1.param);
        }
        selector
    }

    /// The values that are carried to regions of a loop, each with its region.
    fn carried_to<'a>(
        &'a self,
        region_loop: &'a RegionLoop,
        carried: &'a CarriedByRegion,
    ) -> impl Iterator<Item = (usize, &'a Carried)> {
        let of = |&region: &usize| {
            carried.get(&self.regions[region].block).into_iter().flatten().map(move |value| (region, value))
        };
        region_loop.regions.iter().flat_map(of)
    }

    /// The edge to the loop of a region. `values` has the arguments for the values that are carried to it.
    fn call(
        &self,
        builder: &mut Builder,
        all: &RegionLoops,
        carried: &CarriedByRegion,
        region: usize,
        values: &HashMap<Value, Value>,
    ) -> BlockCall {
        let region_loop = &all.loops[all.of_region[region]];
        let mut args = SmallVec::new();
        if self.uniform_barriers && region_loop.regions.len() > 1 {
            args.push(builder.s32(region as u32));
        }
        for (of, value) in self.carried_to(region_loop, carried) {
            let arg = values.get(&value.param).copied().filter(|_| of == region);
            args.push(arg.unwrap_or_else(|| {
                let ty = builder.ty(value.param);
                builder.emit_one(InstData::Undef { ty })
            }));
        }
        BlockCall { block: region_loop.preheader, args }
    }

    /// Builds a loop's preheader and header. Also returns a resume index: with uniform barriers that of the subgroup
    /// before, otherwise the least one so far.
    fn begin(
        &mut self,
        builder: &mut Builder,
        region_loop: &RegionLoop,
        selector: Option<Value>,
    ) -> (SubgroupIteration, Value) {
        builder.switch_to(region_loop.preheader);
        let (zero, none) = (builder.s32(0), builder.s32(ENDED));
        let states = region_loop.has_states(self.uniform_barriers);
        let args = if states { SmallVec::from_slice(&[zero, none]) } else { SmallVec::from_slice(&[zero]) };
        builder.emit(InstData::Jump { to: BlockCall { block: region_loop.header, args } });
        builder.switch_to(region_loop.header);
        let index = builder.param(region_loop.header, Type::S32);
        let min = if states { builder.param(region_loop.header, Type::S32) } else { none };
        let number = self.copy_template(builder, region_loop, index);
        let iteration = SubgroupIteration { index, number };
        let call = |region: usize| BlockCall::new(self.regions[region].block);
        let cases = |regions: &[usize]| regions.iter().map(|&region| (region as u32, call(region))).collect();
        if !self.uniform_barriers {
            // Subgroups that wait for a region of another loop are skipped.
            let address = self.state(builder, number);
            let selector = builder.emit_value(InstData::Load { ty: Type::S32, address });
            let skip = builder.create_block();
            builder.emit(InstData::Switch {
                selector,
                default: BlockCall::new(skip),
                cases: cases(&region_loop.regions),
            });
            builder.switch_to(skip);
            let args = SmallVec::from_slice(&[selector]);
            builder.emit(InstData::Jump { to: BlockCall { block: region_loop.latch, args } });
            return (iteration, min);
        }
        match (selector, region_loop.regions.split_last()) {
            (Some(selector), Some((&last, others))) => {
                builder.emit(InstData::Switch { selector, default: call(last), cases: cases(others) })
            }
            _ => builder.emit(InstData::Jump { to: call(region_loop.regions[0]) }),
        };
        (iteration, min)
    }

    /// Copies the instructions of the template that a loop uses to its header. Returns the subgroup's number.
    fn copy_template(&mut self, builder: &mut Builder, region_loop: &RegionLoop, index: Value) -> Value {
        let Template { block, index: of_template, number } = self.template;
        let kernel = &mut builder.kernel;
        let mut needed = EntitySet::new();
        for &block in &region_loop.blocks {
            for &inst in &kernel.blocks[block].insts {
                kernel.insts[inst].for_each_use(|value| _ = needed.insert(value));
            }
        }
        // The number selects the resume index.
        needed.extend((!self.uniform_barriers).then_some(number));
        let lanes = kernel.blocks[block].exec;
        lanes.into_iter().for_each(|value| _ = needed.insert(value));
        let template = kernel.blocks[block].insts.clone();
        for &inst in template.iter().rev() {
            if kernel.results[inst].iter().any(|&result| needed.contains(result)) {
                kernel.insts[inst].for_each_use(|value| _ = needed.insert(value));
            }
        }
        let mut copies: HashMap<Value, Value> = [(of_template, index)].into_iter().collect();
        let rename = |copies: &HashMap<Value, Value>, value: &mut Value| {
            if let Some(&copy) = copies.get(value) {
                *value = copy;
            }
        };
        for inst in template {
            let [result] = *builder.kernel.results[inst].as_slice() else { continue };
            if needed.contains(result) {
                let mut data = builder.kernel.insts[inst].clone();
                data.for_each_use_mut(|value| rename(&copies, value));
                let copy = builder.emit_value(data);
                copies.insert(result, copy);
                if let Some(&bound) = self.mask_bounds.get(&result) {
                    self.mask_bounds.insert(copy, bound);
                }
            }
        }
        let kernel = &mut builder.kernel;
        kernel.blocks[region_loop.header].exec = lanes;
        kernel.blocks[region_loop.header].is_region_entry = true;
        for &block in region_loop.blocks.iter().chain([&region_loop.header]) {
            if let Some(exec) = &mut kernel.blocks[block].exec {
                rename(&copies, exec);
            }
            if block != region_loop.header {
                for &inst in &kernel.blocks[block].insts {
                    kernel.insts[inst].for_each_use_mut(|value| rename(&copies, value));
                }
            }
        }
        copies.get(&number).copied().unwrap_or(number)
    }

    /// The address of a subgroup's resume index.
    fn state(&self, builder: &mut Builder, number: Value) -> Address {
        let base = builder.emit_one(InstData::Context { field: ContextField::Frames });
        let limit = builder.s32(self.count);
        Address { base, index: Some(BoundedIndex { index: number, limit }), scale: 4, disp: 0 }
    }
}

fn targets(kernel: &Kernel, block: Block) -> impl Iterator<Item = Block> {
    kernel.targets(block).into_iter().map(|call| call.block).collect::<SmallVec<[Block; 4]>>().into_iter()
}
