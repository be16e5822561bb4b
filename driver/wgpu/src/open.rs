//! Instances, adapters and devices of wgpu: made by the functions of its API for back ends outside of its crates.
//!
//! # Safety
//!
//! `from_hal`, `create_adapter_from_hal` and `as_hal` promise a valid handle of the back end that the type names, which
//! nothing else destroys: ours are Rust values of the [`Api`] that is named beside them, with safe methods.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use spelter_driver::environment::variable;
use wgpu_hal::ExposedAdapter;

use crate::capabilities::capabilities;
use crate::hal::{Adapter, Api, Instance};
use crate::options::Options;

pub(crate) fn instance(options: Options) -> wgpu::Instance {
    // SAFETY: by this module's rule.
    unsafe { wgpu::Instance::from_hal::<Api>(Instance::new(options)) }
}

pub(crate) fn adapter(options: &Options, instance: &wgpu::Instance) -> wgpu::Adapter {
    // SAFETY: by this module's rule. Any instance of wgpu may have the adapter: it needs none of ours.
    unsafe { instance.create_adapter_from_hal(exposed(options)) }
}

/// The adapter, with all that it claims.
pub(crate) fn exposed(options: &Options) -> ExposedAdapter<Api> {
    let (features, limits) = options.claims();
    ExposedAdapter {
        adapter: Adapter::new(options.clone()),
        info: options.info(),
        features,
        capabilities: capabilities(limits),
    }
}

pub(crate) fn device(options: &Options) -> Result<(wgpu::Device, wgpu::Queue), wgpu::RequestDeviceError> {
    let adapter = adapter(options, &instance(options.clone()));
    ready(adapter.request_device(&wgpu::DeviceDescriptor {
        required_features: adapter.features(),
        required_limits: adapter.limits(),
        ..wgpu::DeviceDescriptor::default()
    }))
}

/// The driver's device that a device of wgpu stands for: for statistics, for explanations of compiled kernels, and for
/// the findings of checked mode. `None` for a device of another adapter.
pub fn driver_device(device: &wgpu::Device) -> Option<spelter_driver::Device> {
    // SAFETY: by this module's rule; the device is not destroyed here.
    let ours = unsafe { device.as_hal::<Api>() }?;
    Some(ours.raw.clone())
}

/// A real adapter of the instance if there is one for these options, else Spelter. With `WGPU_ADAPTER_NAME=spelter` or
/// `SPELTER_WGPU=1` it is Spelter in any case. An error if the options have a surface and no adapter can present to it,
/// since Spelter does not either.
pub async fn request_adapter_or_spelter(
    instance: &wgpu::Instance,
    options: &wgpu::RequestAdapterOptions<'_, '_>,
) -> Result<wgpu::Adapter, wgpu::RequestAdapterError> {
    adapter_or(instance, options, || Options::from_env().adapter_on(instance)).await
}

/// [`request_adapter_or_spelter`] with Spelter's adapter.
pub(crate) async fn adapter_or(
    instance: &wgpu::Instance,
    options: &wgpu::RequestAdapterOptions<'_, '_>,
    own: impl Fn() -> wgpu::Adapter,
) -> Result<wgpu::Adapter, wgpu::RequestAdapterError> {
    if options.compatible_surface.is_none() && is_asked_for(|name| variable(name)?.into_string().ok()) {
        return Ok(own());
    }
    match instance.request_adapter(options).await {
        Err(_) if options.compatible_surface.is_none() => Ok(own()),
        answer => answer,
    }
}

/// Whether the environment asks for Spelter.
fn is_asked_for(variable: impl Fn(&str) -> Option<String>) -> bool {
    let named = variable("WGPU_ADAPTER_NAME").is_some_and(|name| name.to_lowercase().contains("spelter"));
    named || variable("SPELTER_WGPU").is_some_and(|value| !["", "0"].contains(&value.as_str()))
}

/// The result of a future that does not wait for anything else, as wgpu's futures outside of browsers.
pub fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => return result,
            Poll::Pending => std::thread::yield_now(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_asks_for_spelter() {
        let asks = |set: (&'static str, &'static str)| is_asked_for(|name| (name == set.0).then(|| set.1.to_owned()));
        assert!(asks(("WGPU_ADAPTER_NAME", "Spelter")) && asks(("SPELTER_WGPU", "1")));
        assert!(!asks(("WGPU_ADAPTER_NAME", "llvmpipe")) && !asks(("SPELTER_WGPU", "0")) && !asks(("", "")));
    }
}
