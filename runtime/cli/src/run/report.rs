//! What a run shows: values of buffers, files, times.

use std::time::Duration;

use serde_json::{Value as Json, json};
use spelter::{Buffer, Context, Program};

use super::bind::Bound;
use crate::args::RunArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::slot::{Print, Slot};

/// Values on a line of a long list.
const ON_A_LINE: usize = 8;

/// Makes sure, before anything runs, that what `--out` and `--save` name is there.
pub(super) fn check(bound: &[Bound], args: &RunArgs) -> Result<(), Failure> {
    for print in &args.out {
        let elements = find(bound, "--out", print.slot)?.size() / 4;
        if let Some((first, last)) = print.range
            && last > elements
        {
            let slot = print.slot;
            return Err(Failure(format!("--out {slot}: elements {first}..{last} of a buffer of {elements} elements")));
        }
    }
    args.save.iter().try_for_each(|save| find(bound, "--save", save.slot).map(drop))
}

/// Writes the files of `--save`.
pub(super) fn save(context: &Context, bound: &[Bound], args: &RunArgs) -> Result<(), Failure> {
    args.save.iter().try_for_each(|save| {
        let bytes: Vec<u8> = context.read(find(bound, "--save", save.slot)?)?;
        std::fs::write(&save.path, bytes).map_err(|error| Failure::file(&save.path, error))
    })
}

/// Prints values and times, as text or as one JSON object.
pub(super) fn print(
    context: &Context,
    program: &Program,
    bound: &[Bound],
    times: &[Duration],
    args: &RunArgs,
    output: &mut Output,
) -> Result<(), Failure> {
    let values = args.out.iter().map(|print| Ok((print, read(context, bound, print)?)));
    let values: Vec<(&Print, Vec<u32>)> = values.collect::<Result<_, Failure>>()?;
    let times = Times::new(times, program, args);
    if args.json {
        return output.json(&json!({
            "file": args.file.display().to_string(),
            "entry": program.entry(),
            "groups": args.groups.0,
            "workgroup_size": program.workgroup_size(),
            "workers": context.device().properties().workers,
            "outputs": values.iter().map(|(print, words)| json_values(print, words)).collect::<Vec<_>>(),
            "times": times.json(),
        }));
    }
    values.iter().try_for_each(|(print, words)| text_values(print, words, output))?;
    if args.time { times.print(output) } else { Ok(()) }
}

fn find<'a>(bound: &'a [Bound], option: &str, slot: Slot) -> Result<&'a Buffer, Failure> {
    let Some(found) = bound.iter().find(|bound| bound.slot == slot) else {
        let list: Vec<_> = bound.iter().map(|bound| bound.slot.to_string()).collect();
        let has = if list.is_empty() { "nothing is bound".into() } else { format!("bound are {}", list.join(", ")) };
        return Err(Failure(format!("{option} {slot}: no buffer is bound to it; {has}")));
    };
    Ok(&found.buffer)
}

fn read(context: &Context, bound: &[Bound], print: &Print) -> Result<Vec<u32>, Failure> {
    let buffer = find(bound, "--out", print.slot)?;
    let (first, last) = print.range.unwrap_or((0, buffer.size() / 4));
    Ok(context.read_range(buffer, first * 4..last * 4)?)
}

fn json_values(print: &Print, words: &[u32]) -> Json {
    json!({
        "binding": print.slot.to_string(),
        "type": print.scalar.to_string(),
        "first": print.range.map_or(0, |(first, _)| first),
        "values": words.iter().map(|&bits| print.scalar.json(bits)).collect::<Vec<_>>(),
    })
}

/// A short list on one line, a long one in rows that begin with the index of their first element.
fn text_values(print: &Print, words: &[u32], output: &mut Output) -> Result<(), Failure> {
    let shown: Vec<String> = words.iter().map(|&bits| print.scalar.show(bits)).collect();
    let head = output.faint(&format!("{} {}", print.slot, print.scalar));
    if shown.len() <= ON_A_LINE {
        return output.line(format!("{head}  {}", shown.join(" ")));
    }
    output.line(head)?;
    let first = print.range.map_or(0, |(first, _)| first as usize);
    let width = shown.iter().map(String::len).max().unwrap_or(0);
    let index_width = (first + shown.len()).to_string().len();
    shown.chunks(ON_A_LINE).enumerate().try_for_each(|(row, values)| {
        let index = output.faint(&format!("{:>index_width$}", first + row * ON_A_LINE));
        let values: Vec<_> = values.iter().map(|value| format!("{value:>width$}")).collect();
        output.line(format!("{index}  {}", values.join(" ")))
    })
}

/// What the repetitions took.
struct Times {
    repeats: usize,
    median: Duration,
    best: Duration,
    /// Invocations in a second at the median; only told for several repetitions, as the first one warms up.
    rate: Option<f64>,
}

impl Times {
    fn new(times: &[Duration], program: &Program, args: &RunArgs) -> Self {
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        let median = (low + high) / 2;
        let invocations: f64 = args.groups.0.into_iter().chain(program.workgroup_size()).map(f64::from).product();
        let rate = (sorted.len() > 1).then(|| invocations / median.as_secs_f64().max(1e-9));
        Self { repeats: sorted.len(), median, best: sorted[0], rate }
    }

    fn json(&self) -> Json {
        json!({
            "repeats": self.repeats,
            "median_seconds": self.median.as_secs_f64(),
            "best_seconds": self.best.as_secs_f64(),
            "invocations_per_second": self.rate,
        })
    }

    fn print(&self, output: &mut Output) -> Result<(), Failure> {
        let mut rows = vec![("median", short(self.median)), ("best", short(self.best))];
        if let Some(rate) = self.rate {
            rows.push(("rate", format!("{:.3} M invocations/s", rate / 1e6)));
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
