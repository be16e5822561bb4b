//! How subgroups leave a subgroup loop: its latch, where they stop or end, its exit, and the jump to the next region.

use foldhash::HashMap;
use smallvec::SmallVec;

use super::{CarriedByRegion, ENDED, RegionLoop, SubgroupLoops};
use crate::ir::{Op, Width};
use crate::simd::builder::{ALL, Builder};
use crate::simd::{Block, BlockCall, InstData, SubgroupLoop, Type, Value};

impl SubgroupLoops {
    /// Redirects the stops and ends in a loop to its latch. Returns the resume index, if there are several, and the
    /// carried values as they are after the loop.
    pub(super) fn leave(
        &self,
        builder: &mut Builder,
        region_loop: &RegionLoop,
        number: Value,
        carried: &CarriedByRegion,
    ) -> (Option<Value>, HashMap<Value, Value>) {
        let mut edges: Vec<(u32, Block)> = region_loop
            .next_regions
            .iter()
            .filter_map(|&region| Some((region as u32, self.regions[region].stop?)))
            .collect();
        for &(_, stop) in &edges {
            builder.kernel.blocks[stop].insts.pop();
        }
        if region_loop.ends {
            let end = builder.create_block();
            self.end_at(builder, region_loop, end);
            builder.switch_to(end);
            edges.push((ENDED, end));
        }
        let several = edges.len() > 1;
        let mut args: Vec<SmallVec<[Value; 4]>> = vec![SmallVec::new(); edges.len()];
        let mut next = None;
        if several || !self.uniform_barriers {
            next = Some(builder.param(region_loop.latch, Type::S32));
            for (args, edge) in args.iter_mut().zip(&edges) {
                args.push(builder.s32(edge.0));
            }
        }
        let mut values = HashMap::default();
        for (edge, &region) in region_loop.next_regions.iter().enumerate() {
            for value in carried.get(&self.regions[region].block).into_iter().flatten() {
                if !several {
                    values.insert(value.param, value.arg);
                    continue;
                }
                let ty = builder.ty(value.param);
                values.insert(value.param, builder.param(region_loop.latch, ty));
                let undef = builder.emit_one(InstData::Undef { ty });
                for (other, args) in args.iter_mut().enumerate() {
                    args.push(if other == edge { value.arg } else { undef });
                }
            }
        }
        for ((state, stop), args) in edges.into_iter().zip(args) {
            if !self.uniform_barriers {
                let address = self.state(builder, number);
                let (value, mask) = (builder.s32(state), builder.constant(Type::Mask, ALL));
                builder.terminate_at(stop, InstData::Store { width: Width::Word, address, value, mask });
            }
            builder.terminate_at(stop, InstData::Jump { to: BlockCall { block: region_loop.latch, args } });
        }
        (next, values)
    }

    /// Redirects the edges from a loop to the shared end to `end`.
    fn end_at(&self, builder: &mut Builder, region_loop: &RegionLoop, end: Block) {
        let kernel = &mut builder.kernel;
        for &block in &region_loop.blocks {
            if let Some(&last) = kernel.blocks[block].insts.last() {
                let calls = kernel.insts[last].targets_mut().into_iter();
                calls.filter(|call| call.block == self.end).for_each(|call| call.block = end);
            }
        }
    }

    /// Builds a loop's latch: the back edge to the next of `count` subgroups, and the edge to a new exit block. Gives
    /// the resume index that selects the next region.
    pub(super) fn repeat(
        &self,
        builder: &mut Builder,
        region_loop: &RegionLoop,
        (index, min): (Value, Value),
        count: u32,
        next: Option<Value>,
    ) -> Option<Value> {
        builder.switch_to(region_loop.latch);
        let pure = |builder: &mut Builder, op, args: [Value; 2]| {
            builder.emit_value(InstData::Pure { op, args: args.into_iter().collect() })
        };
        let next = next.map(|state| {
            if !self.uniform_barriers {
                return pure(builder, Op::UMin, [min, state]);
            }
            let zero = builder.s32(0);
            let same = pure(builder, Op::IEq, [min, state]);
            let first = pure(builder, Op::IEq, [index, zero]);
            // A data race made this subgroup reach another barrier than the one before it.
            let fine = pure(builder, Op::LOr, [same, first]);
            let [goes_on, quits] = [builder.create_block(), builder.create_block()];
            let (then, otherwise) = (BlockCall::new(goes_on), BlockCall::new(quits));
            builder.emit(InstData::Branch { condition: fine, then, otherwise });
            builder.switch_to(quits);
            builder.emit(InstData::Return);
            builder.switch_to(goes_on);
            state
        });
        let (one, count) = (builder.s32(1), builder.s32(count));
        let next_index = pure(builder, Op::IAdd, [index, one]);
        let condition = pure(builder, Op::ULt, [next_index, count]);
        let min = next.filter(|_| region_loop.has_states(self.uniform_barriers));
        let then = BlockCall { block: region_loop.header, args: [next_index].into_iter().chain(min).collect() };
        let after = builder.create_block();
        let (preheader, header, latch) = (region_loop.preheader, region_loop.header, builder.current());
        builder.kernel.subgroup_loops.push(SubgroupLoop { preheader, header, latch, index, step: 1, count });
        builder.emit(InstData::Branch { condition, then, otherwise: BlockCall::new(after) });
        builder.switch_to(after);
        next
    }

    /// Without uniform barriers and with many regions: the loops share one block that jumps to the region with the
    /// least resume index.
    pub(super) fn jump_to_next_shared(
        &self,
        builder: &mut Builder,
        state: Value,
        shared_switch: &mut Option<Block>,
        mut call: impl FnMut(&mut Builder, usize) -> BlockCall,
    ) {
        let known = *shared_switch;
        let block = known.unwrap_or_else(|| builder.create_block());
        builder.emit(InstData::Jump { to: BlockCall { block, args: SmallVec::from_slice(&[state]) } });
        if known.is_some() {
            return;
        }
        *shared_switch = Some(block);
        builder.switch_to(block);
        let selector = builder.param(block, Type::S32);
        let done = builder.create_block();
        let cases = (1..self.regions.len()).map(|region| (region as u32, call(builder, region))).collect();
        builder.emit(InstData::Switch { selector, default: BlockCall::new(done), cases });
        builder.switch_to(done);
        builder.emit(InstData::Return);
    }

    /// After a loop: jumps to the region with the resume index `next`, or ends the workgroup.
    pub(super) fn jump_to_next(
        &self,
        builder: &mut Builder,
        region_loop: &RegionLoop,
        next: Option<Value>,
        mut call: impl FnMut(&mut Builder, usize) -> BlockCall,
    ) {
        let mut regions =
            if self.uniform_barriers { region_loop.next_regions.clone() } else { (1..self.regions.len()).collect() };
        let last = if region_loop.ends || !self.uniform_barriers { None } else { regions.pop() };
        let default = match last {
            Some(region) => call(builder, region),
            None => BlockCall::new(builder.create_block()),
        };
        let done = default.block;
        match next.filter(|_| !regions.is_empty()) {
            Some(selector) => {
                let cases = regions.into_iter().map(|region| (region as u32, call(builder, region))).collect();
                builder.emit(InstData::Switch { selector, default, cases });
            }
            None => _ = builder.emit(InstData::Jump { to: default }),
        }
        if last.is_none() {
            builder.switch_to(done);
            builder.emit(InstData::Return);
        }
    }
}
