//! The host's part of a dispatch, and reading a result back, through each interface in one run: the crate, the driver,
//! the adapter of wgpu, and wgpu's own Vulkan back end on this driver and on lavapipe.
//!
//! `cargo build --release -p spelter-icd && cargo bench -p spelter-benches --bench interfaces` prints the table; `--
//! --json` prints one object per interface, `-- NAME…` only those whose names contain one of these. Each measurement is
//! a process of its own; all interfaces are measured in turns, and the best time of each counts. `SPELTER_ICD` and
//! `SPELTER_LAVAPIPE` name another library and another manifest.

#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

mod direct;
mod through_wgpu;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use spelter_benches::measure::best_within;
use spelter_benches::{Error, manifests};

/// Rounds for each interface.
const ROUNDS: usize = 3;
/// How long each measurement of a round takes.
const PERIOD: Duration = Duration::from_millis(400);
/// Marks a child process; the name of its interface follows.
const CHILD: &str = "--of-one-interface";
/// Dispatches before a wait.
const MANY: u32 = 1000;
/// Bytes that are read back.
const BYTES: usize = 64 << 10;

/// Words that a dispatch changes.
const CHANGED: usize = 64;

/// Adds one to the first 64 of 16,384 words.
const KERNEL: &str = "
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] += 1u; }";

/// An interface with a buffer of [`BYTES`] bytes and [`KERNEL`].
trait Interface {
    /// What it says that the device is.
    fn device(&self) -> String;

    /// Records and submits dispatches of one workgroup, each of which sees the one before it, and waits for them.
    fn dispatch(&mut self, count: u32) -> Result<(), Error>;

    /// Copies the whole buffer to the memory of the program.
    fn read(&mut self, to: &mut [u8]) -> Result<(), Error>;
}

/// The driver that the Vulkan loader finds.
#[derive(Clone, Copy)]
enum Loads {
    Nothing,
    Ours,
    Lavapipe,
}

/// A name, the driver, and how the interface is opened.
type Way = (&'static str, Loads, fn() -> Result<Box<dyn Interface>, Error>);

const WAYS: [Way; 6] = [
    ("spelter", Loads::Nothing, || Ok(Box::new(direct::Crate::open()?))),
    ("spelter, read::<u32>", Loads::Nothing, || Ok(Box::new(direct::Lists::open()?))),
    ("spelter-driver", Loads::Nothing, || Ok(Box::new(direct::Driver::open()?))),
    ("spelter-wgpu", Loads::Nothing, || Ok(Box::new(through_wgpu::Wgpu::of_spelter()?))),
    ("wgpu on the Vulkan driver", Loads::Ours, || Ok(Box::new(through_wgpu::Wgpu::of_loader()?))),
    ("wgpu on lavapipe", Loads::Lavapipe, || Ok(Box::new(through_wgpu::Wgpu::of_loader()?))),
];

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [flag, name] = &arguments[..]
        && flag == CHILD
    {
        let (_, _, open) = WAYS.iter().find(|(way, ..)| way == name).ok_or("no such interface")?;
        println!("{}", measure(&mut *open()?)?);
        return Ok(());
    }
    let (flags, names): (Vec<_>, Vec<_>) = arguments.into_iter().partition(|argument| argument.starts_with("--"));
    let wanted = |way: &&Way| names.is_empty() || names.iter().any(|name| way.0.contains(name.as_str()));
    let ways: Vec<&Way> = WAYS.iter().filter(wanted).collect();
    let mut rows = vec![Value::Null; ways.len()];
    for _ in 0..ROUNDS {
        for (way, row) in ways.iter().zip(&mut rows) {
            *row = better(row, in_a_process(way)?);
        }
    }
    if flags.iter().any(|flag| flag == "--json") {
        rows.iter().for_each(|row| println!("{row}"));
        return Ok(());
    }
    println!("{:<26} {:>10} {:>13} {:>12} {:>7}", "", "one, µs", "dispatches/s", "64 KiB, µs", "GB/s");
    rows.iter().for_each(|row| println!("{}", line(row)));
    Ok(())
}

/// Seconds of one dispatch with a wait, of each of many, and of a read, after a check of their results.
fn measure(interface: &mut dyn Interface) -> Result<Value, Error> {
    let mut bytes = vec![0; BYTES];
    let mut expected = 0u32;
    let mut dispatch = |interface: &mut dyn Interface, count: u32| {
        expected = expected.wrapping_add(count);
        interface.dispatch(count)
    };
    // The first ones compile.
    dispatch(interface, 1)?;
    dispatch(interface, MANY)?;
    let mut failed = Ok(());
    let mut keep = |result: Result<(), Error>| {
        if result.is_err() {
            failed = result;
        }
    };
    let one = best_within(PERIOD, || keep(dispatch(interface, 1)));
    let many = best_within(PERIOD, || keep(dispatch(interface, MANY)));
    let read = best_within(PERIOD, || keep(interface.read(&mut bytes)));
    failed?;
    let words = bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    let right = (0usize..).map(|at| if at < CHANGED { expected } else { 0 });
    if let Some((at, (got, _))) = words.zip(right).enumerate().find(|(_, (got, right))| got != right) {
        return Err(format!("word {at} is {got}; {expected} dispatches have run").into());
    }
    Ok(json!({
        "device": interface.device(), "one_seconds": one, "each_seconds": many / f64::from(MANY), "read_seconds": read,
    }))
}

/// Measures in another process, whose loader finds the driver of the interface.
fn in_a_process((name, loads, _): &Way) -> Result<Value, Error> {
    let mut command = Command::new(std::env::current_exe()?);
    match loads {
        Loads::Nothing => {}
        Loads::Ours => {
            manifests::select(&mut command, &manifests::ours(Path::new(env!("CARGO_TARGET_TMPDIR")))?);
            // As `spelter exec --graphics` does: wgpu needs both.
            command.env("SPELTER_ADVERTISE_GRAPHICS", "1").env("SPELTER_CONFORMANCE", "1.3.0.0");
        }
        Loads::Lavapipe => manifests::select(&mut command, &manifests::lavapipe()),
    }
    let output = command.args([CHILD, name]).output()?;
    if !output.status.success() {
        return Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let mut row: Value = serde_json::from_slice(&output.stdout)?;
    row["interface"] = json!(name);
    Ok(row)
}

/// The shorter times of two rounds.
fn better(known: &Value, mut row: Value) -> Value {
    for key in ["one_seconds", "each_seconds", "read_seconds"] {
        let [a, b] = [known, &row].map(|row| row[key].as_f64().unwrap_or(f64::INFINITY));
        row[key] = json!(a.min(b));
    }
    row
}

fn line(row: &Value) -> String {
    let seconds = |key: &str| row[key].as_f64().unwrap_or(f64::NAN);
    let read = seconds("read_seconds");
    format!(
        "{:<26} {:>10.1} {:>13.0} {:>12.1} {:>7.1}  {}",
        row["interface"].as_str().unwrap_or_default(),
        seconds("one_seconds") * 1e6,
        1.0 / seconds("each_seconds"),
        read * 1e6,
        BYTES as f64 / read / 1e9,
        row["device"].as_str().unwrap_or_default(),
    )
}
