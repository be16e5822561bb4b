//! Translates the IR to steps: values become registers, block arguments moves, and ids indices.

use cranelift_entity::SecondaryMap;

use super::atomic::{self, fence_order, order_of};
use super::code::{AtomicStep, BindingRange, CodeBlock, End, ImageStep, Step, StepFn, Tables, VariableRange, Wait};
use super::env::builtin_index;
use super::reconvergence::{LoopNest, SyncPoint, SyncPoints, is_sync_point};
use super::slots::{RegisterSlots, is_barrier};
use super::{image, memory, moves, pure, watch, wide};
use crate::image::ImageOp;
use crate::ir::op::MAX_STEP_ARGS;
use crate::ir::{
    Block, BlockCall, Inst, InstData, Kernel, Observed, ObservedVariable, Place, Scope, Site, SiteAction, Value,
    VariableData, VariableSpace,
};

/// Returns the code blocks, entry first, the tables that their steps index, and the sync points of subgroups.
pub(super) fn decode(
    kernel: &Kernel,
    slots: &RegisterSlots,
    nest: Option<&LoopNest>,
) -> (Vec<CodeBlock>, Tables, SyncPoints) {
    let mut order = SecondaryMap::new();
    for (number, &block) in kernel.layout.iter().enumerate() {
        order[block] = number as u32;
    }
    let descriptors = kernel.bindings.values().map(|data| data.count as usize).sum();
    let (bindings, variables) = (bindings(kernel), variables(kernel));
    let mut tables = Tables { bindings, variables, descriptors, ..Tables::default() };
    tables.messages.clone_from(&kernel.messages);
    for data in kernel.variables.values() {
        let words = data.words.iter().copied();
        tables.words.extend(words);
        tables.words.resize(tables.words.len().next_multiple_of(4), 0);
    }
    // One code block for each block; code after a barrier and code on an edge come after these.
    let blocks = kernel.layout.iter().map(|_| None).collect();
    let mut decoder = Decoder {
        kernel,
        slots,
        nest,
        order,
        tables,
        blocks,
        steps: Vec::new(),
        sync_points: Vec::new(),
        arriving: None,
    };
    for &block in &kernel.layout {
        decoder.block(block);
    }
    let sync_points = nest.map(|nest| nest.sync_points(decoder.sync_points)).unwrap_or_default();
    (decoder.blocks.into_iter().flatten().collect(), decoder.tables, sync_points)
}

fn bindings(kernel: &Kernel) -> Vec<BindingRange> {
    let mut first = 0;
    let range = |count: u32| {
        let range = BindingRange { first, count };
        first += u64::from(count);
        range
    };
    kernel.bindings.values().map(|data| data.count).map(range).collect()
}

fn variables(kernel: &Kernel) -> Vec<VariableRange> {
    let (mut shared, mut private, mut constant) = (0, 0, 0);
    let place = |data: &VariableData| {
        let end = match data.space {
            VariableSpace::Workgroup => &mut shared,
            VariableSpace::Private => &mut private,
            VariableSpace::Constant => &mut constant,
        };
        let range = VariableRange { space: data.space, first_word: *end, bytes: data.bytes };
        *end += data.bytes.next_multiple_of(16) as usize / 4;
        range
    };
    kernel.variables.values().map(place).collect()
}

struct Decoder<'a> {
    kernel: &'a Kernel,
    slots: &'a RegisterSlots,
    nest: Option<&'a LoopNest>,
    /// Position in the layout, which is the number of the code block.
    order: SecondaryMap<Block, u32>,
    tables: Tables,
    blocks: Vec<Option<CodeBlock>>,
    /// Steps of the current code block.
    steps: Vec<Step>,
    sync_points: Vec<SyncPoint>,
    /// The site of the subgroup's barrier that follows.
    arriving: Option<Site>,
}

impl Decoder<'_> {
    fn block(&mut self, block: Block) {
        let mut number = self.order[block];
        for (index, &inst) in self.kernel.blocks[block].insts.iter().enumerate() {
            let data = &self.kernel.insts[inst];
            if data.is_terminator() {
                let end = self.terminator(block, data);
                self.finish(number, end);
            } else if is_barrier(data) {
                let sync_point = self.nest.filter(|_| is_sync_point(data)).map(|nest| nest.sync_point(block, index));
                number = self.pause(number, inst, data, sync_point);
            } else {
                self.step(inst, data);
            }
        }
    }

    fn reserve(&mut self) -> u32 {
        self.blocks.push(None);
        self.blocks.len() as u32 - 1
    }

    fn finish(&mut self, number: u32, end: End) {
        let steps = std::mem::take(&mut self.steps).into_boxed_slice();
        self.blocks[number as usize] = Some(CodeBlock { steps, end });
    }

    /// Ends the code block at a barrier; the instructions after it go to a new one.
    fn pause(&mut self, number: u32, inst: Inst, data: &InstData, sync_point: Option<SyncPoint>) -> u32 {
        if let &InstData::Barrier { memory, semantics, .. } = data
            && let Some(order) = fence_order(memory, semantics)
        {
            self.fence(order);
        }
        let wait = match sync_point {
            None => Wait::Workgroup,
            Some(mut sync_point) => {
                let of = |value: Option<&Value>| value.map_or(self.slots.spare(), |&value| self.slots.of[value]);
                sync_point.dest = of(self.kernel.results[inst].as_ref());
                if let InstData::Subgroup { op, args } = data {
                    sync_point.op = Some(*op);
                    sync_point.args = [of(args.first()), of(args.get(1))];
                } else {
                    sync_point.site = self.arriving.take();
                }
                self.sync_points.push(sync_point);
                Wait::SyncPoint(self.sync_points.len() as u32 - 1)
            }
        };
        let next = self.reserve();
        let live = self.slots.live_at.get(&inst).copied().unwrap_or(0);
        self.finish(number, End::Barrier { wait, next, live });
        next
    }

    fn terminator(&mut self, from: Block, data: &InstData) -> End {
        match data {
            InstData::Jump { to } => {
                self.moves(from, to);
                self.jump(from, to)
            }
            InstData::Branch { condition, then, otherwise } => End::Branch {
                condition: self.slots.of[*condition],
                then: self.edge(from, then),
                otherwise: self.edge(from, otherwise),
            },
            InstData::Switch { selector, default, cases } => {
                let mut cases: Box<[_]> =
                    cases.iter().map(|(literal, call)| (*literal, self.edge(from, call))).collect();
                cases.sort_unstable();
                End::Switch { selector: self.slots.of[*selector], default: self.edge(from, default), cases }
            }
            _ => End::Return,
        }
    }

    fn is_back_edge(&self, from: Block, to: Block) -> bool {
        self.order[to] <= self.order[from]
    }

    fn jump(&self, from: Block, to: &BlockCall) -> End {
        let number = self.order[to.block];
        if self.is_back_edge(from, to.block) {
            End::Loop { to: number, at: self.kernel.word_of_loop(to.block) }
        } else {
            End::Jump(number)
        }
    }

    /// The first code block of an edge with several siblings: a new one if the edge needs moves or a back-edge check.
    fn edge(&mut self, from: Block, to: &BlockCall) -> u32 {
        let outer = std::mem::take(&mut self.steps);
        self.moves(from, to);
        let number = if self.steps.is_empty() && !self.is_back_edge(from, to.block) {
            self.order[to.block]
        } else {
            let number = self.reserve();
            self.finish(number, self.jump(from, to));
            number
        };
        self.steps = outer;
        number
    }

    fn moves(&mut self, from: Block, to: &BlockCall) {
        let params = &self.kernel.blocks[to.block].params;
        let pairs: Vec<_> =
            params.iter().zip(&to.args).map(|(&param, &arg)| (self.slots.of[param], self.slots.of[arg])).collect();
        for (dest, from) in moves::sequence(&pairs, self.slots.spare()) {
            self.steps.push(Step { run: memory::copy, dest, args: [from, 0, 0, 0, 0, 0], extra: 0 });
        }
        if let Some((counter, resets)) = self.nest.and_then(|nest| nest.step(from, to.block)) {
            let dest = self.slots.spare() + 1 + counter;
            self.steps.push(Step { run: memory::count, dest, args: [dest; MAX_STEP_ARGS], extra: resets.into() });
        }
    }

    fn push(&mut self, inst: Inst, run: StepFn, operands: &[Value], extra: u32) {
        let dest = self.kernel.results[inst].map_or(self.slots.spare(), |value| self.slots.of[value]);
        let mut args = [0; MAX_STEP_ARGS];
        for (arg, &value) in args.iter_mut().zip(operands) {
            *arg = self.slots.of[value];
        }
        self.steps.push(Step { run, dest, args, extra });
    }

    fn fence(&mut self, order: std::sync::atomic::Ordering) {
        let extra = self.tables.fences.len() as u32;
        self.tables.fences.push(order);
        self.steps.push(Step { run: atomic::fence, dest: self.slots.spare(), args: [0; MAX_STEP_ARGS], extra });
    }

    fn step(&mut self, inst: Inst, data: &InstData) {
        match *data {
            InstData::Pure { op, ref args } => self.push(inst, pure::step_of(op), args, 0),
            InstData::Select { condition, then, otherwise } => {
                self.push(inst, memory::select, &[condition, then, otherwise], 0);
            }
            InstData::BuiltIn { builtin, component } => {
                self.push(inst, memory::builtin, &[], builtin_index(builtin, component));
            }
            InstData::Element { base, index, stride } => self.push(inst, memory::element, &[base, index], stride),
            InstData::Buffer { binding, index } => self.push(inst, memory::buffer, &[index], binding.as_u32()),
            InstData::BufferSize { buffer } => self.push(inst, memory::buffer_size, &[buffer], 0),
            InstData::BufferNumber { buffer } => self.push(inst, memory::buffer_number, &[buffer], 0),
            InstData::BufferOf { number } => self.push(inst, memory::buffer_of, &[number], 0),
            InstData::BufferAt { low, high } | InstData::BufferNear { low, high } => {
                self.push(inst, memory::buffer_at, &[low, high], 0);
            }
            InstData::BufferOffset { buffer, low, high } => {
                self.push(inst, memory::buffer_offset, &[buffer, low, high], 0);
            }
            InstData::Reaches { buffer, offset } => self.push(inst, memory::reaches, &[buffer, offset], 0),
            InstData::ImageField { image, field } => self.push(inst, image::field, &[image], field as u32),
            InstData::Image { op, image, sampler, ref args, .. } => {
                let step = self.image(op, image, sampler, args);
                self.tables.images.push(step);
                self.push(inst, image::run, &[], self.tables.images.len() as u32 - 1);
            }
            InstData::Load { width, ref place, .. } => {
                let (operands, variable) = operands_of(place);
                self.push(inst, memory::load_from(place, width), &operands, variable);
            }
            InstData::Store { width, ref place, value, .. } => {
                let (mut operands, variable) = operands_of(place);
                operands.push(value);
                self.push(inst, memory::store_to(place, width), &operands, variable);
            }
            InstData::Atomic { .. } => self.atomic(inst, data),
            InstData::Check { site, ref place, width } => {
                self.check(inst, place, Observed::access(site, width), None);
            }
            InstData::CheckImage { site, op, image, sampler, ref args } => {
                let step = self.image(op, image, sampler, args);
                self.tables.image_checks.push((site, step));
                self.push(inst, watch::image, &[], self.tables.image_checks.len() as u32 - 1);
            }
            InstData::Sync { site, ref place, bytes, wrote } => self.sync(inst, site, place.as_ref(), bytes, wrote),
            InstData::Clock { .. } => self.push(inst, wide::clock, &[], 0),
            InstData::Print { message, ref args } => {
                let words = args.iter().map(|&arg| self.slots.of[arg]).collect();
                self.tables.prints.push((message, words));
                self.push(inst, wide::print, &[], self.tables.prints.len() as u32 - 1);
            }
            InstData::HighWord { of } => self.push(inst, wide::high_word, &[of], 0),
            InstData::Fence { scope, semantics } => {
                if let Some(order) = fence_order(scope, semantics) {
                    self.fence(order);
                }
            }
            // Constants are preloaded into their registers; barriers of a single invocation and terminators need no
            // step.
            InstData::Const { .. }
            | InstData::Subgroup { .. }
            | InstData::Barrier { .. }
            | InstData::Jump { .. }
            | InstData::Branch { .. }
            | InstData::Switch { .. }
            | InstData::Return
            | InstData::Unreachable => {}
        }
    }

    fn image(&self, op: ImageOp, image: Value, sampler: Option<Value>, args: &[Value]) -> ImageStep {
        let of = |value: Value| self.slots.of[value];
        let args = args.iter().map(|&arg| of(arg)).collect();
        ImageStep { op, image: of(image), sampler: of(sampler.unwrap_or(image)), args }
    }

    /// What checked mode observes at a place; `wrote` is an operand.
    fn check(&mut self, inst: Inst, place: &Place, what: Observed, wrote: Option<Value>) {
        let (mut operands, number) = operands_of(place);
        operands.push(wrote.unwrap_or(operands[0]));
        let (run, variable): (StepFn, _) = match *place {
            Place::Variable { variable, .. } => {
                let first = self.tables.variables[number as usize].first_word as u32 * 4;
                (watch::variable, Some(ObservedVariable::new(self.kernel, variable, first)))
            }
            Place::Buffer { .. } | Place::Push { .. } => (watch::buffer, None),
        };
        self.tables.checks.push((what, variable));
        self.push(inst, run, &operands, self.tables.checks.len() as u32 - 1);
    }

    /// What checked mode observes at an atomic, a fence or a barrier.
    fn sync(&mut self, inst: Inst, site: Site, place: Option<&Place>, bytes: u32, wrote: Option<Value>) {
        match (self.kernel.sites[site].action, place) {
            (SiteAction::Atomic { op, .. }, Some(place)) => {
                self.check(inst, place, Observed::atomic(site, op, bytes), wrote);
            }
            (SiteAction::Barrier { execution: Scope::Subgroup, .. }, _) => self.arriving = Some(site),
            (SiteAction::Barrier { .. }, _) => self.push(inst, watch::arrive, &[], site.as_u32()),
            _ => self.push(inst, watch::fence, &[], site.as_u32()),
        }
    }

    fn atomic(&mut self, inst: Inst, data: &InstData) {
        let &InstData::Atomic { op, ref place, value, comparator, wide, semantics, unequal, .. } = data else { return };
        let (mut operands, variable) = operands_of(place);
        // Operations without a value or comparator ignore the register.
        let unused = operands[0];
        operands.extend([value.unwrap_or(unused), comparator.unwrap_or(unused)]);
        if let Some(highs) = wide {
            operands.extend(highs.map(|high| high.unwrap_or(unused)));
        }
        let (run, variable): (StepFn, _) = match place {
            Place::Variable { .. } if wide.is_some() => {
                (wide::on_variable, Some(self.tables.variables[variable as usize]))
            }
            _ if wide.is_some() => (wide::on_buffer, None),
            Place::Variable { .. } => (atomic::on_variable, Some(self.tables.variables[variable as usize])),
            Place::Buffer { .. } | Place::Push { .. } => (atomic::on_buffer, None),
        };
        let what = AtomicStep { op, order: order_of(semantics), failure: order_of(unequal), variable };
        self.tables.atomics.push(what);
        self.push(inst, run, &operands, self.tables.atomics.len() as u32 - 1);
    }
}

/// The values that form the address of a place, and the index of its variable.
fn operands_of(place: &Place) -> (Vec<Value>, u32) {
    match *place {
        Place::Buffer { buffer, offset, .. } => (vec![buffer, offset], 0),
        Place::Push { offset } => (vec![offset], 0),
        Place::Variable { variable, offset } => (vec![offset], variable.as_u32()),
    }
}
