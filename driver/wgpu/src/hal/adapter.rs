//! The adapter: describes formats, and opens devices.

use wgpu_hal::{DeviceError, OpenDevice, SurfaceCapabilities, TextureFormatCapabilities};
use wgpu_types::{BufferUses, Features, Limits, MemoryHints, PresentationTimestamp, TextureFormat, TextureUses};

use super::{Api, Never};
use crate::device::Device;
use crate::error::device_error;
use crate::format;
use crate::options::Options;

/// An adapter: the options of its devices.
#[derive(Debug)]
pub struct Adapter {
    options: Options,
}

impl Adapter {
    pub(crate) fn new(options: Options) -> Self {
        Self { options }
    }
}

impl wgpu_hal::Adapter for Adapter {
    type A = Api;

    unsafe fn open(&self, _: Features, _: &Limits, _: &MemoryHints) -> Result<OpenDevice<Api>, DeviceError> {
        let (device, queue) =
            Device::open(self.options.device_options(), self.options.environment()).map_err(device_error)?;
        Ok(OpenDevice { device, queue })
    }

    unsafe fn texture_format_capabilities(&self, format: TextureFormat) -> TextureFormatCapabilities {
        format::capabilities(format, self.options.claims().0)
    }

    unsafe fn surface_capabilities(&self, surface: &Never) -> Option<SurfaceCapabilities> {
        match *surface {}
    }

    unsafe fn get_presentation_timestamp(&self) -> PresentationTimestamp {
        PresentationTimestamp::INVALID_TIMESTAMP
    }

    fn get_ordered_buffer_usages(&self) -> BufferUses {
        BufferUses::INCLUSIVE | BufferUses::MAP_WRITE
    }

    fn get_ordered_texture_usages(&self) -> TextureUses {
        TextureUses::INCLUSIVE
    }
}
