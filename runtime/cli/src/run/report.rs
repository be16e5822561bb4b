//! Output of a run: values of buffers, files, times.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value as Json, json};
use spelter::{Context, Program};

use super::bind::BoundBuffer;
use crate::args::RunArgs;
use crate::columns;
use crate::failure::Failure;
use crate::output::Output;
use crate::scalar::Scalar;
use crate::slot::{Print, Slot};

/// The number of values on a line of a long list.
const ON_A_LINE: usize = 8;

/// The largest number of values that one `--out` prints; each takes many times its own size in memory.
const MAX_SHOWN: u64 = 1 << 20;

/// Checks `--out`, `--save` and `--trace` before the run.
pub(super) fn check(bound: &[BoundBuffer], args: &RunArgs) -> Result<(), Failure> {
    for print in &args.out {
        let slot = print.slot;
        let elements = find(bound, "--out", print.slot)?.buffer.size() / print.scalar.bytes() as u64;
        if let Some((first, last)) = print.range
            && last > elements
        {
            return Err(Failure(format!("--out {slot}: elements {first}..{last} of a buffer of {elements} elements")));
        }
        let (first, last) = print.range.unwrap_or((0, elements));
        if last - first > MAX_SHOWN {
            let problem = "values are too many to print: use FIRST..LAST or --save";
            return Err(Failure(format!("--out {slot}: {} {problem}", last - first)));
        }
    }
    args.trace.iter().try_for_each(|path| check_path(path))?;
    args.save.iter().try_for_each(|save| {
        find(bound, "--save", save.slot)?;
        check_path(&save.path)
    })
}

/// Checks that the folder of an output file exists, so that an error is reported before a long run.
fn check_path(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if folder.is_some_and(|folder| !folder.is_dir()) {
        return Err(Failure::file(path, "its folder does not exist"));
    }
    if path.is_dir() { Err(Failure::file(path, "is a folder")) } else { Ok(()) }
}

/// Writes the files of `--save`.
pub(super) fn save(context: &Context, bound: &[BoundBuffer], args: &RunArgs) -> Result<(), Failure> {
    args.save.iter().try_for_each(|save| {
        let bytes: Vec<u8> = context.read(&find(bound, "--save", save.slot)?.buffer)?;
        std::fs::write(&save.path, bytes).map_err(|error| Failure::file(&save.path, error))
    })
}

/// Writes the file of `--trace`.
pub(super) fn trace(context: &Context, args: &RunArgs) -> Result<(), Failure> {
    let Some(path) = &args.trace else { return Ok(()) };
    let write = || {
        let mut file = BufWriter::new(File::create(path)?);
        context.write_trace(&mut file)?;
        file.flush()
    };
    write().map_err(|error: std::io::Error| Failure::file(path, error))
}

/// Prints values and times, as text or as one JSON object.
pub(super) fn print(
    context: &Context,
    program: &Program,
    bound: &[BoundBuffer],
    (times, notes): (&[Duration], &[String]),
    args: &RunArgs,
    output: &mut Output,
) -> Result<(), Failure> {
    let values: Vec<Shown> = args.out.iter().map(|print| read(context, bound, print)).collect::<Result<_, _>>()?;
    let bytes = bound.iter().map(|bound| bound.buffer.size()).sum();
    let times = Times::new(times, (program, bytes), args);
    if args.json {
        return output.json(&json!({
            "file": args.file.display().to_string(),
            "entry": program.entry(),
            "groups": args.groups(),
            "workgroup_size": program.workgroup_size(),
            "interpreted_because": program.fallback(),
            "workers": context.device().properties().workers,
            "outputs": values.iter().map(Shown::json).collect::<Vec<_>>(),
            "times": times.json(),
            "notes": notes,
            "stats": context.stats().iter().map(|(name, count)| (name.to_owned(), count.into())).collect::<Map<_, _>>(),
        }));
    }
    values.iter().try_for_each(|shown| shown.print(output))?;
    if args.time { times.print(output) } else { Ok(()) }
}

pub(super) fn find<'a>(bound: &'a [BoundBuffer], option: &str, slot: Slot) -> Result<&'a BoundBuffer, Failure> {
    let Some(found) = bound.iter().find(|bound| bound.slot == slot) else {
        let list: Vec<_> = bound.iter().map(|bound| bound.name.as_str()).collect();
        let has = if list.is_empty() { "nothing is bound".into() } else { format!("bound are {}", list.join(", ")) };
        return Err(Failure(format!("{option} {slot}: no buffer is bound to it; {has}")));
    };
    Ok(found)
}

/// Values of a buffer, for one `--out`.
struct Shown<'a> {
    name: &'a str,
    scalar: Scalar,
    first: u64,
    /// The bits of each element.
    elements: Vec<u64>,
}

fn read<'a>(context: &Context, bound: &'a [BoundBuffer], print: &Print) -> Result<Shown<'a>, Failure> {
    let BoundBuffer { name, buffer, .. } = find(bound, "--out", print.slot)?;
    let each = print.scalar.bytes();
    let (first, last) = print.range.unwrap_or((0, buffer.size() / each as u64));
    let bytes: Vec<u8> = context.read_range(buffer, first * each as u64..last * each as u64)?;
    let bits = |bytes: &[u8]| bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
    let elements = bytes.chunks_exact(each).map(bits).collect();
    Ok(Shown { name, scalar: print.scalar, first, elements })
}

impl Shown<'_> {
    fn json(&self) -> Json {
        json!({
            "binding": self.name,
            "type": self.scalar.to_string(),
            "first": self.first,
            "values": self.elements.iter().map(|&bits| self.scalar.json(bits)).collect::<Vec<_>>(),
        })
    }

    /// Prints a short list on one line, a long one in rows that begin with the index of their first element: `[8]`.
    fn print(&self, output: &mut Output) -> Result<(), Failure> {
        let shown: Vec<String> = self.elements.iter().map(|&bits| self.scalar.show(bits)).collect();
        let head = output.faint(&format!("{} {}", self.name, self.scalar));
        if shown.len() <= ON_A_LINE {
            return output.line(format!("{head}  {}", shown.join(" ")));
        }
        output.line(head)?;
        let first = self.first as usize;
        let width = shown.iter().map(String::len).max().unwrap_or(0);
        let last_row = first + (shown.len() - 1) / ON_A_LINE * ON_A_LINE;
        let index_width = last_row.to_string().len() + 2;
        shown.chunks(ON_A_LINE).enumerate().try_for_each(|(row, values)| {
            let index = format!("[{}]", first + row * ON_A_LINE);
            let index = output.faint(&format!("{index:>index_width$}"));
            let values: Vec<_> = values.iter().map(|value| format!("{value:>width$}")).collect();
            output.line(format!("{index}  {}", values.join(" ")))
        })
    }
}

/// The times of the repetitions.
struct Times {
    repeats: usize,
    median: Duration,
    best: Duration,
    /// Invocations per second at the median; only for several repetitions, since the first one is a warm-up.
    rate: Option<f64>,
    /// Bytes of all bound buffers per second at the median; `None` without buffers.
    bandwidth: Option<f64>,
    /// The distance of the quartiles, as a part of the median; only for several repetitions.
    spread: Option<f64>,
}

impl Times {
    fn new(times: &[Duration], (program, bytes): (&Program, u64), args: &RunArgs) -> Self {
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        let median = (low + high) / 2;
        let invocations: f64 = args.groups().into_iter().chain(program.workgroup_size()).map(f64::from).product();
        let (several, seconds) = (sorted.len() > 1, median.as_secs_f64().max(1e-9));
        let rate = several.then(|| invocations / seconds);
        let bandwidth = (bytes > 0).then(|| bytes as f64 / seconds);
        let quartile = |part: usize| sorted[(sorted.len() - 1) * part / 4].as_secs_f64();
        let spread = several.then(|| (quartile(3) - quartile(1)) / seconds);
        Self { repeats: sorted.len(), median, best: sorted[0], rate, bandwidth, spread }
    }

    fn json(&self) -> Json {
        json!({
            "repeats": self.repeats,
            "median_seconds": self.median.as_secs_f64(),
            "best_seconds": self.best.as_secs_f64(),
            "invocations_per_second": self.rate,
            "bound_bytes_per_second": self.bandwidth,
            "spread": self.spread,
        })
    }

    fn print(&self, output: &mut Output) -> Result<(), Failure> {
        let mut rows = vec![("median", short(self.median)), ("best", short(self.best))];
        if let Some(spread) = self.spread {
            rows.push(("spread", columns::percent(spread)));
        }
        if let Some(rate) = self.rate {
            rows.push(("rate", format!("{:.3} M invocations/s", rate / 1e6)));
        }
        if let Some(bandwidth) = self.bandwidth {
            rows.push(("bound", format!("{} GB/s", columns::digits(bandwidth / 1e9))));
        }
        output.table(&rows)
    }
}

fn short(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s >= 1.0 => format!("{s:.3} s"),
        s if s >= 1e-3 => format!("{:.3} ms", s * 1e3),
        s => format!("{:.3} µs", s * 1e6),
    }
}
