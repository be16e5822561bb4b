//! Pipeline caches: code is compiled once and loaded by other processes, and altered data are ignored.

#![allow(
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "every call of Vulkan is unsafe; a failing test panics"
)]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::common::{Gpu, Layout, rerun, spirv, stage};
use ash::vk;

/// WGSL of a kernel that takes a while to compile.
fn source(number: u32) -> String {
    let steps: String = (0..200)
        .map(|step| format!("x = x * {}u + (x >> {}u) + a[(x + {step}u) % 64u];\n", step + 3, step % 31))
        .collect();
    format!(
        "@group(0) @binding(0) var<storage, read_write> a: array<u32, 64>;
         @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
             var x = id.x + {number}u;
             {steps}
             a[id.x] = x;
         }}"
    )
}

struct Made {
    gpu: Gpu,
    layout: Layout,
}

impl Made {
    fn new() -> Self {
        let gpu = Gpu::new();
        let layout = gpu.storage_layout();
        Self { gpu, layout }
    }

    fn cache(&self, data: &[u8]) -> vk::PipelineCache {
        let info = vk::PipelineCacheCreateInfo::default().initial_data(data);
        unsafe { self.gpu.device.create_pipeline_cache(&info, None).unwrap() }
    }

    /// Creates a pipeline. Also returns whether its code was cached, and the duration.
    fn pipeline(
        &self,
        cache: vk::PipelineCache,
        words: &[u32],
        flags: vk::PipelineCreateFlags,
    ) -> (Result<vk::Pipeline, vk::Result>, bool, Duration) {
        let mut of_pipeline = vk::PipelineCreationFeedback::default();
        let mut of_stage = [vk::PipelineCreationFeedback::default()];
        let mut feedback = vk::PipelineCreationFeedbackCreateInfo::default()
            .pipeline_creation_feedback(&mut of_pipeline)
            .pipeline_stage_creation_feedbacks(&mut of_stage);
        let device = &self.gpu.device;
        let module = vk::ShaderModuleCreateInfo::default().code(words);
        let module = unsafe { device.create_shader_module(&module, None).unwrap() };
        let info = vk::ComputePipelineCreateInfo::default()
            .stage(stage(module))
            .layout(self.layout.pipeline)
            .flags(flags)
            .push_next(&mut feedback);
        let start = Instant::now();
        let made = self.gpu.pipeline(cache, &info);
        let took = start.elapsed();
        unsafe { device.destroy_shader_module(module, None) };
        let hit = vk::PipelineCreationFeedbackFlags::APPLICATION_PIPELINE_CACHE_HIT;
        (made, of_pipeline.flags.contains(hit), took)
    }

    fn data(&self, cache: vk::PipelineCache) -> Vec<u8> {
        unsafe { self.gpu.device.get_pipeline_cache_data(cache).unwrap() }
    }

    fn destroy(self, caches: &[vk::PipelineCache], pipelines: &[vk::Pipeline]) {
        unsafe {
            caches.iter().for_each(|&cache| self.gpu.device.destroy_pipeline_cache(cache, None));
            pipelines.iter().for_each(|&pipeline| self.gpu.device.destroy_pipeline(pipeline, None));
        }
        self.gpu.destroy_layout(self.layout);
    }
}

const PLAIN: vk::PipelineCreateFlags = vk::PipelineCreateFlags::empty();
const NO_COMPILE: vk::PipelineCreateFlags = vk::PipelineCreateFlags::FAIL_ON_PIPELINE_COMPILE_REQUIRED;

/// Reruns a test of this file in a process with its own folder for the key of stored code. Returns true in that
/// process.
fn in_own_home(test: &str) -> bool {
    if std::env::var_os("XDG_CACHE_HOME").is_some_and(|home| PathBuf::from(home).ends_with(test)) {
        return true;
    }
    let home = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&home);
    let mut again = rerun(std::env::current_exe().unwrap(), module_path!(), test);
    let output = again.env("XDG_CACHE_HOME", &home).env("SPELTER_QUIET", "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    print_figures(&text);
    false
}

#[allow(clippy::print_stderr, reason = "figures are for the reader of the output")]
fn print_figures(text: &str) {
    text.lines().filter(|line| line.starts_with("caches:")).for_each(|line| eprintln!("{line}"));
}

#[test]
#[allow(clippy::print_stderr, reason = "figures are for the reader of the output")]
fn cached_pipelines_are_not_compiled_again() {
    if !in_own_home("cached_pipelines_are_not_compiled_again") {
        return;
    }
    let shaders: Vec<_> = (0..8).map(|number| spirv(&source(number))).collect();
    let first = Made::new();
    let cache = first.cache(&[]);
    assert_eq!(first.pipeline(cache, &shaders[0], NO_COMPILE).0, Err(vk::Result::PIPELINE_COMPILE_REQUIRED));
    let mut compiled = Duration::ZERO;
    let mut pipelines = Vec::new();
    for words in &shaders {
        let (made, hit, took) = first.pipeline(cache, words, PLAIN);
        assert!(!hit);
        compiled += took;
        pipelines.push(made.unwrap());
    }
    // Now the device has the code, with and without a cache.
    for cache in [cache, vk::PipelineCache::null()] {
        let (made, hit, _) = first.pipeline(cache, &shaders[0], NO_COMPILE);
        assert_eq!(hit, cache != vk::PipelineCache::null());
        pipelines.push(made.unwrap());
    }
    let data = first.data(cache);
    first.destroy(&[cache], &pipelines);
    if data.len() == 32 {
        eprintln!("caches: this machine has no machine code to store");
        return;
    }
    let second = Made::new();
    let (cache, empty) = (second.cache(&data), second.cache(&[]));
    let mut loaded = Duration::ZERO;
    let mut pipelines = Vec::new();
    for words in &shaders {
        let (made, hit, took) = second.pipeline(cache, words, NO_COMPILE);
        assert!(hit);
        loaded += took;
        pipelines.push(made.unwrap());
    }
    assert_eq!(second.data(cache), data, "the same code, the same data");
    // Merging copies the code to the other cache. A smaller buffer gets some of the pipelines.
    unsafe { second.gpu.device.merge_pipeline_caches(empty, &[cache]).unwrap() };
    assert_eq!(second.data(empty), data);
    let get = second.gpu.device.fp_v1_0().get_pipeline_cache_data;
    let (mut part, mut size) = (vec![0u8; data.len() / 2], data.len() / 2);
    let result = unsafe { get(second.gpu.device.handle(), cache, &raw mut size, part.as_mut_ptr().cast()) };
    assert_eq!(result, vk::Result::INCOMPLETE);
    assert!(size > 32 && size <= data.len() / 2, "{size} of {}", data.len());
    part.truncate(size);
    second.destroy(&[cache, empty], &pipelines);
    let third = Made::new();
    let cache = third.cache(&part);
    let made: Vec<_> = shaders.iter().filter_map(|words| third.pipeline(cache, words, NO_COMPILE).0.ok()).collect();
    assert!((1..shaders.len()).contains(&made.len()), "{} of {}", made.len(), shaders.len());
    third.destroy(&[cache], &made);
    eprintln!(
        "caches: {} pipelines compiled in {compiled:?}, loaded in {loaded:?}: {:.0} times as fast, {} bytes",
        shaders.len(),
        compiled.as_secs_f64() / loaded.as_secs_f64(),
        data.len(),
    );
}

#[test]
fn altered_data_are_ignored() {
    if !in_own_home("altered_data_are_ignored") {
        return;
    }
    let words = spirv(&source(1));
    let first = Made::new();
    let cache = first.cache(&[]);
    let made = first.pipeline(cache, &words, PLAIN).0.unwrap();
    let data = first.data(cache);
    first.destroy(&[cache], &[made]);
    let second = Made::new();
    let required = Err(vk::Result::PIPELINE_COMPILE_REQUIRED);
    let is_ignored = |data: &[u8]| {
        let cache = second.cache(data);
        let made = second.pipeline(cache, &words, NO_COMPILE).0;
        unsafe { second.gpu.device.destroy_pipeline_cache(cache, None) };
        made == required
    };
    let step = (data.len() / 200).max(1);
    for at in (0..32).chain((32..data.len()).step_by(step)).chain(data.len().saturating_sub(40)..data.len()) {
        let mut altered = data.clone();
        altered[at] ^= 0x10;
        assert!(is_ignored(&altered), "byte {at} of {}", data.len());
        assert!(is_ignored(&data[..at]), "truncated at byte {at} of {}", data.len());
    }
    assert!(is_ignored(&[data.as_slice(), &[0]].concat()), "one byte more");
    assert_eq!(!is_ignored(&data), data.len() > 32);
    second.destroy(&[], &[]);
}
