//! wgpu-hal's traits. Their methods are `unsafe`: wgpu-core promises valid calls. Nothing here relies on it, except
//! where a file says so: each method calls a safe function of another module, which checks its arguments itself.

mod adapter;
mod device;
mod encoder;
mod instance;
mod queue;

use std::any::Any;
use std::borrow::Borrow;

use spelter_driver::CommandBuffer;
use wgpu_hal::{DynResource, DynTexture};
use wgpu_types::Backend;

pub(crate) use adapter::Adapter;
pub(crate) use instance::Instance;

use crate::binding::{BindGroup, BindGroupLayout, PipelineLayout};
use crate::buffer::Buffer;
use crate::device::{Device, Fence, Queue};
use crate::pipeline::{ComputePipeline, PipelineCache};
use crate::recorder::{CommandEncoder, QuerySet};
use crate::shader::ShaderModule;
use crate::texture::{Sampler, Texture, TextureView};

/// Spelter as a back end of wgpu, for `as_hal::<spelter_wgpu::Api>()`.
#[derive(Clone, Debug)]
pub struct Api;

/// What a compute device does not have: surfaces, render pipelines, acceleration structures. There are no values of it.
#[derive(Clone, Copy, Debug)]
pub enum Never {}

impl Borrow<Texture> for Never {
    fn borrow(&self) -> &Texture {
        match *self {}
    }
}

impl Borrow<dyn DynTexture> for Never {
    fn borrow(&self) -> &dyn DynTexture {
        match *self {}
    }
}

/// A recorded command buffer.
#[derive(Debug)]
pub struct Recorded(pub(crate) CommandBuffer);

impl wgpu_hal::Api for Api {
    /// Keeps clear of the place of wgpu's own Vulkan back end. The adapter names another one
    /// ([`Options::backend`](crate::Options::backend)), which is what wgpu's validation asks.
    const VARIANT: Backend = Backend::Noop;

    type Instance = Instance;
    type Surface = Never;
    type Adapter = Adapter;
    type Device = Device;
    type Queue = Queue;
    type CommandEncoder = CommandEncoder;
    type CommandBuffer = Recorded;
    type Buffer = Buffer;
    type Texture = Texture;
    type SurfaceTexture = Never;
    type TextureView = TextureView;
    type Sampler = Sampler;
    type QuerySet = QuerySet;
    type Fence = Fence;
    type BindGroupLayout = BindGroupLayout;
    type BindGroup = BindGroup;
    type PipelineLayout = PipelineLayout;
    type ShaderModule = ShaderModule;
    type RenderPipeline = Never;
    type ComputePipeline = ComputePipeline;
    type RayTracingPipeline = Never;
    type PipelineCache = PipelineCache;
    type AccelerationStructure = Never;
}

/// Makes types resources, and each the kinds of resource that follow it.
macro_rules! resources {
    ($($type:ty: $($kind:ident)*;)*) => {$(
        impl DynResource for $type {
            fn as_any(&self) -> &dyn Any {
                self
            }

            fn as_any_mut(&mut self) -> &mut dyn Any {
                self
            }
        }

        $(impl wgpu_hal::$kind for $type {})*
    )*};
}

resources! {
    Never: DynAccelerationStructure DynRenderPipeline DynRayTracingPipeline DynSurfaceTexture DynTexture;
    Instance: ;
    Adapter: ;
    Device: ;
    Queue: ;
    CommandEncoder: ;
    Recorded: DynCommandBuffer;
    Buffer: DynBuffer;
    Texture: DynTexture;
    TextureView: DynTextureView;
    Sampler: DynSampler;
    QuerySet: DynQuerySet;
    Fence: DynFence;
    BindGroupLayout: DynBindGroupLayout;
    BindGroup: DynBindGroup;
    PipelineLayout: DynPipelineLayout;
    ShaderModule: DynShaderModule;
    ComputePipeline: DynComputePipeline;
    PipelineCache: DynPipelineCache;
}
