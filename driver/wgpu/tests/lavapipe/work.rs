//! A program with its buffers, run on any device of wgpu, and how its results are compared.

use std::collections::BTreeMap;

use crate::common::Gpu;

/// A program: one dispatch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Work {
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) entry: String,
    /// Overrides.
    pub(crate) constants: Vec<(String, f64)>,
    pub(crate) immediates: Vec<u32>,
    /// Contents by group and binding.
    pub(crate) buffers: BTreeMap<(u32, u32), Vec<u32>>,
    pub(crate) groups: [u32; 3],
    pub(crate) same: Same,
}

/// When the results of two devices are equal.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Same {
    /// All bits.
    #[default]
    Bits,
    /// Floats, which differ by at most this part of the larger one.
    Near(f32),
    /// The same for all but one word in `share` words: a rounding may decide where a ray ends.
    NearMostly { part: f32, share: usize },
    /// Four codes of eight bits in a word, which differ by at most `apart` for all but one word in `share` words:
    /// products and sums may be fused, and a loop then ends in another step.
    Codes { apart: u8, share: usize },
}

impl Same {
    /// The first difference, if there is one that counts.
    pub(crate) fn difference(self, ours: &[Vec<u32>], theirs: &[Vec<u32>]) -> Option<String> {
        if ours.iter().map(Vec::len).ne(theirs.iter().map(Vec::len)) {
            return Some("the buffers have other sizes".to_owned());
        }
        let pairs = ours.iter().zip(theirs).enumerate();
        let mut different = pairs.flat_map(|(buffer, (ours, theirs))| {
            let words = ours.iter().zip(theirs).enumerate();
            words
                .filter(|(_, (a, b))| !self.agree(**a, **b))
                .map(move |(at, (a, b))| format!("word {at} of buffer {buffer}: {a:#x}, {b:#x}"))
        });
        let first = different.next()?;
        let count = 1 + different.count();
        let allowed = match self {
            Self::Codes { share, .. } | Self::NearMostly { share, .. } => {
                ours.iter().map(Vec::len).sum::<usize>() / share
            }
            _ => 0,
        };
        (count > allowed).then_some(first)
    }

    fn agree(self, a: u32, b: u32) -> bool {
        match self {
            Self::Bits => a == b,
            Self::Near(part) | Self::NearMostly { part, .. } => {
                let [a, b] = [a, b].map(f32::from_bits);
                a == b || (a - b).abs() <= part * a.abs().max(b.abs())
            }
            Self::Codes { apart, .. } => {
                let [a, b] = [a, b].map(u32::to_le_bytes);
                a.into_iter().zip(b).all(|(a, b)| a.abs_diff(b) <= apart)
            }
        }
    }
}

impl Work {
    /// Runs the program. Returns the contents of its buffers afterwards, or the error of the device that refuses it.
    pub(crate) fn run(&self, gpu: &Gpu) -> Result<Vec<Vec<u32>>, String> {
        let scopes = [wgpu::ErrorFilter::Internal, wgpu::ErrorFilter::Validation]
            .map(|filter| gpu.device.push_error_scope(filter));
        let pipeline = self.pipeline(gpu);
        // Scopes are popped in reverse.
        let errors: Vec<_> = scopes.into_iter().rev().filter_map(|scope| spelter_wgpu::ready(scope.pop())).collect();
        if let Some(error) = errors.first() {
            return Err(crate::common::text(error));
        }
        let buffers: BTreeMap<_, _> = self.buffers.iter().map(|(at, words)| (*at, gpu.words(words))).collect();
        let mut encoder = gpu.encoder();
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&pipeline);
        let last = self.buffers.keys().map(|(group, _)| *group).max();
        for group in 0..last.map_or(0, |last| last + 1) {
            let own = buffers.range((group, 0)..(group + 1, 0));
            let entries: Vec<_> = own
                .map(|((_, binding), buffer)| wgpu::BindGroupEntry {
                    binding: *binding,
                    resource: buffer.as_entire_binding(),
                })
                .collect();
            let layout = pipeline.get_bind_group_layout(group);
            let descriptor = wgpu::BindGroupDescriptor { label: None, layout: &layout, entries: &entries };
            pass.set_bind_group(group, &gpu.device.create_bind_group(&descriptor), &[]);
        }
        if !self.immediates.is_empty() {
            pass.set_immediates(0, &crate::common::bytes(&self.immediates));
        }
        let [x, y, z] = self.groups;
        pass.dispatch_workgroups(x, y, z);
        drop(pass);
        gpu.queue.submit([encoder.finish()]);
        Ok(buffers.values().map(|buffer| gpu.read_words(buffer)).collect())
    }

    fn pipeline(&self, gpu: &Gpu) -> wgpu::ComputePipeline {
        let constants: Vec<_> = self.constants.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(&self.name),
            layout: None,
            module: &gpu.module(&self.source),
            entry_point: Some(&self.entry),
            compilation_options: wgpu::PipelineCompilationOptions { constants: &constants, ..Default::default() },
            cache: None,
        })
    }
}
