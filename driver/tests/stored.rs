//! Kernels stored across devices: restored completely, or rejected if any byte was altered.
#![allow(clippy::unwrap_used)]

use crate::common;
use crate::common::{STORAGE, Words, device, run};
use proptest::prelude::*;
use spelter_driver::{
    Backend, Binding, ComputePipeline, Device, Origin, PipelineLayout, PushRange, SealKey, ShaderModule, ShaderStage,
    Specialization, StoredKernels,
};

const KEY: SealKey = SealKey([7; 32]);

const SCALE: &str = "
    @id(0) override factor: u32 = 3u;
    var<immediate> plus: u32;
    var<workgroup> shared_words: array<u32, 64>;
    @group(0) @binding(0) var<storage, read_write> a: array<u32>;
    @compute @workgroup_size(64) fn main(
        @builtin(local_invocation_index) i: u32, @builtin(global_invocation_id) id: vec3<u32>
    ) {
        shared_words[63u - i] = a[id.x] * factor;
        workgroupBarrier();
        a[id.x] = shared_words[i] + plus;
    }";

struct Made {
    device: Device,
    set: spelter_driver::DescriptorSetLayout,
    layout: PipelineLayout,
    module: ShaderModule,
}

impl Made {
    fn new(source: &str) -> Self {
        Self::on(device(), source)
    }

    fn on(device: Device, source: &str) -> Self {
        let set = device.create_descriptor_set_layout(&[Binding { binding: 0, ty: STORAGE, count: 1 }]).unwrap();
        let layout = device.create_pipeline_layout(&[&set], &[PushRange { offset: 0, size: 16 }]).unwrap();
        let module = device.create_shader_module_wgsl(source).unwrap();
        Self { device, set, layout, module }
    }

    fn pipeline(
        &self,
        constants: &Specialization,
        stored: &StoredKernels,
        may_compile: bool,
    ) -> Option<(ComputePipeline, Origin)> {
        let shader = ShaderStage { module: &self.module, entry: "main", specialization: constants };
        self.device.create_compute_pipeline_stored(shader, &self.layout, stored, may_compile).unwrap()
    }

    fn results(&self, pipeline: &ComputePipeline) -> Vec<u32> {
        let words = Words::new(&self.device, &(0..128).collect::<Vec<_>>());
        let set = self.device.create_descriptor_pool(1, &[(STORAGE, 1)]).unwrap().allocate(&self.set).unwrap();
        set.write(0, 0, STORAGE, &[words.whole()]).unwrap();
        run(&self.device, |command| {
            command.bind_pipeline(pipeline).unwrap();
            command.bind_descriptor_sets(&self.layout, 0, &[&set], &[]).unwrap();
            command.push_constants(&self.layout, 0, &100u32.to_le_bytes()).unwrap();
            command.dispatch(2, 1, 1).unwrap();
        });
        words.read()
    }
}

fn expected(factor: u32) -> Vec<u32> {
    (0..128u32).map(|i| (i / 64 * 64 + 63 - i % 64) * factor + 100).collect()
}

/// A sealed store with the kernel for two factors.
fn sealed() -> Vec<u8> {
    let made = Made::new(SCALE);
    let mut stored = StoredKernels::default();
    for constants in [Specialization::new(), Specialization::from([(0, 5)])] {
        let (pipeline, origin) = made.pipeline(&constants, &stored, true).unwrap();
        assert_eq!(origin, Origin::Compiled);
        stored.keep(&pipeline);
        stored.keep(&pipeline);
    }
    stored.seal(&KEY, usize::MAX).unwrap()
}

fn has_machine_code() -> bool {
    Backend::best() != Backend::Interpreter
}

#[test]
fn another_device_runs_what_was_stored() {
    let bytes = sealed();
    let stored = StoredKernels::open(&bytes, &KEY);
    assert_eq!(stored.len(), if has_machine_code() { 2 } else { 0 });
    assert_eq!(stored.seal(&KEY, usize::MAX).unwrap(), bytes);
    if !has_machine_code() {
        return;
    }
    let made = Made::new(SCALE);
    let constants = [Specialization::new(), Specialization::from([(0, 5)]), Specialization::from([(0, 6)])];
    for (constants, factor) in constants[..2].iter().zip([3, 5]) {
        let (pipeline, origin) = made.pipeline(constants, &stored, false).unwrap();
        assert_eq!(origin, Origin::Stored);
        assert_eq!(made.results(&pipeline), expected(factor));
        let (_, origin) = made.pipeline(constants, &StoredKernels::default(), false).unwrap();
        assert_eq!(origin, Origin::Shared, "an existing pipeline has the code");
    }
    // Another constant, and another shader with the same interface.
    assert!(made.pipeline(&constants[2], &stored, false).is_none());
    let other = Made::new(&SCALE.replace("+ plus", "- plus"));
    assert!(other.pipeline(&constants[0], &stored, false).is_none());
    assert_eq!(other.pipeline(&constants[0], &stored, true).unwrap().1, Origin::Compiled);
    let stats = made.device.pipeline_cache_stats();
    assert_eq!((stats.compiled, stats.stored, stats.shared), (0, 2, 2));
}

#[test]
fn a_device_with_a_schedule_has_code_of_its_own() {
    let stored = StoredKernels::open(&sealed(), &KEY);
    let schedule = spelter_driver::Schedule::Random(3);
    let scheduled = || {
        let options = spelter_driver::DeviceOptions { schedule, ..common::options() };
        Made::on(Device::new(options).unwrap(), SCALE)
    };
    let (made, constants) = (scheduled(), Specialization::new());
    assert!(made.pipeline(&constants, &stored, false).is_none(), "stored code runs in ascending order only");
    let (pipeline, origin) = made.pipeline(&constants, &stored, true).unwrap();
    assert_eq!((origin, made.results(&pipeline)), (Origin::Compiled, expected(3)));
    if !has_machine_code() {
        return;
    }
    let mut again = StoredKernels::default();
    again.keep(&pipeline);
    assert!(Made::new(SCALE).pipeline(&constants, &again, false).is_none());
    let other = scheduled();
    let (pipeline, origin) = other.pipeline(&constants, &again, false).unwrap();
    assert_eq!((origin, other.results(&pipeline)), (Origin::Stored, expected(3)));
}

#[test]
fn a_store_leaves_out_kernels_that_do_not_fit() {
    let stored = StoredKernels::open(&sealed(), &KEY);
    let whole = stored.seal(&KEY, usize::MAX).unwrap();
    let less = stored.seal(&KEY, whole.len() - 1).unwrap();
    assert!(less.len() < whole.len());
    assert_eq!(StoredKernels::open(&less, &KEY).len(), stored.len().saturating_sub(1));
    assert_eq!(stored.seal(&KEY, 10), None);
    let mut both = StoredKernels::open(&less, &KEY);
    both.merge(&stored);
    assert_eq!(both.len(), stored.len());
}

#[test]
fn a_store_of_another_user_is_empty() {
    let bytes = sealed();
    assert!(StoredKernels::open(&bytes, &SealKey([8; 32])).is_empty());
    assert!(StoredKernels::open(&[], &KEY).is_empty());
    assert!(StoredKernels::open(&bytes[..31], &KEY).is_empty());
}

/// Seals a body that is not a store. No process of the user would seal it, but the decoder checks it all the same.
fn resealed(mut body: Vec<u8>) -> Vec<u8> {
    let seal = blake3::keyed_hash(&KEY.0, &body);
    body.extend_from_slice(seal.as_bytes());
    body
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn an_altered_store_is_rejected(at in any::<prop::sample::Index>(), bits in 1..=u8::MAX, cut in any::<prop::sample::Index>()) {
        static BYTES: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
        let bytes = BYTES.get_or_init(sealed);
        let mut altered = bytes.clone();
        altered[at.index(bytes.len())] ^= bits;
        prop_assert!(StoredKernels::open(&altered, &KEY).is_empty());
        prop_assert!(StoredKernels::open(&bytes[..cut.index(bytes.len())], &KEY).is_empty());
        let mut longer = bytes.clone();
        longer.push(bits);
        prop_assert!(StoredKernels::open(&longer, &KEY).is_empty());
        // The decoder after the seal: any body is decoded or rejected without a panic. Its code is never run.
        altered.truncate(bytes.len() - 32);
        StoredKernels::open(&resealed(altered), &KEY);
        StoredKernels::open(&resealed(bytes[..cut.index(bytes.len())].to_vec()), &KEY);
    }
}
