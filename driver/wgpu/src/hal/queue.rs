//! The queue.

use wgpu_hal::{DeviceError, FenceValue, SurfaceError};

use super::{Api, Never, Recorded};
use crate::device::{Fence, Queue};
use crate::error::device_error;

impl wgpu_hal::Queue for Queue {
    type A = Api;

    unsafe fn submit(
        &self,
        command_buffers: &[&Recorded],
        _: &[&Never],
        (fence, value): (&Fence, FenceValue),
    ) -> Result<(), DeviceError> {
        let commands: Vec<_> = command_buffers.iter().map(|recorded| &recorded.0).collect();
        Queue::submit(self, &commands, fence, value).map_err(device_error)
    }

    unsafe fn present(&self, surface: &Never, _: Never) -> Result<(), SurfaceError> {
        match *surface {}
    }

    unsafe fn wait_for_idle(&self) -> Result<(), DeviceError> {
        self.raw.wait_idle().map_err(device_error)
    }

    /// Timestamps are nanoseconds.
    unsafe fn get_timestamp_period(&self) -> f32 {
        1.0
    }
}
