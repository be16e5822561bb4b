//! Random programs: commands of contexts, and command buffers that are recorded once and submitted several times; what
//! their commands access, exactly.

use spelter_driver::check::{Finding, Severity};
use spelter_driver::{ClearColor, vk};

use super::execution::{Access, Execution, Item};
use super::{BatchOf, Mark};
use crate::{Action, Bind, Buffer, CommandBuffer, Context, Error, Image, Program, Recorder};

/// What programs have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) contexts: usize,
    /// Command buffers.
    pub(super) recordings: usize,
    pub(super) images: bool,
    /// Whether the host replaces contents between commands, so that buffers in use get other storage.
    pub(super) replaces: bool,
}

const BUFFERS: usize = 4;
const IMAGES: usize = 2;
const LAYERS: usize = 2;
const PLACES: usize = BUFFERS + IMAGES * LAYERS;

/// All words of a buffer, all texels of a layer.
const ALL: u32 = 0xffff;

const ADD: &str = "
    @group(0) @binding(0) var<storage, read> input: array<u32>;
    @group(0) @binding(1) var<storage, read_write> output: array<u32>;
    @compute @workgroup_size(16) fn main(@builtin(local_invocation_index) i: u32) { output[i] = input[i] + output[i]; }";

/// It has whole buffers, and accesses a half of each.
const HALF: &str = "
    @group(0) @binding(0) var<storage, read> input: array<u32>;
    @group(0) @binding(1) var<storage, read_write> output: array<u32>;
    @compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) { output[i] = input[i + 8u]; }";

const DRAW: &str = "
    @group(0) @binding(0) var<storage, read> input: array<u32>;
    @group(0) @binding(1) var output: texture_storage_2d<r32uint, write>;
    @compute @workgroup_size(4, 4) fn main(@builtin(local_invocation_id) id: vec3u) {
        textureStore(output, id.xy, vec4(input[id.y * 4u + id.x]));
    }";

/// A command on places, of which the first ones are the buffers, and the others the layers of the images.
#[derive(Clone, Copy, Debug)]
enum Command {
    Add(usize, usize),
    Half(usize, usize),
    Copy(usize, usize),
    Fill(usize),
    /// Two rows of a layer, from this one on.
    ToImage(usize, usize, u32),
    ToBuffer(usize, usize, u32),
    CopyImage(usize, usize),
    Clear(usize),
    Draw(usize, usize),
}

impl Command {
    /// Places, parts and whether they are written.
    fn accesses(self) -> Vec<(usize, u32, bool)> {
        let rows = |row: u32| 0xff << (4 * row);
        match self {
            Self::Add(from, to) => vec![(from, ALL, false), (to, ALL, true)],
            Self::Half(from, to) => vec![(from, 0xff00, false), (to, 0xff, true)],
            Self::Copy(from, to) => vec![(from, 0xff0, false), (to, 0xff0, true)],
            Self::Fill(to) => vec![(to, 0xfc, true)],
            Self::ToImage(from, to, row) => vec![(from, 0xff, false), (to, rows(row), true)],
            Self::ToBuffer(from, to, row) => vec![(from, rows(row), false), (to, 0xff, true)],
            Self::CopyImage(from, to) | Self::Draw(from, to) => vec![(from, ALL, false), (to, ALL, true)],
            Self::Clear(to) => vec![(to, ALL, true)],
        }
    }
}

/// Random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) as usize % below
    }

    /// Two different numbers below.
    fn two(&mut self, below: usize) -> (usize, usize) {
        let (one, other) = (self.below(below), self.below(below - 1));
        (one, if other >= one { other + 1 } else { other })
    }

    fn command(&mut self, images: bool) -> Command {
        let (buffers, (layer, other)) = (self.two(BUFFERS), self.two(IMAGES * LAYERS));
        let ((from, to), layer, other) = (buffers, BUFFERS + layer, BUFFERS + other);
        let row = 2 * self.below(2) as u32;
        match self.below(if images { 9 } else { 4 }) {
            0 => Command::Add(from, to),
            1 => Command::Half(from, to),
            2 => Command::Copy(from, to),
            3 => Command::Fill(to),
            4 | 5 => Command::ToImage(from, layer, row),
            6 => Command::ToBuffer(layer, to, row),
            7 => [Command::CopyImage(layer, other), Command::Clear(layer)][self.below(2)],
            _ => Command::Draw(from, layer),
        }
    }
}

/// What is in a batch or a command buffer.
#[derive(Clone, Copy, Debug)]
enum Step {
    Command(Command),
    Barrier(usize),
    End(usize),
}

/// The resources of a program, and what it did so far.
pub(super) struct World {
    contexts: Vec<Context>,
    buffers: Vec<Buffer>,
    images: Vec<Image>,
    add: Program,
    half: Program,
    draw: Program,
    execution: Execution,
    /// By context, what its open batch has.
    open: Vec<Vec<Item>>,
    recordings: Vec<(CommandBuffer, Vec<Step>)>,
    /// By place, the number of its storage.
    storage: [usize; PLACES],
    storages: usize,
}

impl World {
    /// Runs a random program without the dependency `dropped`. Returns what it submitted, and the errors.
    pub(super) fn run(shape: Shape, seed: u64, dropped: Option<usize>) -> Result<(Execution, Vec<Finding>), Error> {
        let mut world = Self::new(shape)?;
        super::begin(dropped);
        let mut random = Random(seed);
        for _ in 0..shape.recordings {
            world.record(&mut random, shape.images)?;
        }
        // No batch is done before the last one is recorded: what has ended needs no dependency.
        let holds = world.contexts.iter().map(crate::testing::hold).collect::<Result<Vec<_>, _>>()?;
        for _ in 0..10 {
            let context = random.below(shape.contexts);
            match random.below(8) {
                0..=2 if shape.recordings > 0 => world.submit(context, random.below(shape.recordings))?,
                3 if shape.replaces => world.replace(context, random.below(BUFFERS))?,
                4 if shape.contexts > 1 => drop(world.contexts[context].flush()?),
                _ => world.direct(context, random.command(shape.images))?,
            }
            world.follow(context, None);
        }
        // All is submitted before the host waits for any of it.
        for context in 0..shape.contexts {
            world.contexts[context].flush()?;
            world.follow(context, None);
        }
        drop(holds);
        world.finish()
    }

    fn new(shape: Shape) -> Result<Self, Error> {
        let first = Context::builder().check(Default::default()).build()?;
        let buffers = (0..BUFFERS).map(|_| first.buffer_from(&[1u32; 16])).collect::<Result<Vec<_>, _>>()?;
        let image = || first.image(vk::Format::R32_UINT, [4, 4, 1]).layers(LAYERS as u32).build();
        let images = (0..IMAGES).map(|_| image()).collect::<Result<Vec<_>, _>>()?;
        images.iter().try_for_each(|image| first.clear_image(image, ClearColor::Uint([0; 4])))?;
        let (add, half) = (first.program_wgsl(ADD)?, first.program_wgsl(HALF)?);
        let draw = first.program_wgsl(DRAW)?;
        let mut contexts = vec![first];
        contexts.extend((1..shape.contexts).map(|_| contexts[0].sibling()).collect::<Vec<_>>());
        contexts[0].finish()?;
        let storage = std::array::from_fn(|place| place);
        let (execution, open, recordings) = (Execution::default(), vec![Vec::new(); shape.contexts], Vec::new());
        Ok(Self { contexts, buffers, images, add, half, draw, execution, open, recordings, storage, storages: PLACES })
    }

    /// The image of a place, and its layer.
    fn layer(&self, place: usize) -> (&Image, u32) {
        let layer = place - BUFFERS;
        (&self.images[layer / LAYERS], (layer % LAYERS) as u32)
    }

    /// Records a command in a context, after its barrier.
    fn direct(&mut self, context: usize, command: Command) -> Result<(), Error> {
        let on = &self.contexts[context];
        match command {
            Command::Add(from, to) => self.dispatch_buffers(on.dispatch(&self.add), from, to)?,
            Command::Half(from, to) => self.dispatch_buffers(on.dispatch(&self.half), from, to)?,
            Command::Copy(from, to) => on.copy(&self.buffers[from], 16, &self.buffers[to], 16, 32)?,
            Command::Fill(to) => on.fill_range(&self.buffers[to], 8..32, 7)?,
            Command::ToImage(from, to, row) => {
                let (image, layer) = self.layer(to);
                let rows = image.texels(0, layer).origin([0, row, 0]).extent([4, 2, 1]);
                on.copy_buffer_to_image(&self.buffers[from], 0, rows)?;
            }
            Command::ToBuffer(from, to, row) => {
                let (image, layer) = self.layer(from);
                let rows = image.texels(0, layer).origin([0, row, 0]).extent([4, 2, 1]);
                on.copy_image_to_buffer(rows, &self.buffers[to], 0)?;
            }
            Command::CopyImage(from, to) => {
                let [(from, layer), (to, other)] = [from, to].map(|place| self.layer(place));
                on.copy_image((from, 0, layer), (to, 0, other))?;
            }
            Command::Clear(to) => {
                let (image, layer) = self.layer(to);
                on.clear_image(image.all().layers(layer..layer + 1), ClearColor::Uint([3, 0, 0, 0]))?;
            }
            Command::Draw(from, to) => self.dispatch_image(on.dispatch(&self.draw), from, to)?,
        }
        self.follow(context, None);
        let command = self.item(command);
        self.open[context].push(command);
        Ok(())
    }

    /// Records a command in a command buffer, after its barrier.
    fn add(&self, to: &mut Recorder, command: Command) -> Result<(), Error> {
        match command {
            Command::Add(from, into) => self.dispatch_buffers(to.dispatch(&self.add), from, into),
            Command::Half(from, into) => self.dispatch_buffers(to.dispatch(&self.half), from, into),
            Command::Copy(from, into) => to.copy(&self.buffers[from], 16, &self.buffers[into], 16, 32),
            Command::Fill(into) => to.fill_range(&self.buffers[into], 8..32, 7),
            Command::ToImage(from, into, row) => {
                let (image, layer) = self.layer(into);
                let rows = image.texels(0, layer).origin([0, row, 0]).extent([4, 2, 1]);
                to.copy_buffer_to_image(&self.buffers[from], 0, rows)
            }
            Command::ToBuffer(from, into, row) => {
                let (image, layer) = self.layer(from);
                let rows = image.texels(0, layer).origin([0, row, 0]).extent([4, 2, 1]);
                to.copy_image_to_buffer(rows, &self.buffers[into], 0)
            }
            Command::CopyImage(from, into) => {
                let [(from, layer), (into, other)] = [from, into].map(|place| self.layer(place));
                to.copy_image((from, 0, layer), (into, 0, other))
            }
            Command::Clear(into) => {
                let (image, layer) = self.layer(into);
                to.clear_image(image.all().layers(layer..layer + 1), ClearColor::Uint([3, 0, 0, 0]))
            }
            Command::Draw(from, into) => self.dispatch_image(to.dispatch(&self.draw), from, into),
        }
    }

    fn dispatch_buffers(&self, dispatch: crate::Dispatch<'_>, from: usize, to: usize) -> Result<(), Error> {
        dispatch.bind(0, 0, &self.buffers[from]).bind(0, 1, &self.buffers[to]).groups([1, 1, 1])
    }

    fn dispatch_image(&self, dispatch: crate::Dispatch<'_>, from: usize, to: usize) -> Result<(), Error> {
        let (image, layer) = self.layer(to);
        let view = image.all().layers(layer..layer + 1).as_type(vk::ImageViewType::TYPE_2D);
        dispatch.bind(0, 0, &self.buffers[from]).with((0, 1), Bind::storage_image(view)).groups([1, 1, 1])
    }

    /// Records a command buffer of some commands.
    fn record(&mut self, random: &mut Random, images: bool) -> Result<(), Error> {
        let mut steps = Vec::new();
        let commands = self.contexts[0].record(|to| {
            for _ in 0..4 {
                let command = random.command(images);
                self.add(to, command)?;
                steps.extend(super::take_marks().into_iter().filter_map(step));
                steps.push(Step::Command(command));
            }
            Ok(())
        })?;
        steps.extend(super::take_marks().into_iter().filter_map(step));
        steps.iter().for_each(|step| self.note(*step));
        self.recordings.push((commands, steps));
        Ok(())
    }

    fn submit(&mut self, context: usize, recording: usize) -> Result<(), Error> {
        self.contexts[context].submit(&self.recordings[recording].0)?;
        self.follow(context, Some(recording));
        Ok(())
    }

    /// The host replaces the contents of a buffer. What comes later accesses other storage, or the same when all
    /// earlier accesses are over.
    fn replace(&mut self, context: usize, buffer: usize) -> Result<(), Error> {
        let outcome = self.contexts[context].upload(&self.buffers[buffer], &[5u32; 16])?;
        assert!(!matches!(outcome.action, Action::Staged { .. }), "{outcome:?}");
        self.storage[buffer] = self.storages;
        self.storages += 1;
        Ok(())
    }

    fn finish(mut self) -> Result<(Execution, Vec<Finding>), Error> {
        for context in 0..self.contexts.len() {
            self.contexts[context].finish()?;
            self.follow(context, None);
        }
        for (place, buffer) in self.buffers.iter().enumerate() {
            self.contexts[0].read::<u32>(buffer)?;
            self.execution.read_by_host(Access { place: self.storage[place], parts: ALL, writes: false });
        }
        self.follow(0, None);
        let findings = self.contexts[0].findings()?;
        let errors = findings.into_iter().filter(|finding| finding.severity == Severity::Error).collect();
        super::begin(None);
        Ok((self.execution, errors))
    }

    fn item(&self, command: Command) -> Item {
        let access = |(place, parts, writes)| Access { place: self.storage[place], parts, writes };
        Item::Command(command.accesses().into_iter().map(access).collect())
    }

    fn note(&mut self, step: Step) {
        match step {
            Step::Barrier(number) => self.execution.note(number, "barrier"),
            Step::End(number) => self.execution.note(number, "end"),
            Step::Command(_) => {}
        }
    }

    /// Takes over what the tracker did in a call of a context, which may have submitted a command buffer.
    fn follow(&mut self, context: usize, submitted: Option<usize>) {
        let mut waits = Vec::new();
        // Barriers and ends that are not known to belong to a batch: those of a command buffer that is recorded again.
        let mut loose: Vec<Step> = Vec::new();
        for mark in super::take_marks() {
            match mark {
                Mark::Barrier(number) => {
                    self.execution.note(number, "barrier");
                    loose.push(Step::Barrier(number));
                }
                Mark::End(number) => {
                    self.execution.note(number, "end");
                    loose.push(Step::End(number));
                }
                Mark::Wait { number, batch } => {
                    self.execution.note(number, "wait");
                    waits.push(Item::Wait { number, batch });
                }
                Mark::Submitted { batch, queue, has_commands, appends } => {
                    let end = loose.pop();
                    self.rerecorded(submitted, std::mem::take(&mut loose));
                    let appended = submitted.filter(|_| appends);
                    self.submitted(batch, queue, (std::mem::take(&mut waits), end.filter(|_| has_commands)), appended);
                }
            }
        }
        let barrier = |step| match step {
            Step::Barrier(number) => Item::Barrier(number),
            step => panic!("{step:?} is of no batch"),
        };
        self.open[context].extend(loose.into_iter().map(barrier));
    }

    /// A command buffer has other barriers, in the same places.
    fn rerecorded(&mut self, recording: Option<usize>, new: Vec<Step>) {
        if new.is_empty() {
            return;
        }
        let Some(recording) = recording else { panic!("{new:?} are of no command buffer") };
        let steps = self.recordings[recording].1.iter_mut();
        let old: Vec<_> = steps.filter(|step| !matches!(step, Step::Command(_))).collect();
        assert_eq!(old.len(), new.len(), "{old:?}, {new:?}");
        old.into_iter().zip(new).for_each(|(old, new)| *old = new);
    }

    fn submitted(
        &mut self,
        batch: BatchOf,
        queue: usize,
        (waits, end): (Vec<Item>, Option<Step>),
        appended: Option<usize>,
    ) {
        let owner = self.contexts.iter().position(|context| context.id().0 == batch.0);
        let mut items = waits;
        items.extend(owner.map(|owner| std::mem::take(&mut self.open[owner])).unwrap_or_default());
        if let Some(Step::End(number)) = end {
            items.push(Item::End(number));
        }
        let appended = appended.map(|recording| self.recordings[recording].1.clone()).unwrap_or_default();
        items.extend(appended.into_iter().map(|step| match step {
            Step::Command(command) => self.item(command),
            Step::Barrier(number) => Item::Barrier(number),
            Step::End(number) => Item::End(number),
        }));
        items.push(Item::Signal(batch));
        self.execution.push(queue, items);
    }
}

fn step(mark: Mark) -> Option<Step> {
    match mark {
        Mark::Barrier(number) => Some(Step::Barrier(number)),
        Mark::End(number) => Some(Step::End(number)),
        Mark::Wait { .. } | Mark::Submitted { .. } => None,
    }
}
