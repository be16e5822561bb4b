//! The kernels: text, input, and a check of the output that precedes the timing.

use ash::vk;
use half::f16;
use spelter_benches::Error;

use super::gpu::{Bound, Gpu, Step};

/// A kernel of the table.
pub(crate) struct Kernel {
    pub(crate) name: &'static str,
    /// What a run's rate counts, in billions: texels, or bytes of memory traffic.
    pub(crate) unit: &'static str,
    pub(crate) amount: f64,
    pub(crate) asked: Asked,
    /// Seconds of a run; `None` if the driver lacks something that the kernel needs.
    pub(crate) run: fn(&Gpu) -> Result<Option<f64>, Error>,
}

/// The kernel's target.
#[derive(Clone, Copy)]
pub(crate) enum Asked {
    /// A multiple of lavapipe's rate.
    Lavapipe(f64),
    /// A fraction of the machine's bandwidth, for a working set of this many bytes.
    Bandwidth(f64, usize),
}

pub(crate) const KERNELS: [Kernel; 6] = [
    Kernel { name: "stencil_r32f", unit: "Gtexel/s", amount: TEXELS as f64, asked: Asked::Lavapipe(5.0), run: stencil },
    Kernel { name: "blur_rgba8", unit: "Gtexel/s", amount: TEXELS as f64, asked: Asked::Lavapipe(5.0), run: blur },
    Kernel {
        name: "reduce_subgroup_add_memory",
        unit: "GB/s",
        amount: ELEMENTS as f64 * 4.0,
        asked: Asked::Lavapipe(20.0),
        run: |gpu| reduce(gpu, ELEMENTS),
    },
    Kernel {
        name: "reduce_subgroup_add_cache",
        unit: "GB/s",
        amount: FEW_ELEMENTS as f64 * 4.0,
        asked: Asked::Lavapipe(20.0),
        run: |gpu| reduce(gpu, FEW_ELEMENTS),
    },
    Kernel {
        name: "saxpy_f16_memory",
        unit: "GB/s",
        amount: LARGE as f64 * 6.0,
        asked: Asked::Bandwidth(0.8, LARGE * 4),
        run: |gpu| saxpy(gpu, LARGE),
    },
    Kernel {
        name: "saxpy_f16_cache",
        unit: "GB/s",
        amount: SMALL as f64 * 6.0,
        asked: Asked::Bandwidth(0.8, SMALL * 4),
        run: |gpu| saxpy(gpu, SMALL),
    },
];

/// Side of both images.
const SIDE: u32 = 2048;
const TEXELS: usize = (SIDE * SIDE) as usize;
/// Elements that are summed: larger than the caches, so that memory bandwidth is the bound, and smaller.
const ELEMENTS: usize = 1 << 24;
const FEW_ELEMENTS: usize = 1 << 20;
/// Halves in each array: larger than the caches, and smaller.
const LARGE: usize = 1 << 26;
const SMALL: usize = 1 << 20;

const STENCIL: &str = "
@group(0) @binding(0) var source: texture_storage_2d<r32float, read>;
@group(0) @binding(1) var result: texture_storage_2d<r32float, write>;
@compute @workgroup_size(16, 16) fn main(@builtin(global_invocation_id) id: vec3u) {
    let at = vec2i(id.xy);
    let last = vec2i(textureDimensions(source)) - 1;
    let north = textureLoad(source, vec2(at.x, max(at.y - 1, 0))).x;
    let south = textureLoad(source, vec2(at.x, min(at.y + 1, last.y))).x;
    let west = textureLoad(source, vec2(max(at.x - 1, 0), at.y)).x;
    let east = textureLoad(source, vec2(min(at.x + 1, last.x), at.y)).x;
    let here = textureLoad(source, at).x;
    textureStore(result, at, vec4(0.5 * here + 0.125 * ((north + south) + (west + east)), 0.0, 0.0, 0.0));
}";

fn stencil(gpu: &Gpu) -> Result<Option<f64>, Error> {
    let texel = |x: i64, y: i64| {
        let [x, y] = [x, y].map(|at| at.clamp(0, i64::from(SIDE) - 1));
        ((x * 7 + y * 13) % 1021) as f32
    };
    let every = || (0..i64::from(SIDE)).flat_map(|y| (0..i64::from(SIDE)).map(move |x| (x, y)));
    let bytes: Vec<u8> = every().flat_map(|(x, y)| texel(x, y).to_ne_bytes()).collect();
    let source = gpu.image(vk::Format::R32_SFLOAT, SIDE, Some(&bytes))?;
    let result = gpu.image(vk::Format::R32_SFLOAT, SIDE, None)?;
    let seconds = over_images(gpu, STENCIL, &[Bound::Storage(&source), Bound::Storage(&result)])?;
    let found = gpu.texels(&result, bytes.len())?;
    // Integers: the order of the sums does not matter.
    let right = every().zip(found.chunks_exact(4)).all(|((x, y), found)| {
        let around = texel(x, y - 1) + texel(x, y + 1) + texel(x - 1, y) + texel(x + 1, y);
        found == (0.5 * texel(x, y) + 0.125 * around).to_ne_bytes()
    });
    right.then_some(Some(seconds)).ok_or_else(|| "the stencil's answer is wrong".into())
}

const BLUR: &str = include_str!("../../kernels/blur.wgsl");

fn blur(gpu: &Gpu) -> Result<Option<f64>, Error> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let bytes: Vec<u8> = (0..TEXELS * 4).map(|_| next()).collect();
    let source = gpu.image(vk::Format::R8G8B8A8_UNORM, SIDE, Some(&bytes))?;
    let result = gpu.image(vk::Format::R8G8B8A8_UNORM, SIDE, None)?;
    let seconds = over_images(gpu, BLUR, &[Bound::Sampled(&source), Bound::Storage(&result), Bound::Sampler])?;
    let found = gpu.texels(&result, bytes.len())?;
    let texel = |x: i64, y: i64, component: usize| {
        let [x, y] = [x, y].map(|at| at.clamp(0, i64::from(SIDE) - 1) as usize);
        f64::from(bytes[(y * SIDE as usize + x) * 4 + component])
    };
    // A distance of 1.4 texels is between the first and the second.
    let between = |near: f64, far: f64| 0.6 * near + 0.4 * far;
    for (number, &found) in found.iter().enumerate() {
        let (place, c) = (number / 4, number % 4);
        let (x, y) = ((place % SIDE as usize) as i64, (place / SIDE as usize) as i64);
        let around = between(texel(x - 1, y, c), texel(x - 2, y, c))
            + between(texel(x + 1, y, c), texel(x + 2, y, c))
            + between(texel(x, y - 1, c), texel(x, y - 2, c))
            + between(texel(x, y + 1, c), texel(x, y + 2, c));
        let expected = 0.4 * texel(x, y, c) + 0.15 * around;
        // Vulkan allows weights of 8 bits.
        if (f64::from(found) - expected).abs() > 2.0 {
            return Err(format!("the blur's answer at {x}, {y} is {found}, not {expected:.2}").into());
        }
    }
    Ok(Some(seconds))
}

/// Runs a kernel once per texel, in workgroups of 16 by 16.
fn over_images(gpu: &Gpu, text: &str, bound: &[Bound<'_>]) -> Result<f64, Error> {
    let program = gpu.program(text, bound)?;
    gpu.time(gpu.prepare(&[Step { program: &program, groups: [SIDE / 16; 2], push: None }])?)
}

/// For subgroups of any size. Dispatched again on its own results until one element is left.
const REDUCE: &str = "
const WIDTH: u32 = 256;
const EACH: u32 = 8;
var<immediate> count: u32;
@group(0) @binding(0) var<storage, read> elements: array<u32>;
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;
var<workgroup> partial: array<u32, WIDTH / 4u>;
@compute @workgroup_size(WIDTH)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(num_subgroups) subgroups: u32,
    @builtin(subgroup_size) size: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    var at = group.x * WIDTH * EACH + index;
    var sum = 0u;
    for (var i = 0u; i < EACH; i++) {
        var element = 0u;
        if at < count {
            element = elements[at];
        }
        sum += subgroupAdd(element);
        at += WIDTH;
    }
    if lane == 0u {
        partial[subgroup] = sum;
    }
    workgroupBarrier();
    if subgroup == 0u {
        var all = 0u;
        for (var i = 0u; i < subgroups; i += size) {
            var one = 0u;
            if i + lane < subgroups {
                one = partial[i + lane];
            }
            all += subgroupAdd(one);
        }
        if lane == 0u {
            sums[group.x] = all;
        }
    }
}";

/// Elements that one workgroup of [`REDUCE`] sums.
const EACH: usize = 2048;

fn reduce(gpu: &Gpu, elements: usize) -> Result<Option<f64>, Error> {
    let element = |i: usize| (i as u32).wrapping_mul(2_654_435_761);
    let bytes: Vec<u8> = (0..elements).flat_map(|i| element(i).to_ne_bytes()).collect();
    let mut counts = vec![elements];
    let mut buffers = vec![gpu.buffer(&bytes)?];
    while counts.last().is_some_and(|&count| count > 1) {
        let count = counts.last().map_or(1, |count| count.div_ceil(EACH));
        buffers.push(gpu.buffer(&vec![0; count * 4])?);
        counts.push(count);
    }
    let programs = buffers
        .windows(2)
        .map(|pair| gpu.program(REDUCE, &[Bound::Buffer(&pair[0]), Bound::Buffer(&pair[1])]))
        .collect::<Result<Vec<_>, _>>()?;
    let steps: Vec<_> = programs
        .iter()
        .zip(counts.windows(2))
        .map(|(program, counts)| Step { program, groups: [counts[1] as u32, 1], push: Some(counts[0] as u32) })
        .collect();
    let commands = gpu.prepare(&steps)?;
    let expected = (0..elements).map(element).fold(0, u32::wrapping_add);
    if buffers.last().map(|buffer| buffer.read()) != Some(expected.to_ne_bytes().to_vec()) {
        return Err("the sum is wrong".into());
    }
    gpu.time(commands).map(Some)
}

const SAXPY: &str = "
enable f16;
@group(0) @binding(0) var<storage, read> x: array<f16>;
@group(0) @binding(1) var<storage, read_write> y: array<f16>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
    let at = id.y * groups.x * 256 + id.x;
    y[at] = f16(0.375 * f32(x[at]) + f32(y[at]));
}";

/// An array's element by index.
type Values = fn(usize) -> f32;

fn saxpy(gpu: &Gpu, count: usize) -> Result<Option<f64>, Error> {
    if !gpu.has_halves {
        return Ok(None);
    }
    let halves =
        |value: Values| -> Vec<u8> { (0..count).flat_map(|i| f16::from_f32(value(i)).to_ne_bytes()).collect() };
    let (first, second): (Values, Values) = (|i| (i % 61) as f32, |i| (i % 97) as f32);
    let (x, y) = (gpu.buffer(&halves(first))?, gpu.buffer(&halves(second))?);
    let program = gpu.program(SAXPY, &[Bound::Buffer(&x), Bound::Buffer(&y)])?;
    let groups = (count / 256) as u32;
    let commands =
        gpu.prepare(&[Step { program: &program, groups: [groups.min(1024), groups / groups.min(1024)], push: None }])?;
    for (i, found) in y.read().chunks_exact(2).enumerate() {
        let expected = f16::from_f32(0.375 * first(i) + second(i));
        if found != expected.to_ne_bytes() {
            return Err(format!("element {i} is not {expected}").into());
        }
    }
    gpu.time(commands).map(Some)
}
