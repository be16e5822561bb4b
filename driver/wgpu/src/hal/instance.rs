//! The instance, and surfaces, of which there are none.

use std::time::Duration;

use log::Level;
use wgpu::rwh::{RawDisplayHandle, RawWindowHandle};
use wgpu_hal::{
    AcquiredSurfaceTexture, ExposedAdapter, InstanceDescriptor, InstanceError, SurfaceConfiguration, SurfaceError, noop,
};
use wgpu_types::{BackendOptions, InstanceFlags, MemoryBudgetThresholds};

use super::{Api, Never};
use crate::device::{Device, Fence};
use crate::error::report;
use crate::open::exposed;
use crate::options::Options;

/// An instance: the options of its adapter.
#[derive(Debug)]
pub struct Instance {
    options: Options,
}

impl Instance {
    pub(crate) fn new(options: Options) -> Self {
        Self { options }
    }
}

/// An error, which only wgpu-hal's own back ends can make: that of one which is switched off.
fn no_surface() -> InstanceError {
    let off = InstanceDescriptor {
        name: "",
        flags: InstanceFlags::empty(),
        memory_budget_thresholds: MemoryBudgetThresholds::default(),
        backend_options: BackendOptions::default(),
        telemetry: None,
        display: None,
    };
    // SAFETY: the back end has no requirements; it reads one flag of its options.
    match unsafe { <noop::Context as wgpu_hal::Instance>::init(&off) } {
        Err(error) => error,
        Ok(_) => unreachable!("the back end is off by default"),
    }
}

impl wgpu_hal::Instance for Instance {
    type A = Api;

    /// wgpu calls it for its own back ends only.
    unsafe fn init(_: &InstanceDescriptor<'_>) -> Result<Self, InstanceError> {
        Ok(Self::new(Options::from_env()))
    }

    unsafe fn create_surface(&self, _: RawDisplayHandle, _: RawWindowHandle) -> Result<Never, InstanceError> {
        report(Level::Error, "a surface: Spelter computes only");
        Err(no_surface())
    }

    unsafe fn enumerate_adapters(&self, _: Option<&Never>) -> Vec<ExposedAdapter<Api>> {
        vec![exposed(&self.options)]
    }
}

impl wgpu_hal::Surface for Never {
    type A = Api;

    unsafe fn configure(&self, _: &Device, _: &SurfaceConfiguration) -> Result<(), SurfaceError> {
        match *self {}
    }

    unsafe fn unconfigure(&self, _: &Device) {
        match *self {}
    }

    unsafe fn acquire_texture(
        &self,
        _: Option<Duration>,
        _: &Fence,
    ) -> Result<AcquiredSurfaceTexture<Api>, SurfaceError> {
        match *self {}
    }

    unsafe fn discard_texture(&self, _: Never) {
        match *self {}
    }
}
