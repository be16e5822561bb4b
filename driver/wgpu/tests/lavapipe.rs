//! Programs on Spelter and on lavapipe, both through wgpu in this process: their results are equal.
//!
//! The table has the programs of [`crate::programs`], the WGSL files of `tests/kernels` and those of `shaders/library`;
//! and there are the examples of wgpu ([`crate::examples`]).
//! lavapipe is Mesa's Vulkan driver for CPUs (`mesa-vulkan-drivers`), which wgpu's own Vulkan backend finds.

#![allow(clippy::unwrap_used, reason = "tests and their helpers")]

mod corpus;
mod library;
pub(crate) mod work;

use std::io::Write as _;

use crate::common::Gpu;
use crate::examples::{EXAMPLES, Example};
use crate::programs::Program;
use work::{Same, Work};

/// Programs that must have run on both.
const MIN_COMPARED: usize = 115;

/// Programs of the table that naga writes wrong: conversions between signed and unsigned numbers of 32 and 64 bits.
/// Spelter gets naga's module and mends them; lavapipe gets naga's words.
const FOREIGN: [&str; 2] =
    ["unsigned numbers stay positive in signed ones", "signed numbers stay negative in unsigned ones"];

/// The programs of this crate's table.
fn table() -> Vec<Work> {
    let work = |program: Program| Work {
        name: program.name.to_owned(),
        source: program.source,
        entry: "main".to_owned(),
        buffers: (0..).map(|binding| (0, binding)).zip(program.buffers).collect(),
        groups: program.groups,
        ..Work::default()
    };
    let compared = |program: &Program| !FOREIGN.contains(&program.name);
    crate::programs::all().into_iter().filter(compared).map(work).collect()
}

/// lavapipe, if it is installed, with those features of Spelter's that it has.
fn lavapipe(features: wgpu::Features) -> Option<(wgpu::AdapterInfo, Gpu)> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends: wgpu::Backends::VULKAN,
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    let adapters = spelter_wgpu::ready(instance.enumerate_adapters(wgpu::Backends::VULKAN));
    let adapter = adapters.into_iter().find(|adapter| adapter.get_info().name.contains("llvmpipe"))?;
    let descriptor = wgpu::DeviceDescriptor {
        required_features: features & adapter.features(),
        required_limits: adapter.limits(),
        ..wgpu::DeviceDescriptor::default()
    };
    let (device, queue) = spelter_wgpu::ready(adapter.request_device(&descriptor)).unwrap();
    Some((adapter.get_info(), Gpu { device, queue }))
}

/// Writes to standard error, which the test harness does not keep back for this way of writing.
fn say(text: &str) {
    std::io::stderr().write_all(format!("{text}\n").as_bytes()).unwrap();
}

/// Spelter and lavapipe; `None`, which is said, if it is not installed.
fn both() -> Option<(Gpu, wgpu::AdapterInfo, Gpu)> {
    let ours = Gpu::shared();
    let Some((info, theirs)) = lavapipe(ours.device.features()) else {
        let problem = "lavapipe is not installed (mesa-vulkan-drivers)";
        assert!(std::env::var_os("CI").is_none(), "{problem}");
        say(&format!("NOT TESTED against lavapipe: {problem}"));
        return None;
    };
    Some((ours, info, theirs))
}

#[test]
fn examples_have_the_results_of_lavapipe() {
    let Some((ours, _, theirs)) = both() else { return };
    for Example { name, run, same, .. } in EXAMPLES {
        let difference = same.difference(&[run(&ours)], &[run(&theirs)]);
        assert_eq!(difference, None, "{name}: Spelter first, lavapipe second");
    }
}

#[test]
fn programs_have_the_results_of_lavapipe() {
    let Some((ours, info, theirs)) = both() else { return };
    assert_eq!(ours.device.adapter_info().driver, "spelter");
    let mut all = [table(), corpus::all(), library::all()].concat();
    // What subgroups compute depends on their size.
    let sizes = [&ours, &theirs].map(|gpu| gpu.device.adapter_info().subgroup_max_size);
    if sizes[0] != sizes[1] {
        all.retain(|work| !work.source.contains("subgroup"));
    }
    let (mut compared, mut refused, mut wrong) = (0, Vec::new(), Vec::new());
    for work in &all {
        let here = match work.run(&ours) {
            Ok(here) => here,
            Err(error) => {
                wrong.push(format!("{}: refused by Spelter: {error}", work.name));
                continue;
            }
        };
        match work.run(&theirs) {
            Err(error) => refused.push(format!("{}: {}", work.name, error.lines().last().unwrap_or_default().trim())),
            Ok(there) => match work.same.difference(&here, &there) {
                None => compared += 1,
                Some(difference) => wrong.push(format!("{}: {difference}", work.name)),
            },
        }
    }
    say(&format!("{compared} of {} programs are equal on Spelter and {} {}", all.len(), info.name, info.driver_info));
    refused.iter().for_each(|work| say(&format!("  not on lavapipe: {work}")));
    assert!(wrong.is_empty(), "{} programs differ, Spelter first: {wrong:#?}", wrong.len());
    assert!(compared >= MIN_COMPARED, "{compared} programs are compared");
}

#[test]
fn differences_are_seen() {
    let (a, b) = (vec![vec![1, 2]], vec![vec![1, 3]]);
    assert_eq!(Same::Bits.difference(&a, &a), None);
    assert_eq!(Same::Bits.difference(&a, &b).unwrap(), "word 1 of buffer 0: 0x2, 0x3");
    let floats = |x: f32| vec![vec![x.to_bits()]];
    assert_eq!(Same::Near(0.01).difference(&floats(100.0), &floats(100.9)), None);
    assert!(Same::Near(0.01).difference(&floats(100.0), &floats(101.1)).is_some());
    assert!(Same::Near(0.01).difference(&floats(1.0), &floats(f32::NAN)).is_some());
    let codes = Same::Codes { apart: 2, share: 2 };
    assert_eq!(codes.difference(&[vec![0x01_02_03, 0]], &[vec![0x03_02_03, 0]]), None);
    assert_eq!(codes.difference(&[vec![0x01_02_03, 0]], &[vec![0x04_02_03, 0]]), None);
    assert!(codes.difference(&[vec![0x01_02_03, 0]], &[vec![0x04_02_03, 9]]).is_some());
}
