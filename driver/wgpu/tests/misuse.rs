//! What Spelter cannot do is refused by a text that says so, and nothing else is harmed.

#![allow(clippy::unwrap_used, reason = "tests and their helpers")]

use crate::common::{Gpu, error_of, text};

fn texture(format: wgpu::TextureFormat, usage: wgpu::TextureUsages) -> wgpu::TextureDescriptor<'static> {
    wgpu::TextureDescriptor {
        label: None,
        size: wgpu::Extent3d { width: 16, height: 16, depth_or_array_layers: 1 },
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format,
        usage,
        view_formats: &[],
    }
}

fn assert_names(error: &str, parts: &[&str]) {
    for part in parts {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
}

#[test]
fn attachments_are_refused() {
    let gpu = Gpu::shared();
    for format in [wgpu::TextureFormat::Rgba8Unorm, wgpu::TextureFormat::Depth32Float] {
        let error = error_of(&gpu.device, || {
            let _ = gpu.device.create_texture(&texture(format, wgpu::TextureUsages::RENDER_ATTACHMENT));
        });
        assert_names(&error, &["RENDER_ATTACHMENT", "not allowed", &format!("{format:?}")]);
    }
}

#[test]
fn render_pipelines_are_refused() {
    let gpu = Gpu::shared();
    let module = gpu.module(
        "@vertex fn v() -> @builtin(position) vec4<f32> { return vec4(0.0); }
        @fragment fn f() -> @location(0) vec4<f32> { return vec4(1.0); }",
    );
    let error = error_of(&gpu.device, || {
        let _ = gpu.device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
            label: None,
            layout: None,
            vertex: wgpu::VertexState {
                module: &module,
                entry_point: None,
                compilation_options: Default::default(),
                buffers: &[],
            },
            primitive: wgpu::PrimitiveState::default(),
            depth_stencil: None,
            multisample: wgpu::MultisampleState::default(),
            fragment: Some(wgpu::FragmentState {
                module: &module,
                entry_point: None,
                compilation_options: Default::default(),
                targets: &[Some(wgpu::TextureFormat::Rgba8Unorm.into())],
            }),
            multiview_mask: None,
            cache: None,
        });
    });
    assert_names(&error, &["Rgba8Unorm", "not renderable"]);
}

#[test]
fn formats_that_are_not_supported_are_refused() {
    let gpu = Gpu::shared();
    let error = error_of(&gpu.device, || {
        let _ = gpu
            .device
            .create_texture(&texture(wgpu::TextureFormat::Bc1RgbaUnorm, wgpu::TextureUsages::TEXTURE_BINDING));
    });
    assert_names(&error, &["Bc1RgbaUnorm", "TEXTURE_COMPRESSION_BC"]);
    let error = error_of(&gpu.device, || {
        let _ = gpu
            .device
            .create_texture(&texture(wgpu::TextureFormat::Rgba8UnormSrgb, wgpu::TextureUsages::STORAGE_BINDING));
    });
    assert_names(&error, &["Rgba8UnormSrgb", "STORAGE_BINDING"]);
    let error = error_of(&gpu.device, || {
        let descriptor = texture(wgpu::TextureFormat::Rgba8Unorm, wgpu::TextureUsages::TEXTURE_BINDING);
        let _ = gpu.device.create_texture(&wgpu::TextureDescriptor { sample_count: 4, ..descriptor });
    });
    assert_names(&error, &["Multisampled", "RENDER_ATTACHMENT"]);
}

#[test]
fn what_is_too_large_is_refused() {
    let gpu = Gpu::shared();
    let error = error_of(&gpu.device, || {
        let size = gpu.device.limits().max_buffer_size + 1;
        let usage = wgpu::BufferUsages::STORAGE;
        let _ =
            gpu.device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false });
    });
    assert_names(&error, &["4294967296", "4294967295"]);
    let error = error_of(&gpu.device, || {
        gpu.pipeline("@compute @workgroup_size(2048) fn main() {}", &[]);
    });
    assert_names(&error, &["2048", "1024"]);
    let error = error_of(&gpu.device, || {
        gpu.pipeline("var<workgroup> s: array<u32, 20000>; @compute @workgroup_size(1) fn main() { s[0] = 1u; }", &[]);
    });
    assert_names(&error, &["80000", "65536"]);
    let error = error_of(&gpu.device, || {
        let pipeline = gpu.pipeline("@compute @workgroup_size(1) fn main() {}", &[]);
        let mut encoder = gpu.encoder();
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&pipeline);
        pass.dispatch_workgroups(70_000, 1, 1);
        drop(pass);
        encoder.finish();
    });
    assert_names(&error, &["70000", "65535"]);
}

/// More memory than the machine has is an error of this buffer, and the device goes on.
#[test]
fn memory_that_is_not_there_is_refused() {
    let gpu = Gpu::of(&spelter_wgpu::Options::new().driver(|options| options.heap_size = 64 << 20));
    let error = error_of(&gpu.device, || {
        let usage = wgpu::BufferUsages::STORAGE;
        let descriptor = wgpu::BufferDescriptor { label: None, size: 100 << 20, usage, mapped_at_creation: false };
        let _ = gpu.device.create_buffer(&descriptor);
    });
    assert_names(&error, &["memory"]);
    let results = gpu.run(
        "@group(0) @binding(0) var<storage, read_write> to: array<u32>;
        @compute @workgroup_size(1) fn main() { to[0] = 7u; }",
        &[&[0]],
        [1, 1, 1],
    );
    assert_eq!(results[0], [7]);
}

/// The compiler's errors name the line of the text.
#[test]
fn words_that_the_compiler_refuses_have_their_line() {
    let gpu = Gpu::shared();
    // Private memory of all invocations of a workgroup together has a limit.
    let source = "@group(0) @binding(0) var<storage, read_write> to: array<u32>;
        @compute @workgroup_size(1024) fn main(@builtin(local_invocation_index) i: u32) {
            var big: array<u32, 100000>; big[to[i]] = 1u; to[i] = big[i];
        }";
    let error = error_of(&gpu.device, || {
        gpu.pipeline(source, &[]);
    });
    assert_names(&error, &["private memory", "400000 bytes", "1024 invocations"]);
}

/// A kernel that does not end loses its device, with the reason in the log; other devices continue.
#[test]
fn a_kernel_that_does_not_end_loses_its_device() {
    let limit = std::time::Duration::from_millis(200);
    let gpu = Gpu::of(&spelter_wgpu::Options::new().workers(1).time_limit(limit));
    let lost = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let reported = std::sync::Arc::clone(&lost);
    gpu.device.set_device_lost_callback(move |_, reason| *reported.lock().unwrap() = reason);
    let pipeline = gpu.pipeline(
        "@group(0) @binding(0) var<storage, read_write> to: array<u32>;
        @compute @workgroup_size(1) fn main() { while to[0] == 0u { to[1] += 1u; } }",
        &[],
    );
    let data = gpu.words(&[0, 0]);
    let group = gpu.group(&pipeline, &[data.as_entire_binding()]);
    gpu.dispatch(&pipeline, &group, [1, 1, 1]);
    // wgpu panics if a device is lost while it waits.
    let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        gpu.device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
    }));
    assert!(waited.is_err());
    assert_eq!(*lost.lock().unwrap(), "Device is lost");
    let driver = spelter_wgpu::driver_device(&gpu.device).unwrap();
    let reason = text(&driver.check_alive().unwrap_err());
    assert_names(&reason, &["main", "spelter_wgpu::Options::time_limit"]);
    assert_eq!(
        Gpu::shared().run(
            "@group(0) @binding(0) var<storage, read_write> to: array<u32>;
        @compute @workgroup_size(1) fn main() { to[0] = 7u; }",
            &[&[0]],
            [1, 1, 1]
        )[0],
        [7]
    );
}
