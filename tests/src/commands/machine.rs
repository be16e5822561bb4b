//! Runs programs on a device in checked mode.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use spelter_driver::check::{CheckOptions, Finding};
use spelter_driver::vk::{self, QueryResultFlags};
use spelter_driver::{
    Barrier2, BarrierMemory, Buffer, BufferMemoryBarrier, Chunk, ClearColor, CommandBuffer, CommandPool, Device,
    DeviceMemory, DeviceOptions, Error, Event, Fence, Image, ImageInfo, ImageMemoryBarrier, ImageView, ImageViewInfo,
    MemoryBarrier, Observer, QueryPool, Queue, Semaphore as Handle, SemaphoreSubmit, SubmissionId, SubmitInfo,
};

use super::kernels::{Entry, First, Kernel};
use super::program::{
    BUFFER, BUFFERS, Barrier, Command, IMAGES, Job, LAYERS, Memory, Part, Program, Quarter, Range, Recording, SIDE,
    Scope, Semaphore, Signal, Step, Submit,
};

/// Queues of the device.
const QUEUES: usize = 4;

/// Objects of each kind that programs may name.
const OBJECTS: usize = 8;

/// Kernels of one kind that differ in their name.
const NAMES: usize = 32;

/// A device with the resources of programs. Nothing that one program does concerns the next: the host has waited.
pub struct Machine {
    device: Device,
    queues: Vec<Queue>,
    pool: CommandPool,
    buffers: Vec<Buffer>,
    memory: Vec<DeviceMemory>,
    /// A buffer that kernels bind and do not access.
    spare: Buffer,
    images: Vec<Image>,
    views: Vec<ImageView>,
    kernels: RefCell<HashMap<(u8, usize), Kernel>>,
    done: Arc<Done>,
    _keep: Vec<DeviceMemory>,
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine").field("device", &self.device).finish_non_exhaustive()
    }
}

/// The submissions that are done, without a call that tells the device that the host knows.
#[derive(Debug, Default)]
struct Done {
    serials: Mutex<[u64; QUEUES]>,
    changed: Condvar,
}

impl Observer for Done {
    fn worked(&self, _: &Chunk<'_>) {}

    fn ran(&self, id: SubmissionId, done: bool, _: Instant, _: Instant) {
        if done {
            self.serials.lock().unwrap_or_else(PoisonError::into_inner)[id.queue] = id.serial;
            self.changed.notify_all();
        }
    }
}

impl Done {
    fn wait(&self, queue: usize, serial: u64) {
        let mut serials = self.serials.lock().unwrap_or_else(PoisonError::into_inner);
        while serials[queue] < serial {
            serials = self.changed.wait(serials).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// What a program's objects are, while it runs.
struct Objects {
    binary: Vec<Handle>,
    timelines: Vec<Handle>,
    events: Vec<Event>,
    fences: Vec<Fence>,
    queries: QueryPool,
    recordings: Vec<CommandBuffer>,
}

/// Whether the host lets each submission end before it continues: then commands run in the order in which they are
/// submitted, and nothing else changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// It does not wait.
    Free,
    /// It waits.
    InOrder,
}

impl Machine {
    /// A device with its resources, which checks with these options.
    ///
    /// # Errors
    ///
    /// If there is no memory for it.
    pub fn new(check: CheckOptions) -> Result<Self, Error> {
        let done = Arc::new(Done::default());
        let options =
            DeviceOptions { heap_size: 64 << 20, queues: QUEUES, check: Some(check), ..DeviceOptions::default() };
        let device = Device::with_observer(options, Arc::<Done>::clone(&done))?;
        let any = vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST
            | vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::UNIFORM_BUFFER
            | vk::BufferUsageFlags::STORAGE_TEXEL_BUFFER
            | vk::BufferUsageFlags::INDIRECT_BUFFER;
        let (mut buffers, mut memory): (Vec<Buffer>, Vec<DeviceMemory>) = (Vec::new(), Vec::new());
        for at in 0..=BUFFERS {
            let buffer = device.create_buffer(BUFFER, any)?;
            // The last one has the memory of the one before it.
            let of = match at {
                _ if at == BUFFERS - 1 => memory[at - 1].clone(),
                _ => device.allocate_memory(buffer.requirements().size, 0)?,
            };
            buffer.bind_memory(&of, 0)?;
            buffers.push(buffer);
            memory.push(of);
        }
        let usage = vk::ImageUsageFlags::TRANSFER_SRC
            | vk::ImageUsageFlags::TRANSFER_DST
            | vk::ImageUsageFlags::STORAGE
            | vk::ImageUsageFlags::SAMPLED;
        let info = ImageInfo {
            flags: vk::ImageCreateFlags::ALIAS,
            ty: vk::ImageType::TYPE_2D,
            format: vk::Format::R32_SFLOAT,
            extent: vk::Extent3D { width: SIDE, height: SIDE, depth: 1 },
            levels: 1,
            layers: LAYERS,
            tiling: vk::ImageTiling::OPTIMAL,
            usage,
        };
        let (mut images, mut keep): (Vec<Image>, Vec<DeviceMemory>) = (Vec::new(), Vec::new());
        for at in 0..IMAGES {
            let image = device.create_image(&info)?;
            let of = match at {
                _ if at == IMAGES - 1 => keep[at - 1].clone(),
                _ => device.allocate_memory(image.requirements().size, 0)?,
            };
            image.bind_memory(&of, 0)?;
            images.push(image);
            keep.push(of);
        }
        let view = |image| {
            let range = range(Some(0));
            let (ty, components) = (vk::ImageViewType::TYPE_2D, vk::ComponentMapping::default());
            device.create_image_view(&ImageViewInfo { image, ty, format: info.format, components, range })
        };
        let views = images.iter().map(view).collect::<Result<_, _>>()?;
        let spare = buffers.remove(BUFFERS);
        keep.extend(memory.pop());
        Ok(Self {
            queues: device.queues(),
            pool: device.create_command_pool(),
            device,
            buffers,
            memory,
            spare,
            images,
            views,
            kernels: RefCell::default(),
            done,
            _keep: keep,
        })
    }

    /// Runs a program. Its commands have labels like `3.1`: the number of the command buffer, and the place in it.
    ///
    /// # Errors
    ///
    /// If the program breaks a rule of Vulkan that the device checks.
    pub fn run(&self, program: &Program, pace: Pace) -> Result<Vec<Finding>, Error> {
        for memory in &self.memory {
            memory.write(0, &[1, 0, 0, 0].repeat(BUFFER as usize / 4))?;
        }
        let mut objects = Objects {
            binary: (0..OBJECTS).map(|_| self.device.create_semaphore()).collect(),
            timelines: (0..OBJECTS).map(|_| self.device.create_timeline_semaphore(0)).collect(),
            events: (0..OBJECTS).map(|_| self.device.create_event()).collect(),
            fences: (0..OBJECTS).map(|_| self.device.create_fence(false)).collect(),
            queries: self.device.create_query_pool(vk::QueryType::TIMESTAMP, 1)?,
            recordings: Vec::new(),
        };
        let mut commands = 0;
        for (number, recording) in program.recordings.iter().enumerate() {
            let recorded = self.record(&objects, (number, commands), recording)?;
            objects.recordings.push(recorded);
            commands += recording.commands.len();
        }
        let mut result = Ok(());
        for step in &program.steps {
            result = result.and_then(|()| self.step(&objects, step, pace));
        }
        self.wait_idle()?;
        result?;
        Ok(self.device.take_findings())
    }

    fn wait_idle(&self) -> Result<(), Error> {
        self.queues.iter().try_for_each(Queue::wait_idle)
    }

    fn step(&self, objects: &Objects, step: &Step, pace: Pace) -> Result<(), Error> {
        match step {
            Step::Submit(submit) => self.submit(objects, submit, pace)?,
            Step::WaitFence(fence) => _ = objects.fences[*fence].wait(None)?,
            Step::WaitIdle => self.wait_idle()?,
            Step::WaitSemaphore(number, value) => {
                _ = Handle::wait_all(&[(&objects.timelines[*number], *value)], None)?;
            }
            Step::SignalSemaphore(number, value) => objects.timelines[*number].signal(*value)?,
            Step::SetEvent(event) => objects.events[*event].set(),
            Step::Read(range) => {
                self.memory[range.buffer].read(range.start, &mut vec![0; range.bytes() as usize])?;
            }
            Step::Write(range) => {
                let bytes = [1, 0, 0, 0].repeat(range.bytes() as usize / 4);
                self.memory[range.buffer].write(range.start, &bytes)?;
            }
        }
        Ok(())
    }

    fn submit(&self, objects: &Objects, submit: &Submit, pace: Pace) -> Result<(), Error> {
        let of = |signal: &Signal| {
            let (semaphore, value) = match signal.semaphore {
                Semaphore::Binary(number) => (&objects.binary[number], 0),
                Semaphore::Timeline(number, value) => (&objects.timelines[number], value),
            };
            SemaphoreSubmit { semaphore, value, stages: signal.stages }
        };
        let (waits, signals): (Vec<_>, Vec<_>) =
            (submit.waits.iter().map(of).collect(), submit.signals.iter().map(of).collect());
        let commands: Vec<_> = submit.recordings.iter().map(|number| &objects.recordings[*number]).collect();
        let info = SubmitInfo { waits: &waits, commands: &commands, signals: &signals };
        let fence = submit.fence.map(|fence| &objects.fences[fence]);
        let serial = self.queues[submit.queue].submit_all(&[info], fence)?;
        if pace == Pace::InOrder {
            self.done.wait(submit.queue, serial);
        }
        Ok(())
    }

    /// Records a command buffer; `before` commands are in others.
    fn record(
        &self,
        objects: &Objects,
        (number, before): (usize, usize),
        recording: &Recording,
    ) -> Result<CommandBuffer, Error> {
        let into = if recording.secondary { self.pool.allocate_secondary() } else { self.pool.allocate() };
        into.begin(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE)?;
        for (at, command) in recording.commands.iter().enumerate() {
            into.set_label(Some(&format!("{number}.{at}")))?;
            self.command(objects, &into, command, before + at)?;
        }
        into.end()?;
        Ok(into)
    }

    fn command(&self, objects: &Objects, into: &CommandBuffer, command: &Command, number: usize) -> Result<(), Error> {
        let buffer = |range: &Range| &self.buffers[range.buffer];
        match command {
            Command::Copy { from, to } => {
                let size = from.bytes().min(to.bytes());
                let region = vk::BufferCopy { src_offset: from.start, dst_offset: to.start, size };
                into.copy_buffer(buffer(from), buffer(to), &[region])
            }
            Command::Fill(range) => into.fill_buffer(buffer(range), range.start, range.bytes(), 1),
            Command::Update(range) => {
                let bytes = [1, 0, 0, 0].repeat(range.bytes() as usize / 4);
                into.update_buffer(buffer(range), range.start, &bytes)
            }
            Command::Query(range) => {
                into.reset_query_pool(&objects.queries, 0, 1)?;
                into.write_timestamp(&objects.queries, 0)?;
                let size = if range.bytes() == 8 { QueryResultFlags::TYPE_64 } else { QueryResultFlags::empty() };
                let flags = QueryResultFlags::WAIT | size;
                into.copy_query_pool_results(&objects.queries, 0, 1, buffer(range), range.start, 256, flags)
            }
            Command::Dispatch(job) => self.dispatch(into, job, number, false),
            Command::DispatchBase(job) => self.dispatch(into, job, number, true),
            Command::CopyImage { from, to } => {
                let ((src_subresource, src_offset), (dst_subresource, dst_offset)) = (place(from), place(to));
                let extent = extent(from);
                let region = vk::ImageCopy { src_subresource, src_offset, dst_subresource, dst_offset, extent };
                into.copy_image(&self.images[from.image], &self.images[to.image], &[region])
            }
            Command::Upload { from, to } => {
                into.copy_buffer_to_image(buffer(from), &self.images[to.image], &[region(from, to)])
            }
            Command::Download { from, to } => {
                into.copy_image_to_buffer(&self.images[from.image], buffer(to), &[region(to, from)])
            }
            Command::Clear(image) => {
                into.clear_color_image(&self.images[*image], ClearColor::Float([0.0; 4]), &[range(None)])
            }
            Command::Barrier(list) => into.pipeline_barrier2(&self.barriers(list)),
            Command::OldBarrier(list) => self.old_barrier(into, list),
            Command::Set(event, list) => into.set_event2(&objects.events[*event], &self.barriers(list)),
            Command::Reset(event) => into.reset_event(&objects.events[*event]),
            Command::Wait(list) => {
                let barriers: Vec<_> = list.iter().map(|(_, barriers)| self.barriers(barriers)).collect();
                let events = list.iter().map(|(event, _)| &objects.events[*event]);
                into.wait_events2(&events.zip(&barriers).map(|(event, of)| (event, &**of)).collect::<Vec<_>>())
            }
            Command::Execute(list) => {
                into.execute_commands(&list.iter().map(|number| &objects.recordings[*number]).collect::<Vec<_>>())
            }
        }
    }

    fn barriers(&self, list: &[Barrier]) -> Vec<Barrier2<'_>> {
        let one = |barrier: &Barrier| {
            let memory = match barrier.memory {
                Memory::All => BarrierMemory::All,
                Memory::Buffer(Range { buffer, start, end }) => {
                    BarrierMemory::Buffer { buffer: &self.buffers[buffer], offset: start, size: end - start }
                }
                Memory::Image { image, layer, transition } => BarrierMemory::Image {
                    image: &self.images[image],
                    layouts: layouts(transition),
                    range: range(layer),
                },
            };
            let (Scope { stages: src_stages, access: src_access }, dst) = (barrier.src, barrier.dst);
            Barrier2 { src_stages, src_access, dst_stages: dst.stages, dst_access: dst.access, memory, ownership: None }
        };
        list.iter().map(one).collect()
    }

    /// With the stages of the first barrier.
    fn old_barrier(&self, into: &CommandBuffer, list: &[Barrier]) -> Result<(), Error> {
        let stages = |of: vk::PipelineStageFlags2| vk::PipelineStageFlags::from_raw(of.as_raw() as u32);
        let access = |of: vk::AccessFlags2| vk::AccessFlags::from_raw(of.as_raw() as u32);
        let (mut memory, mut buffers, mut images) = (Vec::new(), Vec::new(), Vec::new());
        for barrier in list {
            let (src_access, dst_access) = (access(barrier.src.access), access(barrier.dst.access));
            match barrier.memory {
                Memory::All if (src_access | dst_access).is_empty() => {}
                Memory::All => memory.push(MemoryBarrier { src_access, dst_access }),
                Memory::Buffer(Range { buffer, start, end }) => {
                    let (buffer, offset, size) = (&self.buffers[buffer], start, end - start);
                    buffers.push(BufferMemoryBarrier { src_access, dst_access, buffer, offset, size });
                }
                Memory::Image { image, layer, transition } => {
                    let ([old_layout, new_layout], range) = (layouts(transition), range(layer));
                    let image = &self.images[image];
                    images.push(ImageMemoryBarrier { src_access, dst_access, old_layout, new_layout, image, range });
                }
            }
        }
        let Some(first) = list.first() else { return Ok(()) };
        let (src, dst) = (stages(first.src.stages), stages(first.dst.stages));
        into.pipeline_barrier_with_images(src, dst, &memory, &buffers, &images)
    }

    fn dispatch(&self, into: &CommandBuffer, job: &Job, number: usize, base: bool) -> Result<(), Error> {
        let none = Range { buffer: 0, start: 0, end: 0 };
        let (buffers, spare) = (&self.buffers, &self.spare);
        let buffer = |range: &Range| First::Buffer(&buffers[range.buffer]);
        let (entry, first, second, from, to) = match job {
            Job::Read(from) => (Entry::Read, buffer(from), spare, *from, none),
            Job::Write(to) => (Entry::Write, First::Buffer(spare), &buffers[to.buffer], none, *to),
            Job::Move { from, to } => (Entry::Move, buffer(from), &buffers[to.buffer], *from, *to),
            Job::Increment(of) => (Entry::Increment, First::Buffer(spare), &buffers[of.buffer], none, *of),
            Job::Uniform(from) => (Entry::Uniform, buffer(from), spare, *from, none),
            Job::Both(of) => (Entry::Both, buffer(of), &buffers[of.buffer], *of, none),
            Job::Atomic(of) => (Entry::Add, buffer(of), spare, *of, none),
            Job::Restart(of) => (Entry::Restart, buffer(of), spare, *of, none),
            Job::Double(of) => (Entry::Double, buffer(of), spare, *of, none),
            Job::Texels(of) => (Entry::Texels, buffer(of), spare, *of, none),
            Job::Append { counter, to } => {
                (Entry::Append, First::Buffer(&buffers[*counter]), &buffers[*to], none, none)
            }
            Job::Indirect(_) => (Entry::Nothing, First::Buffer(spare), spare, none, none),
            Job::Size(image) => (Entry::Size, First::Image(&self.views[*image]), spare, none, none),
            Job::Load(image) => (Entry::Load, First::Image(&self.views[*image]), spare, none, none),
            Job::Store(image) => (Entry::Store, First::Image(&self.views[*image]), spare, none, none),
            Job::Sample(image) => (Entry::Sample, First::Image(&self.views[*image]), spare, none, none),
        };
        let mut kernels = self.kernels.borrow_mut();
        let key = (entry as u8, number % NAMES);
        let kernel = match kernels.entry(key) {
            Slot::Occupied(slot) => slot.into_mut(),
            Slot::Vacant(slot) => slot.insert(Kernel::new(&self.device, entry, key.1)?),
        };
        let words = from.bytes().max(to.bytes()) / 4;
        let push = [from.start / 4, to.start / 4, words].map(|word| (word as u32).to_le_bytes());
        into.bind_pipeline(&kernel.pipeline)?;
        into.bind_descriptor_sets(&kernel.layout, 0, &[&kernel.set(&self.device, first, second)?], &[])?;
        into.push_constants(&kernel.layout, 0, push.as_flattened())?;
        match job {
            Job::Indirect(range) => into.dispatch_indirect(&buffers[range.buffer], range.start),
            _ if base => into.dispatch_base([5, 5, 5], [1, 1, 1]),
            _ => into.dispatch(1, 1, 1),
        }
    }
}

/// Barriers that are for an image without a transition keep its layout.
fn layouts(transition: bool) -> [vk::ImageLayout; 2] {
    if transition { [vk::ImageLayout::UNDEFINED, vk::ImageLayout::GENERAL] } else { [vk::ImageLayout::GENERAL; 2] }
}

fn range(layer: Option<u32>) -> vk::ImageSubresourceRange {
    vk::ImageSubresourceRange {
        aspect_mask: vk::ImageAspectFlags::COLOR,
        base_mip_level: 0,
        level_count: 1,
        base_array_layer: layer.unwrap_or(0),
        layer_count: if layer.is_some() { 1 } else { LAYERS },
    }
}

fn place(part: &Part) -> (vk::ImageSubresourceLayers, vk::Offset3D) {
    let range = range(part.layer);
    let layers = vk::ImageSubresourceLayers {
        aspect_mask: range.aspect_mask,
        mip_level: 0,
        base_array_layer: range.base_array_layer,
        layer_count: range.layer_count,
    };
    let start = if part.quarter == Some(Quarter::Last) { SIDE as i32 / 2 } else { 0 };
    (layers, vk::Offset3D { x: start, y: start, z: 0 })
}

fn extent(part: &Part) -> vk::Extent3D {
    let side = if part.quarter.is_some() { SIDE / 2 } else { SIDE };
    vk::Extent3D { width: side, height: side, depth: 1 }
}

fn region(buffer: &Range, part: &Part) -> vk::BufferImageCopy {
    let (image_subresource, image_offset) = place(part);
    vk::BufferImageCopy {
        buffer_offset: buffer.start,
        image_subresource,
        image_offset,
        image_extent: extent(part),
        ..Default::default()
    }
}
