//! `spelter info`: properties and limits of the device.

use serde_json::json;
use spelter::Backend;
use vulkan_spelter::options::{VARIABLES, Variable};

use crate::args::InfoArgs;
use crate::device;
use crate::environment::variable;
use crate::failure::Failure;
use crate::library;
use crate::output::Output;

/// Shows the device.
pub(crate) fn run(args: &InfoArgs, output: &mut Output) -> Result<(), Failure> {
    if args.env {
        return env(args.json, output);
    }
    let context = device::context(&args.device)?;
    let device = context.device();
    let (properties, limits) = (device.properties(), device.limits());
    let memory: u64 = device.memory_heaps().iter().map(|heap| heap.size).sum();
    let version = properties.api_version;
    let vulkan = format!("{}.{}", version >> 22, (version >> 12) & 0x3ff);
    if args.json {
        return output.json(&json!({
            "version": env!("CARGO_PKG_VERSION"),
            "device": properties.device_name,
            "vulkan": vulkan,
            "workers": properties.workers,
            "time_limit_seconds": args.device.time_limit().as_secs_f64(),
            "backend": properties.backend.name(),
            "backends": backends(),
            "cpu_simd": simd(),
            "memory_bytes": memory,
            "driver": driver_json(),
            "limits": {
                "workgroup_size": limits.max_compute_work_group_size,
                "workgroup_invocations": limits.max_compute_work_group_invocations,
                "workgroup_count": limits.max_compute_work_group_count,
                "shared_memory_bytes": limits.max_compute_shared_memory_size,
                "push_constant_bytes": limits.max_push_constants_size,
                "descriptor_sets": limits.max_bound_descriptor_sets,
                "storage_buffer_bytes": limits.max_storage_buffer_range,
                "uniform_buffer_bytes": limits.max_uniform_buffer_range,
                "subgroup_size": limits.subgroup_size,
            },
        }));
    }
    let [x, y, z] = limits.max_compute_work_group_size;
    let [gx, gy, gz] = limits.max_compute_work_group_count;
    output.table(&[
        ("spelter", env!("CARGO_PKG_VERSION").to_owned()),
        ("device", properties.device_name.clone()),
        ("API", format!("Vulkan {vulkan}, without a claim of conformance")),
        ("driver", driver()),
        ("workers", format!("{} threads that run kernels", properties.workers)),
        (
            "time limit",
            format!("{} s for a dispatch or transfer, then the device is lost", args.device.time_limit().as_secs_f64()),
        ),
        ("kernels", kernels(properties.backend)),
        ("SIMD", format!("the CPU has {}", simd())),
        ("memory", format!("{} for buffers and images", bytes(memory))),
        ("workgroup", format!("at most {x} x {y} x {z} and {} invocations", limits.max_compute_work_group_invocations)),
        ("dispatch", format!("at most {gx} x {gy} x {gz} workgroups")),
        ("subgroup", format!("{} invocations", limits.subgroup_size)),
        ("shared memory", format!("{} for a workgroup", bytes(limits.max_compute_shared_memory_size.into()))),
        ("push constants", bytes(limits.max_push_constants_size.into())),
        ("descriptor sets", format!("numbered 0 to {} (@group in WGSL)", limits.max_bound_descriptor_sets - 1)),
        ("storage buffer", format!("at most {} in a binding", bytes(limits.max_storage_buffer_range.into()))),
        ("uniform buffer", format!("at most {} in a binding", bytes(limits.max_uniform_buffer_range.into()))),
    ])
}

/// Where the Vulkan driver is that `exec`, `check` and `icd` use. The other commands, such as this one, need none.
fn driver() -> String {
    match library::place() {
        Ok((path, false)) => path.display().to_string(),
        Ok((path, true)) => format!("inside this program, unpacked when it is used to {}", path.display()),
        Err(failure) => format!("none: {failure}"),
    }
}

/// The same as JSON.
fn driver_json() -> serde_json::Value {
    match library::place() {
        Ok((path, is_inside)) => json!({"path": path, "inside": is_inside}),
        Err(failure) => json!({"path": null, "problem": failure.to_string()}),
    }
}

/// The environment variables, grouped by the component that reads them.
fn env(as_json: bool, output: &mut Output) -> Result<(), Failure> {
    let value = |name: &str| variable(name).map(|value| value.to_string_lossy().into_owned());
    if as_json {
        let all = VARIABLES.map(|Variable { name, read_by, meaning }| {
            (name.to_owned(), json!({"read_by": read_by, "meaning": meaning, "value": value(name)}))
        });
        return output.json(&serde_json::Value::Object(all.into_iter().collect()));
    }
    let mut readers: Vec<&str> = VARIABLES.iter().map(|variable| variable.read_by).collect();
    readers.sort_unstable();
    readers.dedup();
    for reader in readers {
        output.line(format!("read by {reader}:"))?;
        let rows = VARIABLES.iter().filter(|variable| variable.read_by == reader).map(|variable| {
            let now = value(variable.name).map(|value| format!(" (now {value})")).unwrap_or_default();
            (variable.name, format!("{}{now}", variable.meaning))
        });
        output.table(&rows.collect::<Vec<_>>())?;
    }
    Ok(())
}

/// The available back ends, fastest first.
fn backends() -> Vec<&'static str> {
    Backend::available().map(Backend::name).collect()
}

/// How kernels run, with the available alternatives or the reason for the interpreter.
fn kernels(backend: Backend) -> String {
    match backend {
        Backend::X86(isa) => {
            format!("compiled for {}; available with --backend: {}", isa.name(), backends().join(", "))
        }
        Backend::Interpreter if backends().len() > 1 => {
            format!("interpreted, as requested; available with --backend: {}", backends().join(", "))
        }
        Backend::Interpreter => {
            "interpreted: compiled kernels need an x86-64 CPU with AVX2, FMA, F16C, BMI1 and 2, LZCNT, POPCNT and \
             CMPXCHG16B"
                .to_owned()
        }
    }
}

/// The widest SIMD instructions of the CPU.
fn simd() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        let avx512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512cd")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        match (avx512, is_x86_feature_detected!("avx2")) {
            (true, _) => "AVX-512",
            (false, true) => "AVX2",
            (false, false) => "SSE2",
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        "NEON"
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        "unknown"
    }
}

/// A size in the largest unit that leaves at least 1.
fn bytes(count: u64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let unit = (0..units.len()).rev().find(|&u| count >> (10 * u) != 0).unwrap_or(0);
    let number = count as f64 / (1u64 << (10 * unit)) as f64;
    if number.fract() == 0.0 { format!("{number} {}", units[unit]) } else { format!("{number:.1} {}", units[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(
            [0, 256, 65_536, 1536, u64::from(u32::MAX)].map(bytes),
            ["0 bytes", "256 bytes", "64 KiB", "1.5 KiB", "4.0 GiB"]
        );
    }
}
