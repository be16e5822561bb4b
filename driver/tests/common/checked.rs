//! A device in checked mode, and what it finds.

use spelter_driver::check::{CheckOptions, Finding, Hazard, Rule};
use spelter_driver::{CommandBuffer, Device, DeviceOptions};

pub const RAW: Rule = Rule::Race(Hazard::ReadAfterWrite);
pub const WAR: Rule = Rule::Race(Hazard::WriteAfterRead);
pub const WAW: Rule = Rule::Race(Hazard::WriteAfterWrite);

pub fn options() -> DeviceOptions {
    DeviceOptions { check: Some(CheckOptions::default()), ..super::options() }
}

pub fn device() -> Device {
    Device::new(options()).unwrap()
}

/// The findings of one command buffer.
pub fn findings(device: &Device, record: impl FnOnce(&CommandBuffer)) -> Vec<Finding> {
    super::run(device, record);
    device.take_findings()
}

pub fn rules(of: &[Finding]) -> Vec<Rule> {
    of.iter().map(|finding| finding.rule).collect()
}
