//! Costs before a kernel runs: dispatches, submissions, pipelines. Measured on the driver itself, as a Vulkan program
//! would use it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use spelter::Context;
use spelter::bytemuck;
use spelter_driver::vk::{AccessFlags, BufferUsageFlags, CommandBufferUsageFlags, DescriptorType, PipelineStageFlags};
use spelter_driver::{
    Binding, BufferInfo, CommandBuffer, ComputePipeline, DescriptorSet, Device, DeviceMemory, MemoryBarrier,
    PipelineLayout, PushRange, Specialization,
};
use spelter_shaders::front::wgsl::WgslModule;

use crate::Error;
use crate::kernels::pathtrace;
use crate::unit::{Target, Unit, Yardstick};
use crate::work::{Size, shader};

/// A cost of the driver.
#[derive(Clone, Copy, Debug)]
pub struct Overhead {
    /// Name in the table.
    pub name: &'static str,
    /// Unit of its figures.
    pub unit: Unit,
    /// Its target.
    pub target: Target,
    /// Creates the repeated operation.
    pub prepare: fn(&Context, Size) -> Result<Repeated, Error>,
}

/// An operation to be timed, and how often one run does it.
pub struct Repeated {
    /// How often.
    pub amount: f64,
    /// Runs, waits for the end, and checks the result.
    pub run: Box<dyn Fn() -> Result<(), Error>>,
}

/// All overheads.
pub const ALL: [Overhead; 5] = [
    Overhead {
        name: "dispatch",
        unit: Unit::Things("dispatch"),
        target: Target { factor: 3.0, of: Yardstick::One },
        prepare: |context, size| dispatches(context, size, false),
    },
    Overhead {
        name: "dispatch_barrier",
        unit: Unit::Things("dispatch"),
        target: Target { factor: 1.0, of: Yardstick::One },
        prepare: |context, size| dispatches(context, size, true),
    },
    Overhead {
        name: "submit_wait",
        unit: Unit::Each,
        target: Target { factor: 3.0, of: Yardstick::One },
        prepare: submissions,
    },
    Overhead {
        name: "pipeline_pathtrace",
        unit: Unit::Each,
        target: Target { factor: 3000.0, of: Yardstick::One },
        prepare: path_tracer_pipelines,
    },
    Overhead {
        name: "pipeline_ten_lines",
        unit: Unit::Each,
        target: Target { factor: 200.0, of: Yardstick::One },
        prepare: small_pipelines,
    },
];

/// Empty dispatches in one command buffer.
fn dispatches(context: &Context, size: Size, barriers: bool) -> Result<Repeated, Error> {
    let count = size.pick(10, 10_000);
    let stage = Stage::new(context.device(), "@compute @workgroup_size(1) fn main() {}", &[&[0; 4]], 0)?;
    let command = stage.record(&stage.pipeline()?, &[], count, barriers)?;
    Ok(Repeated { amount: f64::from(count), run: Box::new(move || stage.run(&command)) })
}

/// One tiny dispatch at a time, each with a wait.
fn submissions(context: &Context, size: Size) -> Result<Repeated, Error> {
    let count = size.pick(10, 1000);
    let stage = Stage::new(context.device(), shader!("increment"), &[&[0; 4]], 0)?;
    let command = stage.record(&stage.pipeline()?, &[], 1, false)?;
    let counted = RefCell::new(0u32);
    let run = move || {
        (0..count).try_for_each(|_| stage.run(&command))?;
        let mut counted = counted.borrow_mut();
        *counted = counted.wrapping_add(count);
        let got = stage.word(0, 0)?;
        if got == *counted { Ok(()) } else { Err(format!("{got} invocations ran, not {counted}").into()) }
    };
    Ok(Repeated { amount: f64::from(count), run: Box::new(run) })
}

/// The value of the shaders' override 0.
const SALT: u32 = 7;

/// A number that no earlier module had, so that caches do not apply.
fn new_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn path_tracer_pipelines(context: &Context, size: Size) -> Result<Repeated, Error> {
    let pixels = [0; 8 * 8 * 16];
    let buffers: [&[u8]; 2] = [bytemuck::cast_slice(&pathtrace::SCENE), &pixels];
    let stage = Stage::new(context.device(), pathtrace::TEXT, &buffers, 12)?;
    let push = vec![8, 1, pathtrace::SCENE.len() as u32];
    // The first pixel's alpha.
    Ok(first_uses(stage, size.pick(1, 4), push, |stage| Ok(stage.word(1, 12)? == 1f32.to_bits())))
}

fn small_pipelines(context: &Context, size: Size) -> Result<Repeated, Error> {
    let stage = Stage::new(context.device(), shader!("ten_lines"), &[&[0; 256]], 0)?;
    let is_right = |stage: &Stage| Ok(stage.word(0, 0)? == (SALT as f32).to_bits());
    Ok(first_uses(stage, size.pick(1, 16), Vec::new(), is_right))
}

/// Creates `count` pipelines from SPIR-V, and uses each for one workgroup.
fn first_uses(stage: Stage, count: u32, push: Vec<u32>, is_right: fn(&Stage) -> Result<bool, Error>) -> Repeated {
    let run = move || {
        for _ in 0..count {
            let pipeline = stage.pipeline()?;
            stage.run(&stage.record(&pipeline, bytemuck::cast_slice(&push), 1, false)?)?;
            if !is_right(&stage)? {
                return Err("a new pipeline wrote something else than it should".into());
            }
        }
        Ok(())
    };
    Repeated { amount: f64::from(count), run: Box::new(run) }
}

/// The generator's word of a module, which has no meaning for consumers.
const GENERATOR: usize = 2;

/// A module's words with its buffers bound.
struct Stage {
    device: Device,
    words: Vec<u32>,
    layout: PipelineLayout,
    set: DescriptorSet,
    memories: Vec<DeviceMemory>,
}

impl Stage {
    /// A module with buffers that hold these bytes, in set 0.
    fn new(device: &Device, text: &str, buffers: &[&[u8]], push_bytes: u32) -> Result<Self, Error> {
        let ty = DescriptorType::STORAGE_BUFFER;
        let bindings: Vec<_> = (0..).zip(buffers).map(|(binding, _)| Binding { binding, ty, count: 1 }).collect();
        let set_layout = device.create_descriptor_set_layout(&bindings)?;
        let set = device.create_descriptor_pool(1, &[(ty, buffers.len() as u32)])?.allocate(&set_layout)?;
        let mut memories = Vec::new();
        for (binding, bytes) in (0..).zip(buffers) {
            let buffer = device.create_buffer(bytes.len() as u64, BufferUsageFlags::STORAGE_BUFFER)?;
            let memory = device.allocate_memory(buffer.requirements().size, 0)?;
            buffer.bind_memory(&memory, 0)?;
            memory.write(0, bytes)?;
            set.write(binding, 0, ty, &[BufferInfo { buffer: &buffer, offset: 0, range: bytes.len() as u64 }])?;
            memories.push(memory);
        }
        let push = PushRange { offset: 0, size: push_bytes };
        let push = if push_bytes == 0 { &[][..] } else { &[push][..] };
        let layout = device.create_pipeline_layout(&[&set_layout], push)?;
        let words = WgslModule::parse(text)?.to_spirv("main", &BTreeMap::from([(0, SALT.into())]))?;
        Ok(Self { device: device.clone(), words, layout, set, memories })
    }

    /// Creates a pipeline from a module of its own.
    fn pipeline(&self) -> Result<ComputePipeline, Error> {
        let mut words = self.words.clone();
        if let Some(generator) = words.get_mut(GENERATOR) {
            *generator = new_number();
        }
        let module = self.device.create_shader_module(&words)?;
        Ok(self.device.create_compute_pipeline(&module, "main", &Specialization::new(), &self.layout)?)
    }

    /// Records `count` dispatches of one workgroup, with or without barriers between them.
    fn record(
        &self,
        pipeline: &ComputePipeline,
        push: &[u8],
        count: u32,
        barriers: bool,
    ) -> Result<CommandBuffer, Error> {
        let command = self.device.create_command_pool().allocate();
        command.begin(CommandBufferUsageFlags::empty())?;
        command.bind_pipeline(pipeline)?;
        command.bind_descriptor_sets(&self.layout, 0, &[&self.set], &[])?;
        if !push.is_empty() {
            command.push_constants(&self.layout, 0, push)?;
        }
        let stage = PipelineStageFlags::COMPUTE_SHADER;
        let barrier = MemoryBarrier { src_access: AccessFlags::SHADER_WRITE, dst_access: AccessFlags::SHADER_READ };
        for _ in 0..count {
            command.dispatch(1, 1, 1)?;
            if barriers {
                command.pipeline_barrier(stage, stage, &[barrier], &[])?;
            }
        }
        command.end()?;
        Ok(command)
    }

    fn run(&self, command: &CommandBuffer) -> Result<(), Error> {
        let queue = self.device.queue();
        queue.submit(&[command], None)?;
        Ok(queue.wait_idle()?)
    }

    /// A word of a buffer, at a byte offset.
    fn word(&self, buffer: usize, offset: u64) -> Result<u32, Error> {
        let mut bytes = [0; 4];
        self.memories[buffer].read(offset, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }
}
