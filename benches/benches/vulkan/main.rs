//! Images, subgroups and halves through Vulkan's C API, on this driver and on lavapipe, as ratios in one run.
//!
//! `cargo build --release -p spelter-icd && cargo bench -p spelter-benches --bench vulkan` prints the table; `--
//! --json` prints one object per kernel, `-- NAME…` only kernels whose names contain one of these. `SPELTER_ICD` and
//! `SPELTER_LAVAPIPE` name another library and another manifest than `target/release/libvulkan_spelter.so` and
//! Debian's. Every output is checked before it is timed.

#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

mod gpu;
mod kernels;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use spelter_benches::machine::Machine;
use spelter_benches::{Error, manifests};

use kernels::{Asked, KERNELS, Kernel};

/// Rounds for each driver; the best time counts.
const ROUNDS: usize = 2;
/// Marks a child process.
const CHILD: &str = "--of-one-driver";

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let (flags, names): (Vec<_>, Vec<_>) = arguments.into_iter().partition(|argument| argument.starts_with("--"));
    let wanted = |kernel: &&Kernel| names.is_empty() || names.iter().any(|name| kernel.name.contains(name.as_str()));
    if flags.iter().any(|flag| flag == CHILD) {
        return child(KERNELS.iter().filter(wanted));
    }
    let manifests = [manifests::ours(Path::new(env!("CARGO_TARGET_TMPDIR")))?, manifests::lavapipe()];
    let machine = Machine::default();
    let limit = |kernel: &Kernel| match kernel.asked {
        Asked::Bandwidth(_, bytes) => machine.triad(bytes),
        Asked::Lavapipe(_) => 0.0,
    };
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    KERNELS.iter().filter(wanted).for_each(|kernel| _ = limit(kernel));
    let mut best: [BTreeMap<String, f64>; 2] = Default::default();
    let mut drivers = [String::new(), String::new()];
    for _ in 0..ROUNDS {
        for ((manifest, best), driver) in manifests.iter().zip(&mut best).zip(&mut drivers) {
            *driver = measure_round(manifest, &names, best)?;
        }
    }
    let rows: Vec<Value> = KERNELS
        .iter()
        .filter(wanted)
        .map(|kernel| {
            let [here, there] =
                best.each_ref().map(|best| best.get(kernel.name).map(|seconds| kernel.amount / seconds));
            let ratio = here.zip(there).map(|(here, there)| here / there);
            let (part, asked) = match kernel.asked {
                Asked::Lavapipe(asked) => (None, asked),
                Asked::Bandwidth(asked, _) => (here.map(|here| here / limit(kernel)), asked),
            };
            let is_met = part.or(ratio).map(|reached| reached >= asked);
            json!({
                "kernel": kernel.name, "unit": kernel.unit, "spelter": here.map(|figure| figure / 1e9),
                "lavapipe": there.map(|figure| figure / 1e9), "ratio": ratio, "part_of_bandwidth": part,
                "asked": asked, "is_met": is_met,
            })
        })
        .collect();
    if flags.iter().any(|flag| flag == "--json") {
        rows.iter().for_each(|row| println!("{row}"));
    } else {
        println!("{} against {}; load before: {}", drivers[0], drivers[1], load.trim());
        rows.iter().for_each(|row| println!("{}", line(row)));
    }
    Ok(())
}

fn line(row: &Value) -> String {
    let number = |key: &str| row[key].as_f64().map_or_else(|| "-".into(), |number| format!("{number:.2}"));
    let asked = if row["part_of_bandwidth"].is_null() { "times lavapipe" } else { "of the bandwidth" };
    format!(
        "{:<26} {:>9}: spelter {:>7}  lavapipe {:>7}  ratio {:>6}  of the bandwidth {:>5}  asked {} {asked}: {}",
        row["kernel"].as_str().unwrap_or_default(),
        row["unit"].as_str().unwrap_or_default(),
        number("spelter"),
        number("lavapipe"),
        number("ratio"),
        number("part_of_bandwidth"),
        row["asked"],
        match row["is_met"].as_bool() {
            Some(true) => "met",
            Some(false) => "BELOW",
            None => "not measured",
        }
    )
}

/// Times each kernel on the driver that the loader was configured for.
fn child<'a>(kernels: impl Iterator<Item = &'a Kernel>) -> Result<(), Error> {
    let gpu = gpu::Gpu::open()?;
    println!("{}", json!({ "driver": gpu.name }));
    for kernel in kernels {
        let seconds = (kernel.run)(&gpu).map_err(|error| format!("{}: {error}", kernel.name))?;
        println!("{}", json!({ "kernel": kernel.name, "seconds": seconds }));
    }
    Ok(())
}

/// Runs a child on one driver, keeps its best times, and returns the driver's name.
fn measure_round(manifest: &Path, names: &[String], best: &mut BTreeMap<String, f64>) -> Result<String, Error> {
    let mut command = Command::new(std::env::current_exe()?);
    manifests::select(&mut command, manifest);
    let output = command.arg(CHILD).args(names).output()?;
    if !output.status.success() {
        return Err(format!("{}: {}", manifest.display(), String::from_utf8_lossy(&output.stderr)).into());
    }
    let mut driver = String::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let line: Value = serde_json::from_str(line)?;
        if let (Some(kernel), Some(seconds)) = (line["kernel"].as_str(), line["seconds"].as_f64()) {
            let best = best.entry(kernel.into()).or_insert(f64::INFINITY);
            *best = best.min(seconds);
        }
        driver = line["driver"].as_str().map_or(driver, Into::into);
    }
    Ok(driver)
}
