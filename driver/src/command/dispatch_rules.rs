//! Valid-usage rules of dispatches: the VUIDs that each dispatch command has for the rules that all of them share.

use crate::descriptor::{COMPARE, FORMAT, SampleRule, ViewRule};
use crate::error::Misuse;
use crate::pipeline::{ComputePipeline, SlotRange};

/// Rules that all dispatch commands share; Vulkan gives each command its own VUIDs for them.
pub(super) struct DispatchRules {
    pub(super) at: &'static str,
    pub(super) recording: &'static str,
    pub(super) pipeline: &'static str,
    pub(super) sets: &'static str,
    pub(super) push: &'static str,
    pub(super) view: &'static str,
    pub(super) numeric: &'static str,
    pub(super) filter: &'static str,
    pub(super) levels: &'static str,
}

macro_rules! dispatch_rules {
    ($command:literal) => {
        DispatchRules {
            at: $command,
            recording: concat!("VUID-", $command, "-commandBuffer-recording"),
            pipeline: concat!("VUID-", $command, "-None-08606"),
            sets: concat!("VUID-", $command, "-None-08600"),
            push: concat!("VUID-", $command, "-None-08601"),
            view: concat!("VUID-", $command, "-viewType-07752"),
            numeric: concat!("VUID-", $command, "-format-07753"),
            filter: concat!("VUID-", $command, "-magFilter-04553"),
            levels: concat!("VUID-", $command, "-mipmapMode-04770"),
        }
    };
}

impl DispatchRules {
    /// The error for a view that does not match the kernel's declaration.
    pub(super) fn view_misuse(
        &self,
        kernel: &ComputePipeline,
        at: &SlotRange,
        (rule, problem): (ViewRule, String),
    ) -> Misuse {
        let vuid = match rule {
            ViewRule::Type => self.view,
            ViewRule::Numeric => self.numeric,
            ViewRule::Format => FORMAT,
        };
        Misuse::new(self.at, format!("`{}`, set {}, binding {}: {problem}", kernel.name(), at.set, at.binding), vuid)
    }

    /// The error for an image that is sampled through an unsuitable sampler.
    pub(super) fn sample_misuse(
        &self,
        kernel: &ComputePipeline,
        [image, sampler]: [&SlotRange; 2],
        why: (SampleRule, String),
    ) -> Misuse {
        let vuid = match why.0 {
            SampleRule::Filter => self.filter,
            SampleRule::Levels => self.levels,
            SampleRule::Compare => COMPARE,
        };
        let (name, problem) = (kernel.name(), why.1);
        let through = match (sampler.set, sampler.binding) {
            place if place == (image.set, image.binding) => String::new(),
            (set, binding) => format!(" through the sampler of set {set}, binding {binding}"),
        };
        let place = format!("set {}, binding {}{through}", image.set, image.binding);
        Misuse::new(self.at, format!("`{name}` samples {place}: {problem}"), vuid)
    }
}

pub(super) const DISPATCH: DispatchRules = dispatch_rules!("vkCmdDispatch");
pub(super) const DISPATCH_BASE: DispatchRules = dispatch_rules!("vkCmdDispatchBase");
pub(super) const DISPATCH_INDIRECT: DispatchRules = dispatch_rules!("vkCmdDispatchIndirect");
