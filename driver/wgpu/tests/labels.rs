//! Labels of wgpu's objects and commands are where a user looks for them: in findings of checked mode, in the timeline
//! of `SPELTER_TRACE`, and in the reason of a lost device.

#![allow(clippy::unwrap_used, reason = "tests and their helpers")]

use std::process::Command;

use crate::common::{Gpu, error_of, text};

const RACY: &str = "
    @group(0) @binding(0) var<storage, read_write> total: u32;
    @compute @workgroup_size(2) fn main() { total += 1u; }";

/// Runs a kernel, then a command outside of passes, in labels of each kind.
fn run_labelled(gpu: &Gpu, source: &str) {
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST;
    let sum = gpu.device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("the sums"),
        size: 256,
        usage,
        mapped_at_creation: false,
    });
    let pipeline = gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some("adder"),
        layout: None,
        module: &gpu.module(source),
        entry_point: Some("main"),
        compilation_options: Default::default(),
        cache: None,
    });
    let group = gpu.group(&pipeline, &[sum.as_entire_binding()]);
    let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("frame 7") });
    encoder.push_debug_group("light");
    let mut pass =
        encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: Some("add all"), timestamp_writes: None });
    pass.set_pipeline(&pipeline);
    pass.set_bind_group(0, &group, &[]);
    pass.push_debug_group("inner");
    pass.insert_debug_marker("here");
    pass.dispatch_workgroups(1, 1, 1);
    pass.pop_debug_group();
    drop(pass);
    encoder.pop_debug_group();
    encoder.clear_buffer(&sum, 0, None);
    gpu.queue.submit([encoder.finish()]);
}

/// A test of a user that knows nothing of checked mode. Its first encoder is never finished.
#[test]
#[ignore = "`findings_have_labels` runs it in checked mode"]
fn racy() {
    let (device, queue) = spelter_wgpu::device();
    let gpu = Gpu { device, queue };
    let error = error_of(&gpu.device, || {
        let mut encoder = gpu.encoder();
        encoder.push_debug_group("never ends");
        encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default()).push_debug_group("nor this");
        encoder.finish();
    });
    assert!(error.contains("debug group"), "{error}");
    run_labelled(&gpu, RACY);
    run_labelled(&gpu, RACY);
    gpu.device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
}

#[test]
fn findings_have_labels() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "labels::racy", "--nocapture"]).env("SPELTER_CHECK", "1");
    let said = String::from_utf8(command.output().unwrap().stderr).unwrap();
    // The second dispatch has the same race, which is said once.
    assert_eq!(said.matches("error[SPELTER-RACE").count(), 1, "{said}");
    for name in ["of buffer `the sums`", "\n  in `light/add all/inner/here: adder`, command buffer ", "found 1 error"] {
        assert!(said.contains(name), "no {name} in {said}");
    }
}

/// Findings that the program takes have the line that `SPELTER_CHECK` prints, once, however they are printed.
#[test]
fn findings_that_are_taken_have_labels() {
    let check = Some(spelter_driver::check::CheckOptions::default());
    let gpu = Gpu::of(&spelter_wgpu::Options::new().driver(|options| options.check = check));
    run_labelled(&gpu, RACY);
    gpu.device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
    let findings = spelter_wgpu::driver_device(&gpu.device).unwrap().take_findings();
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    let report = spelter_driver::check::report::text(finding, &[], false);
    for text in [finding.to_string(), format!("{finding:?}"), report] {
        assert_eq!(text.matches("in `light/add all/inner/here: adder`, command buffer ").count(), 1, "{text}");
    }
    let json = spelter_driver::check::report::json(finding);
    assert_eq!(json["dispatch"]["name"], "light/add all/inner/here: adder");
}

#[test]
fn the_reason_of_a_loss_has_labels() {
    let limit = std::time::Duration::from_millis(200);
    let gpu = Gpu::of(&spelter_wgpu::Options::new().workers(1).time_limit(limit));
    run_labelled(
        &gpu,
        "@group(0) @binding(0) var<storage, read_write> to: array<u32>;
        @compute @workgroup_size(1) fn main() { while to[0] == 0u { to[1] += 1u; } }",
    );
    // wgpu panics if a device is lost while it waits.
    let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        gpu.device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
    }));
    assert!(waited.is_err());
    let reason = text(&spelter_wgpu::driver_device(&gpu.device).unwrap().check_alive().unwrap_err());
    assert!(reason.contains("light/add all/inner/here: adder"), "{reason}");
}

/// A test of a user that knows nothing of timelines. Two devices share the file.
#[test]
#[ignore = "`timelines_have_labels` runs it with a timeline"]
fn traced() {
    let source = "@group(0) @binding(0) var<storage, read_write> to: array<u32>;
        @compute @workgroup_size(1) fn main() { to[0] = 1u; }";
    for _ in 0..2 {
        let (device, queue) = spelter_wgpu::device();
        let gpu = Gpu { device, queue };
        run_labelled(&gpu, source);
        gpu.device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
    }
}

#[test]
fn timelines_have_labels() {
    let run = |file: &std::path::Path| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "labels::traced", "--nocapture"]).env("SPELTER_TRACE", file);
        command.output().unwrap()
    };
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("wgpu-timeline.json");
    let output = run(&file);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let timeline = std::fs::read_to_string(&file).unwrap();
    assert!(timeline.starts_with("[\n{") && timeline.ends_with("}\n]\n"), "{timeline}");
    let dispatch = "\"cat\":\"dispatch\",\"name\":\"light/add all/inner/here: adder\"";
    assert!(timeline.matches(dispatch).count() >= 2, "{timeline}");
    // After the group: the label of the encoder.
    assert!(timeline.contains("\"name\":\"frame 7: fill\"") && timeline.contains("queues of device 2"), "{timeline}");
    // A file that cannot be written is reported, and the program goes on.
    let output = run(std::path::Path::new("/no/such/folder/timeline.json"));
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    let problem = "spelter: SPELTER_TRACE: the timeline /no/such/folder/timeline.json cannot be written: ";
    assert!(said.contains(problem), "{said}");
}
