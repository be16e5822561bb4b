//! Peak rates of the device, for the roofline: kernels that only move bytes, only multiply and add, or only have
//! atomics, as clpeak measures GPUs. They run on the same back end with the same workers, and the best of several runs
//! counts.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use spelter::{Bind, Context, Program};

use super::measure::MeasuredDispatch;

/// The time of each measurement.
const PERIOD: Duration = Duration::from_millis(150);

/// Working sets are rounded to powers of two in these bounds, in bytes.
const MIN_SET: u64 = 64 << 10;
const MAX_SET: u64 = 512 << 20;

/// A triad as in STREAM: twelve bytes for each invocation.
const TRIAD: &str = "
@group(0) @binding(0) var<storage, read_write> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read> c: array<f32>;
@compute @workgroup_size(256) fn triad(@builtin(global_invocation_id) id: vec3u) {
    a[id.x] = b[id.x] * 3.0 + c[id.x];
}";

/// Sums of sixteen words for each invocation.
const READ: &str = "
@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@group(0) @binding(1) var<storage, read> b: array<u32>;
@compute @workgroup_size(256)
fn add_up(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
    var sum = 0u;
    for (var i = 0u; i < 16u; i++) { sum += b[id.x + i * groups.x * 256u]; }
    a[id.x] = sum;
}";

/// Independent dependency chains: enough to hide the latency of a fused multiply-add.
const CHAINS: u32 = 10;
const ROUNDS: u32 = 512;

fn multiply_add() -> String {
    let all = |line: &dyn Fn(u32) -> String| (0..CHAINS).map(line).collect::<Vec<_>>().join(" ");
    let starts = all(&|i| format!("var x{i} = start + {i}.0;"));
    let steps = all(&|i| format!("x{i} = fma(x{i}, factor.x, factor.y);"));
    let sum = (0..CHAINS).map(|i| format!("x{i}")).collect::<Vec<_>>().join(" + ");
    format!(
        "var<immediate> factor: vec2f;
        @group(0) @binding(0) var<storage, read_write> a: array<f32>;
        @compute @workgroup_size(64) fn multiply_add(@builtin(global_invocation_id) id: vec3u) {{
            let start = f32(id.x);
            {starts}
            for (var i = 0u; i < {ROUNDS}u; i++) {{ {steps} }}
            a[id.x] = {sum};
        }}"
    )
}

/// Atomics on words that no other worker uses meanwhile.
const ATOMICS: u32 = 16;

fn atomics() -> String {
    format!(
        "@group(0) @binding(0) var<storage, read_write> a: array<atomic<u32>>;
        @compute @workgroup_size(64) fn atomics(@builtin(global_invocation_id) id: vec3u) {{
            for (var i = 0u; i < {ATOMICS}u; i++) {{ atomicAdd(&a[id.x * {ATOMICS}u + i], id.x); }}
        }}"
    )
}

/// The limits of a device, each measured when it is first needed.
#[derive(Default)]
pub(super) struct Limits {
    bandwidth: BTreeMap<u64, f64>,
    flops: Option<f64>,
    atomics: Option<f64>,
}

impl Limits {
    /// Bytes per second for a working set of about `bytes`.
    pub(super) fn bandwidth(&mut self, context: &Context, bytes: u64) -> Result<f64, spelter::Error> {
        let set = bytes.clamp(MIN_SET, MAX_SET).next_power_of_two();
        if let Some(known) = self.bandwidth.get(&set) {
            return Ok(*known);
        }
        let best = triad(context, set)?.max(read(context, set)?);
        self.bandwidth.insert(set, best);
        Ok(best)
    }

    /// Float operations per second, two for each fused multiply-add.
    pub(super) fn flops(&mut self, context: &Context) -> Result<f64, spelter::Error> {
        if self.flops.is_none() {
            let program = context.program_wgsl(&multiply_add())?;
            let groups = 32 * context.device().properties().workers as u32;
            let a = context.buffer_zeroed(u64::from(groups) * 64 * 4)?;
            context.bind((0, 0), Bind::storage(&a))?;
            let push = [0.999f32, 0.001].map(f32::to_le_bytes).concat();
            let seconds = best(&MeasuredDispatch { context, program: &program, push: &push, groups: [groups, 1, 1] })?;
            self.flops = Some(f64::from(groups) * 64.0 * f64::from(2 * CHAINS * ROUNDS) / seconds);
        }
        Ok(self.flops.unwrap_or(f64::INFINITY))
    }

    /// Atomics per second, on words in caches that no other worker uses.
    pub(super) fn atomics(&mut self, context: &Context) -> Result<f64, spelter::Error> {
        if self.atomics.is_none() {
            let program = context.program_wgsl(&atomics())?;
            let groups = 16 * context.device().properties().workers as u32;
            let a = context.buffer_zeroed(u64::from(groups * ATOMICS) * 64 * 4)?;
            context.bind((0, 0), Bind::storage(&a))?;
            let seconds = best(&MeasuredDispatch { context, program: &program, push: &[], groups: [groups, 1, 1] })?;
            self.atomics = Some(f64::from(groups) * 64.0 * f64::from(ATOMICS) / seconds);
        }
        Ok(self.atomics.unwrap_or(f64::INFINITY))
    }
}

fn triad(context: &Context, set: u64) -> Result<f64, spelter::Error> {
    let program = context.program_wgsl(TRIAD)?;
    let groups = (set / (12 * 256)).max(1);
    stream(context, &program, groups, &[groups * 1024; 3])
}

fn read(context: &Context, set: u64) -> Result<f64, spelter::Error> {
    let program = context.program_wgsl(READ)?;
    let groups = (set / (17 * 4 * 256)).max(1);
    stream(context, &program, groups, &[groups * 1024, groups * 1024 * 16])
}

/// Bytes per second of a kernel that accesses each byte of its buffers once.
fn stream(context: &Context, program: &Program, groups: u64, sizes: &[u64]) -> Result<f64, spelter::Error> {
    let buffers: Vec<_> = sizes.iter().map(|size| context.buffer_zeroed(*size)).collect::<Result<_, _>>()?;
    for (binding, buffer) in (0..).zip(&buffers) {
        context.bind((0, binding), Bind::storage(buffer))?;
    }
    let groups = [u32::try_from(groups).unwrap_or(u32::MAX), 1, 1];
    let seconds = best(&MeasuredDispatch { context, program, push: &[], groups })?;
    Ok(sizes.iter().sum::<u64>() as f64 / seconds)
}

/// Seconds of one dispatch in the fastest batch.
fn best(dispatch: &MeasuredDispatch<'_>) -> Result<f64, spelter::Error> {
    let count = dispatch.warm_up(PERIOD / 4, PERIOD / 20)?;
    let (start, mut best) = (Instant::now(), f64::INFINITY);
    while start.elapsed() < PERIOD {
        best = best.min(dispatch.batch(count)? / f64::from(count));
    }
    Ok(best.max(1e-12))
}
